# Everyday verbs. Each makes its own environment in .venv when there is none.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS ?= tests

.PHONY: demo test integration lint format typecheck docs bench clean

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/loopguard demo

test: $(STAMP)
	$(BIN)/python -m pytest $(TESTS) -q -n auto -m "not server and not slow" \
		--cov=langgraph_loopguard --cov-branch --cov-report=term:skip-covered

integration: $(STAMP)
	LOOPGUARD_REQUIRE_SERVICES=1 $(BIN)/python -m pytest $(TESTS) -q -n auto -m "postgres or server or slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going docs build/docs

bench: $(STAMP)
	$(BIN)/python benchmarks/guard_cost.py
	$(BIN)/python benchmarks/fingerprint.py
	$(BIN)/python benchmarks/checkpoint_bytes.py
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/audit.py
	$(BIN)/python -m benchmarks.detection
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/escalation_queue.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build dist *.egg-info loopguard-demo

"""`CostBudget`: prices by a kept library, sums without an error, and models without a price."""

from __future__ import annotations

import decimal
import json
import logging
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import CostBudget, LoopGuard
from langgraph_loopguard.core import cost
from langgraph_loopguard.core.cost import Call, cost_of, price

NO_CAP = 10**6
CALL = {"input_tokens": 1000, "output_tokens": 100, "model": "gpt-4o"}
"""Costs 0.0035 US dollars by the list price (2.50 and 10 a million)."""


def spend(condition: CostBudget, usages: list[Any]) -> tuple[Any, list[Any]]:
    """The ledger after some visits, and the verdicts."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)
    ledger: Any = None
    verdicts = []
    for number, usage in enumerate(usages):
        ledger, verdict = guard.observe(json.loads(json.dumps(ledger)), "ab"[number % 2], f"x{number}", usage=usage)
        verdicts.append(verdict)
    return ledger, verdicts


def test_a_budget_that_is_spent_trips() -> None:
    """Exact decimals, as texts, in the ledger and in the reason."""
    ledger, verdicts = spend(CostBudget("0.007"), [CALL] * 2)
    assert "0.0070" == ledger["usd"]
    reason = verdicts[-1].reason
    assert ("CostBudget", "exhausted", "0.007", "0.0070") == (
        reason.condition,
        reason.kind,
        reason.threshold,
        reason.observed,
    )
    assert "0.0070 US dollars are spent, the budget is 0.007" == reason.message
    assert ({"visits": {"a": 1, "b": 1}, "tokens": 2200, "unpriced_tokens": 0},) == reason.evidence


def test_it_warns_before_it_trips() -> None:
    """From `warn_at` on."""
    _, verdicts = spend(CostBudget("0.01", warn_at="0.005"), [CALL] * 3)
    assert [(False, False), (False, True), (True, False)] == [(one.tripped, one.warned) for one in verdicts]


def test_the_price_may_be_known_already() -> None:
    """`usd` of a usage comes before any price list."""
    ledger, verdicts = spend(CostBudget(1), [{"total_tokens": 5, "usd": "0.4"}, {"usd": 0.1}, {"usd": Decimal("0.5")}])
    assert "1.0" == ledger["usd"]
    assert [False, False, True] == [one.tripped for one in verdicts]


def test_cached_tokens_cost_less() -> None:
    """The details of LangChain's usage count."""
    cached = {**CALL, "input_token_details": {"cache_read": 800}}
    assert (known := price(CALL, "gpt-4o")) is not None
    assert (less := price(cached, "gpt-4o")) is not None
    assert less < known == Decimal("0.0035")


def test_a_provider_that_is_not_known_by_its_name_is_found_by_the_model() -> None:
    """LangChain and the price list need not agree on names."""
    assert Decimal("0.0035") == price(CALL, "gpt-4o", "openai") == price(CALL, "gpt-4o", "my-proxy")


def test_a_model_without_a_price_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Its tokens are counted apart; the budget does not see them, and the log says so."""
    cost._say_once.cache_clear()
    unknown = {"input_tokens": 70, "output_tokens": 30, "model": "house-blend"}
    with caplog.at_level(logging.WARNING, "langgraph_loopguard"):
        ledger, verdicts = spend(CostBudget("0.001"), [unknown, unknown, 50, {"total_tokens": 7}])
    assert not any(verdict.tripped for verdict in verdicts)
    assert (257, "0") == (ledger["unpriced"], ledger.get("usd", "0"))
    said = [record.message for record in caplog.records]
    assert 1 == len([line for line in said if "house-blend" in line])
    assert 1 == len([line for line in said if "names no model" in line])


def test_counts_that_contradict_each_other_have_no_price() -> None:
    """More cached tokens than tokens: the price list refuses them, the run goes on."""
    assert ("0", 12) == cost_of(
        [Call({"input_tokens": 10, "output_tokens": 2, "input_token_details": {"cache_read": 99}}, "gpt-4o", None)]
    )


@given(st.lists(st.decimals(0, 10**6, places=9), max_size=20), st.integers(1, 6))
def test_sums_are_exact_whatever_the_callers_context(amounts: list[Decimal], digits: int) -> None:
    """A context that rounds elsewhere rounds nothing here."""
    with decimal.localcontext() as context:
        context.prec = digits
        ledger, _ = spend(CostBudget(10**9), [{"usd": amount} for amount in amounts])
    with decimal.localcontext() as context:
        context.prec = 100
        assert sum(amounts, Decimal(0)) == Decimal(ledger.get("usd", "0") if ledger else "0")


def test_a_retry_renews_the_dollars_that_it_names() -> None:
    """Exactly, and nothing else does."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=CostBudget("0.3"))
    ledger, verdict = guard.observe(None, "a", "x", usage={"usd": "0.3"})
    assert verdict.tripped
    for _ in range(2):
        ledger = guard.decide(ledger, "retry", extra_usd="0.1")
        ledger, verdict = guard.observe(ledger, "b", "y", usage={"usd": "0.05"})
        assert not verdict.tripped
        ledger, verdict = guard.observe(ledger, "a", "z", usage={"usd": "0.05"})
        assert verdict.tripped
    assert "0.2" == ledger["granted"]["usd"]
    with pytest.raises(ValueError, match="extra_usd must be a finite amount of US dollars, got -1"):
        guard.decide(ledger, "retry", extra_usd=-1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"usd": 0}, r"CostBudget\(usd\) must be a positive amount, got 0"),
        ({"usd": -1}, r"CostBudget\(usd\) must be a finite amount of US dollars, got -1"),
        ({"usd": "a lot"}, r"CostBudget\(usd\) must be a finite amount of US dollars, got 'a lot'"),
        ({"usd": float("nan")}, r"CostBudget\(usd\) must be a finite amount of US dollars, got nan"),
        ({"usd": True}, r"CostBudget\(usd\) must be a finite amount of US dollars, got True"),
        ({"usd": 1, "warn_at": 1}, r"CostBudget\(warn_at\) must be below 1, where it trips, got 1"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], message: str) -> None:
    """With the parameter and the value."""
    with pytest.raises(ValueError, match=message):
        CostBudget(**settings)


def test_without_the_price_list_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """At construction, not at the first dollar."""
    monkeypatch.setattr(cost, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"langgraph-loopguard\[cost\]"):
        CostBudget(1)

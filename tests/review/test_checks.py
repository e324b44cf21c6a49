"""Checks: real tools, functions and LangChain tools; pass, fail or unavailable, and what they report."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import tool

from langgraph_loopguard.review.checks import (
    CheckResult,
    CommandCheck,
    FunctionCheck,
    ToolCheck,
    as_check,
    gather,
)
from langgraph_loopguard.review.errors import ReportError
from langgraph_loopguard.review.models import Finding, Provenance, Report
from langgraph_loopguard.review.readers import SHAPES, read_report
from langgraph_loopguard.review.sarif import FINGERPRINT, read_sarif, write_sarif
from langgraph_loopguard.review.source import Snapshot
from tests.review.repositories import Repo

PYTHON = sys.executable


def command(*args: str, **settings: Any) -> CommandCheck:
    return CommandCheck([PYTHON, *args], **settings)


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("pass", "pass"),
        ("raise SystemExit(1)", "fail"),
        ("raise SystemExit(127)", "unavailable"),
        ("print('all good, approved'); raise SystemExit(1)", "fail"),
        ("print('FAILED: 3 errors')", "pass"),
        ("import os; os.abort()", "unavailable"),
    ],
)
def test_a_commands_result_is_its_exit_status_and_never_what_it_says(tmp_path: Path, code: str, result: str) -> None:
    assert command("-c", code).run(tmp_path).result == result


def test_a_command_that_cannot_run_is_unavailable(tmp_path: Path) -> None:
    missing = CommandCheck(["no-such-tool", "-q"]).run(tmp_path)
    assert (missing.result, missing.exit_status) == ("unavailable", None)
    assert "'no-such-tool'" in missing.why
    slow = command("-c", "import time; time.sleep(60)", timeout=0.5).run(tmp_path)
    assert slow.result == "unavailable"
    assert "0.5 seconds" in slow.why


def test_pytest_reports_failed_tests_and_broken_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_x.py").write_text("def test_a():\n    assert 1 == 2\n\n\ndef test_b():\n    pass\n")
    plugins = ("-p", "no:cacheprovider", "-p", "pytest_reportlog.plugin")
    bare = ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]
    check = command("-m", "pytest", "-q", *plugins, "--report-log={report}", ".", env=bare)
    done = check.run(tmp_path)
    assert done.result == "fail"
    assert [(report.file, report.rule) for report in done.reports] == [("test_x.py", "test_x.py::test_a")]
    assert done.reports[0].message == "assert 1 == 2"
    (tmp_path / "test_y.py").write_text("import nowhere\n")
    broken = check.run(tmp_path)
    assert (broken.result, broken.exit_status) == ("fail", 2)
    assert "test_y.py" in {report.file for report in broken.reports}


def test_pytest_without_tests_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for option in ("-q", "--no-such-option"):
        check = command("-m", "pytest", option, env=["PYTEST_DISABLE_PLUGIN_AUTOLOAD"])
        assert check.run(tmp_path).result == "unavailable"


@pytest.mark.parametrize("form", ["json", "json-lines", "sarif"])
def test_ruff(tmp_path: Path, form: str) -> None:
    (tmp_path / "a b.py").write_text("import os\n\nx = 1\nif x == None:\n    pass\n")
    args = ("-m", "ruff", "check", "--isolated", "--no-cache", "--select=E,F", "--output-format", form, ".")
    done = command(*args).run(tmp_path)
    assert done.result == "fail"
    assert [(r.file, r.line, r.rule) for r in done.reports] == [("a b.py", 1, "F401"), ("a b.py", 4, "E711")]
    (tmp_path / "a b.py").write_text("x = 1\n")
    assert command(*args).run(tmp_path).result == "pass"
    (tmp_path / "a b.py").write_text("def (\n")
    assert command(*args).run(tmp_path).reports[0].rule == "invalid-syntax"


def test_ruff_with_a_broken_setting_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "ruff.toml").write_text("nonsense = [")
    assert command("-m", "ruff", "check", "--output-format=json", ".").run(tmp_path).result == "unavailable"


def test_mypy(tmp_path: Path) -> None:
    args = ("-m", "mypy", "--output=json", "--cache-dir=/dev/null", "a.py")
    for code, expected in {
        'x: int = "a"\n': ("fail", [("a.py", 1, "assignment")]),
        "x: int = 1\n": ("pass", []),
        "def (\n": ("fail", [("a.py", 1, "syntax")]),
    }.items():
        (tmp_path / "a.py").write_text(code)
        done = command(*args).run(tmp_path)
        assert (done.result, [(r.file, r.line, r.rule) for r in done.reports][:1]) == expected
    assert command("-m", "mypy", "--output=json", "nowhere.py").run(tmp_path).result == "unavailable"


def test_a_report_in_a_folder_names_files_from_the_top(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.py").write_text("import os\n")
    args = ("-m", "ruff", "check", "--isolated", "--no-cache", "--output-format=json", ".")
    assert command(*args, cwd="sub").run(tmp_path).reports[0].file == "sub/a.py"
    code = 'print(\'{"file": "a.py", "line": 1, "message": "m", "code": "c", "severity": "error"}\')'
    assert command("-c", code, cwd="sub").run(tmp_path).reports[0].file == "sub/a.py"


def test_a_report_that_must_be_there_and_is_not_makes_the_check_unavailable(tmp_path: Path) -> None:
    for text in ("", "nonsense", "[1]", '{"version": "1.0", "runs": []}'):
        done = command("-c", f"print({text!r}); raise SystemExit(1)", format="sarif").run(tmp_path)
        assert done.result == "unavailable"
    assert command("-c", "print('[1]')", format="ruff").run(tmp_path).result == "unavailable"
    assert command("-c", "print('[1]')").run(tmp_path).result == "pass"


def test_pytest_json_report() -> None:
    crash = {"path": "t.py", "lineno": 2, "message": "assert 0"}
    data = {
        "exitcode": 1,
        "collectors": [{"nodeid": "bad.py", "outcome": "failed", "longrepr": "ImportError"}],
        "tests": [
            {"nodeid": "t.py::a", "outcome": "passed"},
            {"nodeid": "t.py::b", "outcome": "failed", "call": {"outcome": "failed", "crash": crash}},
            {"nodeid": "t.py::c", "outcome": "error", "setup": {"outcome": "failed", "longrepr": "no fixture"}},
        ],
    }
    reports = read_report(json.dumps(data), "/")
    assert reports is not None
    assert [(r.file, r.rule, r.message) for r in reports] == [
        ("t.py", "t.py::b", "assert 0"),
        ("t.py", "t.py::c", "no fixture"),
        ("bad.py", "bad.py", "ImportError"),
    ]


def sarif(*results: dict[str, Any], **run: Any) -> dict[str, Any]:
    rules = [{"id": "R1", "defaultConfiguration": {"level": "error"}, "messageStrings": {"m": {"text": "bad {0}"}}}]
    return {
        "version": "2.1.0",
        "runs": [{"tool": {"driver": {"name": "t", "rules": rules}}, "results": list(results), **run}],
    }


def at(uri: str, line: int = 1, **more: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": uri, **more}, "region": {"startLine": line}}
    return {"locations": [{"physicalLocation": place}]}


def test_sarif_in_all_its_indirections(tmp_path: Path) -> None:
    base = {"ROOT": {"uri": tmp_path.as_uri() + "/src/"}}
    log = sarif(
        {"ruleId": "R1", "message": {"text": "one"}, **at("a%20b.py")},
        {"ruleIndex": 0, "message": {"id": "m", "arguments": ["thing"]}, **at((tmp_path / "c.py").as_uri())},
        {"rule": {"id": "R2"}, "message": {"text": "three"}, "kind": "review", **at("d.py", uriBaseId="ROOT")},
        {"ruleId": "R1", "message": {"text": "passed"}, "kind": "pass"},
        {"ruleId": "R1", "message": {"text": "suppressed"}, "suppressions": [{"kind": "inSource"}]},
        {"ruleId": "R1", "message": {"text": "gone"}, "baselineState": "absent"},
        {
            "ruleId": "R1",
            "message": {"text": "rejected"},
            "suppressions": [{"kind": "external", "status": "rejected"}],
            "locations": [{"physicalLocation": {"artifactLocation": {"index": 0}}}],
        },
        originalUriBaseIds=base,
        artifacts=[{"location": {"uri": "e.py"}}],
    )
    found = read_report(json.dumps(log), tmp_path)
    assert found is not None
    assert [(r.file, r.rule, r.message, r.severity, r.kind) for r in found] == [
        ("a b.py", "R1", "one", "error", "actionable"),
        ("c.py", "R1", "bad thing", "error", "actionable"),
        ("src/d.py", "R2", "three", "warning", "judgement"),
        ("e.py", "R1", "rejected", "error", "actionable"),
    ]


def test_a_sarif_run_that_failed_is_no_evidence() -> None:
    with pytest.raises(ReportError, match="not successful"):
        read_report(json.dumps(sarif(invocations=[{"executionSuccessful": False}])), "/")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*"ab", "runs", "version", "tests", "exitcode", "code", "location"]), inner)
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["auto", *SHAPES]))
def test_readers_read_or_refuse_and_never_break(value: Any, form: Any) -> None:
    with contextlib.suppress(ReportError):
        read_report(json.dumps(value), "/", form)


@given(st.text(), st.sampled_from(["auto", *SHAPES]))
def test_readers_survive_any_text(text: str, form: Any) -> None:
    with contextlib.suppress(ReportError):
        read_report(text, "/", form)


def finding(**values: Any) -> Finding:
    provenance = Provenance(source="check", check="c", source_state="s", first_seen=1, last_confirmed=2)
    base = {"id": "f1", "file": "a b\n.py", "line": 3, "rule": "R1", "message": "m", "severity": "error"}
    return Finding.model_validate({**base, "kind": "actionable", "status": "open", "provenance": provenance, **values})


def test_written_sarif_is_read_back() -> None:
    findings = [
        finding(baseline="updated"),
        finding(id="f2", file=None, line=None, rule=None, kind="judgement", baseline="new"),
        finding(id="f3", status="resolved", baseline="absent"),
        finding(id="f4", status="out_of_scope", scope="not in the change"),
    ]
    log = write_sarif(findings, version="1", outcome="blocked")
    results = log["runs"][0]["results"]
    assert [item["baselineState"] for item in results] == ["updated", "new", "absent", "new"]
    assert [item["partialFingerprints"][FINGERPRINT] for item in results] == ["f1", "f2", "f3", "f4"]
    again = read_sarif(json.loads(json.dumps(log)), "/")
    assert [(r.file, r.line, r.rule, r.kind) for r in again] == [
        ("a b\n.py", 3, "R1", "actionable"),
        (None, None, "review", "judgement"),
    ]


# -- functions and tools ---------------------------------------------------------------------------------------------


class Odd:
    def __call__(self, root: Path) -> Any:
        return 7


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (True, "pass"),
        (False, "fail"),
        (None, "unavailable"),
        ("all tests pass, approved", "unavailable"),
        ('"pass"', "unavailable"),
        ('{"result": "pass"}', "pass"),
        ({"result": "fail", "findings": [{"file": "a", "line": 1, "message": "m"}]}, "fail"),
        ({"result": "fine"}, "unavailable"),
        ({"result": "fail", "findings": [{"file": "a"}]}, "unavailable"),
        (sarif(), "pass"),
        (sarif({"message": {"text": "x"}}), "fail"),
        (1, "unavailable"),
    ],
)
def test_a_functions_result_is_its_value(tmp_path: Path, value: Any, result: str) -> None:
    assert FunctionCheck(lambda root: value).run(tmp_path).result == result

    @tool
    def check(n: int) -> Any:
        """A check."""
        return value

    said = ToolCheck(check, {"n": 1}).run(tmp_path)
    assert said.result == (result if isinstance(value, (str, dict, bool)) else "unavailable")


def test_a_check_that_raises_is_unavailable(tmp_path: Path) -> None:
    def broken(root: Path) -> bool:
        raise RuntimeError("no network")

    @tool
    def broken_tool() -> str:
        """A check."""
        raise RuntimeError("no network")

    for check in (FunctionCheck(broken), ToolCheck(broken_tool)):
        done = check.run(tmp_path)
        assert done.result == "unavailable"
        assert "RuntimeError: no network" in done.why


def test_what_stands_for_a_check() -> None:
    assert as_check("tests=pytest -q 'a b'").command == ["pytest", "-q", "a b"]
    assert as_check("tests=pytest -q").name == "tests"
    named = as_check("format:black=black --check .")
    assert (named.subject, named.name, named.command[0]) == ("format", "black", "black")
    assert as_check("pytest --opt=1").name == "pytest --opt=1"
    assert as_check(["ruff", "check"]).name == "ruff check"
    assert as_check(Odd()).name == "Odd"
    assert as_check(Odd()).command[0].endswith("test_checks:Odd")
    one, other = (as_check(f) for f in (lambda root: True, lambda root: False))
    assert one.command != other.command
    for bad in (3, "", "x=", "'", []):
        with pytest.raises(ValueError, match=r"check|argv"):
            as_check(bad)
    with pytest.raises(ValueError, match="timeout must be positive, got 0"):
        CommandCheck(["x"], timeout=0)
    with pytest.raises(ValueError, match="format must be one of"):
        CommandCheck(["x"], format="xml")  # type: ignore[arg-type]


# -- evidence --------------------------------------------------------------------------------------------------------


def test_evidence_is_bound_to_the_source_state(repo: Repo) -> None:
    before = Snapshot.take(repo.path)
    evidence, after = gather(command("-c", "print('x' * 500_000)"), before)
    assert evidence.fresh(before.state)
    assert after.state == before.state
    assert evidence.output_size == 500_001
    assert len(evidence.output) < 150_000
    repo.write({"a.py": "pass\n"})
    assert not evidence.fresh(Snapshot.take(repo.path).state)


def test_a_check_that_changes_the_source_gives_no_evidence(repo: Repo) -> None:
    before = Snapshot.take(repo.path)
    evidence, after = gather(command("-c", "open('a.py', 'a').write('x = 1\\n')"), before)
    assert evidence.changed_source
    assert not evidence.fresh(before.state)
    assert not evidence.fresh(after.state)


def test_a_result_of_ones_own(tmp_path: Path) -> None:
    own = FunctionCheck(lambda root: True).run(tmp_path)
    assert FunctionCheck(lambda root: own).run(tmp_path) is own
    assert isinstance(own, CheckResult)
    assert Report(message="m").kind == "actionable"

"""Readers for the machine-readable reports of checks: SARIF 2.1.0, and the JSON of ruff, mypy and pytest.

A report is read by its shape or not at all: nothing is taken from prose.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langgraph_loopguard.review.errors import ReportError
from langgraph_loopguard.review.models import MAX_LINE, Report, Severity
from langgraph_loopguard.review.paths import relative
from langgraph_loopguard.review.sarif import read_sarif
from langgraph_loopguard.review.text import storable

Format = Literal["auto", "none", "sarif", "ruff", "mypy", "pytest"]
"""How a check reports. `auto`: whichever of the shapes its output has, or none; `none`: by exit status alone."""

Root = str | os.PathLike[str]


def read_report(text: str, root: Root, form: Format = "auto") -> list[Report] | None:
    """Return the problems that a check's output reports.

    Args:
        text: What the check printed (or the file that it wrote).
        root: The folder that it ran on; file names become relative to it.
        form: The format.

    Returns:
        The reports; `None` when the format is `none`, or `auto` and the output has none of the shapes.

    Raises:
        ReportError: The output does not have the shape of the format.
    """
    if form == "none":
        return None
    data = _parse(text)
    if form != "auto":
        return _checked(READERS[form], data, root, form)
    for name, recognises in SHAPES.items():
        if recognises(data):
            return _checked(READERS[name], data, root, name)
    return None


def _parse(text: str) -> Any:
    """Return one JSON value, or the list of JSON objects that stand one a line; `None` for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    out: list[Any] = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                out.append(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return Lines(out) if out else None


class Lines(list[Any]):
    """Values that stood one a line."""


def _checked(reader: Callable[[Any, Root], list[Report]], data: Any, root: Root, form: str) -> list[Report]:
    try:
        return reader(storable(data), root)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        msg = f"not a report in the format {form!r}: {type(error).__name__}: {error}"
        raise ReportError(msg) from error


def _line(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_LINE else None


def _objects(data: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(data, Mapping):
        data = [data]
    if not isinstance(data, list) or not all(isinstance(item, Mapping) for item in data):
        msg = f"a list of objects is needed, got {type(data).__name__}"
        raise ValueError(msg)
    return data


def read_ruff(data: Any, root: Root) -> list[Report]:
    """Read `ruff check --output-format json` (or `json-lines`)."""
    out = []
    for item in _objects(data):
        location = item["location"] or {}
        end = item.get("end_location") or {}
        code = item["code"] or "invalid-syntax"
        name = relative(item["filename"], root)
        out.append(
            Report(
                file=name,
                line=_line(location.get("row")),
                end_line=_line(end.get("row")),
                rule=code,
                message=item["message"],
                severity="error" if code == "invalid-syntax" else "warning",
            )
        )
    return out


def read_mypy(data: Any, root: Root) -> list[Report]:
    """Read `mypy --output json`; notes are taken with the error that they belong to."""
    severities: dict[str, Severity] = {"error": "error", "warning": "warning"}
    out = []
    for item in _objects(data) if data is not None else []:
        severity = severities.get(item["severity"])
        message = "\n".join(part for part in (item["message"], item.get("hint")) if part)
        if severity:
            name = relative(item["file"], root)
            out.append(
                Report(file=name, line=_line(item["line"]), rule=item["code"], message=message, severity=severity)
            )
    return out


def read_pytest(data: Any, root: Root) -> list[Report]:
    """Read `pytest --json-report` (a JSON object) or `--report-log` (one object a line)."""
    if isinstance(data, Mapping):
        return [*_failed_tests(data["tests"], root), *_failed_collectors(data.get("collectors", ()), root)]
    return list(_failed_lines(_objects(data), root))


def _failed_tests(tests: Sequence[Mapping[str, Any]], root: Root) -> Iterator[Report]:
    for test in tests:
        if test["outcome"] in ("failed", "error"):
            stages = [test[name] for name in ("setup", "call", "teardown") if name in test]
            stage: Mapping[str, Any] = next((stage for stage in stages if stage.get("outcome") == "failed"), {})
            crash = stage.get("crash") or {}
            message = crash.get("message") or str(stage.get("longrepr") or "") or f"the test {test['outcome']}"
            yield _test(test["nodeid"], message, root)


def _failed_collectors(collectors: Sequence[Mapping[str, Any]], root: Root) -> Iterator[Report]:
    for item in collectors:
        if item["outcome"] == "failed":
            yield _test(item["nodeid"], str(item.get("longrepr") or "it cannot be collected"), root)


def _failed_lines(lines: Sequence[Mapping[str, Any]], root: Root) -> Iterator[Report]:
    seen: set[str] = set()
    for item in lines:
        kind = item["$report_type"]
        if kind in ("TestReport", "CollectReport") and item["outcome"] == "failed" and item["nodeid"] not in seen:
            seen.add(item["nodeid"])
            longrepr = item.get("longrepr")
            crash = (longrepr.get("reprcrash") or {}) if isinstance(longrepr, Mapping) else {}
            yield _test(item["nodeid"], crash.get("message") or str(longrepr or "it failed"), root)


def _test(nodeid: str, message: str, root: Root) -> Report:
    """A failed test is named by its node: the line that raised is another one after every edit."""
    name = nodeid.partition("::")[0]
    return Report(file=relative(name, root) if name else None, rule=nodeid, message=message, severity="error")


def _is_sarif(data: Any) -> bool:
    return isinstance(data, Mapping) and "runs" in data and "version" in data


def _is_ruff(data: Any) -> bool:
    return _list_with(data, ("code", "location", "filename", "message"))


def _is_mypy(data: Any) -> bool:
    if isinstance(data, Mapping):  # one line is one object
        data = [data]
    return _list_with(data, ("file", "line", "severity", "message", "code"))


def _is_pytest(data: Any) -> bool:
    return (isinstance(data, Mapping) and "tests" in data and "exitcode" in data) or _list_with(data, ("$report_type",))


def _list_with(data: Any, keys: tuple[str, ...]) -> bool:
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(item, Mapping) and all(key in item for key in keys) for item in data)
    )


READERS: Mapping[str, Callable[[Any, Root], list[Report]]] = {
    "sarif": read_sarif,
    "ruff": read_ruff,
    "mypy": read_mypy,
    "pytest": read_pytest,
}

SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "sarif": _is_sarif,
    "ruff": _is_ruff,
    "mypy": _is_mypy,
    "pytest": _is_pytest,
}

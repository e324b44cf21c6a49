"""Checks: what gives evidence. A command, a Python function, or a LangChain tool; pass, fail or unavailable.

The result comes from an exit status, a machine-readable report or a value, never from prose. What cannot say is
unavailable.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.review.errors import ReportError
from langgraph_loopguard.review.models import Evidence, Report, Result
from langgraph_loopguard.review.named import name_of_callable
from langgraph_loopguard.review.process import KEPT, Finished, Output, environment, run_command
from langgraph_loopguard.review.readers import Format, read_report
from langgraph_loopguard.review.sarif import read_sarif
from langgraph_loopguard.review.source import Snapshot, SourceState
from langgraph_loopguard.review.times import now, stopwatch

MAX_REPORT = 16 * 1024 * 1024
"""Bytes of a report that are read; a check whose report is longer is unavailable."""

REPORT = "{report}"
"""Stands in a command for a file outside the source to which the check writes its report."""

NO_ANSWER: Mapping[str, frozenset[int]] = {
    "mypy": frozenset({2}),
    "pytest": frozenset({3, 4, 5}),
    "py.test": frozenset({3, 4, 5}),
    "ruff": frozenset({2}),
}
"""Exit statuses of common tools that mean: I could not do my work (wrong options, a crash, nothing to check)."""

SHELL_NO_ANSWER = frozenset({126, 127})


@dataclass(frozen=True)
class CheckResult:
    """What one run of a check says.

    Attributes:
        result: `pass`, `fail` or `unavailable`.
        why: One sentence.
        output: What it printed.
        exit_status: Its exit status, where it has one.
        reports: The problems that it reports.
    """

    result: Result
    why: str
    output: Output
    exit_status: int | None = None
    reports: tuple[Report, ...] = ()


@runtime_checkable
class Check(Protocol):
    """What gives evidence about a source state."""

    @property
    def name(self) -> str:
        """Its name, one of a kind in a review."""

    @property
    def subject(self) -> str:
        """The question that it answers; two checks of one subject must agree."""

    @property
    def command(self) -> list[str]:
        """What it is, for the record and for telling one check from another."""

    def run(self, root: Path) -> CheckResult:
        """Run it on a folder."""


@dataclass(frozen=True)
class CommandCheck:
    """A command that passes or fails by its exit status.

    Args:
        argv: The program and its arguments; there is no shell. `{report}` in it is replaced by the name of a file to
            which the check writes its report, outside the source.
        name: Its name. Default: the command.
        subject: The question that it answers. Default: the name.
        cwd: Where it runs, relative to the source.
        env: Names of environment variables that it gets besides the harmless ones.
        timeout: Seconds until its whole process group is ended.
        format: How it reports (see `Format`).
        passes: Exit statuses that are a pass.
        no_answer: Exit statuses that say nothing about the code. Default: those of ruff, mypy and pytest are known.
    """

    argv: Sequence[str]
    name: str = ""
    subject: str = ""
    cwd: str = "."
    env: Sequence[str] = ()
    timeout: float = 600.0
    format: Format = "auto"
    passes: Sequence[int] = (0,)
    no_answer: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not self.argv or not all(isinstance(part, str) for part in self.argv):
            msg = f"argv must be a list with a program and its arguments, got {self.argv!r}"
            raise ValueError(msg)
        if not self.timeout > 0:
            msg = f"timeout must be positive, got {self.timeout!r}"
            raise ValueError(msg)
        if self.format not in get_args(Format):
            msg = f"format must be one of {', '.join(get_args(Format))}, got {self.format!r}"
            raise ValueError(msg)
        object.__setattr__(self, "argv", tuple(self.argv))
        object.__setattr__(self, "name", self.name or shlex.join(self.argv))
        object.__setattr__(self, "subject", self.subject or self.name)

    @classmethod
    def parse(cls, text: str, **settings: Any) -> CommandCheck:
        """Return the check that `[[SUBJECT:]NAME=]COMMAND` stands for; quotes as in a shell.

        Raises:
            ValueError: There is no command in it.
        """
        label, separator, rest = text.partition("=")
        name = subject = ""
        if separator and all(part.replace("-", "_").isidentifier() for part in label.split(":", 1)):
            text = rest
            subject, _, name = label.rpartition(":")
        try:
            argv = shlex.split(text)
        except ValueError as error:
            msg = f"check {text!r} cannot be read: {error}"
            raise ValueError(msg) from error
        if not argv:
            msg = f"check {text!r} names no command"
            raise ValueError(msg)
        return cls(argv, name=name, subject=subject, **settings)

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        return list(self.argv)

    def run(self, root: Path) -> CheckResult:
        """Run it on a folder."""
        with tempfile.TemporaryDirectory(prefix="loopguard-report-") as folder:
            report = Path(folder, "report")
            done = run_command(
                [part.replace(REPORT, str(report)) for part in self.argv],
                cwd=root / self.cwd,
                env=environment(self.env),
                timeout=self.timeout,
                keep=KEPT if self.format == "none" else MAX_REPORT // 2,
            )
            written = self._written(report)
            return self._judge(done, root / self.cwd, root, written)

    def _written(self, report: Path) -> bytes | None:
        if not any(REPORT in part for part in self.argv) or not report.is_file():
            return None
        with report.open("rb") as file:
            return file.read(MAX_REPORT + 1)

    def _judge(self, done: Finished, cwd: Path, root: Path, written: bytes | None) -> CheckResult:
        output = _joined(done)
        if done.error is not None:
            return CheckResult("unavailable", done.error, output)
        if done.timed_out:
            return CheckResult("unavailable", f"it was ended after {self.timeout:g} seconds", output)
        status = done.status
        assert status is not None
        if status >= 128:
            return CheckResult("unavailable", f"it was killed by signal {status - 128}", output, status)
        try:
            reports = self._reports(done, cwd, root, written)
        except ReportError as error:
            return CheckResult("unavailable", f"its report cannot be read: {error}", output, status)
        if status in self.passes:
            return CheckResult("pass", f"exit status {status}", output, status, tuple(reports))
        if not reports and (status in SHELL_NO_ANSWER or status in self._no_answer):
            return CheckResult("unavailable", f"exit status {status}: it could not do its work", output, status)
        return CheckResult("fail", f"exit status {status}", output, status, tuple(reports))

    @property
    def _no_answer(self) -> frozenset[int]:
        if self.no_answer is not None:
            return frozenset(self.no_answer)
        program = os.path.basename(self.argv[0])
        if "-m" in self.argv[1:-1]:
            program = self.argv[list(self.argv).index("-m", 1) + 1]
        return NO_ANSWER.get(program, frozenset())

    def _reports(self, done: Finished, cwd: Path, root: Path, written: bytes | None) -> list[Report]:
        if written is not None and len(written) > MAX_REPORT:
            msg = f"it is longer than {MAX_REPORT} bytes"
            raise ReportError(msg)
        data = written if written is not None else done.stdout.whole
        if data is None:
            if self.format == "auto":
                return []
            msg = f"it is longer than {MAX_REPORT} bytes"
            raise ReportError(msg)
        if not data.strip() and self.format in ("mypy", "auto"):
            return []
        # Tools name files from where they run; the source names them from its top.
        reports = read_report(data.decode("utf-8", "replace"), cwd, self.format) or []
        below = os.path.relpath(cwd, root)
        if below == ".":
            return reports
        return [
            report
            if report.file is None or os.path.isabs(report.file)
            else report.model_copy(update={"file": os.path.normpath(os.path.join(below, report.file))})
            for report in reports
        ]


@dataclass(frozen=True)
class FunctionCheck:
    """A Python function of the source's folder.

    It returns a bool; or a mapping with `result` (`pass`, `fail`, `unavailable`) and perhaps `findings` and `output`;
    or a SARIF log. A function that raises is unavailable. It runs in this process and has no time limit.

    Args:
        function: The function.
        name: Its name. Default: the function's.
        subject: The question that it answers. Default: the name.
    """

    function: Callable[[Path], Any]
    name: str = ""
    subject: str = ""

    def __post_init__(self) -> None:
        name = self.name or getattr(self.function, "__name__", type(self.function).__name__)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "subject", self.subject or name)

    @property
    def command(self) -> list[str]:
        """The function's module and name."""
        return [name_of_callable(self.function)]

    def run(self, root: Path) -> CheckResult:
        """Call it."""
        return _called(lambda: self.function(root), root)


@dataclass(frozen=True)
class ToolCheck:
    """A LangChain tool; what it returns (or its artifact) is read as for a `FunctionCheck`.

    Args:
        tool: The tool.
        args: Its arguments.
        name: Its name. Default: the tool's.
        subject: The question that it answers. Default: the name.
    """

    tool: BaseTool
    args: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    subject: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.tool.name)
        object.__setattr__(self, "subject", self.subject or self.name)

    @property
    def command(self) -> list[str]:
        """The tool's name and arguments."""
        return [f"tool:{self.tool.name}", json.dumps(to_jsonable(self.args), sort_keys=True)]

    def run(self, root: Path) -> CheckResult:
        """Call it."""
        call = {"type": "tool_call", "name": self.tool.name, "args": dict(self.args), "id": "check"}
        return _called(lambda: self.tool.invoke(call), root)


def as_check(value: Any) -> Check:
    """Return the check that a value stands for: itself, a command (text or list), a LangChain tool, or a function.

    Raises:
        ValueError: It is none of these.
    """
    if isinstance(value, BaseTool):
        return ToolCheck(value)
    if isinstance(value, str):
        return CommandCheck.parse(value)
    if isinstance(value, Sequence):
        return CommandCheck(value)
    if isinstance(value, Check):
        return value
    if callable(value):
        return FunctionCheck(value)
    msg = f"a check must be a command, a LangChain tool or a function, got {value!r}"
    raise ValueError(msg)


def gather(check: Check, before: Snapshot) -> tuple[Evidence, Snapshot]:
    """Run a check on a source state; return the evidence and the state afterwards.

    Raises:
        SourceError: The source cannot be read afterwards.
    """
    started, seconds = now(), stopwatch()
    done = check.run(before.root)
    took = seconds()
    after = Snapshot.take(before.root, before.patterns)
    evidence = Evidence(
        check=check.name,
        subject=check.subject,
        command=check.command,
        result=done.result,
        exit_status=done.exit_status,
        why=done.why,
        output=_bounded(done.output),
        output_size=done.output.size,
        output_sha256=done.output.sha256,
        source=before.state,
        changed_source=after.state != before.state,
        started_at=started,
        seconds=took,
        reports=list(done.reports),
    )
    return evidence, after


def _bounded(output: Output) -> str:
    head, tail = output.head[:KEPT], output.tail
    if output.size <= 2 * KEPT and output.whole is not None:
        return _clean(output.text())
    tail = (output.head + tail)[-KEPT:]
    return _clean(Output(head, tail, output.size, output.sha256).text())


def _clean(text: str) -> str:
    return text.replace("\0", "\\0")


def _joined(done: Finished) -> Output:
    """One output of both streams: standard error stands after standard output."""
    out, err = done.stdout, done.stderr
    if err.size == 0:
        return out
    if out.size == 0:
        return err
    digest = hashlib.sha256(f"{out.sha256}{err.sha256}".encode()).hexdigest()
    if out.whole is not None:
        return Output(out.whole + err.head, err.tail, out.size + err.size, digest)
    return Output(out.head, out.tail + err.head + err.tail, out.size + err.size, digest)


def _called(call: Callable[[], Any], root: Path) -> CheckResult:
    try:
        value = call()
    except Exception as error:  # a check of the user's own may fail in any way: it is unavailable then
        why = f"it raised {type(error).__name__}: {error}"
        return CheckResult("unavailable", why, _output(why))
    return _read(value, root)


def _read(value: Any, root: Path) -> CheckResult:
    if isinstance(value, ToolMessage):
        if value.status == "error":
            return CheckResult("unavailable", "the tool reports an error", _output(value.text))
        value = value.artifact if value.artifact is not None else value.content
    if isinstance(value, CheckResult):
        return value
    if isinstance(value, bool):
        return CheckResult("pass" if value else "fail", f"it returned {value}", _output(str(value)))
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return CheckResult("unavailable", "it returned a text that is no JSON", _output(value))
        if isinstance(value, str):
            return CheckResult("unavailable", "it returned a text", _output(value))
        return _read(value, root)
    shown = _output(json.dumps(to_jsonable(value), indent=1))
    if isinstance(value, Mapping):
        try:
            return _mapping(value, root, shown)
        except (ValidationError, ValueError, KeyError, TypeError) as error:
            return CheckResult("unavailable", f"what it returned cannot be read: {error}", shown)
    return CheckResult("unavailable", f"it returned {type(value).__name__}, which says neither pass nor fail", shown)


def _mapping(value: Mapping[str, Any], root: Path, shown: Output) -> CheckResult:
    if "runs" in value:
        reports = tuple(read_sarif(value, root))
        return CheckResult("fail" if reports else "pass", f"{len(reports)} results", shown, reports=reports)
    result = value["result"]
    if result not in get_args(Result):
        msg = f"result must be one of {', '.join(get_args(Result))}, got {result!r}"
        raise ValueError(msg)
    reports = tuple(Report.model_validate(item) for item in value.get("findings") or ())
    output = _output(str(value["output"])) if "output" in value else shown
    return CheckResult(result, str(value.get("why") or f"it returned {result!r}"), output, reports=reports)


def _output(text: str) -> Output:
    data = text.encode("utf-8", "replace")
    keep = MAX_REPORT
    return Output(data[:keep], data[keep:][-keep:], len(data), hashlib.sha256(data).hexdigest())


def states(evidence: Sequence[Evidence], source: SourceState) -> dict[str, Evidence]:
    """Return the latest fresh evidence of each check about a source state."""
    return {item.check: item for item in evidence if item.fresh(source)}

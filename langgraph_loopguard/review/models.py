"""What a review remembers: findings with their provenance, evidence bound to a source state, attempts, hand-offs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from langgraph_loopguard.review.source import SourceState

SCHEMA_VERSION = 1
"""Version of the shapes in this module."""

Result = Literal["pass", "fail", "unavailable"]
"""What a check says. `unavailable`: it could not run, was stopped, or its report cannot be read."""

Status = Literal["open", "verified", "carried", "resolved", "out_of_scope", "disputed"]
"""Where a finding stands.

- `open`: the reviewer says that it holds in the current source state; no check has shown it.
- `verified`: an agreed check shows it in the current source state.
- `carried`: remembered from an earlier source state and not yet rechecked in this one.
- `resolved`: closed; `closed` says how.
- `out_of_scope`: kept, and holds nothing up.
- `disputed`: those who should know contradict each other; a person decides.
"""

UNRESOLVED: frozenset[Status] = frozenset({"open", "verified", "carried", "disputed"})
"""Statuses that keep a review from being complete."""

Kind = Literal["actionable", "judgement"]
"""Whether a fixer can act on a finding, or a person must judge it."""

Severity = Literal["error", "warning", "note"]

AttemptStatus = Literal["reserved", "recorded", "failed", "timed_out", "interrupted"]
"""How an attempt stands. All of them count.

- `reserved`: the reviewer is about to run, or runs.
- `recorded`: it answered, and the answer was taken in.
- `failed`: it could not be started, ended with an error, or its answer cannot be read.
- `timed_out`: the time limit ended it.
- `interrupted`: the process that ran it was stopped or killed.
"""

Baseline = Literal["new", "unchanged", "updated", "absent"]
"""SARIF's `baselineState`: how a finding compares with the review before."""


MAX_LINE = 2**31
"""A number of a line is no larger."""


class Report(BaseModel):
    """One problem as a check or a reviewer reports it, before it is compared with what is known."""

    model_config = ConfigDict(frozen=True)

    file: str | None = None
    line: int | None = Field(default=None, ge=1, le=MAX_LINE)
    end_line: int | None = Field(default=None, ge=1, le=MAX_LINE)
    rule: str | None = None
    """A stable name for this kind of problem, such as the code of a rule or the name of a test."""
    message: str
    severity: Severity = "warning"
    kind: Kind = "actionable"
    quote: str | None = None
    """The code that it is about, where that is given as text."""


class Provenance(BaseModel):
    """Where a finding comes from."""

    source: Literal["check", "reviewer"]
    check: str | None = None
    """Name of the check that reported it."""
    file: str | None = None
    """The file's name when it was first seen."""
    commit: str | None = None
    """The commit on which it was last confirmed."""
    source_state: str
    """Digest of the source state on which it was last confirmed."""
    file_hash: str | None = None
    """Content hash of its file at that time."""
    first_seen: int
    """Round in which it was first seen, from 1."""
    last_confirmed: int
    """Round in which it was last seen or confirmed."""


class Closed(BaseModel):
    """How a finding was closed."""

    how: str
    by: str
    round: int
    source_state: str
    person: bool = False
    """Whether a person closed it: then a later report does not open it again."""


class Finding(BaseModel):
    """One claim about the code, the same over rounds however it moves or is worded."""

    schema_version: int = SCHEMA_VERSION
    id: str
    file: str | None
    line: int | None
    end_line: int | None = None
    rule: str | None
    message: str
    severity: Severity
    kind: Kind
    status: Status
    baseline: Baseline = "new"
    provenance: Provenance
    code: str = ""
    """The normalised code that it cites."""
    context: str = ""
    """The headers of what encloses that code."""
    twins: list[str] = []
    """What encloses the other places of the file that hold the same code."""
    in_scope: bool = False
    """Whether it is in scope, or was when it was last reported."""
    scope: str = ""
    """Why it is in scope or not."""
    note: str | None = None
    """What was last said about it."""
    closed: Closed | None = None
    reopened: int = 0
    """How often it came back after it was closed."""

    @property
    def holds(self) -> bool:
        """Whether it keeps the review from being complete."""
        return self.status in UNRESOLVED

    @property
    def place(self) -> str:
        """The file and line for a reader."""
        if self.file is None:
            return "(no file)"
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Evidence(BaseModel):
    """The result of one check on one source state."""

    schema_version: int = SCHEMA_VERSION
    check: str
    subject: str
    """The question that the check answers; two checks of one subject must agree."""
    command: list[str]
    result: Result
    exit_status: int | None
    why: str
    """One sentence: why the result is what it is."""
    output: str
    """What it printed, bounded."""
    output_size: int
    output_sha256: str
    source: SourceState
    """What it ran on."""
    changed_source: bool = False
    """Whether the source was another one when it ended: then it is no evidence for either."""
    started_at: str
    seconds: float
    reports: list[Report] = []

    def fresh(self, source: SourceState) -> bool:
        """Whether it is evidence about this source state."""
        return self.source == source and not self.changed_source


class Attempt(BaseModel):
    """One call of the reviewer: reserved before it starts, finished after."""

    schema_version: int = SCHEMA_VERSION
    n: int
    inputs: str
    """Hash of what the reviewer was asked: source state, base, context, model, protocol."""
    status: AttemptStatus
    reviewer: str
    context: str
    """Hash of the goal, the context, the scope and the checks that it was told."""
    source: SourceState
    base: str | None
    fresh_scope: str | None = None
    """Why the whole scope was reviewed anew, where it was."""
    started_at: str
    finished_at: str | None = None
    seconds: float | None = None
    error: str | None = None
    text: str | None = None
    """What the reviewer wrote, bounded."""
    summary: str | None = None
    open_after: list[str] = []
    """Actionable findings in scope that were open at its end."""


class Budget(BaseModel):
    """What bounds a review."""

    max_attempts: int = Field(default=3, ge=1)
    extra_attempts: int = Field(default=0, ge=0)
    """What a person has added."""
    granted_by: str | None = None
    used: int = Field(default=0, ge=0)
    max_seconds: float | None = Field(default=None, gt=0)
    seconds: float = Field(default=0.0, ge=0)

    @property
    def allowed(self) -> int:
        """Attempts in all."""
        return self.max_attempts + self.extra_attempts

    @property
    def spent(self) -> str | None:
        """Which bound is reached, in words; `None` while none is."""
        if self.used >= self.allowed:
            return f"{self.used} of {self.allowed} attempts are used"
        if self.max_seconds is not None and self.seconds >= self.max_seconds:
            return f"{self.seconds:.0f} of {self.max_seconds:.0f} seconds are used"
        return None


class Scope(BaseModel):
    """What a review is about."""

    goal: str = ""
    """What the change is meant to do, in words."""
    files: list[str] = []
    """Files, folders and globs that are in; empty: the files of the change."""
    checks: list[str] = []
    """Names of the agreed checks."""
    base: str | None = None
    """The commit that the change starts from."""
    lines: Literal["file", "changed"] = "file"
    """Whether a reviewer's finding is in scope anywhere in a file of the change, or on its changed lines only."""


class Ruling(BaseModel):
    """What the stop rule says about a pass."""

    outcome: Literal["complete", "blocked", "escalated"] | None
    """`None`: the review has not finished."""
    reason: str
    """A word for it: `bound`, `source`, `check_unavailable`, `recurring`, `disagreement`, `judgement`, ..."""
    message: str
    needs: list[str] = []
    """What would unblock it, or what is to be done next."""
    decision: str | None = None
    """The one decision that a person is asked for."""
    findings: list[str] = []
    """The findings that it rests on."""


class HandOff(BaseModel):
    """The record for whoever goes on: a person who was not there."""

    schema_version: int = SCHEMA_VERSION
    outcome: Literal["complete", "blocked", "escalated"]
    ruling: Ruling
    scope: Scope
    source: SourceState | None
    budget: Budget
    original_findings: list[Finding]
    """Those of the first review, as they stand now."""
    findings: list[Finding]
    evidence: list[Evidence]
    attempts: list[Attempt]
    latest_review: str | None
    patch: str = ""
    """What the fixer changed: it waits for acceptance."""
    questions: list[str] = []
    decision: str | None
    created_at: str

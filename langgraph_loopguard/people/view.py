"""An escalation as a person reads it: one model, from which terminal, page, notebook and Markdown are drawn.

All texts here are what agents wrote, as they wrote it. Whoever draws them shows them by `people.text`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langgraph_loopguard.people.redact import REDACTED

LineKind = Literal["add", "remove", "hunk", "file", "same"]
"""What a line of a diff is: added, removed, a hunk's head, a file's head, or unchanged."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of the diff."""

    kind: LineKind
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One review or fix attempt."""

    n: int
    """Number among the reviews, or among the attempts: what `accept` names."""
    node: str
    time: str
    parts: tuple[tuple[str, str], ...]
    """What the node wrote: `(key, text)`; one part with an empty key when it wrote no keys."""
    tokens: int
    seconds: float
    measure: float | None


@dataclass(frozen=True, slots=True)
class Round:
    """What was said and done in one cycle."""

    cycle: int
    reviews: tuple[Entry, ...]
    fixes: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class FindingLine:
    """One thing that is still open."""

    message: str
    file: str | None = None
    line: int | None = None
    severity: str | None = None

    @property
    def place(self) -> str:
        """`file:line`, as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class EscalationView:
    """Everything about one escalation, in the order in which a person needs it.

    Example:
        ```python
        from langgraph_loopguard.people import EscalationView, to_markdown

        view = EscalationView.of({"id": "7f", "edge": "reviewer->fixer", "question": "What shall happen?"})
        assert view.question in to_markdown(view)
        ```
    """

    id: str
    loop: str
    edge: str
    thread_id: str | None
    scope_key: str | None
    outcome: str
    why: str
    """The reason in one sentence."""
    question: str
    created_at: str
    facts: tuple[tuple[str, str], ...]
    """Label and value: cycles, threshold and observed value, time, tokens, money."""
    diff: tuple[DiffLine, ...]
    rounds: tuple[Round, ...]
    findings: tuple[FindingLine, ...]
    evidence: tuple[str, ...]
    best_fix: str | None
    options: tuple[tuple[str, str], ...]
    """Action and what it does."""
    decision: str | None
    """What was decided, by whom and when, in one sentence."""
    redacted: str | None
    """What was masked before the record was stored; `None` when nothing was."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> EscalationView:
        """Return the view of a record.

        Args:
            record: An escalation's record, also one of another version of the library: what it lacks is left out.
        """
        reason: Mapping[str, Any] = record.get("reason") or {}
        scope = record.get("scope_key")
        return cls(
            id=str(record.get("id", "")),
            loop=str(record.get("loop", "")),
            edge=str(record.get("edge", "")),
            thread_id=record.get("thread_id"),
            scope_key=None if scope is None else as_text(scope),
            outcome=str(record.get("outcome", "escalated")),
            why=_why(record, reason),
            question=str(record.get("question", "")),
            created_at=str(record.get("created_at", "")),
            facts=_facts(record, reason),
            diff=diff_lines(str(record.get("diff") or "")),
            rounds=_rounds(record),
            findings=tuple(_finding(one) for one in record.get("findings") or ()),
            evidence=tuple(as_text(one) for one in record.get("evidence") or ()),
            best_fix=_best(record.get("best_fix")),
            options=tuple(
                (str(one.get("action")), str(one.get("description", ""))) for one in record.get("options") or ()
            ),
            decision=decision_sentence(record.get("decision")),
            redacted=_redacted(record.get(REDACTED)),
        )


def as_text(value: Any) -> str:
    """Return a JSON value as a person reads it: a text as itself, all else as indented JSON."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def diff_lines(diff: str) -> tuple[DiffLine, ...]:
    """Return the lines of a unified diff with what each one is. Lines end at line feeds only, as in a patch."""
    lines = diff.split("\n")
    if lines[-1] == "":
        lines.pop()
    heads: set[int] = set()
    for at, (old, new) in enumerate(itertools.pairwise(lines)):
        # Within a hunk such a pair may be a removed and an added line; a head is followed by its hunk.
        after = lines[at + 2] if at + 2 < len(lines) else "@@"
        if old.startswith("--- ") and new.startswith("+++ ") and after.startswith(("@@", "(no change)")):
            heads |= {at, at + 1}
    return tuple(DiffLine(_kind(text, at in heads), text) for at, text in enumerate(lines))


def _kind(text: str, is_head: bool) -> LineKind:
    if is_head or text.startswith("diff "):
        return "file"
    if text.startswith("@@"):
        return "hunk"
    return {"+": "add", "-": "remove"}.get(text[:1], "same")  # type: ignore[return-value]


def decision_sentence(decision: Mapping[str, Any] | None) -> str | None:
    """Return what was decided, in one sentence; `None` when nothing is."""
    if not decision:
        return None
    what = str(decision.get("action"))
    if decision.get("fix") is not None:
        what += f" attempt {decision['fix']}"
    extra = [
        f"{decision[field]:g} {name}{'s' * (decision[field] != 1)}"
        for field, name in (("extra_cycles", "cycle"), ("extra_tokens", "token"), ("extra_seconds", "second"))
        if decision.get(field)
    ]
    if extra:
        what += f" with {', '.join(extra)} more"
    by = f" by {decision['decided_by']}" if decision.get("decided_by") else ""
    at = f" at {decision['decided_at']}" if decision.get("decided_at") else ""
    guidance = f", guidance: {decision['guidance']}" if decision.get("guidance") else ""
    note = f", note: {decision['note']}" if decision.get("note") else ""
    return f"{what}{by}{at}{guidance}{note}"


def _why(record: Mapping[str, Any], reason: Mapping[str, Any]) -> str:
    edge, message = record.get("edge"), reason.get("message")
    if not message:
        return str(record.get("question", ""))
    what = "The guard failed" if reason.get("kind") == "broken" else "The loop was stopped"
    return f"{what} on {edge}: {message}."


def _facts(record: Mapping[str, Any], reason: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    spent: Mapping[str, Any] = record.get("spent") or {}
    facts: list[tuple[str, str]] = []
    if "cycles" in record:
        facts.append(("cycles", str(record["cycles"])))
    if reason.get("condition"):
        facts.append(("condition", str(reason["condition"])))
    for name in ("threshold", "observed"):
        if reason.get(name) is not None:
            facts.append((name, as_text(reason[name])))
    if spent.get("seconds"):
        facts.append(("time", f"{spent['seconds']:.1f} s"))
    if spent.get("tokens"):
        facts.append(("tokens", f"{spent['tokens']:,}"))
    if spent.get("usd") is not None:
        facts.append(("cost", f"{spent['usd']} USD"))
    return tuple(facts)


def _rounds(record: Mapping[str, Any]) -> tuple[Round, ...]:
    by_cycle: dict[int, tuple[list[Entry], list[Entry]]] = {}
    for side, key in enumerate(("reviews", "fixes")):
        for one in record.get(key) or ():
            by_cycle.setdefault(int(one.get("cycle", 0)), ([], []))[side].append(_entry(one))
    return tuple(Round(cycle, tuple(reviews), tuple(fixes)) for cycle, (reviews, fixes) in sorted(by_cycle.items()))


def _entry(one: Mapping[str, Any]) -> Entry:
    content = one.get("content")
    parts = (
        tuple((str(key), as_text(value)) for key, value in content.items())
        if isinstance(content, Mapping)
        else (("", as_text(content)),)
    )
    return Entry(
        n=int(one.get("n", 0)),
        node=str(one.get("node", "")),
        time=str(one.get("time", "")),
        parts=parts,
        tokens=int(one.get("tokens") or 0),
        seconds=float(one.get("seconds") or 0.0),
        measure=one.get("measure"),
    )


def _finding(one: Any) -> FindingLine:
    if not isinstance(one, Mapping):
        return FindingLine(as_text(one))
    message = next((one[key] for key in ("message", "comment", "title", "body", "text") if one.get(key)), None)
    file = next((one[key] for key in ("file", "path", "filename") if one.get(key)), None)
    line = next((one[key] for key in ("line", "lineno", "start_line") if isinstance(one.get(key), int)), None)
    severity = one.get("severity")
    return FindingLine(
        message=as_text(one if message is None else message),
        file=None if file is None else str(file),
        line=line,
        severity=None if severity is None else str(severity),
    )


def _best(best: Mapping[str, Any] | None) -> str | None:
    return None if not best else f"attempt {best.get('fix')}: {best.get('why')}"


def _redacted(counts: Mapping[str, Any] | None) -> str | None:
    if not counts:
        return None
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"Credentials are masked here, not in the graph: {kinds}."

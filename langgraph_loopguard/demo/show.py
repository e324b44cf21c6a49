"""`loopguard demo --show PR-17`: the record of one escalation, as a person would want to read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_loopguard.demo.catalogue import CATALOGUE
from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.loop import escalation_of
from langgraph_loopguard.demo.pulls import name
from langgraph_loopguard.demo.text import plural, visible
from langgraph_loopguard.demo.workdir import WorkDir

RULE = "─" * 72


def read_record(work: WorkDir, number: int) -> dict[str, Any]:
    """Return the record of a pull request's escalation from the database.

    Raises:
        DemoError: It was not escalated.
    """
    with SqliteSaver.from_conn_string(str(work.database)) as saver:
        record = escalation_of(name(number), CATALOGUE[number].nodes, saver)
    if record is None:
        msg = f"{name(number)} was not escalated: no record in {work.database}"
        raise DemoError(msg)
    return record


def record_text(record: Mapping[str, Any]) -> str:
    """Return the record as text, with everything that tools or models wrote made visible."""
    return visible("\n".join(_lines(record)))


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    reason = record["reason"]
    yield f"{record['thread_id']} {record['outcome']} at {record['created_at']}   (escalation {record['id']})"
    yield f"edge       {record['edge']}"
    yield f"reason     {reason['condition']} ({reason['kind']}): {reason['message']}"
    yield f"           threshold {_short(reason['threshold'])}, observed {_short(reason['observed'])}"
    spent = record["spent"]
    tokens = f", {plural(spent['tokens'], 'token')}" if spent["tokens"] else ""
    yield f"spent      {plural(record['cycles'], 'cycle')}, {spent['seconds']:.1f} seconds{tokens}"
    yield from _emissions("REVIEWS", "review", record["reviews"])
    yield from _emissions("FIX ATTEMPTS", "fix", record["fixes"])
    yield from _heading(f"STILL OPEN ({len(record['findings'])})")
    yield from (f"- {item if isinstance(item, str) else _short(item)}" for item in record["findings"])
    yield from _heading("DIFF")
    yield record["diff"].rstrip("\n")
    yield from _heading("QUESTION")
    yield record["question"]
    yield from (f"- {option['action']}: {option['description']}" for option in record["options"])
    yield "Decision: " + ("none yet" if record["decision"] is None else _short(record["decision"]))


def _emissions(title: str, key: str, emissions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from _heading(f"{title} ({len(emissions)})")
    for emission in emissions:
        yield f"[{emission['n']}] {emission['node']}, cycle {emission['cycle']}, {emission['time']}"
        text = emission["content"].get(key) or _short(emission["content"])
        yield from (f"    {line}" for line in text.splitlines())


def _heading(title: str) -> Iterator[str]:
    yield ""
    yield f"{title} {RULE[len(title) + 1 :]}"


def _short(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)

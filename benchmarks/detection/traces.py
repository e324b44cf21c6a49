"""Labelled runs, as emissions that a guard can observe. How they are fed is told in the package's docstring."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Event(NamedTuple):
    """One emission; or, with a node of `None`, what happens between two: `"turn"` or `"decision"`."""

    node: str | None
    payload: Any
    artifact: Any = None
    measure: Any = None


@dataclass(frozen=True)
class Trace:
    """One run with its label."""

    set: str
    id: str
    label: str
    """`loop` must be stopped, `ok` must not, `unknown` counts for nothing."""
    nodes: tuple[str, ...]
    events: list[Event]
    max_cycles: int | None = None
    """A cap that belongs to the case."""
    at: int | None = None
    """The emission at which a stop is right, from 1."""
    latest: int | None = None
    """The emission at which a stop is still in time: one cycle after the pattern is complete."""
    kind: str | None = None
    times: int | None = None
    """Equal emissions at which the case's own detector stops."""
    note: str = field(default="", compare=False)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a file of one JSON object a line; one that is not there has none."""
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)


COMPLETE = {"a_exact": 3, "b_pingpong": 6, "c_shuffled": 6, "d_volatile": 6, "e_period3": 9, "f_restate_flap": 8}
"""Emissions after which a family's pattern stands: three equal laps, or two of a flap of two. The family of ever new
findings (g) has no pattern; three cycles without fewer open findings are what a guard may know it by."""


def families(folder: Path) -> Iterator[Trace]:
    """Synthetic families, one trace per thread."""
    for row in lines(folder / "families.jsonl"):
        for thread in dict.fromkeys(event["thread"] for event in row["events"]):
            events = [event for event in row["events"] if event["thread"] == thread]
            nodes = tuple(dict.fromkeys(event["agent"] for event in events))
            lap = len(nodes)
            nodes = nodes if lap > 1 else ("reviewer", *nodes)
            yield Trace(
                "families",
                f"{row['family']}/{row['seed']}/{thread}",
                "loop" if row["should_fire"] else "ok",
                nodes,
                [Event(e["agent"], e["msg"], e.get("rev"), e.get("open")) for e in events],
                latest=COMPLETE.get(row["family"], 6) + lap if row["should_fire"] else None,
            )


KINDS = {"repeat": "stalled", "cycles": "exhausted", "none": None}


def streams(folder: Path) -> Iterator[Trace]:
    """Reported failures as streams over one edge."""
    for row in lines(folder / "streams.jsonl"):
        source, target = row["guard"].split("->")
        events = []
        for event in row["events"]:
            if event["from"] == source:
                events.append(Event(source, event["content"]))
            elif event["from"] == "human":
                events.append(Event(None, "decision"))
            elif event["from"] != target:
                events.append(Event(None, "turn"))
        expect = row["expect"]
        label = "loop" if expect["trip"] else "ok"
        cap, kind = row["cycles"] or 10**6, KINDS[expect["kind"]]
        yield Trace("streams", row["id"], label, (source, target), events, cap, expect["at"], kind=kind)


def openhands(folder: Path) -> Iterator[Trace]:
    """Traces of a stuck detector's own tests."""
    for version in ("sdk", "v0"):
        for number, row in enumerate(lines(folder / f"openhands_{version}_traces.jsonl")):
            events: list[Event] = []
            action: str | None = None
            for event in row["events"]:
                kind, key = event["kind"], event.get("key")
                if kind == "action":
                    action = key
                elif kind in ("observation", "error") and action is not None:
                    events.append(Event("agent", {"action": action, "seen": key}))
                    action = None
                elif kind == "agent_message":
                    events.append(Event("message", key))
                elif kind == "condensation":
                    events.append(Event("agent", {"action": key}))
                elif (kind == "user" or event.get("source") == "user") and row.get("headless") is not True:
                    events.append(Event(None, "turn"))
            thresholds = row.get("thresholds") or {}
            yield Trace(
                "openhands",
                f"{version}/{number}/{row['test']}",
                "loop" if row["verdict"] else "ok",
                ("agent", "message"),
                events,
                10**6,
                times=thresholds.get("action_observation", 4),
            )


def chatdev(folder: Path, name: str) -> Iterator[Trace]:
    """Review loops of ChatDev."""
    for path in sorted((folder / "traces").glob(f"{name}.*jsonl")):
        for row in lines(path):
            nodes = tuple(dict.fromkeys(event["agent"] for event in row["events"]))
            states, count, number = [0], 0, 0
            events = []
            for event in row["events"]:
                if event["agent"] == nodes[1] and number < len(row["rounds"]):
                    found = row["rounds"][number]
                    number += 1
                    back = found.get("reverts_to_round")
                    if back is not None:
                        states.append(states[back + 1])
                    else:
                        count += bool(found["code_changed"])
                        states.append(count if found["code_changed"] else states[-1])
                events.append(Event(event["agent"], event["content"], f"state {states[-1]}"))
            yield Trace(name, row["id"], row["label"], nodes, events)


def magentic(folder: Path) -> Iterator[Trace]:
    """Runs of Magentic-One, as the agents saw them."""
    for path in sorted((folder / "traces").glob("magentic_one.*jsonl")):
        for row in lines(path):
            seen = [
                (re.sub(r"\s*\(.*", "", event["agent"]), event["content"])
                for event in row["events"]
                if not event.get("framework")
            ]
            said = [(agent, content) for agent, content in seen if agent != "human"]
            team = tuple(dict.fromkeys(agent for agent, _ in said if agent != "Orchestrator"))
            events = [Event(agent, content) for agent, content in said]
            yield Trace("magentic_one", row["id"], row["label"], ("Orchestrator", *(team or ("WebSurfer",))), events)


def tau(folder: Path) -> Iterator[Trace]:
    """Runs of tau-bench: agent and user."""
    for name in ("tau_airline", "tau_retail"):
        for path in sorted((folder / "traces").glob(f"{name}*jsonl")):
            for row in lines(path):
                events = [Event(e["agent"], e["content"]) for e in row["events"] if e["agent"] in ("agent", "user")]
                yield Trace(name, row["id"], row["label"], ("agent", "user"), events)


def read(folder: Path) -> list[Trace]:
    """Return all runs that a folder holds."""
    return [
        *families(folder),
        *streams(folder),
        *openhands(folder),
        *chatdev(folder, "chatdev_review"),
        *chatdev(folder, "chatdev_test"),
        *magentic(folder),
        *tau(folder),
    ]

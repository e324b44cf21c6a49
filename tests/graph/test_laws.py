"""Laws 3, 4 and 10: what a guard remembers is plain JSON, threads never meet, a broken guard costs no work."""

from __future__ import annotations

import asyncio
import json
import math
import operator
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, Reason, Verdict, guard_loop
from tests.graph.graphs import Form, Seen, build, thread
from tests.graph.pairs import pair, records
from tests.graph.pairs import thread as named


def extend(before: list[str], after: list[str]) -> list[str]:
    """A reducer that changes its left side, as many do."""
    before.extend(after)
    return before


class InPlace(TypedDict, total=False):
    n: Annotated[int, operator.add]
    log: Annotated[list[str], extend]


def guarded(rounds: int = 9, **settings: Any) -> tuple[Any, LoopGuard]:
    """A plain pair with a guard and a checkpointer."""
    builder = build(Form(rounds=rounds), Seen())
    guard = guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=InMemorySaver()), guard


def assert_json(value: Any) -> None:
    """Only what every saver keeps: no tuple, enum, object, int over 64 bits, NaN or infinity."""
    if type(value) is dict:
        assert all(type(key) is str for key in value)
        for item in value.values():
            assert_json(item)
    elif type(value) is list:
        for item in value:
            assert_json(item)
    elif type(value) is int:
        assert -(2**63) <= value < 2**63
    elif type(value) is float:
        assert math.isfinite(value)
    else:
        assert value is None or type(value) in (str, bool), value


@pytest.mark.parametrize(
    "reason",
    [
        Reason("mine", "stalled", Decimal(3), {1, 2}, "why", ()),
        Reason("mine", "stalled", math.inf, 2**70, "why \ud800", ("a text", Decimal(1), {"at": object()})),
    ],
)
@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_reason_of_the_users_own_is_kept_as_json(reason: Reason, mode: Any) -> None:
    """Whatever a condition puts into its reason, the state holds JSON and the run goes on."""
    app, _ = guarded(rounds=2, mode=mode, stop_when=lambda ledger: Verdict(tripped=True, reason=reason))
    app.invoke({"n": 0}, thread())
    values = app.get_state(thread()).values
    for key in ("loopguard", "loopguard_history", "escalations"):
        assert_json(values.get(key))


@pytest.mark.parametrize("measure", [2**70, 10**400, math.inf, -math.inf, math.nan, "x", b"x", True, None, object()])
def test_a_measure_that_cannot_be_kept_blocks(measure: Any) -> None:
    """A measure is a finite number of 64 bits, or a collection; anything else ends in `blocked`, and `None` is no measure."""
    app, guard = guarded(measure=lambda state: measure)
    state = app.invoke({"n": 0}, thread())
    assert ("escalated" if measure is None else "blocked") == state["outcome"]
    assert_json(guard.ledger(app.get_state(thread())).data)


def test_a_selector_does_not_disturb_a_reducer_that_changes_its_left_side() -> None:
    """Reading the artifact after a node's write applies the reducer to a copy."""
    builder = StateGraph(InPlace)
    builder.add_node("reviewer", lambda state: {"n": 1, "log": ["review"]})
    builder.add_node(
        "fixer", lambda state: Command(update={"log": ["fix"]}, goto="reviewer" if state["n"] < 2 else END)
    )
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    guard_loop(builder, "reviewer", "fixer", artifact="log")
    assert ["review", "fix", "review", "fix"] == builder.compile().invoke({})["log"]


# -- one process, many runs -------------------------------------------------------------------------------------------


def test_nothing_is_kept_on_a_python_object() -> None:
    """Two graphs that share one guard by hand, and one graph run twice, each begin at zero."""
    app, guard = pair(max_cycles=2)
    before = repr(guard)
    for name in ("a", "b", "a2"):
        result = app.invoke({}, named(name))
        assert 2 == result["escalation"]["cycles"]
    bare, _ = pair(max_cycles=2, saver=None)
    assert [2, 2] == [bare.invoke({})["escalation"]["cycles"] for _ in range(2)]
    assert before == repr(guard)


def test_interleaved_threads_never_meet() -> None:
    """Two threads of one graph, a superstep of each in turn: each stops at its own cap."""
    app, guard = pair(max_cycles=3)
    streams = {name: app.stream({}, named(name), stream_mode="updates") for name in ("a", "b", "c")}
    done: dict[str, int] = {}
    while len(done) < len(streams):
        for name, stream in streams.items():
            if name not in done and next(stream, None) is None:
                done[name] = guard.ledger(app.get_state(named(name))).cycles
    assert {"a": 3, "b": 3, "c": 3} == done
    assert len({records(app, named(name))[0]["id"] for name in streams}) == 3


def test_many_threads_of_the_operating_system_at_once() -> None:
    """One compiled graph, sixteen runs side by side: no count and no record is lost or shared."""
    app, guard = pair(max_cycles=5, artifact="patch", preset="progress")
    names = [str(number) for number in range(16)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda name: app.invoke({}, named(name)), names))
    assert [5] * 16 == [result["escalation"]["cycles"] for result in results]
    assert names == [result["escalation"]["thread_id"] for result in results]
    assert [6] * 16 == [len(result["escalation"]["reviews"]) for result in results]
    assert [5] * 16 == [guard.ledger(app.get_state(named(name))).handoffs["reviewer->fixer"] for name in names]


def test_many_tasks_of_one_event_loop_and_several_loops() -> None:
    """The same graph under `asyncio.gather`, and under an event loop of its own in each of four threads."""
    app, _ = pair(max_cycles=4)

    async def several(prefix: str) -> list[Any]:
        return await asyncio.gather(*(app.ainvoke({}, named(f"{prefix}{number}")) for number in range(8)))

    with ThreadPoolExecutor(4) as pool:
        results = [one for found in pool.map(lambda prefix: asyncio.run(several(prefix)), "abcd") for one in found]
    assert [(4, 5)] * 32 == [(r["escalation"]["cycles"], len(r["escalation"]["reviews"])) for r in results]
    assert 32 == len({result["escalation"]["id"] for result in results})


def test_batch_runs_are_apart() -> None:
    """`batch` over several threads of one graph."""
    app, guard = pair(max_cycles=2)
    configs = [named(str(number)) for number in range(6)]
    app.batch([{}] * 6, configs)
    assert [2] * 6 == [guard.ledger(app.get_state(config)).cycles for config in configs]


# -- several processes ------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]


def in_a_process(file: Path, what: str, *, strict: bool = True, seed: str = "0") -> dict[str, Any]:
    """Run the worker in a new process."""
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    environment["LANGGRAPH_STRICT_MSGPACK"] = "true" if strict else "false"
    done = subprocess.run(
        [sys.executable, "-m", "tests.graph.law_worker", str(file), what],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_strict_serializer_keeps_everything(tmp_path: Path) -> None:
    """Over three processes, with LangGraph's serializer as strict as it can be: nothing is blocked or turned."""
    file = tmp_path / "saver.sqlite"
    begun = in_a_process(file, "begin")
    assert begun["waiting"]
    (first,) = begun["records"]
    assert 3 == begun["ledger"]["cycles"] == first["cycles"]
    retried = in_a_process(file, "retry", seed="1")
    assert 5 == retried["ledger"]["cycles"]
    assert first == {**retried["records"][0], "decision": None}
    assert 6 == len(retried["records"][1]["reviews"])
    ended = in_a_process(file, "answer", seed="2")
    assert not ended["waiting"]
    assert ["retry", "accept"] == [record["decision"]["action"] for record in ended["records"]]
    for said in (begun, retried, ended):
        assert not [message for message in said["warned"] if "loopguard" in message.lower()]


def test_what_a_guard_remembers_is_equal_across_processes(tmp_path: Path) -> None:
    """Whatever the hash seed: equal ledgers, and equal records but for ids of tasks and times."""
    with ThreadPoolExecutor(2) as pool:
        run = lambda seed: in_a_process(tmp_path / f"{seed}.sqlite", "begin", seed=seed, strict=False)  # noqa: E731
        found = list(pool.map(run, ("1", "2")))
    ledgers = [without(one["ledger"], "id", "at", "seconds") for one in found]
    assert ledgers[0] == ledgers[1]
    records = [without(one["records"], "id", "at", "seconds", "time", "created_at") for one in found]
    assert records[0] == records[1]


def without(value: Any, *keys: str) -> Any:
    """A value without some keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(item, *keys) for key, item in value.items() if key not in keys}
    return [without(item, *keys) for item in value] if isinstance(value, list) else value


def test_all_state_of_a_guard_is_json(tmp_path: Path) -> None:
    """As it stands in the state, and as a new connection reads it from SQLite: the same plain JSON."""
    file = str(tmp_path / "saver.sqlite")
    with SqliteSaver.from_conn_string(file) as saver:
        app, _ = pair(
            lambda n: {"review": {"set": {1, 2}, "tuple": (1, 2), "nan": math.nan, "bytes": b"x"}},
            max_cycles=2, key=lambda state: ("pr", 1), measure=lambda state: {"a", "b"}, artifact="review", saver=saver,
        )  # fmt: skip
        app.invoke({}, named())
        before = app.get_state(named()).values
    with SqliteSaver.from_conn_string(file) as saver:
        app, _ = pair(saver=saver)
        after = app.get_state(named()).values
    for key in ("loopguard", "loopguard_history", "escalations", "escalation", "outcome"):
        assert_json(before[key])
        assert before[key] == after[key]
        assert before[key] == json.loads(json.dumps(before[key], allow_nan=False))


# -- a guard that breaks ----------------------------------------------------------------------------------------------


def explode(*_: Any) -> Any:
    """Anything that fails."""
    raise LookupError("boom")


class Unhashable:
    """A value without a form of its own, which refuses to be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no eq")


@pytest.mark.parametrize("what", ["artifact", "measure", "key", "stop_when"])
@pytest.mark.parametrize("saver", ["memory", None])
def test_a_selector_or_condition_that_raises_blocks(what: str, saver: Any) -> None:
    """The run ends in `blocked` with the error in the record, its work is kept, and a retry goes on."""
    app, _ = pair(saver=saver, **{what: explode})
    result = app.invoke({}, named())
    reason = result["escalation"]["reason"]
    assert ("blocked", "broken", "LookupError") == (result["outcome"], reason["kind"], reason["observed"])
    assert "boom" in reason["message"]
    assert what in reason["message"] or what == "stop_when"
    assert "remark 1" == result["review"]


@pytest.mark.parametrize("value", [Unhashable(), object(), lambda: 0])
def test_an_emission_that_cannot_be_hashed_blocks(value: Any) -> None:
    """What a node wrote is in the state, whatever the guard makes of it."""
    app, _ = pair(lambda n: {"review": value}, saver=None)
    result = app.invoke({})
    assert "blocked" == result["outcome"]
    assert value is result["review"]
    assert "broken" == result["escalation"]["reason"]["kind"]


def test_an_emission_that_contains_itself_blocks() -> None:
    """A list in itself has no end."""
    value: list[Any] = [1]
    value.append(value)
    app, _ = pair(lambda n: {"review": value}, saver=None)
    result = app.invoke({})
    assert ("blocked", value) == (result["outcome"], result["review"]) or result["review"] is value

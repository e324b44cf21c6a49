"""Law 3 on every saver: what a guard remembers survives checkpoints, strict serializers and new processes unchanged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from langgraph_loopguard import Escalation
from tests.graph.pairs import answer, is_json, pair, records, thread

ROOT = Path(__file__).parent.parent.parent
KINDS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
TEXT = "nul \x00, 👩‍👩‍👧, \x1b[31m, \r\n, \ud83d, NaN {nan}"


@contextmanager
def opened(kind: str, url: str) -> Iterator[Any]:
    """A saver with its tables."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        with SqliteSaver.from_conn_string(url) as found:
            yield found
    else:
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(url) as found:
            found.setup()
            yield found


@asynccontextmanager
async def aopened(kind: str, url: str) -> AsyncIterator[Any]:
    """The same, async."""
    if kind == "memory":
        yield InMemorySaver()
    elif kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(url) as found:
            yield found
    else:
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

        async with AsyncPostgresSaver.from_conn_string(url) as found:
            await found.setup()
            yield found


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the saver of the present `kind` stores."""
    kind = request.node.callspec.params["kind"]
    return request.getfixturevalue("fresh_postgres_url") if kind == "postgres" else str(tmp_path / "threads.sqlite")


def loop(saver: Any, **settings: Any) -> Any:
    """A pair whose emissions hold what savers trip over, inside a dict (a bare text is the user's own affair)."""
    return pair(
        lambda n: {"review": {"text": TEXT, "score": float("nan")}},
        lambda n: {"patch": {"text": f"{TEXT}\nline {n}\n"}},
        saver=saver,
        **{"max_cycles": 3, "artifact": "patch", "measure": lambda state: [TEXT] * state["n"], **settings},
    )


def same_on_all(record: dict[str, Any]) -> Any:
    """A record without what differs from run to run, and without what only a thread has."""
    text = json.dumps(record, allow_nan=False)
    plain = json.loads(text.replace(" (counted over all inputs of the thread)", ""))
    for key in ("id", "created_at", "spent", "decision"):
        plain.pop(key)
    for one in plain["reviews"] + plain["fixes"]:
        one.pop("time")
        one.pop("seconds")
    return plain


@pytest.fixture(scope="module")
def expected() -> Any:
    """The record of the run without any checkpoint in between."""
    app, _ = loop(None)
    return {**same_on_all(app.invoke({})["escalation"]), "thread_id": "thread"}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_saver_keeps_ledger_and_record(kind: str, durability: Any, url: str, expected: Any) -> None:
    """Trip, decision and next trip, with another connection for each step: nothing is changed, cut or lost."""
    memory = InMemorySaver()
    with opened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        result = app.invoke({}, thread(), durability=durability)
        written = guard.ledger(app.get_state(thread())).data
    assert expected == same_on_all(result["escalation"])
    with opened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        state = app.get_state(thread())
        assert written == guard.ledger(state).data
        assert is_json(written)
        assert [result["escalation"]] == records(app)
        assert is_json(records(app))
        assert result["escalation"] == state.interrupts[0].value["escalation"]
        Escalation(**records(app)[0])
        answer(app, {"action": "retry", "extra_cycles": 2, "guidance": TEXT})
    with opened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        assert 5 == guard.ledger(app.get_state(thread())).cycles
        assert "nul \\0, " in app.get_state(thread()).values["guidance"]
        first, second = records(app)
        assert expected == same_on_all(first)
        assert [1, 2, 3, 4, 5] == [one["n"] for one in second["fixes"]]
        assert expected["reviews"] == same_on_all(second)["reviews"][:4]
        answer(app, {"action": "accept", "fix": 2})
        assert "line 2\n" in app.get_state(thread()).values["patch"]["text"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_async_saver_keeps_ledger_and_record(kind: str, durability: Any, url: str, expected: Any) -> None:
    """The same on the event loop."""
    memory = InMemorySaver()
    async with aopened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        result = await app.ainvoke({}, thread(), durability=durability)
        written = guard.ledger(await app.aget_state(thread())).data
    assert expected == same_on_all(result["escalation"])
    async with aopened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        state = await app.aget_state(thread())
        assert written == guard.ledger(state).data
        assert [result["escalation"]] == list(state.values["escalations"].values())
        await app.ainvoke(Command(resume={"action": "retry", "extra_cycles": 2}), thread(), durability=durability)
    async with aopened(kind, url) as saver:
        app, guard = loop(memory if kind == "memory" else saver)
        state = await app.aget_state(thread())
        assert 5 == guard.ledger(state).cycles
        assert expected == same_on_all(next(iter(state.values["escalations"].values())))
        await app.ainvoke(Command(resume={"action": "accept", "fix": 2}), thread())
        assert "line 2\n" in (await app.aget_state(thread())).values["patch"]["text"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_reads_its_own_history_on_every_saver(kind: str, url: str) -> None:
    """The history channel stores what is new only: a fork's record has what its own branch wrote, whole."""
    with opened(kind, url) as saver:
        app, guard = loop(saver, max_cycles=40, rounds=10_000)
        app.invoke({}, thread())
        states = [state for state in app.get_state_history(thread()) if state.next == ("fixer",)]
        for state in (states[0], states[20], states[-1]):
            app.update_state(state.config, {"n": 1_000}, as_node="fixer")
            app.invoke(None, thread())
            record = records(app)[-1]
            before = guard.ledger(state).cycles
            numbers = [int(one["content"]["n"]) for one in record["reviews"]]
            assert list(range(1, before + 1)) == numbers[:before]
            assert list(range(1_001, 1_001 + len(numbers) - before)) == numbers[before:]
            assert 40 == record["cycles"]


DYING = """
import os, signal, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.graph.pairs import pair, thread

def fix(n):
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"patch": n}

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    app, _ = pair(fix=fix, saver=saver, max_cycles=4)
    app.invoke({}, thread(), durability=sys.argv[2])
"""


@pytest.mark.parametrize(("durability", "kept"), [("sync", {3}), ("async", {0, 1, 2, 3}), ("exit", {0})])
def test_what_a_killed_run_keeps(durability: Any, kept: set[int], tmp_path: Path) -> None:
    """`sync` keeps every step, `async` as many as were written yet, `exit` nothing: the thread begins anew.

    Whatever was kept, the run that goes on counts to the cap and no further.
    """
    path = str(tmp_path / "threads.sqlite")
    done = subprocess.run([sys.executable, "-c", DYING, path, durability], cwd=ROOT, capture_output=True, check=False)
    assert -9 == done.returncode, done.stderr
    with opened("sqlite", path) as saver:
        app, guard = pair(fix=lambda n: {"patch": n}, saver=saver, max_cycles=4)
        state = app.get_state(thread())
        assert guard.ledger(state).cycles in kept
        app.invoke(None if state.created_at else {}, thread())
        (record,) = records(app)
        assert [1, 2, 3, 4] == [one["content"]["patch"] for one in record["fixes"]]
        assert (4, 5) == (record["cycles"], len(record["reviews"]))


READER = """
import json, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.integration.test_savers import loop, thread, records
from langgraph.types import Command
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    app, guard = loop(saver)
    if sys.argv[2] == "begin":
        app.invoke({}, thread())
    elif sys.argv[2] == "retry":
        app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), thread())
    state = app.get_state(thread())
    found = {"ledger": guard.ledger(state).data, "records": records(app), "asked": [i.value for i in state.interrupts]}
    print(json.dumps(found, allow_nan=False))
"""


def in_new_process(path: Path, what: str, **environment: str) -> dict[str, Any]:
    """Do something with the thread in a process of its own; return what it reads afterwards."""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", READER, str(path), what],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert "Blocked deserialization" not in done.stderr
    assert "unregistered" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_new_process_reads_and_goes_on(tmp_path: Path, expected: Any) -> None:
    """Whatever the hash seed, and under the strict serializer: ledger, record and question are equal."""
    path = tmp_path / "threads.sqlite"
    written = in_new_process(path, "begin", PYTHONHASHSEED="1", LANGGRAPH_STRICT_MSGPACK="true")
    assert expected == same_on_all(written["records"][0])
    for strict in ("true", "false"):
        read = in_new_process(path, "read", PYTHONHASHSEED="2", LANGGRAPH_STRICT_MSGPACK=strict)
        assert written == read
    after = in_new_process(path, "retry", PYTHONHASHSEED="3", LANGGRAPH_STRICT_MSGPACK="true")
    assert (5, 2, 6) == (after["ledger"]["cycles"], len(after["records"]), len(after["records"][1]["reviews"]))
    assert expected == same_on_all(after["records"][0])


def test_equal_runs_in_other_processes_have_equal_fingerprints(tmp_path: Path) -> None:
    """Nothing in a ledger hangs on the process: no hash seed, no order of sets, no address."""
    found = [
        in_new_process(tmp_path / f"{seed}.sqlite", "begin", PYTHONHASHSEED=str(seed))["ledger"]["nodes"]
        for seed in (1, 2)
    ]
    assert found[0] == found[1]


def test_bytes_grow_with_the_run_and_not_with_its_square(tmp_path: Path) -> None:
    """Four times the cycles are about four times the bytes on disk."""
    sizes = []
    for cycles in (50, 200):
        path = tmp_path / f"{cycles}.sqlite"
        with opened("sqlite", str(path)) as saver:
            app, _ = pair(lambda n: {"review": "x" * 2_000}, saver=saver, max_cycles=cycles)
            app.invoke({}, thread())
        sizes.append(path.stat().st_size)
    assert sizes[1] < 6 * sizes[0]

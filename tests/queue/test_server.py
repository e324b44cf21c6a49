"""The queue on a real `langgraph dev`: escalate, list, claim, decide, resume; by `ServerQueue` and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from langgraph_loopguard.cli import main
from langgraph_loopguard.queue import (
    AlreadyDecidedError,
    ClaimedError,
    Filter,
    QueueError,
    QueueUnavailableError,
    ServerQueue,
    UnknownEscalationError,
)
from tests.services import langgraph_server

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a server with the two graphs."""
    with langgraph_server(Path(__file__).parent / "project", tmp_path_factory.mktemp("langgraph-dev")) as found:
        yield found


@pytest.fixture
def queue(url: str) -> Iterator[ServerQueue]:
    """A queue on the server."""
    opened = ServerQueue(url)
    yield opened
    opened.close()


def escalate(queue: ServerQueue, graph: str = "review") -> tuple[str, str]:
    """Run a thread into its guard; return the thread's and the escalation's id."""
    thread = queue.client.threads.create()["thread_id"]
    queue.client.runs.wait(thread, graph, input={})
    (row,) = queue.list(Filter(thread_id=thread)).rows
    return thread, row.id


def state(queue: ServerQueue, thread: str) -> dict[str, Any]:
    """A thread's values, when it has come to rest."""
    for run in queue.client.runs.list(thread):
        queue.client.runs.join(thread, run["run_id"])
    values: Any = queue.client.threads.get_state(thread)["values"]
    return dict(values)


def test_an_escalation_is_found_claimed_and_decided(queue: ServerQueue) -> None:
    """Listed by age, shown whole, claimed, decided once, applied; the next round is a new one."""
    thread, one = escalate(queue)
    _, two = escalate(queue)
    listed = [row.id for row in queue.list(limit=1000).rows]
    assert listed.index(one) < listed.index(two)
    row = queue.show(one)
    assert ("open", thread, "review", "reviewer-fixer") == (row.state, row.thread_id, row.graph, row.loop)
    assert 3 == len((row.record or {})["reviews"])
    assert one == queue.find(one[:12])
    assert "ada" == queue.claim(one, "ada").owner
    for operation in (lambda: queue.claim(one, "bob"), lambda: queue.decide(one, {"action": "accept"}, by="bob")):
        with pytest.raises(ClaimedError, match="'ada'"):
            operation()
    queue.release(one, "ada")
    queue.claim(one, "bob")
    with pytest.raises(ValueError, match="extra_cycles"):
        queue.decide(one, {"action": "retry"}, by="bob")
    decided = queue.decide(one, {"action": "retry", "extra_cycles": 2}, by="bob")
    assert ("applied", "bob") == (decided.state, decided.owner)
    with pytest.raises(AlreadyDecidedError, match="retry with 2 cycles more by bob"):
        queue.decide(one, {"action": "accept"}, by="eve")
    assert ["fix 1", "fix 2", "fix 3", "fix 4"] == state(queue, thread)["log"]
    (later,) = queue.list(Filter(thread_id=thread)).rows
    assert one != later.id
    assert "applied" == queue.decide(later.id, {"action": "accept", "fix": 1}).state
    assert "line 1\n" == state(queue, thread)["patch"]
    assert {one, later.id} == {row.id for row in queue.list(Filter(state="applied", thread_id=thread)).rows}
    assert () == queue.list(Filter(thread_id=thread)).rows


def test_of_many_deciders_one_wins(queue: ServerQueue) -> None:
    """The others are told who; the graph has run once."""
    thread, one = escalate(queue)

    def decide(name: str) -> str:
        mine = ServerQueue(queue.url)
        try:
            mine.decide(one, {"action": "retry", "extra_cycles": 1}, by=name)
        except AlreadyDecidedError as error:
            return f"lost to {error.row.owner}"
        finally:
            mine.close()
        return "won"

    names = [f"person-{n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        results = dict(zip(names, pool.map(decide, names), strict=True))
    (winner,) = [name for name, result in results.items() if result == "won"]
    assert {"won", f"lost to {winner}"} == set(results.values())
    assert ["fix 1", "fix 2", "fix 3"] == state(queue, thread)["log"]


def test_a_guard_in_a_subgraph(queue: ServerQueue) -> None:
    """Its question is found, and its answer goes through the parent."""
    thread, one = escalate(queue, "nested")
    assert "nested" == queue.show(one).graph
    assert "applied" == queue.decide(one, {"action": "accept"}, by="ada").state
    assert "after" == state(queue, thread)["log"][-1]
    assert () == queue.list(Filter(thread_id=thread)).rows


def test_filters_pages_and_health(queue: ServerQueue) -> None:
    """The same as on a database."""
    made = [escalate(queue) for _ in range(3)]
    ids = {one for _, one in made}
    got: list[str] = []
    after = None
    while True:
        page = queue.list(Filter(graph="review"), limit=2, after=after)
        got += [row.id for row in page.rows]
        if page.next is None:
            break
        after = page.next
    assert len(got) == len(set(got))
    assert ids <= set(got)
    assert ids <= {row.id for row in queue.list(Filter(text="REMARK", max_age=3600), limit=1000).rows}
    assert () == queue.list(Filter(text="nowhere at all")).rows
    assert () == queue.list(Filter(min_age=3600)).rows
    assert () == queue.list(Filter(state="superseded")).rows
    health = queue.health()
    assert health.open >= 3
    assert health.problems(max_open=2)
    exported = {row.id: row.record for row in queue.export()}
    assert ids <= set(exported)
    assert all(exported.values())


def test_what_is_not_there(queue: ServerQueue) -> None:
    """An id that no thread has; a server that is not there."""
    for operation in (lambda: queue.show("0" * 32), lambda: queue.decide("0" * 32, {"action": "accept"})):
        with pytest.raises(UnknownEscalationError):
            operation()
    gone = ServerQueue("http://127.0.0.1:1")
    with pytest.raises(QueueUnavailableError, match=r"127\.0\.0\.1:1 cannot be reached"):
        gone.health()
    gone.close()
    assert issubclass(QueueUnavailableError, QueueError)


async def test_the_async_door(queue: ServerQueue) -> None:
    """Each operation has its twin."""
    thread, one = escalate(queue)
    assert one in {row.id for row in (await queue.alist(Filter(thread_id=thread))).rows}
    assert "applied" == (await queue.adecide(one, {"action": "reject"}, by="ada")).state
    assert "reject" == ((await queue.ashow(one)).decision or {})["action"]


def test_the_command(queue: ServerQueue, capsys: pytest.CaptureFixture[str]) -> None:
    """List, show, claim, decide, health, export by URL; nothing is delivered by hand."""
    thread, one = escalate(queue)
    url = ["--url", queue.url]

    def run(*args: str) -> Any:
        status = main(["queue", args[0], *url, *args[1:]])
        out, err = capsys.readouterr()
        return status, out, err

    status, out, _ = run("list", "--json", "--limit", "1000")
    assert 0 == status
    assert thread in [row["thread_id"] for row in json.loads(out)["rows"]]
    status, out, _ = run("show", one[:10])
    assert 0 == status
    assert r"\u202e<script>" in out
    assert 0 == run("claim", one, "--by", "ada")[0]
    assert 1 == run("decide", one, "accept", "--by", "bob")[0]
    status, out, _ = run("decide", one, "accept", "--fix", "1", "--by", "ada")
    assert (0, True) == (status, "applied, accept attempt 1 by ada" in out)
    assert "line 1\n" == state(queue, thread)["patch"]
    status, _, err = run("decide", one, "reject", "--by", "bob")
    assert (1, True) == (status, "decided already: accept attempt 1 by ada" in err)
    assert 1 == run("health", "--max-age", "0s")[0]
    assert one in run("export", "--state", "applied")[1]
    status, _, err = run("deliver", "--graph", "x:y")
    assert (2, True) == (status, "runs its graphs itself" in err)

"""The server example under a real `langgraph dev`: a trip is found by status, answered by SDK, and goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services import langgraph_server

pytestmark = pytest.mark.server

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "examples" / "server"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the example's server."""
    with langgraph_server(PROJECT, tmp_path_factory.mktemp("langgraph-dev")) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    """A client of the SDK."""
    from langgraph_sdk import get_sync_client

    with get_sync_client(url=url) as opened:
        yield opened


def _ledger(client: Any, thread: str) -> dict[str, Any]:
    ledger: dict[str, Any] = client.threads.get_state(thread)["values"]["loopguard"]["reviewer-fixer"]["null"]
    return ledger


def _question(client: Any, thread: str) -> dict[str, Any]:
    """The one question of a thread, as somebody who looks for waiting threads finds it."""
    (found,) = [row for row in client.threads.search(status="interrupted") if row["thread_id"] == thread]
    (questions,) = found["interrupts"].values()
    (question,) = questions
    return dict(question["value"])


def test_escalation_is_found_and_decided(client: Any) -> None:
    """Three cycles, a question found by status, two cycles more, a second question, and the end."""
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "review", input={"pull_request": "17"})

    first = _question(client, thread)
    record = first["escalation"]
    assert thread == record["thread_id"]
    assert ("escalated", "MaxCycles", "reviewer->fixer", 3) == (
        record["outcome"],
        record["reason"]["condition"],
        record["edge"],
        record["cycles"],
    )
    assert [0, 1, 2, 3] == [int(review["content"]["review"].split()[1]) for review in record["reviews"]]
    patches = [f"return x or DEFAULT_{n}\n" for n in (1, 2, 3)]
    assert patches == [fix["content"]["patch"] for fix in record["fixes"]]
    assert record["question"] == first["action_requests"][0]["description"]
    assert 3 == _ledger(client, thread)["cycles"]

    answer = {"action": "retry", "guidance": "Return 0 for None.", "extra_cycles": 2, "decided_by": "ada"}
    client.runs.wait(thread, "review", command={"resume": answer})
    second = _question(client, thread)["escalation"]
    assert record["id"] != second["id"]
    assert (5, 5) == (second["cycles"], _ledger(client, thread)["cycles"])
    assert [*patches, "return x or 0\n", "return x or 0\n"] == [fix["content"]["patch"] for fix in second["fixes"]]

    result = client.runs.wait(thread, "review", command={"resume": {"action": "accept", "fix": 3}})
    assert patches[2] == result["patch"]
    assert "escalated" == result["outcome"]
    state = client.threads.get_state(thread)
    assert [] == state["next"]
    assert {record["id"]: "retry", second["id"]: "accept"} == {
        key: found["decision"]["action"] for key, found in state["values"]["escalations"].items()
    }
    assert thread not in [row["thread_id"] for row in client.threads.search(status="interrupted")]


def test_bad_answer_leaves_the_question_open(client: Any) -> None:
    """An answer that makes no sense ends that run with an error; the thread can be answered after it."""
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "review", input={"pull_request": "18"})
    refused = client.runs.wait(thread, "review", command={"resume": {"action": "retry"}}, raise_error=False)
    assert "extra_cycles" in str(refused)
    result = client.runs.wait(thread, "review", command={"resume": {"action": "reject", "decided_by": "ada"}})
    assert "reject" == result["escalation"]["decision"]["action"]


def test_threads_have_budgets_of_their_own(client: Any) -> None:
    """What one thread has spent is nothing to the next."""
    for _ in range(2):
        thread = client.threads.create()["thread_id"]
        client.runs.wait(thread, "review", input={})
        assert 3 == _ledger(client, thread)["cycles"]


def test_readme_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's session works as it stands, on the port that it is told."""
    text = (PROJECT / "README.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    exec(compile(code.replace("http://127.0.0.1:2024", url), "README.md", "exec"), {"__name__": "readme"})
    assert "return x or 0\n accept" in capsys.readouterr().out

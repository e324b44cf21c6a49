"""Put, list, show, claim, decide, health, export: the same on every database."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from langgraph_loopguard.people import redact_credentials
from langgraph_loopguard.queue import (
    AlreadyDecidedError,
    ClaimedError,
    EscalationQueue,
    Filter,
    SupersededError,
    UnknownEscalationError,
)
from langgraph_loopguard.queue.rows import STATES, short
from tests.people.hostile import HOSTILE
from tests.queue.rows import START, fill, record

ACCEPT = {"action": "accept", "fix": 1}


def ids(queue: EscalationQueue, **where: Any) -> list[str]:
    """Ids of a listing's first page."""
    return [row.id for row in queue.list(Filter(**where), limit=1000).rows]


def test_a_record_is_put_once_and_kept_whole(queue: EscalationQueue) -> None:
    """The second time nothing is changed; what comes out is what went in."""
    assert queue.put(record(1))
    assert not queue.put(record(1, question="another"))
    row = queue.show(record(1)["id"])
    assert {**record(1), "redacted": {}} == row.record
    assert ("open", "thread-1", "reviewer-fixer", "MaxCycles") == (row.state, row.thread_id, row.loop, row.condition)
    assert START + timedelta(seconds=1) == row.created_at
    assert row.without_record() == queue.list().rows[0]


def test_a_decided_row_is_never_opened_again(queue: EscalationQueue) -> None:
    """A node that runs again puts its record again."""
    (one,) = fill(queue, 1)
    queue.decide(one, ACCEPT, by="ada")
    assert not queue.put(record(0))
    assert "decided" == queue.show(one).state


@pytest.mark.parametrize("text", [*HOSTILE, "nul \0 and lone \ud800 surrogate", "x" * 2_000_000])
def test_any_text_is_kept(queue: EscalationQueue, text: str) -> None:
    """Control characters, NUL, lone surrogates, megabytes: stored, listed and found."""
    clean = text.replace("\ud800", "\\ud800")
    given = record(
        1, question=text, diff=text, loop=text[:50], scope_key={"pr": text[:50]}, reviews=[{"content": text}]
    )
    stored = EscalationQueue(str(queue.database.url.render_as_string(False)), redact=None)
    assert stored.put(given)
    stored.close()
    row = queue.show(given["id"])
    assert row.record is not None
    assert (clean, clean) == (row.record["question"], row.record["diff"])
    assert [given["id"]] == ids(queue)
    assert [given["id"]] == ids(queue, text=text[:20].upper())


def test_records_are_redacted_before_they_are_stored(queue: EscalationQueue) -> None:
    """The secret is nowhere in the database, and the record says so."""
    secret = "AKIA" + "IOSFODNN7EXAMPLQ"
    queue.put(record(1, question=f"why {secret}?", diff=secret, thread_id="thread-1"))
    row = queue.show(record(1)["id"])
    assert row.record is not None
    assert {"AWS Access Key": 2} == row.record["redacted"]
    assert secret not in row.question
    assert [] == ids(queue, text=secret)


def test_redact_is_the_users_own(lite: EscalationQueue) -> None:
    """Any function of the record; the given record stays as it is."""
    lite.redact = lambda found: {**redact_credentials(found), "diff": "(left out)"}
    given = record(1, diff="secret")
    lite.put(given)
    assert "secret" == given["diff"]
    assert "(left out)" == (lite.show(given["id"]).record or {})["diff"]


@pytest.mark.parametrize("bad", [None, "", 7, "x" * 65, "a\0b"])
def test_an_id_that_is_none_is_refused(lite: EscalationQueue, bad: Any) -> None:
    """Put names it; show knows no such escalation."""
    with pytest.raises(ValueError, match="id of 1 to 64 characters"):
        lite.put(record(1, id=bad))
    with pytest.raises(UnknownEscalationError):
        lite.show(bad)


def test_lists_are_by_age_in_pages(queue: EscalationQueue) -> None:
    """The oldest first, also when they came in another order; equal ages by id."""
    for n in (3, 1, 4, 2, 0):
        queue.put(record(n))
    for n in (11, 10):
        queue.put(record(n, at=START + timedelta(seconds=2)))
    expected = sorted(
        [(START + timedelta(seconds=n), record(n)["id"]) for n in range(5)]
        + [(START + timedelta(seconds=2), record(n)["id"]) for n in (10, 11)]
    )
    got, after = [], None
    while True:
        page = queue.list(limit=2, after=after)
        got += page.rows
        if page.next is None:
            break
        after = page.next
    assert [one for _, one in expected] == [row.id for row in got]


def test_pages_are_stable_while_rows_move(queue: EscalationQueue) -> None:
    """Rows that are decided and rows that come in between two pages: none twice, none that stays is missed."""
    all_ids = fill(queue, 30)
    moved = set(all_ids[3:30:4])
    got: list[str] = []
    after, moving = None, sorted(moved)
    while True:
        page = queue.list(limit=7, after=after)
        got += [row.id for row in page.rows]
        for one in moving[:2]:
            queue.decide(one, ACCEPT, by="ada")
        moving = moving[2:]
        queue.put(record(-len(got)))  # older than all: it belongs to a page that has been shown
        if queue.show(all_ids[len(got) % 30]).state == "open":
            queue.claim(all_ids[len(got) % 30], "ada")
        if page.next is None:
            break
        after = page.next
    assert len(got) == len(set(got))
    assert set(all_ids) - moved <= set(got) <= set(all_ids)
    assert sorted(got, key=all_ids.index) == got


@pytest.mark.parametrize(("limit", "after"), [(0, None), (1001, None), (True, None), (5, "x"), (5, "1"), (5, "a.b")])
def test_pages_that_make_no_sense_are_refused(lite: EscalationQueue, limit: int, after: str | None) -> None:
    """With the parameter's name."""
    with pytest.raises(ValueError, match="limit must be|after must be"):
        lite.list(limit=limit, after=after)


def test_filters(queue: EscalationQueue) -> None:
    """By state, loop, owner, graph, thread, claim, age and text, and all of them together."""
    now = datetime.now(timezone.utc)
    other = EscalationQueue(queue.database.url.render_as_string(False), graph="other")
    a, b, c, d = (record(n)["id"] for n in range(4))
    queue.put(record(0, at=now - timedelta(hours=5), loop="one", question="Is 100% of_it done?"))
    queue.put(record(1, at=now - timedelta(hours=3), scope_key={"pr": "Straße 17"}))
    queue.put(record(2, at=now - timedelta(hours=1), reviews=[{"content": {"review": "Please handle None"}}]))
    other.put(record(3, at=now, thread_id="T"))
    other.close()
    queue.claim(b, "ada")
    queue.decide(c, ACCEPT, by="bob")
    assert [a, b, d] == ids(queue)
    assert [a, b, c, d] == ids(queue, state=None)
    assert [c] == ids(queue, state="decided")
    assert [a, b, c, d] == ids(queue, state=("open", "decided"))
    assert [a] == ids(queue, loop="one")
    assert [b] == ids(queue, owner="ada")
    assert [c] == ids(queue, owner="bob", state=None)
    assert [d] == ids(queue, graph="other")
    assert [d] == ids(queue, thread_id="T")
    assert [b] == ids(queue, claimed=True)
    assert [a, d] == ids(queue, claimed=False)
    assert [a, b] == ids(queue, min_age=2 * 3600)
    assert [d] == ids(queue, max_age=2 * 3600)
    assert [b] == ids(queue, min_age=2 * 3600, max_age=4 * 3600)
    assert [a] == ids(queue, text="100% OF_it")
    assert [] == ids(queue, text="100_ of")
    assert [b] == ids(queue, text="STRASSE")
    assert [c] == ids(queue, text="handle none", state=None)
    assert [b] == ids(queue, text="17", claimed=True, owner="ada", min_age=60, loop="reviewer-fixer")


@pytest.mark.parametrize("bad", [{"state": "closed"}, {"state": ("open", "x")}, {"min_age": -1}, {"max_age": -1}])
def test_filters_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    """With the parameter's name."""
    with pytest.raises(ValueError, match="|".join(bad)):
        Filter(**bad)


def test_a_claim_keeps_others_off_until_its_lease_ends(queue: EscalationQueue) -> None:
    """Others may neither claim nor decide; the owner renews; after the end anybody may."""
    (one,) = fill(queue, 1)
    row = queue.claim(one, "ada", lease=60)
    assert "ada" == row.owner
    assert row.is_claimed(datetime.now(timezone.utc))
    with pytest.raises(ClaimedError, match="claimed by 'ada' until") as refused:
        queue.claim(one, "bob")
    assert "ada" == refused.value.row.owner
    for by in ("bob", None):
        with pytest.raises(ClaimedError):
            queue.decide(one, ACCEPT, by=by)
    queue.release(one, "bob")
    assert queue.show(one).is_claimed(datetime.now(timezone.utc))
    queue.claim(one, "ada", lease=0.05)
    time.sleep(0.1)
    assert "bob" == queue.claim(one, "bob").owner
    queue.release(one, "bob")
    assert queue.show(one).owner is None
    assert "eve" == queue.decide(one, ACCEPT, by="eve").owner


@pytest.mark.parametrize(("by", "lease"), [("", 1), ("  ", 1), (None, 1), ("ada", 0), ("ada", -1), ("ada", 10**9)])
def test_claims_that_make_no_sense_are_refused(lite: EscalationQueue, by: Any, lease: float) -> None:
    """With the parameter's name and value."""
    (one,) = fill(lite, 1)
    with pytest.raises(ValueError, match="by must name|lease must be"):
        lite.claim(one, by, lease=lease)


def test_a_decision_is_written_once_and_the_loser_is_told(queue: EscalationQueue) -> None:
    """Who decided what and when; claim and release do nothing to it."""
    (one,) = fill(queue, 1)
    row = queue.decide(one, {"action": "retry", "extra_cycles": 2, "guidance": "be brief"}, by="ada")
    assert row.decision is not None
    assert row.decided_at is not None
    assert ("decided", "ada", row.decided_at.isoformat(), one) == (
        row.state,
        row.decision["decided_by"],
        row.decision["decided_at"],
        row.decision["escalation_id"],
    )
    with pytest.raises(AlreadyDecidedError, match="retry with 2 cycles more by ada at .*, guidance: be brief") as lost:
        queue.decide(one, ACCEPT, by="bob")
    assert row == lost.value.row
    with pytest.raises(AlreadyDecidedError):
        queue.claim(one, "bob")
    queue.release(one, "ada")
    assert row == queue.show(one)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"action": "maybe"}, "action"),
        ({"action": "retry"}, "extra_cycles must be positive"),
        ({"action": "accept", "fix": 2}, "fix must be at most 1"),
        ({"action": "accept", "escalation_id": "0" * 32}, "is not the one"),
        ({"action": "edit", "artifact": object()}, "artifact must be plain JSON"),
        ({"action": "edit", "artifact": {"patch": "key = [redacted: AWS Access Key]"}}, "what was masked"),
        ("accept", "answer must be"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(lite: EscalationQueue, answer: Any, message: str) -> None:
    """The question stays open."""
    (one,) = fill(lite, 1)
    with pytest.raises(ValueError, match=message):
        lite.decide(one, answer)
    assert "open" == lite.show(one).state


@pytest.mark.parametrize(
    "answer", [{"decisions": [{"type": "approve"}]}, [{"type": "accept"}], {"action": "accept", "decided_by": "eve"}]
)
def test_answers_of_other_front_ends_are_understood(lite: EscalationQueue, answer: Any) -> None:
    """As by an interrupt; the person is named by the call, else by the answer."""
    (one,) = fill(lite, 1)
    row = lite.decide(one, answer)
    assert ("accept", answer.get("decided_by") if isinstance(answer, dict) else None) == (
        (row.decision or {})["action"],
        row.owner,
    )


def test_what_is_not_there_is_unknown(queue: EscalationQueue) -> None:
    """By name, on every operation."""
    for operation in (
        lambda: queue.show("nothing"),
        lambda: queue.claim("nothing", "ada"),
        lambda: queue.release("nothing", "ada"),
        lambda: queue.decide("nothing", ACCEPT),
    ):
        with pytest.raises(UnknownEscalationError, match="'nothing' is not in the queue"):
            operation()


def test_health_counts_and_ages(queue: EscalationQueue) -> None:
    """Open, claimed, undelivered; what is over a limit is said in words."""
    assert (0, None, 0) == (queue.health().open, queue.health().oldest_open, queue.health().undelivered)
    assert () == queue.health().problems(max_age=1, max_open=0, max_undelivered=1)
    now = datetime.now(timezone.utc)
    for n, hours in enumerate((5, 3, 1)):
        queue.put(record(n, at=now - timedelta(hours=hours)))
    queue.claim(record(1)["id"], "ada")
    queue.decide(record(2)["id"], ACCEPT)
    health = queue.health()
    assert (2, 1, 1, 0) == (health.open, health.claimed, health.undelivered, health.failing)
    assert health.oldest_open is not None
    assert timedelta(hours=5) < health.oldest_open < timedelta(hours=5, minutes=5)
    assert () == health.problems()
    assert () == health.problems(max_age=6 * 3600, max_open=2, max_undelivered=600)
    assert ("the oldest waits for 5h, the limit is 4h", "2 are open, the limit is 1") == tuple(
        problem.replace(" 1s", "").replace(" 2s", "") for problem in health.problems(max_age=4 * 3600, max_open=1)
    )
    time.sleep(0.02)
    assert "a decision is undelivered" in queue.health().problems(max_undelivered=0.001)[0]
    assert {"open", "oldest_open", "undelivered", "claimed", "oldest_undelivered", "failing"} == {*health.to_json()}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (61, "1m 1s"), (3600, "1h"), (3 * 86400 + 4 * 3600 + 5, "3d 4h")]
)
def test_ages_in_words(seconds: int, text: str) -> None:
    """The two largest units."""
    assert text == short(timedelta(seconds=seconds))


def test_export_yields_everything(queue: EscalationQueue) -> None:
    """All states with their records, over several pages; or what a filter says."""
    all_ids = fill(queue, 205)
    queue.decide(all_ids[0], ACCEPT)
    exported = list(queue.export())
    assert all_ids == [row.id for row in exported]
    assert all(row.record and row.record["question"] == f"question {n}" for n, row in enumerate(exported))
    assert [all_ids[0]] == [row.id for row in queue.export(Filter(state="decided"))]
    assert all(isinstance(row.to_json()["created_at"], str) for row in exported[:3])


async def test_the_async_door(queue: EscalationQueue) -> None:
    """Each operation has its twin."""
    assert await queue.aput(record(0))
    (row,) = (await queue.alist()).rows
    assert (await queue.ashow(row.id)).record
    await queue.aclaim(row.id, "ada")
    await queue.arelease(row.id, "ada")
    assert "decided" == (await queue.adecide(row.id, ACCEPT, by="ada")).state
    assert 1 == (await queue.ahealth()).undelivered


def test_superseded_rows_are_closed(lite: EscalationQueue) -> None:
    """Nobody may claim or decide what waits no longer; the error says why."""
    from sqlalchemy import text

    (one,) = fill(lite, 1)
    with lite.database.writing() as connection:
        connection.execute(text("UPDATE loopguard_escalations SET state = 'superseded', error = 'it is gone'"))
    for operation in (lambda: lite.claim(one, "ada"), lambda: lite.decide(one, ACCEPT)):
        with pytest.raises(SupersededError, match="waits no longer: it is gone"):
            operation()
    assert "superseded" in STATES

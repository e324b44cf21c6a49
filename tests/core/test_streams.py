"""Loops and false alarms that people have reported, as streams of handoffs: where a guard must trip, and where not."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_loopguard import LoopGuard, RepeatedPayload
from tests.core.streams import Event, call, play, trip_of

NO_CAP = 10**6
REPEAT_AT_3 = (3, "RepeatedPayload", "stalled")
CAP_AT_11 = (11, "MaxCycles", "exhausted")


def progress(*nodes: str, max_cycles: int = 10, **settings: Any) -> LoopGuard:
    return LoopGuard(*nodes, max_cycles=max_cycles, preset="progress", **settings)


def test_same_call_with_fresh_ids_is_a_repeat() -> None:
    """https://github.com/langchain-ai/deepagents/issues/6441: the call's generated id hides nothing."""
    events = [("agent", {"id": f"call_{n}", **call("grep", "", p="foo")}) for n in range(6)]
    assert REPEAT_AT_3 == trip_of(progress("agent", "tools"), events)


def polling() -> list[Event]:
    return [("agent", call("read_output", result, h=1)) for result in ["running"] * 5 + ["exit 0"]]


def test_polling_goes_on_where_it_is_allowed() -> None:
    """https://github.com/macanderson/stella/issues/359: a poll that says the same for a while is no loop.

    There is no exemption for polls as such: `strict` never looks at payloads, and a threshold above the longest wait is
    an allowance. The `progress` preset does trip on five equal answers in a row.
    """
    assert None is trip_of(LoopGuard("agent", "tools", max_cycles=10), polling())
    allowed = LoopGuard("agent", "tools", max_cycles=10, stop_when=RepeatedPayload(times=6))
    assert None is trip_of(allowed, polling())
    assert REPEAT_AT_3 == trip_of(progress("agent", "tools"), polling())


def test_polling_with_news_is_no_repeat() -> None:
    """Same arguments, progressing result."""
    events = [("agent", call("read_output", f"{10 * n} % done", h=1)) for n in range(9)]
    assert None is trip_of(progress("agent", "tools"), events)


def test_alternation_with_new_arguments_ends_at_the_cap() -> None:
    """https://github.com/bytedance/deer-flow/pull/2590: nothing repeats, so only the count can stop it, and says so."""
    events = [("a", call(name, q=f"{name}{n}")) for n in range(12) for name in ("web_search", "web_fetch")]
    assert CAP_AT_11 == trip_of(progress("a", "t"), events)


def test_twenty_different_calls_are_work() -> None:
    """https://github.com/odysseus-dev/odysseus/pull/3183: a batch over many files is no loop."""
    events = [("a", call("read", f"text {n}", f=f"{n}.py")) for n in range(20)]
    assert None is trip_of(progress("a", "t", max_cycles=NO_CAP), events)


def test_pages_of_one_file_are_work() -> None:
    """https://github.com/bytedance/deer-flow/pull/5486: five pages of one file were taken for one call."""
    pages = [("a", call("read_file", f"page {n}", path="big.txt", start=40 * n + 1, end=40 * n + 40)) for n in range(5)]
    assert None is trip_of(progress("a", "t"), pages)
    flat = [("a", {"path": "big.txt", "start": n, "text": "same header"}) for n in range(5)]
    assert None is trip_of(progress("a", "t"), flat)


def test_one_side_that_repeats_is_enough() -> None:
    """https://agentbeck.bot/report/38954: the coder sends the same code after each rejection; remarks always differ.

    The coder's third copy is event 5 of the whole stream.
    """
    events: list[Event] = []
    for n in range(4):
        events.append(("coder", "diff A"))
        events.append(("reviewer", f"round {n}: still fails, {7 - n} remarks"))
    guard = progress("coder", "reviewer")
    assert (5, "RepeatedPayload", "stalled") == trip_of(guard, events)
    assert REPEAT_AT_3 == trip_of(guard, [event for event in events if event[0] == "coder"])


def test_times_and_temporary_paths_do_not_hide_a_repeat() -> None:
    """https://github.com/cline/cline/pull/8787: the error's text carries a timestamp and a temporary path."""
    events = [("a", f"2026-01-0{n + 1}T00:00:0{n}Z /tmp/x{n}/f.py: search block not found") for n in range(5)]
    assert REPEAT_AT_3 == trip_of(progress("a", "t"), events)


def test_after_a_decision_the_window_is_empty() -> None:
    """https://github.com/OpenHands/OpenHands/issues/5480: the next equal event after "go on" must not trip at once."""
    guard = progress("reviewer", "coder")
    ledger, verdicts = play(guard, [("reviewer", "same")] * 3)
    assert [False, False, True] == [verdict.tripped for verdict in verdicts]
    ledger = guard.decide(ledger, "retry", extra_cycles=1)
    ledger, verdicts = play(guard, [("reviewer", "same")] * 3, ledger)
    assert [False, False, True] == [verdict.tripped for verdict in verdicts]


def test_the_first_event_never_trips() -> None:
    """https://github.com/BerriAI/litellm/pull/31859: one repeat as a threshold would trip at once, so it is refused."""
    assert None is trip_of(progress("reviewer", "coder"), [("reviewer", "x")])
    with pytest.raises(ValueError, match=r"RepeatedPayload\(times\) must be .* at least 2, got 1"):
        RepeatedPayload(times=1)


def test_an_inner_loop_has_a_budget_per_visit_with_a_ledger_per_visit() -> None:
    """https://github.com/google/adk-python/issues/2808: an inner loop of five, inside a healthy outer one.

    A guard has no scope `visit` of its own. Each visit of the outer loop is a scope key (in a graph: `key=`), and so a
    ledger of its own here. With one ledger for all visits the count goes on, and the sixth inner cycle is refused.
    """
    inner, outer = LoopGuard("i1", "i2", max_cycles=5), LoopGuard("outer", "i1", max_cycles=5)
    for visit in range(3):
        assert None is trip_of(inner, [("i1", f"{visit}:{n}") for n in range(5)])
    assert None is trip_of(outer, [("outer", f"outer {visit}") for visit in range(3)])
    all_visits = [("i1", f"{visit}:{n}") for visit in range(3) for n in range(5)]
    assert (6, "MaxCycles", "exhausted") == trip_of(inner, all_visits)


def test_reading_for_ever_ends_at_the_cap() -> None:
    """https://github.com/bytedance/deer-flow/issues/1987: no fingerprint can see it; the reason speaks of a cap."""
    events = [("a", call("read_file", path=f"{n}.py")) for n in range(40)]
    assert CAP_AT_11 == trip_of(progress("a", "t"), events)


# -- the patterns that OpenHands' stuck detector knows -----------------------------------------------------------------


def steps(*pairs: tuple[str, str]) -> list[Event]:
    """Actions of an agent, each with what it got to see."""
    return [event for action, seen in pairs for event in (("agent", action), ("env", seen))]


def test_repeated_action_and_observation() -> None:
    """The same command with the same result: the third is refused before it is run."""
    assert (5, "RepeatedPayload", "stalled") == trip_of(progress("agent", "env"), steps(*[("ls", "a.py")] * 4))


def test_repeated_action_and_error() -> None:
    """The same call fails in the same way, each time at another time of day and in another temporary folder."""
    pairs = [("run()", f"2026-01-01T00:0{n}:00Z /tmp/r{n}/t.py: SyntaxError") for n in range(4)]
    assert (5, "RepeatedPayload", "stalled") == trip_of(progress("agent", "env"), steps(*pairs))


def test_repeated_action_with_other_observations() -> None:
    """OpenHands lets the same action with other results go on; so does a guard that looks at results only.

    Without `node=` each side counts for itself, as a coder who sends the same code again must be found by that alone.
    """
    pairs = steps(*[("run()", f"error in line {n}") for n in range(6)])
    watching = LoopGuard("agent", "env", max_cycles=10, stop_when=RepeatedPayload(node="env"))
    assert None is trip_of(watching, pairs)
    assert (5, "RepeatedPayload", "stalled") == trip_of(progress("agent", "env"), pairs)


def test_two_incidents_are_not_stuck() -> None:
    """One retry is what people do."""
    assert None is trip_of(progress("agent", "env"), steps(("run()", "error"), ("run()", "error"), ("ls", "a.py")))


def test_monologue() -> None:
    """An agent that says the same three times, with nobody answering."""
    assert REPEAT_AT_3 == trip_of(progress("agent", "env"), [("agent", "I am done.")] * 3)


def test_alternating_actions() -> None:
    """Two actions in turn with their two results: found at the third lap, even where both sides are in step."""
    pairs = steps(*[("edit a", "ok"), ("edit b", "failed")] * 3)
    found = trip_of(progress("agent", "env"), pairs)
    assert found is not None
    assert (9, "stalled") == (found[0], found[2])


def test_a_pattern_that_is_left_in_time() -> None:
    """Two laps and then something new is no loop for the preset."""
    pairs = steps(*[("edit a", "ok"), ("edit b", "failed")] * 2, ("read c", "text"), ("edit d", "fine"))
    assert None is trip_of(progress("agent", "env"), pairs)


def test_a_repeated_condensation() -> None:
    """A loop in which only one node speaks, because each of its turns ends in the same error."""
    assert REPEAT_AT_3 == trip_of(progress("agent", "env"), [("agent", {"action": "condense"})] * 10)


def test_condensations_between_work() -> None:
    """The same housekeeping now and then, with work between, is no loop while it is further apart than the window."""
    events: list[Event] = []
    for n in range(6):
        events.append(("agent", {"action": "condense"}))
        events += [("agent", {"action": f"edit {n}.{m}"}) for m in range(4)]
    assert None is trip_of(progress("agent", "env", max_cycles=NO_CAP), events)


def test_a_new_request_may_repeat_what_was_said() -> None:
    """A user's new message begins a new ledger; what an earlier request did is no repeat of it."""
    guard = progress("agent", "env")
    for _ in range(3):
        assert None is trip_of(guard, steps(("ls", "a.py"), ("ls", "a.py")))

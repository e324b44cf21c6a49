"""The record: whole, byte for byte, plain JSON, with an id that holds."""

from __future__ import annotations

import json
import operator
import random
import re
import time
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict

from langgraph_loopguard import Escalation, EscalationError, GuardedState, MaxCycles, UnchangedArtifact, guard_loop
from tests.graph.pairs import State, answer, builder_of, is_json, pair, records, thread

FIELDS = {
    "id", "thread_id", "loop", "edge", "scope_key", "outcome", "reason", "cycles", "spent", "diff", "reviews", "fixes",
    "findings", "evidence", "best_fix", "question", "options", "created_at", "decision", "schema_version",
}  # fmt: skip


def record_of(*args: Any, start: Any = None, **settings: Any) -> dict[str, Any]:
    """Run a pair until it trips; return the record."""
    app, _ = pair(*args, **settings)
    app.invoke(start or {}, thread())
    (record,) = records(app)
    return record


# -- the whole record ----------------------------------------------------------------------------------------


def test_the_record_has_every_field_of_the_contract() -> None:
    """A trip by the cap says who, where, why, how much, and what may be answered."""
    record = record_of(max_cycles=3, artifact="patch", name="pull request")
    assert record.keys() >= FIELDS
    assert ("thread", "pull request", "reviewer->fixer", None) == tuple(
        record[key] for key in ("thread_id", "loop", "edge", "scope_key")
    )
    assert ("escalated", 3, None, 1) == tuple(
        record[key] for key in ("outcome", "cycles", "decision", "schema_version")
    )
    reason = record["reason"]
    assert ("MaxCycles", "exhausted", 3, 4) == tuple(
        reason[key] for key in ("condition", "kind", "threshold", "observed")
    )
    assert "cycle 4" in reason["message"]
    assert {"seconds", "tokens", "usd"} == record["spent"].keys()
    assert [1, 2, 3, 4] == [one["n"] for one in record["reviews"]]
    assert [1, 2, 3] == [one["n"] for one in record["fixes"]]
    assert [1, 2, 3, 4] == [one["cycle"] for one in record["reviews"]]
    assert [1, 2, 3] == [one["cycle"] for one in record["fixes"]]
    assert {"reviewer"} == {one["node"] for one in record["reviews"]}
    assert {"fixer"} == {one["node"] for one in record["fixes"]}
    assert all(re.fullmatch(r"[0-9a-f]{32}", one["fingerprint"]) for one in record["reviews"] + record["fixes"])
    assert ["accept", "reject", "edit", "retry"] == [option["action"] for option in record["options"]]
    assert record["question"]
    times = [one["time"] for one in record["reviews"]]
    assert times == sorted(times)
    assert times[-1] <= record["created_at"]


def test_the_record_validates_as_an_escalation_and_comes_back_equal() -> None:
    """`Escalation(**record)` is the typed view of the same."""
    record = record_of(artifact="patch", measure=lambda state: state["n"])
    assert record == json.loads(json.dumps(Escalation(**record).model_dump()))


def test_only_a_state_key_can_be_edited() -> None:
    """Without a state key for the work product there is no option to edit."""
    for artifact in (None, lambda state: state.get("patch")):
        assert ["accept", "reject", "retry"] == [option["action"] for option in record_of(artifact=artifact)["options"]]


def test_the_state_holds_the_latest_record_and_every_record() -> None:
    """`escalation` is the latest, `escalations` has all, `outcome` says how it ended."""
    app, _ = pair(max_cycles=1)
    app.invoke({}, thread())
    answer(app, {"action": "retry", "extra_cycles": 1})
    values = app.get_state(thread()).values
    first, second = values["escalations"].values()
    assert (values["escalation"], "escalated") == (second, values["outcome"])
    assert (first["decision"]["action"], second["decision"]) == ("retry", None)
    assert values["escalations"].keys() == {first["id"], second["id"]}


def test_a_later_record_holds_the_whole_loop() -> None:
    """After a retry the next record still has every review and every fix from the beginning."""
    app, _ = pair(max_cycles=2)
    app.invoke({}, thread())
    answer(app, {"action": "retry", "extra_cycles": 2})
    _, second = records(app)
    assert [f"remark {n}" for n in range(1, 6)] == [one["content"]["review"] for one in second["reviews"]]
    assert [1, 2, 3, 4] == [one["n"] for one in second["fixes"]]
    assert 4 == second["cycles"]


# -- byte for byte -------------------------------------------------------------------------------------------

TEXTS = {
    "nul": "a\x00b",
    "crlf": "one\r\ntwo\rthree\n\n",
    "ansi": "\x1b[2K\x1b[31mred\x1b[0m\x07\x9b2J",
    "emoji": "👩‍👩‍👧 e\u0301 \u202e\u2066 \ufeff\u200b",
    "separators": "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g",
    "blanks": "  \t lead and trail \n\n ",
    "empty": "",
    "digits": "2026-12-01T00:00:00Z 0xdeadbeef /tmp/x 12345678-1234-1234-1234-123456789abc",
    "overwrite": '{"__overwrite__": 1}',
    "huge": "0123456789abcdef" * 250_000,
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_texts_are_kept_byte_for_byte(name: str, kind: str) -> None:
    """What the record, the interrupt and a fresh read hold is what the nodes wrote."""
    text = TEXTS[name]
    with SqliteSaver.from_conn_string(":memory:") as sqlite:
        app, _ = pair(
            lambda n: {"review": text},
            lambda n: {"patch": text},
            max_cycles=1,
            saver=sqlite if kind == "sqlite" else "memory",
        )
        result = app.invoke({}, thread())
        asked = result["__interrupt__"][0].value["escalation"]
        for record in (result["escalation"], asked, *records(app)):
            assert [text, text] == [one["content"]["review"] for one in record["reviews"]]
            assert [text] == [one["content"]["patch"] for one in record["fixes"]]


def test_a_lone_surrogate_is_shown_as_its_escape() -> None:
    """A text that no saver keeps is kept readable, and equal before and after the checkpoint."""
    app, _ = pair(lambda n: {"review": "a\ud800b"}, max_cycles=1)
    result = app.invoke({}, thread())
    assert "a\\ud800b" == result["escalation"]["reviews"][0]["content"]["review"]
    assert result["escalation"] == records(app)[0]


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=3, max_size=3))
def test_any_text_is_kept(texts: list[str]) -> None:
    """Property: no text of a review is changed, cut or dropped."""
    record = record_of(lambda n: {"review": texts[n - 1]}, max_cycles=2)
    assert texts == [one["content"]["review"] for one in record["reviews"]]


# -- the diff ------------------------------------------------------------------------------------------------


def apply(diff: str, before: str = "") -> list[str]:
    """Apply a diff of several sections; return the text after each."""
    out: list[str] = []
    lines = diff.split("\n")
    assert lines.pop() == "", "a diff ends with a line end"
    at = 0
    while at < len(lines):
        assert lines[at].startswith("--- "), lines[at]
        assert lines[at + 1].startswith("+++ "), lines[at + 1]
        at += 2
        old = before.split("\n")
        new: list[str] = []
        used = 0
        if at < len(lines) and lines[at] == "(no change)":
            at += 1
        while at < len(lines) and (hunk := re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", lines[at])):
            begin, minus, _, plus = (int(number) if number is not None else 1 for number in hunk.groups())
            start = begin - 1 if minus else begin
            new += old[used:start]
            used = start
            at += 1
            removed: list[str] = []
            added: list[str] = []
            last: list[list[str]] = []
            while minus or plus or (at < len(lines) and lines[at].startswith("\\")):
                mark, text = lines[at][:1], lines[at][1:]
                at += 1
                if mark == "\\":
                    # The last line taken has no line end: for `split` that is one line less.
                    for side in last:
                        side.append("\\")
                    continue
                last = [side for side, marks in ((removed, "- "), (added, "+ ")) if mark in marks]
                assert last, mark
                for side in last:
                    side.append(text)
                minus, plus = minus - (mark in "- "), plus - (mark in "+ ")
            taken = removed if removed[-1:] != ["\\"] else removed[:-1]
            assert taken == old[used : used + len(taken)]
            used += len(taken)
            if removed[-1:] == ["\\"]:
                assert used == len(old)
            if added[-1:] == ["\\"]:
                new += added[:-1]
                used = len(old)
            else:
                new += added
                if used == len(old):
                    new.append("")
        new += old[used:]
        before = "\n".join(new)
        out.append(before)
    return out


LINES = st.lists(
    st.sampled_from(["a", "b", "", "--- x", "+++ y", "@@ -1 +1 @@", "\\ No", "c\r", "d\x0c", "e\u2028f", "g\rh"])
)


@given(versions=st.lists(st.tuples(LINES, st.booleans()), min_size=3, max_size=3))
def test_a_diff_rebuilds_every_version(versions: list[tuple[list[str], bool]]) -> None:
    """Property: applying the diff from attempt to attempt gives each attempt's text, whatever its line ends."""
    texts = ["\n".join(lines) + "\n" * (ends and bool(lines)) for lines, ends in versions]
    record = record_of(fix=lambda n: {"patch": texts[n - 1]}, artifact="patch", start={"patch": "start\n"})
    if record["diff"] != texts[-1]:  # a patch is its own diff
        assert texts == apply(record["diff"], "start\n")


def test_a_text_is_shown_from_attempt_to_attempt() -> None:
    """The diff names the work before the loop and each attempt."""
    record = record_of(max_cycles=2, artifact="patch", start={"patch": "line 0\n"})
    expected = (
        "--- before\n+++ attempt 1\n@@ -1 +1,2 @@\n line 0\n+line 1\n"
        "--- attempt 1\n+++ attempt 2\n@@ -1,2 +1,2 @@\n line 0\n-line 1\n+line 2\n"
    )
    assert expected == record["diff"]


def test_an_attempt_that_changes_nothing_says_so() -> None:
    """An attempt without a change is not left out."""
    diff = record_of(fix=lambda n: {"patch": "same\n"}, artifact="patch", max_cycles=2)["diff"]
    assert "--- attempt 1\n+++ attempt 2\n(no change)\n" in diff


PATCH = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b{n}\n"


@pytest.mark.parametrize("patch", [PATCH, PATCH.partition("\n")[2], "From: me\nSubject: [PATCH] x\n\n---\n" + PATCH])
def test_a_patch_is_its_own_diff(patch: str) -> None:
    """Where the work product is a patch, the record shows the latest one itself; the others stand in the attempts."""
    record = record_of(fix=lambda n: {"patch": patch.replace("{n}", str(n))}, artifact="patch", max_cycles=2)
    assert patch.replace("{n}", "2") == record["diff"]
    assert patch.replace("{n}", "1") == record["fixes"][0]["content"]["patch"]


@pytest.mark.parametrize("text", ["--- a title ---\n{n}\n", "+++ title\n@@ not a patch\n{n}", "x\n+++ y\nz\n{n}\n"])
def test_a_text_that_only_looks_like_a_patch_is_diffed(text: str) -> None:
    """Rulers and front matter do not hide what changed."""
    record = record_of(fix=lambda n: {"patch": text.replace("{n}", str(n))}, artifact="patch", max_cycles=2)
    assert [text.replace("{n}", str(n)) for n in (1, 2)] == apply(record["diff"])


def test_a_function_can_say_what_the_work_product_is() -> None:
    """The diff is of what the function makes of the state, and each attempt keeps it."""
    record = record_of(
        fix=lambda n: {"log": [f"step {n}"]}, artifact=lambda state: "\n".join(state["log"]) + "\n", max_cycles=2,
        start={"log": ["start"]},
    )  # fmt: skip
    assert ["start\nstep 1\n", "start\nstep 1\nstep 2\n"] == apply(record["diff"], "start\n")
    assert ["start\nstep 1\n", "start\nstep 1\nstep 2\n"] == [one["artifact"] for one in record["fixes"]]


def test_a_dict_is_diffed_as_sorted_json() -> None:
    """Keys in another order are no change; a changed value is one line."""
    record = record_of(
        fix=lambda n: {"patch": {"b": n, "a": 1} if n % 2 else {"a": 1, "b": n}}, artifact="patch", max_cycles=2
    )
    assert [{"a": 1, "b": 1}, {"a": 1, "b": 2}] == [json.loads(text) for text in apply(record["diff"])]
    assert '-  "b": 1\n' in record["diff"]


def test_without_an_artifact_the_diff_is_of_what_the_fixer_wrote() -> None:
    """One key is shown by itself, several as JSON."""
    assert ["line 0\nline 1\n", "line 0\nline 2\n"] == apply(record_of(max_cycles=2)["diff"])
    record = record_of(fix=lambda n: {"patch": n, "open": []}, max_cycles=1)
    assert [{"patch": 1, "open": []}] == [json.loads(text) for text in apply(record["diff"])]


def test_a_key_with_a_reducer_is_diffed_as_the_whole_value() -> None:
    """The work product is what the key holds after an attempt, not what the attempt added to it."""
    record = record_of(fix=lambda n: {"log": [f"step {n}"]}, artifact="log", max_cycles=2, start={"log": ["start"]})
    start = json.dumps(["start"], indent=2)
    assert [["start", "step 1"], ["start", "step 1", "step 2"]] == [json.loads(t) for t in apply(record["diff"], start)]


def test_a_loop_that_wrote_nothing_has_an_empty_diff() -> None:
    """No work, no diff, and still a record."""
    record = record_of(lambda n: {}, lambda n: {}, max_cycles=1, artifact="patch")
    assert ("", 2, 1) == (record["diff"], len(record["reviews"]), len(record["fixes"]))


def test_a_large_rewrite_is_diffed_in_time() -> None:
    """Thousands of lines in another order cost seconds at most."""
    lines = [f"line {n}\n" for n in range(4_400)]

    def fix(n: int) -> dict[str, Any]:
        return {"patch": "".join(random.Random(n).sample(lines, len(lines)))}

    began = time.perf_counter()
    record = record_of(fix=fix, artifact="patch", max_cycles=3)
    assert fix(3)["patch"] == apply(record["diff"])[-1]
    assert time.perf_counter() - began < 20


def test_a_huge_rewrite_is_shown_as_one_replacement() -> None:
    """Where a line by line comparison would take too long, the diff still rebuilds every version."""
    texts = ["\n".join(f"{n}.{line}" for line in range(5_000)) for n in range(3)]
    record = record_of(fix=lambda n: {"patch": texts[n]}, artifact="patch", max_cycles=2)
    assert texts[1:] == apply(record["diff"])
    assert "@@ -1,5000 +1,5000 @@" in record["diff"]


# -- who wrote what ------------------------------------------------------------------------------------------


def test_the_work_product_decides_who_fixes() -> None:
    """Where the second node reviews and the first one writes, fixes are the first node's."""
    builder = StateGraph(State)
    builder.add_node("writer", lambda state: {"n": state.get("n", 0) + 1, "patch": f"text {state.get('n', 0)}"})
    builder.add_node("critic", lambda state: {"review": f"no {state['n']}"})
    builder.add_edge(START, "writer")
    builder.add_edge("writer", "critic")
    builder.add_edge("critic", "writer")
    guard_loop(builder, "writer", "critic", max_cycles=2, artifact="patch")
    record = builder.compile().invoke({})["escalation"]
    assert ({"critic"}, {"writer"}) == (
        {one["node"] for one in record["reviews"]},
        {one["node"] for one in record["fixes"]},
    )
    assert ["text 0", "text 1", "text 2"] == [one["content"]["patch"] for one in record["fixes"]]


def test_where_all_nodes_write_the_work_product_there_still_are_reviews() -> None:
    """A reviewer that writes into the shared key (a log, the messages) is still the reviewer."""
    record = record_of(lambda n: {"log": [f"no {n}"]}, lambda n: {"log": [f"step {n}"]}, artifact="log", max_cycles=2)
    assert [["no 1"], ["no 2"], ["no 3"]] == [one["content"]["log"] for one in record["reviews"]]
    assert [["step 1"], ["step 2"]] == [one["content"]["log"] for one in record["fixes"]]


def test_a_ring_of_three_has_reviews_of_one_and_fixes_of_two() -> None:
    """Without an artifact the first node reviews and the others fix."""
    builder = StateGraph(State)
    for name in ("critic", "planner", "coder"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    builder.add_edge(START, "critic")
    for source, target in (("critic", "planner"), ("planner", "coder"), ("coder", "critic")):
        builder.add_edge(source, target)
    guard_loop(builder, "critic", "planner", "coder", max_cycles=2)
    record = builder.compile().invoke({})["escalation"]
    assert ["critic"] * 3 == [one["node"] for one in record["reviews"]]
    assert ["planner", "coder"] * 2 == [one["node"] for one in record["fixes"]]
    assert ([1, 2, 3], [1, 1, 2, 2]) == tuple([one["cycle"] for one in record[key]] for key in ("reviews", "fixes"))


# -- what is open, and which attempt was best ----------------------------------------------------------------


def test_the_best_fix_is_not_the_last() -> None:
    """The attempt after which the fewest findings were open, as the review after it found."""
    still_open = [["a", "b", "c"], ["b"], ["b", "d"], ["b", "d", "e", "f"]]
    record = record_of(
        lambda n: {"open": still_open[n - 1]}, max_cycles=3, measure="open", artifact="patch"
    )  # fmt: skip
    assert (1, 1) == (record["best_fix"]["fix"], record["best_fix"]["measure"])
    assert "number 1" in record["question"]
    assert still_open[-1] == record["findings"]
    assert [3, 1, 2, 4] == [one["measure"] for one in record["reviews"]]


def test_what_is_open_may_be_a_mapping() -> None:
    """A dict of findings counts by its keys, and names them."""
    record = record_of(measure=lambda state: {"a": "high", "b": "low"}, max_cycles=1)
    assert (["a", "b"], 2) == (record["findings"], record["best_fix"]["measure"])


def test_without_a_measure_the_best_fix_is_the_latest_and_says_so() -> None:
    """Nothing is claimed that nothing measures."""
    best = record_of(max_cycles=2)["best_fix"]
    assert (2, None) == (best["fix"], best["measure"])
    assert "nothing measures" in best["why"]


def test_a_fix_measured_by_the_fixer_is_judged_by_its_own_measure() -> None:
    """A fixer that runs the tests itself: the count after its attempt belongs to that attempt."""
    failing = {1: 5, 2: 0, 3: 7}
    record = record_of(fix=lambda n: {"patch": str(n), "open": failing[n]}, max_cycles=3, measure="open")
    assert (2, 0) == (record["best_fix"]["fix"], record["best_fix"]["measure"])


def test_an_escalation_before_any_fix_has_no_best_fix() -> None:
    """A loop that trips at once has nothing to accept."""
    record = record_of(stop_when=lambda ledger: "no way")
    assert (None, [], 0) == (record["best_fix"], record["fixes"], record["cycles"])


@pytest.mark.parametrize("key", ["findings", "issues", "comments"])
def test_findings_that_a_review_names_are_open(key: str) -> None:
    """Without a measure, the last review's own list of findings stands in the record."""

    class Named(State, total=False):
        findings: list[Any]
        issues: list[Any]
        comments: list[Any]

    record = record_of(lambda n: {key: [{"id": n, "text": "x"}]}, state=Named, max_cycles=1)
    assert [{"id": 2, "text": "x"}] == record["findings"]


# -- what it cost --------------------------------------------------------------------------------------------


def message(n: int, tokens: int) -> AIMessage:
    """A model's answer with its usage."""
    usage = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
    return AIMessage(f"remark {n}", id=f"m{n}-{tokens}", usage_metadata=usage)


def test_tokens_of_model_calls_inside_a_node_are_spent() -> None:
    """Every call counts, those that leave no trace in the update and those in nested runs too."""
    model = GenericFakeChatModel(messages=iter(message(n, 10) for n in range(100)))

    def review(n: int) -> dict[str, Any]:
        model.invoke("first")
        return {"review": (model | (lambda found: found.text)).invoke("second")}

    record = record_of(review, max_cycles=2)
    assert 60 == record["spent"]["tokens"]
    assert ([20, 20, 20], [0, 0]) == tuple([one["tokens"] for one in record[key]] for key in ("reviews", "fixes"))


def test_tokens_of_messages_in_the_update_are_spent() -> None:
    """A node that calls a model in its own way still says by `usage_metadata` what it cost."""

    class Chat(MessagesState, total=False):
        n: int
        patch: str

    record = record_of(lambda n: {"messages": [message(n, 7)]}, state=Chat, max_cycles=2, artifact="patch")
    assert 21 == record["spent"]["tokens"]


def test_a_message_of_a_counted_call_is_not_counted_again() -> None:
    """The model's answer in the update is the same call."""

    class Chat(MessagesState, total=False):
        n: int
        patch: str

    model = GenericFakeChatModel(messages=iter(message(n, 10) for n in range(100)))
    record = record_of(lambda n: {"messages": [model.invoke("x")]}, state=Chat, max_cycles=2)
    assert 30 == record["spent"]["tokens"]


def test_seconds_are_those_of_the_nodes() -> None:
    """The time that the loop's nodes took, without the rest of the graph and without the wait for a person."""

    def fix(n: int) -> dict[str, Any]:
        time.sleep(0.02)
        return {"patch": str(n)}

    app, _ = pair(fix=fix, max_cycles=2)
    app.invoke({}, thread())
    time.sleep(0.3)
    answer(app, {"action": "retry", "extra_cycles": 1})
    first, second = records(app)
    assert 0.04 <= first["spent"]["seconds"] < 0.3
    assert 0.06 <= second["spent"]["seconds"] < 0.3
    assert all(one["seconds"] >= 0.02 for one in second["fixes"])


# -- ids -----------------------------------------------------------------------------------------------------


def test_an_id_holds_while_the_question_waits() -> None:
    """Reading the state, resuming without an answer and refused answers leave the id, and make no second record."""
    app, _ = pair(max_cycles=1)
    first = app.invoke({}, thread())["escalation"]["id"]
    app.invoke(None, thread())
    with pytest.raises(ValueError, match="action"):
        answer(app, {"action": "what?"})
    (interrupt,) = app.get_state(thread()).interrupts
    assert [first] == [record["id"] for record in records(app)]
    assert first == interrupt.value["escalation"]["id"]
    assert first == answer(app, {"action": "accept"})["escalation"]["id"]


def test_an_id_is_new_at_each_trip_and_in_each_thread() -> None:
    """No two trips share an id, whatever they look like."""
    app, _ = pair(max_cycles=1)
    for name in ("one", "two"):
        app.invoke({}, thread(name))
        for _ in range(3):
            answer(app, {"action": "retry", "extra_cycles": 1}, thread(name))
    found = [record["id"] for name in ("one", "two") for record in records(app, thread(name))]
    assert 8 == len(set(found))


class Failing(InMemorySaver):
    """Fails to store the checkpoint that would hold the first record, once."""

    failed: list[str] | None = None

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        found = checkpoint["channel_values"].get("escalations")
        if found and self.failed is None:
            self.failed = list(found)
            raise OSError("disk full")
        return super().put(config, checkpoint, metadata, new_versions)


def test_an_id_holds_when_the_step_is_run_again() -> None:
    """A process that dies between the record and its checkpoint writes the same record again."""
    saver = Failing()
    app, _ = pair(max_cycles=1, saver=saver)
    with pytest.raises(OSError, match="disk full"):
        app.invoke({}, thread(), durability="sync")
    app.invoke(None, thread())
    assert saver.failed == [record["id"] for record in records(app)]
    assert 1 == len(app.get_state(thread()).interrupts)


def test_two_loops_that_trip_together_have_two_records() -> None:
    """Each loop has its own record, and its own question."""
    builder = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), (START, "a"), (START, "c")):
        builder.add_edge(source, target)
    guard_loop(builder, "a", "b", max_cycles=1)
    guard_loop(builder, "c", "d", max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    assert {"a-b", "c-d"} == {record["loop"] for record in records(app)}
    assert {"a-b", "c-d"} == {one.value["escalation"]["loop"] for one in app.get_state(thread()).interrupts}


# -- scope keys ----------------------------------------------------------------------------------------------


def test_a_record_holds_only_what_belongs_to_its_scope_key() -> None:
    """Work on another pull request of the same thread does not stand in this one's record."""
    app, _ = pair(max_cycles=2, key="pr", rounds=10)
    app.invoke({"pr": 1, "n": 9}, thread())
    assert [] == records(app)
    app.invoke({"pr": 2, "n": 0}, thread())
    (record,) = records(app)
    assert (2, 2) == (record["scope_key"], record["cycles"])
    assert ["remark 1", "remark 2", "remark 3"] == [one["content"]["review"] for one in record["reviews"]]
    assert [1, 2] == [one["n"] for one in record["fixes"]]


def test_parallel_scopes_have_records_of_their_own() -> None:
    """Two files that travel by `Send` trip in one superstep: two records, each with its own file's work."""

    class Files(TypedDict, total=False):
        file: str
        log: Annotated[list[str], operator.add]

    def reviewer(state: Any) -> Command[Any]:
        return Command(update={"log": [f"review {state['file']}"]}, goto=Send("fixer", {"file": state["file"]}))

    def fixer(state: Any) -> Command[Any]:
        return Command(update={"log": [f"fix {state['file']}"]}, goto=Send("reviewer", {"file": state["file"]}))

    builder = StateGraph(Files)
    builder.add_node("reviewer", reviewer, destinations=("fixer",))
    builder.add_node("fixer", fixer, destinations=("reviewer",))
    builder.add_conditional_edges(START, lambda state: [Send("reviewer", {"file": f}) for f in "ab"], ["reviewer"])
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, key="file")
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    found = {record["scope_key"]: record for record in records(app)}
    assert {"a", "b"} == found.keys()
    for file, record in found.items():
        assert [[f"review {file}"]] * 2 == [one["content"]["log"] for one in record["reviews"]]
        assert [[f"fix {file}"]] == [one["content"]["log"] for one in record["fixes"]]


# -- any value -----------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Login(BaseModel):
    user: str = "ada"
    password: SecretStr = SecretStr("hunter2")


@dataclass
class Point:
    x: float = float("nan")


class Rude:
    """Fails whatever it is asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = None  # type: ignore[assignment]


def nested(depth: int) -> Any:
    out: Any = "deep"
    for _ in range(depth):
        out = [out]
    return out


def circle() -> Any:
    out: list[Any] = []
    out.append(out)
    return out


VALUES = {
    "object": object(),
    "rude": Rude(),
    "lambda": lambda: 0,
    "module": json,
    "class": Colour,
    "enum": Colour.RED,
    "model": Login(),
    "dataclass": Point(),
    "set": {3, 1, 2},
    "bytes": b"\xff\x00",
    "big": 2**200,
    "nan": [float("nan"), float("inf"), -0.0],
    "keys": {1: "a", "1": "b", None: "c", (1, 2): "d", "\ud800": "e"},
    "error": ValueError("why \ud800"),
    "deep": nested(3_000),
    "circle": circle(),
    "message": AIMessage("x", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "1"}]),
    "generator": (n for n in ()),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("artifact", [None, "patch"])
def test_no_value_breaks_the_record(name: str, artifact: Any) -> None:
    """Whatever a node writes, the run ends in a record that is plain JSON, with the work of the other node whole."""
    app, _ = pair(fix=lambda n: {"patch": VALUES[name]}, saver=None, artifact=artifact, max_cycles=2)
    result = app.invoke({})
    record = result["escalation"]
    assert result["outcome"] in ("escalated", "blocked")
    assert is_json(record)
    Escalation(**record)
    json.dumps(record, allow_nan=False)
    assert "remark 1" == record["reviews"][0]["content"]["review"]


@given(value=st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
))  # fmt: skip
def test_the_record_is_json_for_any_data(value: Any) -> None:
    """Property: records are JSON, and the state's ledger and history too."""
    app, _ = pair(fix=lambda n: {"patch": value}, saver=None, artifact="patch", max_cycles=1)
    *_, last = app.stream({}, stream_mode="values", output_keys=["escalation", "loopguard", "loopguard_history"])
    assert is_json(last["escalation"])
    assert is_json(last["loopguard"])


def test_secrets_are_masked() -> None:
    """A `SecretStr` in what a node writes does not stand in the record, the history or the question."""
    app, _ = pair(fix=lambda n: {"patch": Login(), "log": [SecretStr("hunter2")]}, max_cycles=1, artifact="patch")
    result = app.invoke({}, thread())
    values = app.get_state(thread()).values
    for found in (
        result["__interrupt__"][0].value,
        values["escalations"],
        values["loopguard_history"],
        values["loopguard"],
    ):
        assert "hunter2" not in repr(found)
    assert "**********" == records(app)[0]["fixes"][0]["content"]["patch"]["password"]


def test_a_selector_that_raises_is_blocked_with_the_error() -> None:
    """A guard that breaks ends in `blocked`; the error and the work so far are in the record."""

    def measure(state: Any) -> int:
        raise RuntimeError("no such tool \ud800")

    record = record_of(measure=measure)
    assert ("blocked", "broken") == (record["outcome"], record["reason"]["kind"])
    assert "no such tool" in record["reason"]["message"]
    assert is_json(record)
    assert ["remark 1"] == [one["content"]["review"] for one in record["reviews"]]


@pytest.mark.parametrize("saver", [None, "memory"])
def test_a_record_that_cannot_be_built_is_blocked_and_loses_nothing(
    saver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A history of another make: the run ends in a `blocked` record with the error and the work, and asks."""
    builder = builder_of()
    entry = {"node": "reviewer", "at": 1e300, "content": {"review": "from the year 1e300"},
             "visits": {"reviewer-fixer": {"keys": {}}}}  # fmt: skip
    builder.add_node("past", lambda state: {"loopguard_history": [entry]})
    builder.edges.discard((START, "reviewer"))
    builder.add_edge(START, "past")
    builder.add_edge("past", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, artifact="patch")
    app = builder.compile(checkpointer=InMemorySaver() if saver else None)
    result = app.invoke({}, thread())
    record = result["escalation"]
    assert ("blocked", "blocked", "broken") == (result["outcome"], record["outcome"], record["reason"]["kind"])
    assert "building the record" in record["reason"]["message"]
    assert is_json(record)
    Escalation(**record)
    shown = [item["emission"]["content"] for item in record["evidence"] if "emission" in item]
    assert ["from the year 1e300", "remark 1", "remark 2"] == [one["review"] for one in shown if "review" in one]
    assert "MaxCycles" == next(item["trip"] for item in record["evidence"] if "trip" in item)["reason"]["condition"]
    assert "line 0\nline 1\n" == result["patch"]
    assert [one for one in caplog.records if one.exc_info]
    if saver:
        assert 1 == len(result["__interrupt__"])
        assert "mine" == answer(app, {"action": "edit", "artifact": "mine"})["patch"]


# -- how a trip is seen --------------------------------------------------------------------------------------


def test_a_trip_is_seen_by_every_caller() -> None:
    """`invoke` (both versions) and `stream` show the interrupt and the outcome; the thread waits."""
    app, _ = pair(max_cycles=1)
    result = app.invoke({}, thread("v1"))
    assert ("escalated", 1) == (result["outcome"], len(result["__interrupt__"]))
    output = app.invoke({}, thread("v2"), version="v2")
    assert ("escalated", 1) == (output.value["outcome"], len(output.interrupts))
    updates = list(app.stream({}, thread("stream"), stream_mode="updates"))
    assert "__interrupt__" in updates[-1]
    assert "escalated" == next(
        chunk["loopguard_escalate"]["outcome"] for chunk in updates if "loopguard_escalate" in chunk
    )
    assert ("loopguard_ask",) == app.get_state(thread("stream")).next
    value = result["__interrupt__"][0].value
    assert {"action_requests", "review_configs", "escalation"} == value.keys()
    assert result["escalation"]["question"] == value["action_requests"][0]["description"]
    properties = result["__interrupt__"][0].response_schema["properties"]
    assert properties.keys() >= {"action", "guidance", "extra_cycles"}


async def test_a_trip_is_seen_by_async_callers() -> None:
    """The same through `ainvoke` and `astream`."""
    app, _ = pair(max_cycles=1)
    result = await app.ainvoke({}, thread("v1"))
    assert ("escalated", 1) == (result["outcome"], len(result["__interrupt__"]))
    updates = [chunk async for chunk in app.astream({}, thread("stream"), stream_mode="updates")]
    assert "__interrupt__" in updates[-1]


def test_without_a_checkpointer_the_run_ends_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """The outcome stands in what `invoke` returns, and a warning in the log."""
    app, _ = pair(max_cycles=1, saver=None)
    with caplog.at_level("WARNING", "langgraph_loopguard"):
        result = app.invoke({})
    assert ("escalated", None) == (result["outcome"], result["escalation"]["decision"])
    assert [message for message in caplog.messages if "state['escalation']" in message]


def test_a_run_that_does_not_trip_returns_what_it_did_before() -> None:
    """No key of the guard appears without a trip."""
    app, _ = pair(rounds=2)
    assert {"n", "review", "patch", "log"} >= app.invoke({}, thread()).keys()


@pytest.mark.parametrize("saver", [None, "memory"])
def test_ask_human_false_never_waits(saver: Any) -> None:
    """With `ask_human=False` the run ends after the record, and asking again makes no second record."""
    app, guard = pair(max_cycles=1, ask_human=False, saver=saver)
    result = app.invoke({}, thread())
    assert ("escalated", False) == (result["outcome"], "__interrupt__" in result)
    if saver:
        assert ((), 1) == (app.get_state(thread()).next, len(records(app)))
        again = app.invoke({}, thread())
        assert (result["escalation"], 1) == (again["escalation"], len(records(app)))
        assert 1 == guard.ledger(app.get_state(thread())).handoffs["reviewer->fixer"]


@pytest.mark.parametrize("door", ["invoke", "stream", "ainvoke"])
async def test_ask_human_true_without_a_checkpointer_raises_with_the_record(door: str) -> None:
    """The error carries the whole record and says what to do."""
    app, _ = pair(max_cycles=1, ask_human=True, saver=None)

    async def enter() -> None:
        if door == "ainvoke":
            await app.ainvoke({})
        elif door == "stream":
            list(app.stream({}))
        else:
            app.invoke({})

    with pytest.raises(EscalationError, match="checkpointer") as caught:
        await enter()
    record = caught.value.escalation
    assert (2, 1) == (len(record["reviews"]), len(record["fixes"]))
    Escalation(**record)


def test_ask_human_true_waits_with_a_checkpointer() -> None:
    """With a checkpointer it is the same as by default."""
    app, _ = pair(max_cycles=1, ask_human=True)
    assert 1 == len(app.invoke({}, thread())["__interrupt__"])


@pytest.mark.parametrize("saver", [None, "memory"])
def test_escalate_to_hands_the_record_to_a_node_of_the_users(saver: Any) -> None:
    """The node finds the record in the state; it is entered once, and the run goes on from there."""
    seen: list[Any] = []

    class Mixed(State, GuardedState, total=False):
        pass

    builder = builder_of(state=Mixed)
    builder.add_node("human", lambda state: seen.append(state) or {"log": ["human"]})
    builder.add_edge("human", "after")
    builder.add_node("after", lambda state: {"log": ["after"]})
    builder.add_edge("after", END)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, escalate_to="human")
    app = builder.compile(checkpointer=InMemorySaver() if saver else None)
    result = app.invoke({"log": []}, thread())
    assert ["human", "after"] == result["log"]
    assert ("escalated", 1) == (seen[0]["outcome"], len(seen[0]["escalation"]["fixes"]))
    if saver:
        result = app.invoke({"log": []}, thread())
        assert 1 == len(seen), "a second try at a shut edge makes no second escalation"
        assert 1 == len(records(app))


def test_escalate_to_finds_the_record_without_a_mix_in() -> None:
    """The user's state class stays as it is, and the node still reads the record."""
    builder = builder_of()
    seen: list[Any] = []
    builder.add_node("human", lambda state: seen.append(state) and None)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, escalate_to="human")
    result = builder.compile().invoke({})
    assert "escalated" == result["outcome"]
    assert 1 == len(seen)
    assert result["escalation"] == seen[0].get("escalation")


class Narrow(TypedDict):
    """What one node wants to see."""

    review: str


@dataclass
class Whole:
    review: str = ""
    patch: str = ""


class Strict(BaseModel, extra="forbid"):
    review: str = ""
    patch: str = ""


@pytest.mark.parametrize("saver", [None, "memory"])
def test_escalate_to_keeps_what_the_node_asks_for(saver: Any) -> None:
    """A node with an input schema of its own is handed that and the record; two guards may share it."""
    builder = builder_of()
    seen: list[Any] = []
    builder.add_node("human", lambda state: seen.append(state) and None, input_schema=Narrow)
    for name in ("one", "two"):
        guard_loop(builder, "reviewer", "fixer", max_cycles=1, escalate_to="human", name=name)
    app = builder.compile(checkpointer=InMemorySaver() if saver else None)
    result = app.invoke({"log": []}, thread())
    (found,) = seen
    assert {"review", "escalation", "outcome"} == found.keys()
    assert result["escalation"] == found["escalation"]
    assert {"n", "review", "patch", "log", "escalation", "outcome"} >= result.keys()


@pytest.mark.parametrize("state", [Whole, Strict])
def test_escalate_to_in_a_state_of_objects_asks_for_the_record(state: Any) -> None:
    """An object of the user's class has no place for it; the node's own input schema has."""
    builder = StateGraph(state)
    seen: list[Any] = []
    builder.add_node("reviewer", lambda state: {"review": "no"})
    builder.add_node("fixer", lambda state: {"patch": "x"})
    builder.add_node("human", lambda state: seen.append(state) and None, input_schema=GuardedState)
    for source, target in ((START, "reviewer"), ("reviewer", "fixer"), ("fixer", "reviewer")):
        builder.add_edge(source, target)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, escalate_to="human")
    builder.compile().invoke({"review": ""})
    (found,) = seen
    assert ("escalated", 1) == (found["outcome"], found["escalation"]["cycles"])


def test_an_outcome_of_the_users_own_is_left_alone() -> None:
    """A state key `outcome` of the user's keeps the user's values; the records are in `escalations`."""

    class Own(State, total=False):
        outcome: str

    app, _ = pair(lambda n: {"outcome": "mine"}, state=Own, max_cycles=1)
    assert "mine" == app.invoke({}, thread())["outcome"]
    assert 1 == len(records(app))


def test_a_condition_joined_to_the_cap_is_named_by_its_own_name() -> None:
    """The reason is of the condition that tripped, not of all."""
    record = record_of(
        fix=lambda n: {"patch": "same"}, artifact="patch", max_cycles=9, stop_when=UnchangedArtifact(2) | MaxCycles(8)
    )
    assert ("UnchangedArtifact", "stalled") == (record["reason"]["condition"], record["reason"]["kind"])
    assert "fixer->reviewer" == record["edge"]


def test_a_decision_does_not_rewrite_the_outcome() -> None:
    """`outcome` says how the automatic part ended; what a person said stands in the record."""
    app, _ = pair(max_cycles=1)
    app.invoke({}, thread())
    result = answer(app, {"action": "accept", "decided_by": "ada", "note": "fine"})
    assert "escalated" == result["outcome"]
    decision = result["escalation"]["decision"]
    assert ("accept", "ada", "fine") == (decision["action"], decision["decided_by"], decision["note"])
    assert decision["decided_at"]
    assert result["escalation"] == records(app)[0]


def test_command_from_a_node_gives_the_same_record() -> None:
    """A loop by `Command(goto=...)` has the record of one by edges."""
    builder = StateGraph(State)
    builder.add_node(
        "reviewer",
        lambda state: Command(
            update={"n": state.get("n", 0) + 1, "review": f"remark {state.get('n', 0) + 1}"}, goto="fixer"
        ),
    )
    builder.add_node("fixer", lambda state: Command(update={"patch": f"line 0\nline {state['n']}\n"}, goto="reviewer"))
    builder.add_edge(START, "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=3, artifact="patch")
    commanded = builder.compile(checkpointer=InMemorySaver()).invoke({}, thread())["escalation"]
    routed = record_of(max_cycles=3, artifact="patch")
    same = ("edge", "reason", "cycles", "diff", "findings", "evidence", "best_fix", "question", "options")
    assert {key: routed[key] for key in same} == {key: commanded[key] for key in same}
    assert [one["content"] for one in routed["reviews"]] == [one["content"] for one in commanded["reviews"]]
    assert [one["fingerprint"] for one in routed["fixes"]] == [one["fingerprint"] for one in commanded["fixes"]]

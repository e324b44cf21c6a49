"""A guard beside every kind of state class: the user's keys stay the user's, and old threads go on."""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from typing_extensions import NotRequired, Required, TypedDict

from langgraph_loopguard import GuardedState, guard_loop
from tests.graph.drive import STREAMS
from tests.graph.graphs import STATES, Form, Model, Seen, Strict, build, get, plain, thread
from tests.graph.pairs import State, builder_of, pair

Builder = StateGraph[Any, Any, Any, Any]
Log = Annotated[list[str], operator.add]
GUARDS = ("loopguard", "loopguard_history", "loopguard_held", "loopguard_standing", "loopguard_steps_left")


def compiled(form: Form, *, guarded: bool = True, saver: bool = True, **settings: Any) -> Any:
    """A graph in a form, with or without a guard."""
    builder = build(form, Seen())
    if guarded:
        guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=InMemorySaver() if saver else None)


# -- what the user sees -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("mode", STREAMS)
@pytest.mark.parametrize("door", ["stream", "astream"])
def test_version_2_streams_are_as_without_a_guard(state: str, mode: Any, door: str) -> None:
    """Every mode with every state class: the same parts, and values of the user's own class."""

    def run(app: Any) -> list[Any]:
        start = {"n": 0, "log": ["start"]}
        if door == "stream":
            return list(app.stream(start, thread(), stream_mode=mode, version="v2"))

        async def collect() -> list[Any]:
            return [part async for part in app.astream(start, thread(), stream_mode=mode, version="v2")]

        return asyncio.run(collect())

    form = Form(state=state)
    expected, actual = run(compiled(form, guarded=False)), run(compiled(form))
    assert [part["type"] for part in expected] == [part["type"] for part in actual]
    if mode == "values":
        assert [type(part["data"]) for part in expected] == [type(part["data"]) for part in actual]
        assert [plain(part["data"]) for part in expected] == [plain(part["data"]) for part in actual]
    if mode == "updates":
        assert [plain(part["data"]) for part in expected] == [plain(part["data"]) for part in actual]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("call", ["invoke", "ainvoke"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_results_are_of_the_class_that_they_were_of(state: str, call: str, version: Any) -> None:
    """`invoke` in both versions, for a run that does not trip."""

    def run(app: Any) -> Any:
        start = {"n": 0, "log": ["start"]}
        result = (
            app.invoke(start, version=version) if call == "invoke" else asyncio.run(app.ainvoke(start, version=version))
        )
        return result.value if version == "v2" else result

    form = Form(state=state)
    expected, actual = run(compiled(form, guarded=False, saver=False)), run(compiled(form, saver=False))
    assert type(expected) is type(actual)
    assert expected.keys() == actual.keys() if isinstance(expected, dict) else True
    assert plain(expected) == plain(actual)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_trip_is_seen_with_every_state_class(state: str, version: Any) -> None:
    """With a checkpointer it is an interrupt; the record is in the state whatever its class."""
    app = compiled(Form(state=state, rounds=9), max_cycles=2)
    result = app.invoke({"n": 0, "log": []}, thread(), version=version)
    interrupts = result.interrupts if version == "v2" else app.get_state(thread()).interrupts
    (asked,) = interrupts
    (record,) = app.get_state(thread()).values["escalations"].values()
    assert record == asked.value["escalation"]
    if version == "v2" and state in ("dataclass", "pydantic", "forbid"):
        assert isinstance(result.value, STATES[state])
    app.invoke(Command(resume={"action": "accept"}), thread(), version=version)
    assert not app.get_state(thread()).next


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("what", ["node", "router", "key", "artifact", "measure"])
def test_users_functions_are_handed_the_users_class(state: str, what: str) -> None:
    """Nodes, routers and selectors get what an unguarded node gets: no class of the guard's, none of its keys."""
    handed: list[Any] = []

    def look(state: Any) -> Any:
        handed.append(state)
        return 1

    builder: Builder = StateGraph(STATES[state])
    builder.add_node("reviewer", lambda s: {"n": (get(s, "n") or 0) + (look(s) if what == "node" else 1)})
    builder.add_node("fixer", lambda s: {"patch": "x"})
    builder.add_edge(START, "reviewer")

    def route(s: Any) -> str:
        if what == "router":
            look(s)
        return "fixer" if get(s, "n") < 3 else END

    builder.add_conditional_edges("reviewer", route, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    guard_loop(
        builder, "reviewer", "fixer", max_cycles=9, **({what: look} if what in ("key", "artifact", "measure") else {})
    )
    builder.compile(checkpointer=InMemorySaver()).invoke({"n": 0}, thread())
    assert handed
    expected = STATES[state] if state in ("dataclass", "pydantic", "forbid") else dict
    for one in handed:
        assert type(one) is expected
        if isinstance(one, dict):
            assert not {key for key in one if key.startswith("loopguard") or key.startswith("escalation")}


class Refused(BaseModel):
    n: int = 0
    log: Log = []

    @field_validator("n")
    @classmethod
    def small(cls, value: int) -> int:
        if value > 3:
            raise ValueError("n is too large")
        return value


@pytest.mark.parametrize("guarded", [False, True])
def test_a_state_classs_own_checks_are_kept(guarded: bool) -> None:
    """A validator refuses what it refused; the graph's input too."""
    builder: Builder = StateGraph(Refused)
    builder.add_node("reviewer", lambda state: {"n": state.n + 1})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    if guarded:
        guard_loop(builder, "reviewer", "fixer", max_cycles=99)
    app = builder.compile()
    with pytest.raises(ValidationError, match="n is too large"):
        app.invoke({"n": 0})
    with pytest.raises(ValidationError):
        app.invoke({"n": "many"})


@pytest.mark.parametrize("state", STATES)
def test_schemas_of_input_and_output_are_kept(state: str) -> None:
    """The input schema is as it was; the output schema too, but for `escalation` and `outcome` of dict states."""
    bare, guarded = compiled(Form(state=state), guarded=False), compiled(Form(state=state))
    assert bare.get_input_jsonschema() == guarded.get_input_jsonschema()
    expected, actual = (app.get_output_jsonschema().get("properties", {}) for app in (bare, guarded))
    assert set(actual) - set(expected) <= {"escalation", "outcome"}
    assert {key: actual.get(key) for key in expected} == expected


class Given(TypedDict):
    n: Required[int]


class Returned(TypedDict):
    log: Log


class Both(Given, Returned):
    hidden: NotRequired[str]


@pytest.mark.parametrize("tripped", [False, True])
def test_schemas_of_their_own_for_input_and_output_are_kept(tripped: bool) -> None:
    """Only the output's keys come out; a trip adds the record and the outcome."""
    builder: Builder = StateGraph(Both, input_schema=Given, output_schema=Returned)
    builder.add_node("reviewer", lambda state: {"n": state["n"] + 1, "hidden": "x"})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: "fixer" if state["n"] < 3 else END, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1 if tripped else 9)
    result = builder.compile().invoke({"n": 0})
    assert ({"log", "escalation", "outcome"} if tripped else {"log"}) == result.keys()


@pytest.mark.parametrize("state", [list, int, Annotated[list, operator.add]])
def test_a_state_without_keys_is_refused(state: Any) -> None:
    """There is no place for a guard's channels; the message says so."""
    builder: Builder = StateGraph(state)
    builder.add_node("a", lambda state: state)
    builder.add_node("b", lambda state: state)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "a")
    with pytest.raises(ValueError, match="has no keys"):
        guard_loop(builder, "a", "b")


class Channels(TypedDict, total=False):
    n: int
    once: Annotated[str, EphemeralValue]
    secret: Annotated[str, UntrackedValue]
    log: Log


def test_other_channels_work_beside_the_guard() -> None:
    """Values that live for one step or that no checkpoint holds are as they were."""

    def run(guarded: bool) -> Any:
        builder: Builder = StateGraph(Channels)
        builder.add_node("reviewer", lambda s: {"n": s["n"] + 1, "once": "now", "secret": "x", "log": [str(sorted(s))]})
        builder.add_node("fixer", lambda s: {"log": [str(sorted(s))]})
        builder.add_edge(START, "reviewer")
        builder.add_conditional_edges("reviewer", lambda s: "fixer" if s["n"] < 3 else END, ["fixer", END])
        builder.add_edge("fixer", "reviewer")
        if guarded:
            guard_loop(builder, "reviewer", "fixer", artifact="once", max_cycles=9)
        return builder.compile(checkpointer=InMemorySaver()).invoke({"n": 0}, thread())

    assert run(guarded=False) == run(guarded=True)


# -- the user's own keys of the same name -----------------------------------------------------------------------------


class OwnOutcome(State):
    outcome: str


class OwnEscalation(State):
    escalation: Annotated[list[str], operator.add]


class OwnBoth(OwnOutcome, OwnEscalation):
    pass


@dataclass
class DataOutcome:
    n: int = 0
    outcome: str = "none"
    log: Log = field(default_factory=list)


class ModelOutcome(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int = 0
    outcome: str = "none"
    log: Log = []


def own_pair(state: Any, rounds: int = 99, saver: bool = True, **settings: Any) -> tuple[Any, Any]:
    """A pair whose reviewer writes the user's own keys."""
    builder: Builder = StateGraph(state)
    keys = set(builder.channels)

    def reviewer(s: Any) -> dict[str, Any]:
        n = (get(s, "n") or 0) + 1
        own = {"outcome": f"mine {n}", "escalation": [f"mine {n}"]}
        return {"n": n, **{key: value for key, value in own.items() if key in keys}}

    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", lambda s: {"log": ["fixer"]})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda s: "fixer" if get(s, "n") <= rounds else END, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=2, **settings)
    return builder.compile(checkpointer=InMemorySaver() if saver else None), guard


@pytest.mark.parametrize("state", [OwnOutcome, OwnEscalation, OwnBoth, DataOutcome, ModelOutcome])
@pytest.mark.parametrize("saver", [True, False])
def test_a_users_own_key_stays_the_users(state: Any, saver: bool, caplog: pytest.LogCaptureFixture) -> None:
    """It is recorded as theirs, never written by the guard, and a warning at attach names it."""
    with caplog.at_level(logging.WARNING, logger="langgraph_loopguard"):
        app, _ = own_pair(state, saver=saver)
    own = (
        {"outcome", "escalation"}
        & set(app.builder.channels)
        & set(state.__annotations__ if state is not OwnBoth else ("outcome", "escalation"))
    )
    for key in own:
        assert any(repr(key) in message for message in caplog.messages), caplog.messages
    result = app.invoke({"n": 0, "log": []}, thread())
    assert {"outcome": "mine 3"}.get("outcome") == get(result, "outcome") or "outcome" not in own
    if "escalation" in own:
        assert ["mine 1", "mine 2", "mine 3"] == result["escalation"]
    if not saver:
        return
    values = app.get_state(thread()).values
    (record,) = values["escalations"].values()
    for key in own:
        assert [f"mine {n}" for n in (1, 2, 3)] == [
            one["content"][key] if key == "outcome" else one["content"][key][0] for one in record["reviews"]
        ]
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    values = app.get_state(thread()).values
    assert 2 == len(values["escalations"])
    assert "outcome" not in own or values["outcome"] == "mine 4"
    app.invoke(Command(resume={"action": "accept"}), thread())
    values = app.get_state(thread()).values
    assert "outcome" not in own or values["outcome"] == "mine 4"
    assert "escalation" not in own or values["escalation"] == [f"mine {n}" for n in (1, 2, 3, 4)]
    assert "accept" == list(values["escalations"].values())[-1]["decision"]["action"]


def test_no_warning_where_there_is_nothing_to_say(caplog: pytest.LogCaptureFixture) -> None:
    """A state without such keys, or with those of `GuardedState`, is no matter for the log."""

    class Mixed(State, GuardedState):
        pass

    for state in (State, Mixed):
        guard_loop(builder_of(state=state), "reviewer", "fixer")
    assert not caplog.messages


@pytest.mark.parametrize("key", ["escalations", *GUARDS])
@pytest.mark.parametrize("kind", ["typed", "reduced", "pydantic"])
def test_a_foreign_key_of_the_guards_name_is_refused(key: str, kind: str) -> None:
    """By name, at attach; the builder stays as it was."""
    hint: Any = Annotated[list, operator.add] if kind == "reduced" else dict
    if kind == "pydantic":
        state: Any = type("Foreign", (BaseModel,), {"__annotations__": {"n": int, key: dict}, "n": 0, key: {}})
    else:
        state = TypedDict("Foreign", {"n": int, key: hint}, total=False)  # type: ignore[misc]
    builder: Builder = StateGraph(state)
    builder.add_node("a", lambda s: {"n": 1})
    builder.add_node("b", lambda s: {"n": 1})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "a")
    before = set(builder.nodes), set(builder.channels)
    with pytest.raises(ValueError, match=f"'{key}'"):
        guard_loop(builder, "a", "b")
    assert before == (set(builder.nodes), set(builder.channels))


def test_other_keys_that_begin_with_the_guards_name_are_refused() -> None:
    """`loopguard` is the guard's prefix: a key that begins with it may be the next version's."""
    state = TypedDict("Foreign", {"n": int, "loopguard_mine": dict}, total=False)  # type: ignore[misc]
    builder: Builder = StateGraph(state)
    builder.add_node("a", lambda s: {"n": 1})
    builder.add_node("b", lambda s: {"n": 1})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "a")
    with pytest.raises(ValueError, match="'loopguard_mine'"):
        guard_loop(builder, "a", "b")


class Mixed(State, GuardedState):
    pass


@pytest.mark.parametrize("saver", ["memory", None])
def test_the_mix_in_shows_record_and_outcome_to_the_users_nodes(saver: Any) -> None:
    """With `GuardedState` both are keys of the state, and the output has them only after a trip."""
    app, _ = pair(state=Mixed, rounds=1, saver=saver)
    assert not {"escalation", "outcome"} & app.invoke({}, thread()).keys()
    app, _ = pair(state=Mixed, max_cycles=1, saver=saver)
    result = app.invoke({}, thread())
    assert ("escalated", 1) == (result["outcome"], result["escalation"]["cycles"])


def test_two_guards_share_the_mix_in() -> None:
    """A second guard on a state with the mix-in finds its keys taken by the first, and that is right."""
    builder = builder_of(state=Mixed)
    guard_loop(builder, "reviewer", "fixer", max_cycles=5, name="one")
    guard_loop(builder, "reviewer", "fixer", max_cycles=2, name="two")
    assert "two" == builder.compile().invoke({})["escalation"]["loop"]


# -- threads of other times -------------------------------------------------------------------------------------------


def seeded(saver: Any, values: dict[str, Any]) -> None:
    """Write values into a thread as some other version of the library might have left them."""
    kinds = dict.fromkeys(values, Any)
    builder: Builder = StateGraph(TypedDict("Old", {**kinds, "n": int}, total=False))  # type: ignore[misc]
    builder.add_node("reviewer", lambda state: {})
    builder.add_edge(START, "reviewer")
    app = builder.compile(checkpointer=saver)
    app.update_state(thread(), {**values, "n": 0}, as_node="reviewer")


ODD: dict[str, Any] = {
    "text": "old",
    "list": [1, 2],
    "number": 7,
    "guard is a list": {"reviewer-fixer": [1]},
    "guard is null": {"reviewer-fixer": None},
    "scope is a text": {"reviewer-fixer": {"null": "old"}},
    "scope is null": {"reviewer-fixer": {"null": None}},
    "no version": {"reviewer-fixer": {"null": {"cycles": 9}}},
    "newer version": {"reviewer-fixer": {"null": {"v": 99, "count": {"a": 1}, "nodes": 3}}},
    "odd version": {"reviewer-fixer": {"null": {"v": "1", "cycles": 9}}},
    "wrong parts": {"reviewer-fixer": {"null": {"v": 1, "cycles": "many", "handoffs": 7, "nodes": [], "last": 3}}},
    "odd window": {"reviewer-fixer": {"null": {"v": 1, "nodes": {"reviewer": {"visits": 1, "window": None}}}}},
    "odd measures": {"reviewer-fixer": {"null": {"v": 1, "measures": {"open": 3}}}},
    "odd dollars": {"reviewer-fixer": {"null": {"v": 1, "usd": 0.5}}},
    "odd grants": {"reviewer-fixer": {"null": {"v": 1, "granted": ["usd"]}}},
    "odd trip": {"reviewer-fixer": {"null": {"v": 1, "tripped": "yes"}}},
    "empty trip": {"reviewer-fixer": {"null": {"v": 1, "tripped": {}}}},
    "another guard": {"someone": {"null": {"v": 1, "cycles": 3}}},
    "another guard's trip": {"someone": {"null": {"v": 1, "tripped": {"id": "x", "source": "a", "to": ["b"]}}}},
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("per", ["thread", "turn"])
def test_ledgers_of_unknown_shape_do_not_fail_the_run(case: str, per: Any) -> None:
    """A thread with such a ledger runs, and the guard counts from there."""
    saver = InMemorySaver()
    seeded(saver, {"loopguard": ODD[case]})
    app, guard = pair(max_cycles=3, saver=saver, per=per)
    result = app.invoke({}, thread())
    assert "escalated" == result["outcome"]
    assert "MaxCycles" == result["escalation"]["reason"]["condition"]
    assert 3 == guard.ledger(app.get_state(thread())).cycles
    assert "accept" == app.invoke(Command(resume={"action": "accept"}), thread())["escalation"]["decision"]["action"]


@pytest.mark.parametrize("history", ["x", 7, [1], [[1]], [["x"]], [[{}]], [None], [[{"node": "reviewer"}]], {"a": 1}])
def test_histories_of_unknown_shape_do_not_fail_the_run(history: Any) -> None:
    """The record has what is known."""
    saver = InMemorySaver()
    seeded(saver, {"loopguard_history": history})
    app, _ = pair(max_cycles=2, saver=saver)
    result = app.invoke({}, thread())
    assert ("escalated", 2) == (result["outcome"], len(result["escalation"]["fixes"]))


@pytest.mark.parametrize("key", ["escalations", "escalation", "outcome", "loopguard_held", "loopguard_standing"])
@pytest.mark.parametrize("value", ["x", 7, ["x"], {"x": None}, {"x": "y"}])
def test_other_values_of_unknown_shape_do_not_fail_the_run(key: str, value: Any) -> None:
    """Records and what is held back."""
    saver = InMemorySaver()
    seeded(saver, {key: value})
    app, _ = pair(max_cycles=2, saver=saver)
    result = app.invoke({}, thread())
    assert "escalated" == result["outcome"]
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    assert 3 == app.get_state(thread()).values["escalation"]["cycles"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["v", "cycles", "tripped", "nodes", "reviewer", "null", "handoffs", "artifact", "seen", "window", "visits", "granted"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(ledger=json_values | st.fixed_dictionaries({"v": st.just(1)}, optional=dict.fromkeys(["cycles", "tripped", "nodes", "handoffs", "artifact", "granted", "measure", "seconds", "trips"], json_values)))  # fmt: skip
def test_no_ledger_in_a_checkpoint_fails_the_run(ledger: Any) -> None:
    """Property: whatever JSON stands where a ledger was, the run goes on and ends in a trip or by itself."""
    saver = InMemorySaver()
    seeded(saver, {"loopguard": {"reviewer-fixer": {"null": ledger}}})
    app, _ = pair(rounds=9, max_cycles=3, saver=saver, artifact="patch", measure="n")
    app.invoke({}, thread())


def test_update_state_of_the_guards_own_keys_does_no_harm() -> None:
    """A whole state that is written back as an update, as some front ends do, changes neither count nor record."""
    app, guard = pair(max_cycles=2)
    app.invoke({}, thread())
    before = app.get_state(thread()).values
    app.update_state(thread(), dict(before))
    after = app.get_state(thread()).values
    assert guard.ledger(before) == guard.ledger(after)
    assert before["escalations"] == after["escalations"]


WRITERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "whole": lambda state: {**state},
    "known": lambda state: {**state, "n": state["n"]},
}


@pytest.mark.parametrize("writer", WRITERS)
def test_nodes_that_return_their_whole_state_change_nothing_of_the_guards(writer: str) -> None:
    """With the mix-in a node is handed `escalation` and `outcome`, and hands them back."""
    builder: Builder = StateGraph(Mixed)
    builder.add_node("reviewer", lambda s: {**s, "n": (s.get("n") or 0) + 1, "log": []})
    builder.add_node("fixer", lambda s: {**WRITERS[writer](s), "log": []})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=2)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread())
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), thread())
    assert 4 == guard.ledger(app.get_state(thread())).cycles
    assert 2 == len(app.get_state(thread()).values["escalations"])


def test_strict_classes_never_see_the_guards_keys() -> None:
    """`extra="forbid"` holds for the user's own class, before and after a trip."""
    for state in (Model, Strict):
        name = "pydantic" if state is Model else "forbid"
        app = compiled(Form(state=name, rounds=9), max_cycles=1)
        for part in app.stream({"n": 0}, thread(), stream_mode="values", version="v2"):
            assert isinstance(part["data"], state)
            assert not hasattr(part["data"], "loopguard")
        with pytest.raises(ValidationError):
            Strict(**{"nonsense": 1})

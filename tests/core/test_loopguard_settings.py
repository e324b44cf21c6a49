"""A guard's settings: what is refused, with the parameter's name and the value, and what a guard is afterwards."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
from langgraph.constants import END, START

from langgraph_loopguard import Fingerprinter, LoopGuard, MaxCycles, Oscillation, RepeatedPayload, StepReserve
from langgraph_loopguard.core.conditions import AnyOf
from langgraph_loopguard.core.presets import PRESETS

NODES: dict[str, tuple[tuple[Any, ...], str]] = {
    "no node": ((), "nodes must name at least two nodes of a loop, got ()"),
    "one node": (("a",), "nodes must name at least two nodes of a loop, got ('a',)"),
    "the same node twice": (("a", "a"), "nodes must be different nodes, got ('a', 'a')"),
    "a node again in a ring": (("a", "b", "a"), "nodes must be different nodes, got ('a', 'b', 'a')"),
    "START": ((START, "b"), "nodes must be names of nodes, got '__start__'"),
    "END": (("a", END), "nodes must be names of nodes, got '__end__'"),
    "an empty name": (("a", ""), "nodes must be names of nodes, got ''"),
    "no text": (("a", 5), "nodes must be names of nodes, got 5"),
    "a list": ((["a", "b"],), "nodes must be names of nodes, got ['a', 'b']"),
    "None": (("a", None), "nodes must be names of nodes, got None"),
    "a colon": (("a:b", "c"), "nodes must be names without ':' and '|', got 'a:b'"),
    "a bar": (("a", "b|c"), "nodes must be names without ':' and '|', got 'b|c'"),
}


@pytest.mark.parametrize("case", NODES)
def test_nodes_must_be_a_loop(case: str) -> None:
    """Two or more different nodes that a graph can have, in order."""
    nodes, message = NODES[case]
    with pytest.raises(ValueError, match="nodes must") as error:
        LoopGuard(*nodes)
    assert message == str(error.value)


SELECTOR = "must be a state key or a function of the state, got"

SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"max_cycles": 0}, "max_cycles must be a whole number of at least 1, got 0"),
    ({"max_cycles": -3}, "max_cycles must be a whole number of at least 1, got -3"),
    ({"max_cycles": True}, "max_cycles must be a whole number of at least 1, got True"),
    ({"max_cycles": 3.0}, "max_cycles must be a whole number of at least 1, got 3.0"),
    ({"max_cycles": "3"}, "max_cycles must be a whole number of at least 1, got '3'"),
    ({"preset": "loose"}, "preset must be one of 'strict', 'progress', 'observe-only', got 'loose'"),
    ({"preset": None}, "preset must be one of 'strict', 'progress', 'observe-only', got None"),
    ({"per": "run"}, "per must be one of 'thread', 'turn', got 'run'"),
    ({"mode": "off"}, "mode must be one of 'enforce', 'observe', got 'off'"),
    ({"mode": ["observe"]}, "mode must be one of 'enforce', 'observe', got ['observe']"),
    ({"key": 5}, f"key {SELECTOR} 5"),
    ({"key": ""}, f"key {SELECTOR} ''"),
    ({"artifact": ["patch"]}, f"artifact {SELECTOR} ['patch']"),
    ({"measure": 0}, f"measure {SELECTOR} 0"),
    ({"ask_human": "yes"}, "ask_human must be True, False or None, got 'yes'"),
    ({"escalate_to": "a"}, "escalate_to must name a node outside the loop, got 'a'"),
    ({"escalate_to": ""}, "escalate_to must name a node outside the loop, got ''"),
    ({"escalate_to": 5}, "escalate_to must name a node outside the loop, got 5"),
    (
        {"escalate_to": "human", "ask_human": True},
        "ask_human=True asks in the built-in escalation node, escalate_to='human' goes past it",
    ),
    ({"name": ""}, "name must be a text without ':' and '|', got ''"),
    ({"name": "a:b"}, "name must be a text without ':' and '|', got 'a:b'"),
    ({"name": "a|b"}, "name must be a text without ':' and '|', got 'a|b'"),
    ({"name": 5}, "name must be a text without ':' and '|', got 5"),
    ({"fingerprinter": str.lower}, f"fingerprinter must be a Fingerprinter, got {str.lower!r}"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=[repr(settings) for settings, _ in SETTINGS])
def test_nonsense_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    """At construction, before any graph runs; the message names the parameter and the value."""
    with pytest.raises(ValueError, match=r"must|goes past") as error:
        LoopGuard("a", "b", **settings)
    assert message == str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"escalate_to": "human"},
        {"escalate_to": "human", "ask_human": False},
        {"ask_human": True},
        {"key": "pr", "artifact": "patch", "measure": len, "per": "turn", "mode": "observe"},
        {"max_cycles": 1},
        {"max_cycles": 10**9},
        {"name": "my guard, with -> in it"},
    ],
    ids=repr,
)
def test_sensible_settings_are_taken(settings: dict[str, Any]) -> None:
    """And kept as they were given."""
    guard = LoopGuard("a", "b", **settings)
    assert settings == {parameter: getattr(guard, parameter) for parameter in settings}


def test_a_guard_is_immutable() -> None:
    """One guard serves every thread, so nothing can be kept on it."""
    guard = LoopGuard("a", "b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        guard.max_cycles = 9  # type: ignore[misc]
    with pytest.raises((AttributeError, TypeError)):
        guard.count = 0  # type: ignore[attr-defined]


def test_equal_settings_make_equal_guards() -> None:
    """A guard is a value: equal, hashable, and the same after a copy."""
    one = LoopGuard("a", "b", max_cycles=5, stop_when=RepeatedPayload(), key="pr")
    assert one == LoopGuard("a", "b", max_cycles=5, stop_when=RepeatedPayload(), key="pr") == copy.deepcopy(one)
    assert hash(one) == hash(copy.deepcopy(one))
    assert one != LoopGuard("b", "a", max_cycles=5, stop_when=RepeatedPayload(), key="pr")


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, "LoopGuard('a', 'b', max_cycles=3)"),
        ({"max_cycles": 5, "preset": "progress"}, "LoopGuard('a', 'b', max_cycles=5, preset='progress')"),
        (
            {"stop_when": Oscillation(), "key": "pr", "mode": "observe", "ask_human": False},
            "LoopGuard('a', 'b', max_cycles=3, stop_when=Oscillation(), key='pr', ask_human=False, mode='observe')",
        ),
    ],
)
def test_repr_shows_what_was_set(settings: dict[str, Any], shown: str) -> None:
    """Defaults are left out, all but the cap, which one always wants to know."""
    assert shown == repr(LoopGuard("a", "b", **settings))


def test_conditions_join_the_cap() -> None:
    """The cap is asked first, then the preset, then the user's own."""
    assert (
        MaxCycles(4) | StepReserve() | Oscillation()
        == LoopGuard("a", "b", max_cycles=4, stop_when=Oscillation()).condition
    )
    progress = AnyOf((MaxCycles(25), *PRESETS["progress"].conditions))
    assert progress == LoopGuard("a", "b", preset="progress").condition


@pytest.mark.parametrize(("preset", "cap"), [("strict", 3), ("progress", 25), ("observe-only", 25)])
def test_each_preset_has_a_cap_of_its_own(preset: Any, cap: int) -> None:
    """Three cycles end work that goes well; a cap that the user names stands."""
    assert cap == LoopGuard("a", "b", preset=preset).max_cycles
    assert 5 == LoopGuard("a", "b", preset=preset, max_cycles=5).max_cycles


def test_observe_only_stops_nothing() -> None:
    """It judges as `progress` does, and only says so."""
    guard = LoopGuard("a", "b", preset="observe-only")
    assert "observe" == guard.mode
    assert guard.condition == LoopGuard("a", "b", preset="progress").condition


def test_a_name_is_made_of_the_nodes() -> None:
    """Unless one is given."""
    assert ("a-b-c", "mine") == (LoopGuard("a", "b", "c").name, LoopGuard("a", "b", name="mine").name)


def test_a_fingerprinter_of_ones_own_is_used() -> None:
    """Coarser comparison finds repeats that the default does not."""
    plain, coarse = (
        LoopGuard("a", "b", max_cycles=99, stop_when=RepeatedPayload(2), fingerprinter=fingerprinter)
        for fingerprinter in (None, Fingerprinter(normalize=str.lower))
    )
    verdicts = []
    for guard in (plain, coarse):
        ledger, _ = guard.observe(None, "a", "No")
        verdicts.append(guard.observe(ledger, "a", "NO")[1].tripped)
    assert [False, True] == verdicts

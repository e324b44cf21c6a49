"""Each condition fires on what it is for, leaves honest work alone, and refuses settings that make no sense."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import langgraph_loopguard
from langgraph_loopguard import (
    Condition,
    Ledger,
    LoopGuard,
    MaxCycles,
    Oscillation,
    Reason,
    RepeatedPayload,
    RevisitedArtifact,
    StepReserve,
    TimeBudget,
    TokenBudget,
    UnchangedArtifact,
    Verdict,
)
from langgraph_loopguard.core.conditions import AllOf, AnyOf, as_condition, broken
from langgraph_loopguard.core.ledger import Ring, fold
from langgraph_loopguard.core.verdict import PROCEED, trip

RING = Ring(("a", "b"), 64)
NO_CAP = 10**6

Emission = tuple[str, Any, dict[str, Any]]


def stopped(condition: Any, stream: list[Emission], **settings: Any) -> tuple[int, Reason] | None:
    """Number of the emission at which a guard with this condition trips, and why; `None` when it never does."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition, **settings)
    ledger: Any = None
    for number, (node, payload, more) in enumerate(stream, 1):
        ledger, verdict = guard.observe(ledger, node, payload, **more)
        if verdict.tripped:
            assert verdict.reason is not None
            return number, verdict.reason
    return None


def of_a(*payloads: Any) -> list[Emission]:
    """A stream in which only `a` is seen."""
    return [("a", payload, {}) for payload in payloads]


def pair(count: int, **more: Any) -> list[Emission]:
    """An honest pair: every review and every patch is new."""
    out: list[Emission] = []
    for number in range(count):
        out.append(("a", {"review": f"remark {number}"}, dict(more)))
        out.append(("b", {"patch": f"line {number}"}, dict(more)))
    return out


def limit(*lefts: int) -> Ledger:
    """A ledger of crossings with so many supersteps left."""
    ledger: Any = None
    for left in lefts:
        ledger = fold(ledger, [{"event": "step", "node": "a", "cross": ["b"], "steps_left": left}], RING)
    return Ledger(ledger)


# -- fires, and does not ----------------------------------------------------------------------------------------------

FIRES: dict[str, tuple[Any, list[Emission], int, dict[str, Any]]] = {
    "MaxCycles": (
        MaxCycles(),
        pair(4),
        7,
        {"kind": "exhausted", "threshold": 3, "observed": 4, "message": "cycle 4 was asked for, the cap is 3"},
    ),
    "RepeatedPayload": (
        RepeatedPayload(),
        of_a("x", "y", "x", "z", "x"),
        5,
        {"kind": "stalled", "threshold": 3, "observed": 3, "message": "a has written the same 3 times"},
    ),
    "Oscillation": (
        Oscillation(),
        of_a("x", "y", "x", "y"),
        4,
        {
            "kind": "stalled",
            "threshold": {"max_period": 3, "laps": 2},
            "observed": {"period": 2, "laps": 2},
            "message": "a repeats a cycle of 2 emissions, 2 times over",
        },
    ),
    "UnchangedArtifact": (
        UnchangedArtifact(),
        [("a", "r1", {"artifact": "p"}), ("b", "f1", {"artifact": "p"}), ("b", "f2", {"artifact": "p"})],
        3,
        {"kind": "stalled", "threshold": 2, "observed": 2, "message": "the last 2 attempts changed nothing"},
    ),
    "RevisitedArtifact": (
        RevisitedArtifact(),
        [("b", "f", {"artifact": artifact}) for artifact in "pqp"],
        3,
        {"kind": "stalled", "message": "the attempt brings back the work product of 2 versions ago"},
    ),
    "TokenBudget": (
        TokenBudget(100),
        pair(9, usage=30),
        4,
        {"kind": "exhausted", "threshold": 100, "observed": 120, "message": "120 tokens are spent, the budget is 100"},
    ),
    "TimeBudget": (
        TimeBudget(10),
        pair(9, usage={"seconds": 4}),
        3,
        {"kind": "exhausted", "threshold": 10, "observed": 12.0, "message": "12.0 seconds are spent, the budget is 10"},
    ),
}


@pytest.mark.parametrize("name", FIRES)
def test_condition_fires(name: str) -> None:
    """With its defaults each condition trips on what it is for, at the right emission, and says why."""
    condition, stream, at, expected = FIRES[name]
    found = stopped(condition, stream)
    assert found is not None
    number, reason = found
    assert (at, name) == (number, reason.condition)
    assert expected == {key: getattr(reason, key) for key in expected}
    assert reason.evidence
    assert reason == Reason.from_json(json.loads(json.dumps(reason.to_json(), allow_nan=False)))


def test_step_reserve_fires() -> None:
    """Outside a graph there is no limit; inside, it trips while there is still room for the record and the question."""
    verdict = StepReserve().check(limit(9, 6, 3))
    assert ("exhausted", 2, 3) == (verdict.reason.kind, verdict.reason.threshold, verdict.reason.observed)  # type: ignore[union-attr]
    assert [False, True] == [StepReserve().check(limit(left + 4, left + 2, left)).tripped for left in (4, 3)]
    assert [False, True] == [StepReserve().check(limit(left)).tripped for left in (5, 4)]
    assert [False, True] == [StepReserve(5).check(limit(left + 4, left + 2, left)).tripped for left in (7, 6)]
    assert None is stopped(StepReserve(), pair(50))


def test_every_public_condition_is_shown_to_fire() -> None:
    """A condition that joins the package joins this file."""
    public = {
        name
        for name in langgraph_loopguard.__all__
        if isinstance(kind := getattr(langgraph_loopguard, name), type)
        and issubclass(kind, Condition)
        and kind is not Condition
    }
    untested = public - FIRES.keys() - {"StepReserve"}
    assert set() == untested - HANDED_OVER


HANDED_OVER: set[str] = {"CostBudget", "InvalidPayload", "NoProgress", "RestatedPayload"}
"""Conditions that have test files of their own."""


HONEST: dict[str, tuple[Any, list[Emission]]] = {
    "MaxCycles": (MaxCycles(), pair(3)),
    "RepeatedPayload": (RepeatedPayload(), [*pair(20), *of_a("x", "y", "x")]),
    "RepeatedPayload, far apart": (RepeatedPayload(), of_a("x", 1, 2, 3, "x", 4, 5, 6, "x")),
    "RepeatedPayload, five far apart": (RepeatedPayload(5), of_a("x", 1, "x", 2, 3, "x", 4, "x", 5, 6, "x")),
    "RepeatedPayload, other node": (RepeatedPayload(node="b"), of_a(*"xxxxxx")),
    "RepeatedPayload, batch": (RepeatedPayload(), of_a(*[{"read": f"{n}.py", "out": "ok"} for n in range(20)])),
    "RepeatedPayload, pages": (RepeatedPayload(), of_a(*[{"page": n, "out": "same"} for n in range(20)])),
    "Oscillation": (Oscillation(), [*pair(20), *of_a(*"xyzuxyzu")]),
    "Oscillation, three laps": (Oscillation(laps=3), of_a(*"xyxyzz")),
    "Oscillation, period": (Oscillation(max_period=1), of_a(*"xyxyxy")),
    "UnchangedArtifact": (UnchangedArtifact(), pair(20)),
    "UnchangedArtifact, one of two": (
        UnchangedArtifact(),
        [("b", "f", {"artifact": artifact}) for artifact in "ppqqrrss"],
    ),
    "RevisitedArtifact": (RevisitedArtifact(), [("b", "f", {"artifact": artifact}) for artifact in "ppqrs"]),
    "TokenBudget": (TokenBudget(100), pair(9, usage=5)),
    "TimeBudget": (TimeBudget(10), pair(4, usage={"seconds": 1})),
    "TimeBudget, no clock": (TimeBudget(10), pair(50)),
}


@pytest.mark.parametrize("name", HONEST)
def test_condition_leaves_honest_work_alone(name: str) -> None:
    """Progress, batches, pages and repeats below the threshold go on."""
    assert None is stopped(*HONEST[name])


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers()), unique=True, max_size=30))
def test_no_repeat_no_trip(emissions: list[tuple[str, int]]) -> None:
    """Conditions on payloads never fire while each node writes something new each time."""
    condition = RepeatedPayload(2) | Oscillation() | UnchangedArtifact() | RevisitedArtifact()
    assert None is stopped(condition, [(node, f"text {number}", {}) for node, number in emissions])


@given(st.integers(2, 5), st.integers(0, 6), st.lists(st.sampled_from("xyz"), max_size=30))
def test_repeats_are_counted_within_the_window(times: int, more: int, payloads: list[str]) -> None:
    """A straight count over the last emissions finds the same stop."""
    window = times + more
    first = next(
        (n for n in range(1, len(payloads) + 1) if payloads[max(0, n - window) : n].count(payloads[n - 1]) >= times),
        None,
    )
    found = stopped(RepeatedPayload(times, window=window), of_a(*payloads))
    assert first == (found and found[0])


@given(st.integers(1, 4), st.integers(2, 4), st.lists(st.sampled_from("xyz"), max_size=40))
def test_oscillation_is_a_tail_that_repeats(period: int, laps: int, payloads: list[str]) -> None:
    """It trips at the first emission whose last p times laps are one pattern, for some p up to the longest."""

    def goes_round(tail: list[str]) -> bool:
        return any(len(tail) >= p * laps and tail[-p * laps :] == tail[-p:] * laps for p in range(1, period + 1))

    first = next((n for n in range(1, len(payloads) + 1) if goes_round(payloads[:n])), None)
    found = stopped(Oscillation(period, laps), of_a(*payloads))
    assert first == (found and found[0])


@pytest.mark.parametrize(("period", "text"), [(1, "xx"), (2, "xyxy"), (3, "xyzxyz")])
def test_oscillation_names_its_period(period: int, text: str) -> None:
    """A-A, A-B-A-B, A-B-C-A-B-C: each is found in its own length, with the emissions as evidence."""
    found = stopped(Oscillation(), of_a(*text))
    assert found is not None
    assert (len(text), period) == (found[0], found[1].observed["period"])
    assert len(text) == len(found[1].evidence[0]["emissions"])


def test_a_counter_hides_no_repeat() -> None:
    """A whole number that grows by one per visit is a counter; a number that says where the work is counts."""
    same = [{"iteration": n, "patch": "p"} for n in range(3)]
    assert 3 == (stopped(RepeatedPayload(), of_a(*same)) or [None])[0]
    for honest in (
        [{"open": 9 - n, "patch": "p"} for n in range(9)],
        [{"n": 2 * n, "patch": "p"} for n in range(9)],
        [{"n": n} for n in range(9)],
        [{"done": n % 2 == 0, "n": n, "patch": f"{n}"} for n in range(9)],
        [{"Page": n, "patch": "p"} for n in range(9)],
        [{"n": float(n) + 0.5, "patch": "p"} for n in range(9)],
    ):
        assert None is stopped(RepeatedPayload(), of_a(*honest))


@pytest.mark.parametrize(
    "emissions", [[{"n": 1, "p": "x"}, {"n": "one", "p": "x"}], [{"n": "one", "p": "x"}, {"n": 1, "p": "x"}]]
)
def test_a_key_may_hold_a_number_and_then_a_text(emissions: list[Any]) -> None:
    """That is a change, and nothing to fall over."""
    assert None is stopped(RepeatedPayload(2), of_a(*emissions))


def test_a_flag_is_no_counter() -> None:
    """False, then True, is not 0, then 1."""
    emissions = [{"ready": False, "x": 1}, {"ready": True, "x": 1}]
    assert None is stopped(RepeatedPayload(2), of_a(*emissions))


def test_payloads_of_other_keys_are_no_repeat() -> None:
    """A node that leaves a key out has written something else; one that writes nothing has not repeated itself."""
    assert None is stopped(RepeatedPayload(2), of_a({"x": 1}, {"x": 1, "y": 2}, {"y": 2}, {}, {}, None, None))


def test_without_an_artifact_the_second_node_writes_the_work_product() -> None:
    """`UnchangedArtifact` needs no configuration in the usual pair."""
    stream = [
        (node, text, {}) for node, text in [("a", "r1"), ("b", "p"), ("a", "r2"), ("b", "p"), ("a", "r3"), ("b", "p")]
    ]
    found = stopped(UnchangedArtifact(), stream)
    assert (6, "UnchangedArtifact") == (found and found[0], found and found[1].condition)
    assert None is stopped(UnchangedArtifact(), stream, artifact="patch")


def test_revisits_are_found_without_an_artifact() -> None:
    """The second node's own writes are the work product here as well; the reason shows the versions in between."""
    found = stopped(RevisitedArtifact(), [("b", text, {}) for text in ("p", "q", "r", "p")])
    assert found is not None
    number, reason = found
    assert (4, 0, 1, "the attempt brings back the work product of 3 versions ago") == (
        number,
        reason.threshold,
        reason.observed,
        reason.message,
    )
    versions = reason.evidence[0]["artifacts"]
    assert (4, versions[0]) == (len(versions), versions[-1])


def test_one_is_singular() -> None:
    """A person reads these."""
    same: list[Emission] = [("b", "f", {"artifact": "p"})] * 2
    found = [stopped(Oscillation(), of_a("x", "x")), stopped(UnchangedArtifact(1), same)]
    assert ["a repeats a cycle of 1 emission, 2 times over", "the last 1 attempt changed nothing"] == [
        reason.message for _, reason in filter(None, found)
    ]


@pytest.mark.parametrize("condition", [*[FIRES[name][0] for name in FIRES], StepReserve()], ids=repr)
def test_nothing_has_happened_yet(condition: Condition) -> None:
    """An empty ledger trips no condition."""
    assert PROCEED == condition.check(Ledger())


@pytest.mark.parametrize(("spent", "tripped"), [(99, False), (100, True), (101, True)])
def test_a_budget_is_spent_at_its_limit(spent: int, tripped: bool) -> None:
    """Who has used up all of it has nothing left for another handoff. Less than a second is a budget, too."""
    assert stopped(TimeBudget(0.5), [("a", "x", {"usage": {"seconds": 0.6}})]) is not None
    stream = [("a", "x", {"usage": {"total_tokens": spent, "seconds": spent}})]
    assert tripped is (stopped(TokenBudget(100), stream) is not None)
    assert tripped is (stopped(TimeBudget(100), stream) is not None)


@pytest.mark.parametrize(
    ("condition", "grant", "spend"),
    [
        (TokenBudget(10), {"extra_tokens": 5}, {"usage": 5}),
        (TimeBudget(10), {"extra_seconds": 5}, {"usage": {"seconds": 5}}),
    ],
)
def test_a_granted_budget_counts_on(condition: Condition, grant: dict[str, int], spend: dict[str, Any]) -> None:
    """A decision adds to the limit; what was spent before stays spent."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)
    ledger: Any = None
    verdicts = []
    for number in range(2):
        ledger, verdict = guard.observe(ledger, "a", f"x{number}", **spend)
        verdicts.append(verdict.tripped)
    ledger = guard.decide(ledger, "retry", **grant)
    ledger, verdict = guard.observe(ledger, "b", "y")
    verdicts.append(verdict.tripped)
    ledger, verdict = guard.observe(ledger, "a", "x2", **spend)
    assert [False, True, False, True] == [*verdicts, verdict.tripped]
    assert 15 == verdict.reason.threshold  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("condition", "memory"),
    [(RepeatedPayload(), 8), (RepeatedPayload(5), 10), (RepeatedPayload(3, window=20), 20), (Oscillation(4, 3), 12)],
)
def test_a_condition_says_how_far_it_looks_back(condition: Condition, memory: int) -> None:
    """Twice the threshold and at least eight, unless a window is given; a pattern needs all its laps."""
    assert memory == condition.memory


def test_a_condition_of_ones_own_needs_nothing_by_default() -> None:
    """One emission, no work product, no look at the recursion limit."""
    assert (1, False, 0) == (Plain().memory, Plain().needs_artifact, Plain().steps)


# -- settings ----------------------------------------------------------------------------------------------------------

WHOLE = [0, -1, True, False, 1.5, "3", None, [], float("nan")]


@pytest.mark.parametrize("value", WHOLE, ids=repr)
@pytest.mark.parametrize(
    ("kind", "parameter", "least"),
    [
        (MaxCycles, "n", 1),
        (RepeatedPayload, "times", 2),
        (Oscillation, "max_period", 1),
        (Oscillation, "laps", 2),
        (UnchangedArtifact, "times", 1),
        (TokenBudget, "n", 1),
        (StepReserve, "n", 1),
    ],
)
def test_settings_must_be_whole_numbers(kind: Any, parameter: str, least: int, value: Any) -> None:
    """Zero, negative numbers, booleans and other types are refused with the parameter's name and the value."""
    with pytest.raises(ValueError, match="must") as error:
        kind(**{parameter: value})
    assert f"{kind.__name__}({parameter}) must be a whole number of at least {least}, got {value!r}" == str(error.value)


@pytest.mark.parametrize("value", [0, -1.0, True, "3", None, float("nan"), float("inf")], ids=repr)
def test_seconds_must_be_a_positive_number(value: Any) -> None:
    """A budget of no time, or of endless time, is none."""
    with pytest.raises(ValueError, match="must") as error:
        TimeBudget(value)
    assert f"TimeBudget(seconds) must be a positive number, got {value!r}" == str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RepeatedPayload(1), "RepeatedPayload(times) must be a whole number of at least 2, got 1"),
        (lambda: Oscillation(laps=1), "Oscillation(laps) must be a whole number of at least 2, got 1"),
        (
            lambda: RepeatedPayload(4, window=3),
            "RepeatedPayload(window=3) can never hold times=4 emissions",
        ),
        (lambda: RepeatedPayload(window=0), "RepeatedPayload(window) must be a whole number of at least 1, got 0"),
        (lambda: RepeatedPayload(window=8.0), "RepeatedPayload(window) must be a whole number of at least 1, got 8.0"),
        (lambda: RepeatedPayload(node=5), "RepeatedPayload(node) must be the name of a node, got 5"),
        (lambda: RepeatedPayload(node=""), "RepeatedPayload(node) must be the name of a node, got ''"),
    ],
)
def test_settings_that_can_never_fire_or_always_do_are_refused(make: Any, message: str) -> None:
    """One repeat would trip at the first emission; a window shorter than the threshold would never trip."""
    with pytest.raises(ValueError, match=r"RepeatedPayload|Oscillation") as error:
        make()
    assert message == str(error.value)


@pytest.mark.parametrize("times", [2, 3, 5, 9, 40])
def test_the_guard_keeps_a_window_that_its_conditions_can_fire_in(times: int) -> None:
    """The ledger's windows are as long as the longest memory among the conditions."""
    repeated = RepeatedPayload(times) | MaxCycles(NO_CAP)
    assert times == (stopped(repeated, of_a(*["x"] * times)) or [None])[0]
    assert 2 * times == (stopped(Oscillation(times), of_a(*[*map(str, range(times))] * 2)) or [None])[0]
    spread = ["x", *["y", "z"] * times, "x"]
    window = len(spread)
    assert window == (stopped(RepeatedPayload(2, node="a", window=window) & SAYS_X, of_a(*spread)) or [None])[0]


def SAYS_X(ledger: Ledger) -> bool:
    """Whether the last emission is the first one again."""
    window = ledger.window("a")
    return len(window) > 2 and window[-1]["keys"] == window[0]["keys"]


def test_conditions_are_values() -> None:
    """Equal settings are equal and hashable, and cannot be changed."""
    assert {MaxCycles(3), RepeatedPayload()} == {MaxCycles(), RepeatedPayload(3)}
    assert MaxCycles(3) | Oscillation() == MaxCycles() | Oscillation()
    with pytest.raises(dataclasses.FrozenInstanceError):
        MaxCycles().n = 5  # type: ignore[misc]


# -- algebra -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, repr=False)
class Says(Condition):
    """Trips, warns or does neither, as it was told."""

    word: str
    tripped: bool = True
    warned: bool = False
    reach: int = 1
    artifact: bool = False
    near: int = 0
    kind: Any = "stalled"

    def check(self, ledger: Ledger) -> Verdict:
        if self.tripped:
            return trip(self.word, self.kind, threshold=1, observed=2, message=self.word, evidence=({"w": self.word},))
        reason = Reason(self.word, "stalled", 1, 2, self.word)
        return Verdict(warned=True, reason=reason) if self.warned else PROCEED

    @property
    def memory(self) -> int:
        return self.reach

    @property
    def needs_artifact(self) -> bool:
        return self.artifact

    @property
    def steps(self) -> int:
        return self.near


YES, ALSO, NO = Says("yes"), Says("also", kind="exhausted"), Says("no", tripped=False)
WARNS, WARNS_TOO = Says("warns", tripped=False, warned=True), Says("warns too", tripped=False, warned=True)
EMPTY = Ledger()

TREES = st.recursive(
    st.booleans(),
    lambda inner: st.tuples(st.sampled_from("|&"), inner, inner),
    max_leaves=8,
)


def built(tree: Any) -> tuple[Condition, bool]:
    """The condition that a tree of `|` and `&` makes, and what it should say."""
    if isinstance(tree, bool):
        return (YES if tree else NO), tree
    operator, left, right = tree
    (one, first), (other, second) = built(left), built(right)
    return (one | other, first or second) if operator == "|" else (one & other, first and second)


@given(TREES)
def test_conditions_combine_as_logic_does(tree: Any) -> None:
    """However deep: any one for `|`, all of them for `&`."""
    condition, expected = built(tree)
    verdict = condition.check(EMPTY)
    assert (expected, expected) == (verdict.tripped, verdict.reason is not None)


def test_the_first_reason_counts_for_any() -> None:
    """`|` asks in the order in which it was written."""
    assert "yes" == (NO | YES | ALSO).check(EMPTY).reason.condition  # type: ignore[union-attr]
    assert "also" == (ALSO | YES).check(EMPTY).reason.condition  # type: ignore[union-attr]


def test_all_reasons_count_together() -> None:
    """`&` says every reason, with each threshold, value and piece of evidence; the kind is the first one's."""
    reason = (YES & ALSO).check(EMPTY).reason
    assert Reason("yes & also", "stalled", [1, 1], [2, 2], "yes; and also", ({"w": "yes"}, {"w": "also"})) == reason


def test_warnings_pass_through_any() -> None:
    """The first warning stands when nothing trips; a trip comes before it."""
    verdict = (NO | WARNS | WARNS_TOO).check(EMPTY)
    assert (False, True, "warns") == (verdict.tripped, verdict.warned, verdict.reason and verdict.reason.condition)
    assert (True, False) == ((WARNS | YES).check(EMPTY).tripped, (WARNS | YES).check(EMPTY).warned)


def test_all_warns_when_each_part_warns_or_trips() -> None:
    """`&` warns of a trip that one part still holds back; a part with nothing to say ends it."""
    verdict = (WARNS & YES).check(EMPTY)
    assert (False, True, "warns & yes") == (
        verdict.tripped,
        verdict.warned,
        verdict.reason and verdict.reason.condition,
    )
    assert PROCEED == (WARNS & NO).check(EMPTY) == (NO & WARNS).check(EMPTY)


def test_chains_are_flat() -> None:
    """Three conditions with `|` are one of three, not one of two."""
    assert AnyOf((YES, ALSO, NO)) == (YES | ALSO) | NO == YES | (ALSO | NO)
    assert AllOf((YES, ALSO, NO)) == (YES & ALSO) & NO == YES & (ALSO & NO)
    assert AnyOf((AllOf((YES, ALSO)), NO)) == YES & ALSO | NO


@pytest.mark.parametrize("kind", [AnyOf, AllOf])
def test_a_combination_needs_what_its_parts_need(kind: Any) -> None:
    """The longest memory, the artifact if one looks at it, the earliest look at the limit."""
    both = kind((Says("x", reach=3, near=7), Says("y", reach=9, artifact=True, near=2)))
    neither = kind((NO, YES))
    assert (9, True, 7) == (both.memory, both.needs_artifact, both.steps)
    assert (1, False, 0) == (neither.memory, neither.needs_artifact, neither.steps)


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        (MaxCycles(), "MaxCycles()"),
        (MaxCycles(3), "MaxCycles()"),
        (MaxCycles(5), "MaxCycles(n=5)"),
        (RepeatedPayload(node="a"), "RepeatedPayload(node='a')"),
        (RepeatedPayload(4, window=9), "RepeatedPayload(times=4, window=9)"),
        (Oscillation(2, laps=3), "Oscillation(max_period=2, laps=3)"),
        (RevisitedArtifact(), "RevisitedArtifact()"),
        (TokenBudget(7), "TokenBudget(n=7)"),
        (TimeBudget(1.5), "TimeBudget(seconds=1.5)"),
        (MaxCycles() | Oscillation() & TokenBudget(7), "MaxCycles() | (Oscillation() & TokenBudget(n=7))"),
        ((MaxCycles() | Oscillation()) & TokenBudget(7), "(MaxCycles() | Oscillation()) & TokenBudget(n=7)"),
        (MaxCycles() | SAYS_X, "MaxCycles() | SAYS_X"),
        (MaxCycles() & (lambda ledger: False), "MaxCycles() & <lambda>"),
    ],
)
def test_repr_leaves_defaults_out(condition: Condition, shown: str) -> None:
    """What is shown is what was set; no address stands in it, so that two processes show the same."""
    assert shown == repr(condition)


# -- plain functions and own classes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [(True, "many says stop"), ("ten are enough", "ten are enough"), (1, "many says stop")],
)
def test_a_function_may_say_stop(answer: Any, message: str) -> None:
    """True, or a text that is the reason, trips with the function's name."""

    def many(ledger: Ledger) -> Any:
        return answer if ledger.visits.get("a", 0) > 1 else None

    found = stopped(many, of_a(1, 2, 3))
    assert found is not None
    assert (2, "many", "stalled", message) == (found[0], found[1].condition, found[1].kind, found[1].message)


@pytest.mark.parametrize("answer", [False, None, "", 0, PROCEED])
def test_a_function_may_say_go_on(answer: Any) -> None:
    """False, nothing, an empty text and a verdict that does not trip."""
    assert None is stopped(lambda ledger: answer, of_a(1, 2, 3))


def test_a_function_may_return_a_verdict() -> None:
    """Then the verdict is its own."""
    found = stopped(lambda ledger: trip("Mine", "invalid", threshold=(1,), observed={2}, message="m"), of_a(1))
    assert ("Mine", "invalid") == (found and found[1].condition, found and found[1].kind)


@pytest.mark.parametrize("function", [len, bool, SAYS_X, lambda ledger: True])
def test_functions_combine_with_conditions_on_either_side(function: Any) -> None:
    """A plain function is a condition as soon as it stands beside one."""
    plain = as_condition(function)
    assert AnyOf((plain, YES)) == function | YES
    assert AnyOf((YES, plain)) == YES | function
    assert AllOf((plain, YES)) == function & YES
    assert AllOf((YES, plain)) == YES & function


async def waits(ledger: Ledger) -> bool:
    """No condition can wait."""
    return False


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (5, "stop_when must be a condition or a function of the ledger, got 5"),
        (MaxCycles, "stop_when must be a condition, got the class MaxCycles: write MaxCycles()"),
        (waits, "stop_when must be no coroutine function"),
    ],
)
def test_what_is_no_condition_is_refused(thing: Any, message: str) -> None:
    """At construction, by the guard, and by the operators."""
    for make in (
        lambda: LoopGuard("a", "b", stop_when=thing),
        lambda: MaxCycles() | thing,
        lambda: thing & MaxCycles(),
    ):
        with pytest.raises(TypeError) as error:
            make()
        assert str(error.value).startswith(message)


class Mute(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


class Plain(Condition):
    """Somebody's own condition that is no dataclass, and forgets to return a verdict."""

    def check(self, ledger: Ledger) -> Any:
        return None


class Bare(Condition):
    """A condition without a check."""


def raises(error: BaseException) -> Any:
    def function(ledger: Ledger) -> bool:
        raise error

    return function


@pytest.mark.parametrize(
    ("condition", "observed", "message"),
    [
        (raises(ValueError("no data")), "ValueError", "ValueError: no data"),
        (raises(KeyError("x")), "KeyError", "KeyError: 'x'"),
        (raises(Mute()), "Mute", "Mute: <Mute that cannot be shown: RuntimeError>"),
        (raises(ValueError("\ud800")), "ValueError", "ValueError: \\ud800"),
        (raises(RecursionError("deep")), "RecursionError", "RecursionError: deep"),
        (Plain(), "AttributeError", "'tripped'"),
        (Bare(), "NotImplementedError", "NotImplementedError"),
        (MaxCycles(NO_CAP) | raises(ValueError("later")), "ValueError", "ValueError: later"),
        (lambda: True, "TypeError", "TypeError"),
    ],
)
def test_a_condition_that_raises_trips_as_broken(condition: Any, observed: str, message: str) -> None:
    """A guard that fails ends in a trip with the error in it, and never lets the loop run on unguarded."""
    guard = LoopGuard("a", "b", stop_when=condition)
    ledger, verdict = guard.observe(None, "a", "x")
    assert verdict.reason is not None
    assert (True, "broken", observed) == (verdict.tripped, verdict.reason.kind, verdict.reason.observed)
    assert message in verdict.reason.message
    assert observed == verdict.reason.evidence[0]["error"]
    assert Ledger(json.loads(json.dumps(ledger, ensure_ascii=False).encode())).reason == verdict.reason


def test_an_interrupt_from_the_keyboard_is_no_broken_guard() -> None:
    """Whoever stops the program stops it."""
    with pytest.raises(KeyboardInterrupt):
        LoopGuard("a", "b", stop_when=raises(KeyboardInterrupt())).observe(None, "a", "x")


# -- reasons and verdicts ----------------------------------------------------------------------------------------------


@given(
    st.recursive(
        st.one_of(st.none(), st.binary(), st.floats(), st.sets(st.integers()), st.text(st.characters())),
        lambda inner: st.tuples(inner, inner),
    )
)
def test_a_reason_is_plain_json_whatever_it_holds(thing: Any) -> None:
    """A user's own condition may put anything into its reason; the state must still be saved."""
    reason = Reason(thing, thing, thing, thing, thing, (thing,))
    found = reason.to_json()
    assert found == json.loads(json.dumps(found, allow_nan=False, ensure_ascii=False).encode())
    assert ["condition", "kind", "message"] == [
        key for key in ("condition", "kind", "message") if type(found[key]) is str
    ]
    assert found == Reason.from_json(found).to_json()


def test_a_reason_without_evidence_is_one() -> None:
    """None instead of an empty collection is a slip that costs nobody the run."""
    assert [] == Reason("X", "stalled", 1, 2, "m", None).to_json()["evidence"]  # type: ignore[arg-type]


def test_a_trip_needs_a_reason() -> None:
    """A trip that nobody can explain is refused."""
    with pytest.raises(ValueError, match="needs a reason"):
        Verdict(tripped=True)


def test_broken_says_where() -> None:
    """The reason names the part that failed, so that a person can mend it."""
    reason = broken(ValueError("no"), "artifact='patch'")
    assert ("Guard", "the guard failed in artifact='patch': ValueError: no") == (reason.condition, reason.message)
    assert ({"error": "ValueError", "text": "no", "where": "artifact='patch'"},) == reason.evidence


@given(st.lists(st.sampled_from("xyz"), max_size=12), st.lists(st.sampled_from("xyz"), max_size=12))
def test_conditions_are_pure(one: list[str], other: list[str]) -> None:
    """Asked twice, or about another ledger in between, a condition says the same."""
    assume(one and other)
    condition = RepeatedPayload(2) | Oscillation() | UnchangedArtifact() | MaxCycles(2)
    guard = LoopGuard("a", "b", max_cycles=NO_CAP)
    ledgers = []
    for payloads in (one, other):
        ledger: Any = None
        for payload in payloads:
            ledger, _ = guard.observe(ledger, "a", payload)
        ledgers.append(Ledger(ledger))
    before = json.dumps(ledgers[0].data)
    first = condition.check(ledgers[0])
    condition.check(ledgers[1])
    assert (first, before) == (condition.check(ledgers[0]), json.dumps(ledgers[0].data))

"""Why two payloads are one handoff, or are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from langgraph_loopguard import Explanation, Fingerprinter, FingerprintError, explain, normalize
from langgraph_loopguard.core.explain import ABSENT, Difference, looks_volatile
from tests.core.payloads import ANYTHING


@given(ANYTHING, ANYTHING, st.booleans())
def test_it_agrees_with_the_fingerprints(one: Any, other: Any, scrub: bool) -> None:
    """Differences are listed exactly when the fingerprints differ."""
    fingerprinter = Fingerprinter(scrub=scrub)
    for left, right in ((one, other), (one, one), ([one, 1], [one, True]), ({"a": one}, {"a": other, "b": 1})):
        found = explain(left, right, fingerprinter)
        assert found.equal == (fingerprinter.fingerprint(left) == fingerprinter.fingerprint(right))
        assert found.equal == (not found.differences)


@pytest.mark.parametrize(
    ("one", "other", "differences"),
    [
        (1, 2, [("", 1, 2)]),
        ({"a": 1}, {"a": True}, [("a", 1, True)]),
        ({"a": 1}, {"a": "1"}, [("a", 1, "1")]),
        ({"a": 1}, {}, [("a", 1, ABSENT)]),
        ({"a": None}, {}, [("a", None, ABSENT)]),
        ([1], [1, 2], [("[1]", ABSENT, 2)]),
        ({"f": [{"line": 1}, {"line": 2}]}, {"f": [{"line": 1}, {"line": 3}]}, [("f[1].line", 2, 3)]),
        ({"f": {"b": 1}}, {"f": [1]}, [("f", {"b": 1}, [1])]),
        ({"m": AIMessage("x")}, {"m": AIMessage("y")}, [("m.text", "x", "y")]),
        ({1: "x"}, {1: "y"}, [("<keys>[0][1]", "x", "y")]),
    ],
)
def test_differences_have_a_path(one: Any, other: Any, differences: list[tuple[str, Any, Any]]) -> None:
    """Each says where, and what either payload has there."""
    assert tuple(Difference(*difference) for difference in differences) == explain(one, other).differences


COARSE = Fingerprinter(ignore={"seed"}, normalize=(normalize.whitespace, normalize.digits))


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        ({"k": "x\r\n"}, {"k": "x"}, "folded"),
        ({"k": "at 2026-01-01T00:00:00Z"}, {"k": "at 2026-01-02T00:00:00Z\n"}, "scrubbed"),
        ({"id": "call_1", "k": 1}, {"id": "call_2", "k": 1}, "generated id"),
        ({"id": "call_1", "k": 1}, {"k": 1}, "generated id"),
        ({"seed": 1}, {"seed": 2}, "ignored key 'seed'"),
        ({"seed": {"deep": [1]}}, {"seed": {"deep": [2]}}, "ignored key 'seed'"),
        ({"k": "a  b"}, {"k": "a b"}, "whitespace"),
        ({"k": "line 7"}, {"k": "line 8"}, "digits"),
    ],
)
def test_what_does_not_count_has_a_cause(one: Any, other: Any, cause: str) -> None:
    """Equal payloads say in what they differ nevertheless, and by which setting that is hidden."""
    found = explain(one, other, COARSE)
    assert (True, (), [cause]) == (found.equal, found.differences, [difference.cause for difference in found.hidden])


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        ({"patch": "x", "nonce": "a81f"}, {"patch": "x", "nonce": "07cc"}, ("nonce",)),
        ({"p": "x", "seconds": 1.5}, {"p": "x", "seconds": 1.25}, ("seconds",)),
        ([{"p": "x", "n": 1, "m": "a1"}], [{"p": "x", "n": 2, "m": "b2"}], ("m", "n")),
        ({"p": "x", "log": "3 passed in 0.1s"}, {"p": "x", "log": "3 passed in 2.1s"}, ("log",)),
        ({"patch": "a = 1", "nonce": "a81f"}, {"patch": "b = 1", "nonce": "07cc"}, ()),
        ({"verdict": "approve"}, {"verdict": "reject"}, ()),
        ({"p": 1}, {"p": None}, ()),
        ({"p": 1}, {"p": 1}, ()),
        ("a1", "a2", ()),
    ],
)
def test_the_field_that_defeats_the_hash_is_named(one: Any, other: Any, keys: tuple[str, ...]) -> None:
    """When only keys that look volatile differ, they are what to ignore; ignoring them makes the payloads equal."""
    found = explain(one, other)
    assert keys == found.defeated_by
    if keys:
        assert explain(one, other, Fingerprinter(ignore=keys)).equal


@pytest.mark.parametrize(
    ("value", "volatile"),
    [
        (1, True), (1.5, True), (True, False), (None, False), ("a81f", True), ("reject", False), ("a 1", False),
        ("12:30:01", True), ("", False), ("x1" * 40, False), ([1], False),
    ],
)  # fmt: skip
def test_what_looks_volatile(value: Any, volatile: bool) -> None:
    """Numbers, and single words that are not only letters."""
    assert volatile is looks_volatile(value)


def test_it_is_told_in_sentences() -> None:
    """A person reads what differs, what does not count, and what to set."""
    found = explain({"p": "x\n", "nonce": "a81f"}, {"p": "x", "nonce": "07cc"})
    assert isinstance(found, Explanation)
    assert """The payloads have different fingerprints.
They differ in
- nonce: 'a81f' / '07cc'
These differences do not count:
- p: 'x\\n' / 'x' (folded)
All else is equal. If these keys mean nothing: ignore={'nonce'}""" == str(found)
    many = str(explain(list(range(20)), list(range(1, 21))))
    assert "- and 10 more" in many
    assert "the payload: '" + "x" * 56 + "... / nothing" == str(Difference("", "x" * 99, ABSENT))


def test_what_has_no_canonical_form_cannot_be_explained() -> None:
    """The error is the one of the fingerprint."""
    with pytest.raises(FingerprintError, match="no canonical form"):
        explain(object(), 1)

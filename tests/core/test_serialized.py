"""The fast way to the canonical form gives, byte for byte, what the walk gives, or leaves it to the walk."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from langgraph_loopguard import Fingerprinter, normalize
from langgraph_loopguard.core.canonical import MAX_DEPTH, dumps
from langgraph_loopguard.core.serialized import serialized
from tests.core.payloads import ANYTHING, JSON, shuffled, tupled

UUID = "0b6f4a1e-5c3d-4f2a-9b8c-7d6e5f4a3b2c"
PIECES = st.sampled_from(
    [
        "a", "id", "Z", "T", "9", "\u0663", "\u0301", "é", "\u212b", "\ud800", " ", "  ", "\t", "\n", "\r", "\r\n", " \n",
        '"', '":"', '","', "\\", "\\n", "\\\\", "\x00", "\x01", "\x02", "\x7f", "\xa0", "\u2028", "'", ":", ",", "[", "{",
        UUID, "-", "2026-01-01T00:00:00Z", "2026-01-01 10:00", ".123", "+02:00", "0x7f12ab34", "0x", "call_1", "msg-x",
        "0123456789abcdef", "/tmp/", "/tmp/x/f.py", "/private/var/tmp/a", "/var/folders/zz/ab/T/x", "/var/folders/", "C:\\",
        "C:\\Users\\me\\Temp\\t\\f", "Temp\\", "/", "null", "true", "1.0", "1e16",
    ]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=5).map("".join)
"""Texts of all that is folded, scrubbed or escaped, and of what stands for it."""

NUMBERS = st.sampled_from(
    [
        0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 0.0, -0.0, 1.0, -3.0, 0.5, 10.05, 0.01, 1e15, 1e16,
        -1.5e17, 1.25e-7, 9007199254740993.0, 2.0**62, 2.0**63, -(2.0**63), 1e300, 5e-324, 999999999999999.0,
        float("nan"), float("inf"), float("-inf"),
    ]
)  # fmt: skip
KEYS = st.one_of(st.sampled_from(["a", "b", "id", "tool_call_id", "messageId", "ID", "a ", "", "a b", "é"]), TEXTS)
PLAIN = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.floats(), st.none(), st.booleans()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=3).map(tuple), st.dictionaries(KEYS, inner, max_size=6)
    ),
    max_leaves=14,
)


def fast(payload: Any, fingerprinter: Fingerprinter | None = None) -> bytes | None:
    """What the fast way says."""
    f = fingerprinter or Fingerprinter()
    return serialized(payload, ignore=f.ignore, scrub=f.scrub, text=f.text, normalizes=bool(f.normalize))


@settings(max_examples=400)
@given(PLAIN, st.booleans(), st.sets(st.sampled_from(["a", "id", "é"]), max_size=1), st.booleans())
@example([{"a": 1, "x_id": "call_1", "id": "msg-2"}, {"id": UUID, "b": 2}, {"id": "call_1"}], True, set(), False)
@example([{"id": "call_1", "x_id": "call_2", "yId": "call_3", "n": None}], True, set(), False)
@example(["/var/folders/a", "b/c/T/x", "/tmp\\x", "/tmp/y/z"], True, set(), False)
@example([{"/tmp/x/f": 1, "a": "/tmp/y/f"}, {"2026-01-01 10:00": 1, "b": "2026-01-01 10:00"}], True, set(), False)
@example([["n\u0303", "\n\u0303"], ["x\\", "n "], ["a\\\n", "a\\n\n"], [1.0, "1.0,", [2.0]]], True, set(), False)
@example([10.05, 1.0, 1.05e-7, 0.05, 100.0], True, set(), False)
@example([["x" + " " * 20], [" \t\n" * 9]], True, set(), False)
def test_serialized_is_the_walk(payload: Any, scrub: bool, ignore: set[str], normalizes: bool) -> None:
    """Whatever is replaced in the JSON text is what the walk makes of each string."""
    normalizers = (normalize.digits, normalize.case) if normalizes else ()
    fingerprinter = Fingerprinter(scrub=scrub, ignore=ignore, normalize=normalizers)
    for wrapped in (payload, [payload, payload], {"k": [payload], "m": [1.0, "x "]}):
        found = fast(wrapped, fingerprinter)
        if found is not None:
            assert dumps(fingerprinter.tree(wrapped)) == found


@given(st.one_of(ANYTHING, JSON), st.booleans())
def test_serialized_leaves_other_kinds_to_the_walk(payload: Any, scrub: bool) -> None:
    """Sets, dates, bytes, keys that are no strings: equal, or not decided."""
    fingerprinter = Fingerprinter(scrub=scrub)
    found = fast([payload], fingerprinter)
    assert found in (None, dumps(fingerprinter.tree([payload])))


FINDING = {"file": "mail.py", "line": 202, "rule": "E711", "message": "comparison to None", "fixed": None}


@pytest.mark.parametrize(
    "payload",
    [
        [FINDING],
        {"findings": [{**FINDING, "line": number} for number in range(300)]},
        [{**FINDING, "id": "call_1"}],
        [{**FINDING, "message": "comparison\n"}],
        [{**FINDING, "message": 'a "quoted" word \\ and a trailing blank \n'}],
        [{**FINDING, "message": "at 2026-01-01T00:00:00Z in /tmp/tmpab12/f.py"}],
        [{**FINDING, "message": "Größe"}],
        [{**FINDING, "score": 1.0}],
        ({**FINDING, "score": 0.5},),
        [[[]], {}],
    ],
)
@pytest.mark.parametrize("ignore", [set(), {"line"}, {"file", "absent"}])
def test_findings_are_serialized(payload: Any, ignore: set[str]) -> None:
    """The property above would hold as well if everything were left to the walk."""
    fingerprinter = Fingerprinter(ignore=ignore)
    assert dumps(fingerprinter.tree(payload)) == fast(payload, fingerprinter)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2.0**63, 2**63, "\ud800", b"", {1: 2}, {"\x00set": []}])
def test_what_orjson_would_write_as_something_else_is_left_to_the_walk(value: Any) -> None:
    """NaN as null, a lone surrogate, a number over 64 bits, a key that is no string, a key that looks like a tag."""
    assert fast([[value], "x"]) is None


def test_serialized_keeps_the_limit_of_depth() -> None:
    """Both ways give up at the same level."""
    nested: Any = ["leaf"]
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    assert fast(nested) == dumps(Fingerprinter().tree(nested))
    assert fast([nested]) is None


@given(PLAIN, st.randoms(use_true_random=False))
def test_volatile_payloads_count_in_any_key_order_and_as_tuples(payload: Any, order: random.Random) -> None:
    """Whichever way a payload goes, its order of keys and its tuples do not count."""
    fingerprint = Fingerprinter().fingerprint
    found = fingerprint([payload])
    assert found == fingerprint([shuffled(payload, order)])
    assert found == fingerprint([tupled(payload)])

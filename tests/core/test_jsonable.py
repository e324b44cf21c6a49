"""Anything becomes plain JSON that every saver keeps, and nothing that is text loses a byte."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import UserDict, deque
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel, SecretStr

from langgraph_loopguard.core.jsonable import MAX_DEPTH, to_jsonable
from tests.core.payloads import ANYTHING, BROKEN_TEXTS, JSON, TEXTS


class Colour(Enum):
    RED = "red"


class Name(str, Enum):
    FIRST = "first"


class Word(str):
    pass


class Count(int):
    pass


class Ratio(float):
    pass


@dataclasses.dataclass
class Node:
    name: str
    parent: Any = None
    children: list[Any] = dataclasses.field(default_factory=list)


class Model(BaseModel):
    name: str
    key: SecretStr = SecretStr("pass")


class Silent:
    """Cannot show itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Hostile(Silent):
    """Fails at whatever is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(name)


class Frame:
    """Says itself what it is, as a pandas frame does."""

    def to_dict(self) -> dict[str, Any]:
        return {"rows": (1,)}


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no")


def strict() -> JsonPlusSerializer:
    return JsonPlusSerializer(allowed_msgpack_modules=None)


def assert_plain(value: Any) -> None:
    """Exact types only: a str subclass or a tuple would come back as something else."""
    if type(value) is dict:
        for key, item in value.items():
            assert type(key) is str
            assert_plain(key)
            assert_plain(item)
    elif type(value) is list:
        for item in value:
            assert_plain(item)
    elif type(value) is str:
        value.encode()
    elif type(value) is int:
        assert -(2**63) <= value < 2**63
    elif type(value) is float:
        assert math.isfinite(value)
    else:
        assert value is None or type(value) is bool, type(value)


def assert_kept(value: Any) -> None:
    """Every serializer gives back an equal value."""
    assert_plain(value)
    assert value == json.loads(json.dumps(value, allow_nan=False))
    assert value == ormsgpack.unpackb(ormsgpack.packb(value))
    serializer = strict()
    assert value == serializer.loads_typed(serializer.dumps_typed(value))


@given(JSON)
def test_plain_json_stays_as_it_is(value: Any) -> None:
    """What is plain already comes back equal, with the same types."""
    assert repr(value) == repr(to_jsonable(value))


@given(ANYTHING)
def test_anything_becomes_plain_json(value: Any) -> None:
    """All that has a fingerprint can be kept, and a second pass changes nothing."""
    found = to_jsonable(value)
    assert_kept(found)
    assert found == to_jsonable(found)


@given(TEXTS)
def test_texts_stay_byte_for_byte(text: str) -> None:
    """No folding, no trimming, no Unicode normalization: a diff must apply afterwards."""
    assert text.encode() == to_jsonable({"k": [text]})["k"][0].encode()


@pytest.mark.parametrize("text", ["a\r\nb \r\n", "\x00", "\ufeff", "e\u0301", "\x1b[2K", "\u202e", "x" * 1_000_000])
def test_no_text_is_too_odd(text: str) -> None:
    """Control characters are for the one who shows the text; the record holds them."""
    assert text == to_jsonable(text)


@given(BROKEN_TEXTS)
def test_lone_surrogates_are_shown_by_their_escape(text: str) -> None:
    """A saver would write a question mark, so that a person could not see what was there."""
    found = to_jsonable(text)
    assert_kept(found)
    assert text.encode("utf-8", "backslashreplace").decode() == found


EXPECTED: list[tuple[Any, Any]] = [
    (2**63, "9223372036854775808"),
    (-(2**63), -(2**63)),
    (-(2**63) - 1, "-9223372036854775809"),
    (10**5000, hex(10**5000)),
    (math.nan, "nan"),
    (-math.inf, "-inf"),
    ((1, (2,)), [1, [2]]),
    ({3, 1, 2}, [1, 2, 3]),
    (deque([1]), [1]),
    (range(3), [0, 1, 2]),
    (b"\xff\x00", {"base64": "/wA="}),
    (Colour.RED, "red"),
    (Name.FIRST, "first"),
    (Word("w\ud800"), "w\\ud800"),
    (Count(2), 2),
    (Count(2**64), "18446744073709551616"),
    (Ratio(0.5), 0.5),
    (Ratio("inf"), "inf"),
    (date(2026, 1, 2), "2026-01-02"),
    (datetime(2026, 1, 2, tzinfo=timezone.utc), "2026-01-02T00:00:00+00:00"),
    (timedelta(minutes=2), 120.0),
    (Decimal("1.10"), "1.10"),
    (Fraction(1, 3), "Fraction(1, 3)"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (PurePosixPath("a/b"), "a/b"),
    (SecretStr("pass"), "**********"),
    (Model(name="n"), {"name": "n", "key": "**********"}),
    (Node("n"), {"name": "n", "parent": None, "children": []}),
    (UserDict({"a": (1,)}), {"a": [1]}),
    (ValueError("no"), {"type": "ValueError", "message": "no"}),
    (KeyError("\ud800"), {"type": "KeyError", "message": "'\\ud800'"}),
    (Mute(), "<Mute that cannot be shown: ValueError>"),
    (Silent(), "<Silent that cannot be shown: RuntimeError>"),
    (Hostile(), "<Hostile that cannot be shown: ValueError>"),
    ({1: "x", None: "y", (1, 2): "z", False: "w"}, {"1": "x", "None": "y", "[1, 2]": "z", "False": "w"}),
    ({1: "x", "1": "y"}, {"1'": "x", "1": "y"}),
    ({"1": "y", 1: "x"}, {"1'": "x", "1": "y"}),
    ({Name.FIRST: 1, Colour.RED: 2}, {"first": 1, "red": 2}),
    ({"\ud800": 1}, {"\\ud800": 1}),
    ({Silent(): 1, (Silent(),): 2}, {
        "<Silent that cannot be shown: RuntimeError>": 1,
        "['<Silent that cannot be shown: RuntimeError>']": 2,
    }),
    (int, "<class 'int'>"),
    (Node, "<class 'tests.core.test_jsonable.Node'>"),
    (Frame(), {"rows": [1]}),
    (Frame, "<class 'tests.core.test_jsonable.Frame'>"),
    ({Silent(): 1, "x": 2, Silent(): 3}, {
        "<Silent that cannot be shown: RuntimeError>": 1,
        "x": 2,
        "<Silent that cannot be shown: RuntimeError>'": 3,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), EXPECTED, ids=lambda value: type(value).__name__)
def test_what_json_does_not_know(value: Any, expected: Any) -> None:
    """Each kind has one form, in which a person still sees what it was."""
    found = to_jsonable(value)
    assert expected == found
    assert_kept(found)


def test_messages_keep_what_a_reader_needs() -> None:
    """Text, calls, malformed calls, ids and status; not usage and metadata."""
    message = AIMessage(
        "x",
        id="1",
        tool_calls=[{"name": "grep", "args": {"n": 2**70}, "id": "c1", "type": "tool_call"}],
        invalid_tool_calls=[{"name": "sed", "args": "{", "id": "c2", "error": "no", "type": "invalid_tool_call"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    )
    assert {
        "type": "ai",
        "content": "x",
        "id": "1",
        "tool_calls": [{"name": "grep", "args": {"n": str(2**70)}, "id": "c1", "type": "tool_call"}],
        "invalid_tool_calls": [
            {"name": "sed", "args": "{", "id": "c2", "error": "no", "type": "invalid_tool_call"},
        ],
    } == to_jsonable(message)
    assert [
        {"type": "human", "content": [{"type": "text", "text": "a"}]},
        {"type": "tool", "content": "b", "tool_call_id": "c1", "status": "error"},
    ] == to_jsonable(
        [HumanMessage([{"type": "text", "text": "a"}]), ToolMessage("b", tool_call_id="c1", status="error")]
    )


def test_an_object_that_contains_itself_is_named() -> None:
    """A tree whose nodes know their parent is finished at once, however wide it is."""
    root = Node("root")
    root.children = [Node(str(number), parent=root) for number in range(50)]
    found = to_jsonable(root)
    assert_kept(found)
    assert ["<Node that contains itself>"] * 50 == [child["parent"] for child in found["children"]]
    both: dict[str, Any] = {}
    both["left"], both["right"] = both, [both]
    assert {"left": "<dict that contains itself>", "right": ["<dict that contains itself>"]} == to_jsonable(both)


def test_the_same_object_twice_is_no_cycle() -> None:
    """Only what holds itself is cut; what merely stands in two places is shown in both."""
    shared = {"a": [1]}
    assert [{"a": [1]}, {"a": [1]}] == to_jsonable([shared, shared])


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, lambda v: (v,), lambda v: Node("n", v)])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 5_000])
def test_depth_is_bounded(wrap: Any, depth: int) -> None:
    """Savers refuse deep nesting: below the limit a value is written as text, and never as an error."""
    value: Any = "leaf"
    for _ in range(depth):
        value = wrap(value)
    assert_kept(to_jsonable(value))


def test_nesting_up_to_the_limit_is_kept() -> None:
    """The limit takes nothing from a record of ordinary depth; one level more is text."""
    value: Any = "leaf"
    cut: Any = "['leaf']"
    for _ in range(MAX_DEPTH):
        value, cut = [value], [cut]
    assert value == to_jsonable(value)
    assert cut == to_jsonable([value])


@given(st.recursive(st.builds(Silent) | st.builds(Hostile) | st.builds(Mute) | st.integers(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.builds(Silent) | TEXTS, inner)
                    | st.builds(Node, st.text(), inner)))  # fmt: skip
def test_it_never_raises(value: Any) -> None:
    """A record is made when something has gone wrong already."""
    assert_kept(to_jsonable(value))


def test_numpy_becomes_lists_and_numbers() -> None:
    """Arrays and scalars are what they hold."""
    numpy = pytest.importorskip("numpy")
    found = to_jsonable({"a": numpy.array([[1, 2]]), "b": numpy.float32(0.5), "c": numpy.int64(3), "d": numpy.bool_(1)})
    assert {"a": [[1, 2]], "b": 0.5, "c": 3, "d": True} == found
    assert_plain(found)

"""Never wrongly equal, never wrongly different: fingerprints against a small reference of what is one value."""

from __future__ import annotations

import dataclasses
import json
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from langgraph_loopguard import Fingerprinter, normalize
from langgraph_loopguard.core.scrub import fold_text
from tests.core.payloads import JSON

exact = Fingerprinter(scrub=False).fingerprint


def meaning(value: Any) -> Any:
    """What a value says, as something that Python compares: the reference, by other means than the library's."""
    match value:
        case bool():
            return "truth", value
        case int() | float() | Decimal() | Fraction():
            return "number", Fraction(value)
        case PurePosixPath():
            return "text", str(value)
        case str():
            return "text", value
        case bytes():
            return "bytes", value
        case set() | frozenset():
            return "set", frozenset(map(meaning, value))
        case list() | tuple():
            return "list", tuple(map(meaning, value))
        case dict() | MappingProxyType():
            return "map", frozenset((meaning(key), meaning(item)) for key, item in value.items())
    return "nothing", None


TWINS = st.sampled_from(
    [
        None, False, True, 0, 1, 2, -0.0, 0.0, 1.0, 2.0, 0.5, Decimal("1.0"), Decimal("0.50"), Decimal("0.1"), 0.1,
        Fraction(1, 2), Fraction(2, 1), "", "0", "1", "1.0", "a", "None", "true", b"", b"1", b"a", 2**63, 2.0**63,
        Decimal(2**63), 2**64 + 1, PurePosixPath("a"),
    ]
)  # fmt: skip
KEYS = st.sampled_from(["a", "b", "", "1", 1, 2, None, True, b"a", (1, "a")])
SMALL = st.recursive(
    TWINS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.lists(inner, max_size=2).map(tuple),
        st.dictionaries(KEYS, inner, max_size=2),
        st.dictionaries(KEYS, inner, max_size=2).map(OrderedDict),
        st.dictionaries(KEYS, inner, max_size=2).map(MappingProxyType),
        st.sets(st.sampled_from(["a", "1", 1, 2.5, None, b"a"]), max_size=2),
    ),
    max_leaves=4,
)


@settings(max_examples=600)
@given(SMALL, SMALL)
def test_fingerprints_are_equal_exactly_when_the_values_are(one: Any, other: Any) -> None:
    """Kinds that say the same are one; kinds that say something else never are, in any nesting."""
    assert (meaning(one) == meaning(other)) == (exact(one) == exact(other))
    assert (meaning(one) == meaning(other)) == (exact([one, {"k": one}]) == exact([other, {"k": other}]))


def folded(value: Any) -> Any:
    """Plain JSON with its texts folded, and with integers over 64 bits as they are written."""
    if isinstance(value, float) and abs(value) >= 2**63 and value != -(2**63):
        return {"\x00int": hex(int(value))}
    if isinstance(value, str):
        return fold_text(value)
    if isinstance(value, list):
        return [folded(item) for item in value]
    if isinstance(value, dict):
        return {fold_text(key): folded(item) for key, item in value.items()}
    return value


def simple_keys(value: Any) -> bool:
    """No key folds to another one or looks like a tag."""
    if isinstance(value, dict):
        names = [fold_text(key) for key in value]
        if len(set(names)) < len(names) or any(name.startswith("\x00") for name in names):
            return False
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(map(simple_keys, items))


@settings(max_examples=300)
@given(JSON.filter(simple_keys))
def test_the_canonical_form_of_json_can_be_read_back(payload: Any) -> None:
    """Nothing but the folding is lost on the way to the hash, so different payloads have different forms."""
    assert folded(payload) == orjson.loads(Fingerprinter(scrub=False).canonical(payload))


@given(JSON)
def test_a_payload_counts_alike_after_a_trip_through_json(payload: Any) -> None:
    """As a service on the other side of the network gives it back."""
    assert exact(payload) == exact(json.loads(json.dumps(payload)))


@given(st.text(max_size=5), st.integers(), st.lists(st.floats(allow_nan=False), max_size=3))
def test_records_of_every_make_are_their_fields(name: str, number: int, scores: list[float]) -> None:
    """A dataclass, a model and a dict with the same fields are one."""

    @dataclasses.dataclass
    class Data:
        name: str
        number: int
        scores: tuple[float, ...]

    class Model(BaseModel):
        number: int
        scores: list[float]
        name: str

    plain = {"scores": scores, "name": name, "number": number}
    assert exact([plain]) == exact([Data(name, number, tuple(scores))])
    assert exact([plain]) == exact([Model(name=name, number=number, scores=scores)])


@given(JSON, st.booleans())
def test_a_normaliser_that_changes_nothing_changes_nothing(payload: Any, scrub: bool) -> None:
    """With `normalize=` every payload goes by the walk: it is the same form."""
    plain, walked = Fingerprinter(scrub=scrub), Fingerprinter(scrub=scrub, normalize=lambda text: text)
    assert plain.canonical([payload]) == walked.canonical([payload])
    assert Fingerprinter(normalize=normalize.digits).fingerprint(["line 7"]) == exact(["line #"])


@given(JSON)
def test_an_ignored_key_counts_as_absent(payload: Any) -> None:
    """Whatever it holds, at any depth."""
    fingerprint = Fingerprinter(ignore={"seed"}).fingerprint
    assert fingerprint([{"k": 1}, [{}]]) == fingerprint([{"k": 1, "seed": payload}, [{"seed": [payload]}]])

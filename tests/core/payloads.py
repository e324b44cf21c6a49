"""Payloads that hypothesis draws: plain JSON, and what Python programs hand over besides."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
"""Any text that a saver keeps."""

BROKEN_TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.characters(categories=["Cs"])), max_size=8)
"""Texts with lone surrogates among the rest."""

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)

JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
"""Plain JSON."""

KEYS = st.one_of(TEXTS, st.integers(), st.none(), st.booleans(), st.tuples(st.integers(), TEXTS), st.binary(max_size=4))

ODD_SCALARS = st.one_of(
    SCALARS,
    st.integers(),
    st.floats(),
    st.binary(max_size=6),
    st.decimals(),
    st.fractions(),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
)

ANYTHING = st.recursive(
    st.one_of(ODD_SCALARS, BROKEN_TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(st.one_of(TEXTS, st.integers(), st.none(), st.dates(), st.uuids()), max_size=4),
    ),
    max_leaves=12,
)
"""Whatever has a canonical form."""


def shuffled(value: Any, order: random.Random) -> Any:
    """The same value with the keys of every dict in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(item, order)) for key, item in value.items()]
        order.shuffle(items)
        return dict(items)
    if isinstance(value, (list, tuple)):
        return type(value)(shuffled(item, order) for item in value)
    return value


def tupled(value: Any) -> Any:
    """The same value with tuples for lists."""
    if isinstance(value, list):
        return tuple(tupled(item) for item in value)
    if isinstance(value, dict):
        return {key: tupled(item) for key, item in value.items()}
    return value

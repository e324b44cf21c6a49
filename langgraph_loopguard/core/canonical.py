"""The canonical form of a payload: a tree of plain JSON in which everything that does not count is folded away.

`Walk` visits a payload value by value and is the definition. `serialized` finds the same form faster where it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import orjson

from langgraph_loopguard.core.errors import FingerprintError
from langgraph_loopguard.core.paths import find_cycle, words
from langgraph_loopguard.core.plain import TAG, Tagged, integer, number, plain
from langgraph_loopguard.core.scrub import GENERATED_ID, fold_text

MAX_DEPTH = 200
"""Levels of nesting that a payload may have (a payload that contains itself has more)."""

MAX_ITEMS = 5_000_000
"""Values that a payload may hold, all levels together."""

MAX_CONVERSIONS = 16
"""How often an object may say that it is another one."""

_SHORT = 256
"""Characters of a text that is remembered while a walk lasts: findings repeat file names and rules."""

_GENERATED_ID = re.compile(GENERATED_ID)


class _TooDeepError(Exception):
    """A value lies deeper than `MAX_DEPTH`."""


class Walk:
    """One walk over a payload.

    Args:
        text: What becomes of every text that is not a key.
        drops: Which entries of a mapping, by key and value, do not count.
    """

    __slots__ = ("_drops", "_keys", "_left", "_text", "_texts")

    def __init__(self, text: Callable[[str], str], drops: Callable[[Any, Any], bool]) -> None:
        self._text = text
        self._drops = drops
        self._left = MAX_ITEMS
        self._texts: dict[str, str] = {}
        self._keys: dict[str, str] = {}

    def tree(self, payload: Any) -> Any:
        """Return the canonical form as plain JSON.

        Raises:
            FingerprintError: An object without a canonical form, too many levels or values, or a payload that contains
                itself.
        """
        try:
            return self._walk(payload, 0)
        except (_TooDeepError, RecursionError):
            raise FingerprintError(_too_deep(payload)) from None

    def _walk(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            if len(value) > _SHORT:
                return self._text(value)
            found = self._texts.get(value)
            if found is None:
                found = self._texts[value] = self._text(value)
            return found
        if value is None or kind is bool:
            return value
        if kind is int:
            return integer(value)
        if kind is float:
            return number(value)
        if kind is dict:
            return self._mapping(value, depth)
        if kind is list or kind is tuple:
            return self._sequence(value, depth)
        return self._object(value, depth)

    def _enter(self, value: Any, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _TooDeepError
        self._left -= len(value)
        if self._left < 0:
            msg = f"payload holds more than {MAX_ITEMS} values"
            raise FingerprintError(msg)

    def _sequence(self, value: Iterable[Any], depth: int) -> list[Any]:
        self._enter(value, depth)
        return [self._walk(item, depth + 1) for item in value]

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self._enter(value, depth)
        out: dict[str, Any] = {}
        clashes: dict[str, list[Any]] = {}
        others: list[tuple[bytes, Any]] = []
        for key, item in value.items():
            if self._drops(key, item):
                continue
            walked = self._walk(item, depth + 1)
            if isinstance(key, str):
                name = self._keys.get(key)
                if name is None:
                    name = self._keys[str.__str__(key)] = _key(key)
                if name in out:  # two keys that fold to one: neither hides the other, whichever comes first
                    clashes.setdefault(name, [out[name]]).append(walked)
                out[name] = walked
            else:
                # {1: x} is not {"1": x}: keys that are no strings stand apart, in the order of their canonical form.
                others.append((dumps(self._walk(key, depth + 1)), walked))
        for name, items in clashes.items():
            out[name] = {TAG + "clash": _sorted(items)}
        if others:
            others.sort(key=lambda pair: (pair[0], dumps(pair[1])))
            out[TAG + "keys"] = [[key.decode(), item] for key, item in others]
        return out

    def _object(self, value: Any, depth: int) -> Any:
        for _ in range(MAX_CONVERSIONS):
            simple = plain(value)
            if isinstance(simple, Tagged):
                return {TAG + simple.kind: simple.text}
            if simple is value:
                break
            value = simple
            if type(value) in _JSON_KINDS:
                return self._walk(value, depth)
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, Set):
            self._enter(value, depth)
            return {TAG + "set": _sorted(self._walk(item, depth + 1) for item in value)}
        if isinstance(value, Sequence):
            return self._sequence(value, depth)
        msg = f"no canonical form for an object of type {type(value).__module__}.{type(value).__qualname__}"
        raise FingerprintError(msg)


def is_generated_id(key: Any, value: Any) -> bool:
    """Whether an entry of a mapping is an id that is made anew at each run, as the one of a message or a tool call."""
    if not isinstance(key, str) or key[-2:] not in ("id", "Id", "ID"):
        return False
    if type(value) is not str:
        value = plain(value)  # a UUID, say
    return type(value) is str and _GENERATED_ID.fullmatch(value) is not None


_JSON_KINDS = frozenset({str, int, float, bool, type(None), dict, list, tuple})


def dumps(tree: Any) -> bytes:
    """Return plain JSON as bytes: sorted keys, no blanks, UTF-8."""
    return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)


def _too_deep(payload: Any) -> str:
    try:
        cycle = find_cycle(payload, plain)
    except RecursionError:  # called from far down a stack
        return f"payload is nested deeper than {MAX_DEPTH} levels, or contains itself"
    if cycle is None:
        return f"payload is nested deeper than {MAX_DEPTH} levels"
    first, again = map(words, cycle)
    return f"payload contains itself: {again} is {first or 'the payload'} again"


def _key(key: str) -> str:
    """Return a key as it counts: folded like text, never scrubbed, and never one of the tags."""
    folded = fold_text(str.__str__(key))
    return TAG + folded if folded.startswith(TAG) else folded


def _sorted(walked: Iterable[Any]) -> list[str]:
    return [member.decode() for member in sorted(dumps(item) for item in walked)]

"""The canonical form of plain JSON in one pass of orjson, with what is to be folded or scrubbed replaced in its text.

The result is byte for byte the one of `canonical.Walk`, which stays the definition; whatever is not sure to be so is
left to it. First a survey collects, level by level and at C speed, the keys and the distinct texts. Mostly it shows
that nothing is to be folded or scrubbed, and orjson's bytes are the canonical form as they are. Otherwise each distinct
text is made what it counts for once, and put into the JSON text wherever it stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Set
from itertools import chain
from math import isfinite
from typing import Any

import orjson

from langgraph_loopguard.core.canonical import MAX_DEPTH
from langgraph_loopguard.core.plain import TAG
from langgraph_loopguard.core.scrub import GENERATED_ID, fold_text, may_be_volatile, strip_lines

_OPTIONS = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER  # larger integers have a form of their own
_SCALARS: frozenset[type] = frozenset({str, int, float, bool, type(None)})
_KINDS: frozenset[type] = _SCALARS | {dict, list, tuple}
_DICTS: frozenset[type] = frozenset({dict})
_LARGEST = 1e15
"""From here on whole floats are left to the walk: orjson writes them with an exponent, or they are over 64 bits."""

_FEW = 4
"""Entries of a flat dict up to which the walk is cheaper."""

_LONG = 128
"""Characters per distinct text from which on the walk is cheaper, if there is something to fold or to scrub."""

_MANY = 500_000
"""Values that a survey visits."""

_SHALLOW = 4
"""Levels that are not searched for the same object twice: below, it may be one that grows from level to level."""

_BACKSLASH, _QUOTE = "\x01", "\x02"
"""What stands for an escaped backslash and an escaped quote; the characters themselves would be escaped in JSON."""

_WHOLE = re.compile(r"\.0(?![\de])")
_MINUS_ZERO = re.compile(r"-0(?![\d.])")
_ID_ENTRY = re.compile(rf'"(?<=(?:id|Id|ID)"):"(?:{GENERATED_ID})"')
_END_OF_BLANK = re.compile(r'"(?<=[ \t\n]")')


def serialized(
    payload: Any, *, ignore: Set[Any], scrub: bool, text: Callable[[str], str], normalizes: bool = False
) -> bytes | None:
    """Return the canonical form, or `None` when the walk must say what it is.

    Args:
        payload: Any value.
        ignore: Keys that do not count.
        scrub: Leave out generated ids, and volatile text may be in need of `text`.
        text: What becomes of every text that is not a key.
        normalizes: It does more than to fold and to scrub.
    """
    kind = type(payload)
    if kind is dict:
        if len(payload) <= _FEW and _SCALARS.issuperset(map(type, payload.values())):
            return None
    elif kind is not list and kind is not tuple:
        return None
    found = _survey(payload)
    if found is None:
        return None
    keys, texts, whole = found
    ids = False
    for key in keys:
        if type(key) is not str or not ((key.isascii() and key.isidentifier()) or _is_as_it_counts(key)):
            return None
        ids = ids or (scrub and key[-2:] in ("id", "Id", "ID"))
    if ignore and not ignore.isdisjoint(keys):
        rest = _without(payload, ignore)
        return serialized(rest, ignore=frozenset(), scrub=scrub, text=text, normalizes=normalizes)
    strings = '"'.join(texts) + '"'
    changed: dict[str, str] = {}
    if normalizes or _folds(strings) or (scrub and may_be_volatile(strings)):
        if len(strings) > _LONG * len(texts):
            return None
        changed = {old: new for old in texts if (new := text(old)) != old}
        if not changed.keys().isdisjoint(keys):  # keys are not scrubbed
            return None
    try:
        data = orjson.dumps(payload, option=_OPTIONS)
    except TypeError:  # large integers, lone surrogates
        return None
    return _replaced(data, changed, ids=ids, whole=whole) if changed or ids or whole else data


def _replaced(data: bytes, changed: Mapping[str, str], *, ids: bool, whole: bool) -> bytes:
    """Return JSON with texts replaced, without generated ids, and with whole floats as integers."""
    text = _hide(data)
    if ids:
        text = _drop_ids(text)
    if changed or whole:
        parts = text.split('"')  # strings lie between quotes, everything else around them
        if changed:
            new = {_inner(old): _inner(value) for old, value in changed.items()}
            parts[1::2] = [new.get(part, part) for part in parts[1::2]]
        if whole:
            parts[::2] = _MINUS_ZERO.sub("0", _WHOLE.sub("", '"'.join(parts[::2]))).split('"')
        text = '"'.join(parts)
    return text.replace(_QUOTE, '\\"').replace(_BACKSLASH, "\\\\").encode()


def _inner(text: str) -> str:
    """Return a text as it stands between the quotes."""
    return _hide(orjson.dumps(text))[1:-1]


def _hide(data: bytes) -> str:
    """Return JSON with no quote in it that does not begin or end a string."""
    text = data.decode()
    return text.replace("\\\\", _BACKSLASH).replace('\\"', _QUOTE) if "\\" in text else text


def _without(value: Any, ignore: Set[Any]) -> Any:
    """Return plain JSON without the entries of some keys."""
    if type(value) is dict:
        return {
            key: item if type(item) in _SCALARS else _without(item, ignore)
            for key, item in value.items()
            if key not in ignore
        }
    return [item if type(item) in _SCALARS else _without(item, ignore) for item in value]


def _is_as_it_counts(key: str) -> bool:
    return not key.startswith(TAG) and fold_text(key) == key


def _survey(payload: Any) -> tuple[set[str], list[str], bool] | None:
    """Return the keys, the distinct texts, and whether there are floats without a fraction.

    `None` when the payload holds more than plain JSON of moderate size.
    """
    keys: set[str] = set()
    found: set[Any] = set()
    whole = False
    left = _MANY
    level: list[Any] = [payload]
    for depth in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        dicts: list[dict[str, Any]] = []
        lists: list[Any] = []
        leaves: list[Any] = []
        if kinds == _DICTS:
            dicts = level
        elif kinds <= _SCALARS:
            leaves = level
        elif kinds <= _KINDS:
            for value in level:
                kind = type(value)
                (dicts if kind is dict else leaves if kind in _SCALARS else lists).append(value)
        else:
            return None
        if str in kinds:
            found.update(leaves)
        if float in kinds:
            for value in leaves:
                if type(value) is float and (value.is_integer() or not isfinite(value)):
                    if not -_LARGEST < value < _LARGEST:  # NaN and infinity too
                        return None
                    whole = True
        if leaves is level:
            break
        left -= sum(map(len, dicts)) + sum(map(len, lists))
        if left < 0 or (depth > _SHALLOW and len({*map(id, dicts), *map(id, lists)}) < len(dicts) + len(lists)):
            return None
        keys.update(*dicts)
        level = [*chain.from_iterable(map(_values, dicts)), *chain.from_iterable(lists)]
        if not level:
            break
    else:
        return None
    return keys, [text for text in found if type(text) is str], whole


_values = dict.values


def _folds(strings: str) -> bool:
    """Whether folding may change one of the strings, each of which ends with a quote."""
    if not strings.isascii() and not unicodedata.is_normalized("NFC", strings):
        return True
    return "\r" in strings or _END_OF_BLANK.search(strings) is not None or strip_lines(strings) != strings


def _drop_ids(text: str) -> str:
    """Return the text without the entries that hold a generated id."""
    kept: list[str] = []
    at = 0
    for match in _ID_ENTRY.finditer(text):
        start, end = text.rindex('"', 0, match.start()), match.end()
        if start > at:
            kept.append(text[at:start])
        if text[end] == ",":
            end += 1
        else:  # the last entry of its object: the comma before it goes
            kept[-1] = kept[-1].removesuffix(",")
        at = end
    kept.append(text[at:])
    return "".join(kept)

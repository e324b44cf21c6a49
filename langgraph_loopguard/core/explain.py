"""Why two payloads have one fingerprint, or have not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langgraph_loopguard.core.canonical import Walk
from langgraph_loopguard.core.fingerprint import Fingerprinter, Normalizer
from langgraph_loopguard.core.normalize import digits, volatile
from langgraph_loopguard.core.paths import words
from langgraph_loopguard.core.plain import TAG
from langgraph_loopguard.core.scrub import fold_text, scrub_volatile

_Path = tuple[str | int, ...]

_SHOWN = 10
"""Differences that the sentence lists; the attributes hold all."""

_WIDTH = 60
_TOKEN = 64
"""Characters of a text without blanks up to which it may be a nonce, an id or a time."""


class _Absent:
    """Stands for what one of two payloads does not have."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT: Any = _Absent()
"""What a `Difference` holds for the payload that does not have the value at all."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which two payloads differ.

    Attributes:
        path: Where, as `findings[3].line`; empty for the payload as a whole.
        one: What the first payload has there, as plain JSON; `ABSENT` when nothing.
        other: What the second one has.
        cause: Why it does not count (`"folded"`, `"scrubbed"`, `"generated id"`, `"ignored key 'seed'"`, the name of a
            normaliser); `None` when it does.
    """

    path: str
    one: Any
    other: Any
    cause: str | None = None

    def __str__(self) -> str:
        shown = f"{self.path or 'the payload'}: {_short(self.one)} / {_short(self.other)}"
        return f"{shown} ({self.cause})" if self.cause else shown


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two payloads have one fingerprint, or have not. As a `str` it is a few sentences for a person.

    Attributes:
        equal: They have one fingerprint.
        differences: Where they differ in what counts; empty exactly when they are equal.
        hidden: Where they differ in what does not count. (Ids, usage and metadata of messages are not even looked at.)
        defeated_by: Names of the keys that alone make the fingerprints differ and look as if they were new each time
            (numbers, ids, times): what to put into `Fingerprinter(ignore=...)` if they mean nothing. Empty when
            anything else differs, or nothing does.
    """

    equal: bool
    differences: tuple[Difference, ...]
    hidden: tuple[Difference, ...]
    defeated_by: tuple[str, ...]

    def __str__(self) -> str:
        lines = ["The payloads have one fingerprint." if self.equal else "The payloads have different fingerprints."]
        lines += _listed("They differ in", self.differences)
        lines += _listed("These differences do not count:", self.hidden)
        if self.defeated_by:
            lines.append(f"All else is equal. If these keys mean nothing: ignore={set(self.defeated_by)!r}")
        return "\n".join(lines)


def explain(one: Any, other: Any, fingerprinter: Fingerprinter | None = None) -> Explanation:
    """Say why two payloads have one fingerprint, or have not.

    Args:
        one: A payload.
        other: Another one.
        fingerprinter: How they are compared; `None` stands for `Fingerprinter()`.

    Raises:
        FingerprintError: One of them has no canonical form.

    Example:
        ```python
        from langgraph_loopguard import explain

        found = explain({"patch": "x", "nonce": "a81f"}, {"patch": "x", "nonce": "07cc"})
        assert not found.equal
        assert found.defeated_by == ("nonce",)
        ```
    """
    fingerprinter = fingerprinter or Fingerprinter()
    counted = dict(_compare(fingerprinter.tree(one), fingerprinter.tree(other), ()))
    plain_one, plain_other = (Walk(_saved, _never).tree(payload) for payload in (one, other))
    hidden = [
        Difference(_words(path), *pair, cause=_cause(fingerprinter, path, *pair))
        for path, pair in _compare(plain_one, plain_other, ())
        if path not in counted
    ]
    differences = tuple(Difference(_words(path), *pair) for path, pair in counted.items())
    return Explanation(not differences, differences, tuple(hidden), _defeated_by(counted))


def looks_volatile(value: Any) -> bool:
    """Whether a value looks as if it were made anew each time: a number, or one word with digits in it."""
    if isinstance(value, str):
        return len(value) <= _TOKEN and not value.isalpha() and len(value.split()) == 1
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _compare(one: Any, other: Any, path: _Path) -> Iterator[tuple[_Path, tuple[Any, Any]]]:
    """Yield where two canonical forms differ."""
    if type(one) is dict and type(other) is dict and not (_is_tagged(one) or _is_tagged(other)):
        for key in sorted({*one, *other}):
            yield from _compare(one.get(key, ABSENT), other.get(key, ABSENT), (*path, key))
    elif type(one) is list and type(other) is list:
        for index in range(max(len(one), len(other))):
            here = one[index] if index < len(one) else ABSENT
            there = other[index] if index < len(other) else ABSENT
            yield from _compare(here, there, (*path, index))
    elif type(one) is not type(other) or one != other:
        yield path, (one, other)


def _is_tagged(tree: dict[str, Any]) -> bool:
    return len(tree) == 1 and next(iter(tree)).startswith(TAG) and TAG + "keys" not in tree


def _saved(text: str) -> str:
    """A text as a saver keeps it: not folded, but without lone surrogates."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _never(key: Any, value: Any) -> bool:
    return False


def _cause(fingerprinter: Fingerprinter, path: _Path, one: Any, other: Any) -> str:
    for key in path:
        if key in fingerprinter.ignore:
            return f"ignored key {key!r}"
    if path and (fingerprinter.drops(path[-1], one) or fingerprinter.drops(path[-1], other)):
        return "generated id"
    if isinstance(one, str) and isinstance(other, str):
        steps: list[tuple[str, Normalizer]] = [("folded", fold_text)]
        if fingerprinter.scrub:
            steps.append(("scrubbed", scrub_volatile))
        steps += [(getattr(function, "__name__", repr(function)), function) for function in fingerprinter.normalize]
        for name, function in steps:
            one, other = function(one), function(other)
            if one == other:
                return name
    return "left out"


def _defeated_by(counted: dict[_Path, tuple[Any, Any]]) -> tuple[str, ...]:
    names: set[str] = set()
    for path, (one, other) in counted.items():
        name = next((part for part in reversed(path) if isinstance(part, str)), None)
        if name is None or not _both_volatile(one, other):
            return ()
        names.add(name)
    return tuple(sorted(names))


def _both_volatile(one: Any, other: Any) -> bool:
    if looks_volatile(one) and looks_volatile(other):
        return True
    return isinstance(one, str) and isinstance(other, str) and digits(volatile(one)) == digits(volatile(other))


def _words(path: _Path) -> str:
    return words(tuple(f"<{part[1:]}>" if isinstance(part, str) and part.startswith(TAG) else part for part in path))


def _listed(title: str, differences: tuple[Difference, ...]) -> list[str]:
    if not differences:
        return []
    lines = [title, *(f"- {difference}" for difference in differences[:_SHOWN])]
    if len(differences) > _SHOWN:
        lines.append(f"- and {len(differences) - _SHOWN} more")
    return lines


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 3] + "..."

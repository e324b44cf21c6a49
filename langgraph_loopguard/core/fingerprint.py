"""Fingerprint of a payload: a hash of its canonical form.

Two payloads have one fingerprint when a reader would call them the same handoff: key order, message ids, usage,
line ends, Unicode composition, trailing blanks and generated ids, times and temporary paths do not count.
Plain numbers do: three failures, then two, is progress.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.canonical import MAX_DEPTH, Walk, dumps, is_generated_id
from langgraph_loopguard.core.errors import FingerprintError
from langgraph_loopguard.core.scrub import fold_text, scrub_volatile
from langgraph_loopguard.core.serialized import serialized

__all__ = ["MAX_DEPTH", "Fingerprinter", "Normalizer", "fold_text", "scrub_volatile"]

Normalizer = Callable[[str], str]
"""A function that folds away what does not count in a text (see `langgraph_loopguard.normalize`)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fingerprinter:
    """How payloads are compared. The defaults need no tuning; each field makes the comparison coarser.

    Attributes:
        ignore: Names of keys that do not count, at any depth.
        scrub: Replace volatile text (see `scrub_volatile`) and drop generated ids. `False` compares it too.
        normalize: Further functions from text to text, applied in order to every text (not to keys). Ready ones are
            in `langgraph_loopguard.normalize`.

    Example:
        ```python
        from langgraph_loopguard import Fingerprinter

        f = Fingerprinter()
        assert f.fingerprint({"a": 1, "b": [2]}) == f.fingerprint({"b": (2,), "a": 1.0})
        assert f.fingerprint("3 failures") != f.fingerprint("2 failures")
        ```
    """

    ignore: frozenset[str] = frozenset()
    scrub: bool = True
    normalize: tuple[Normalizer, ...] = ()

    def __init__(
        self,
        *,
        ignore: Iterable[str] = (),
        scrub: bool = True,
        normalize: Normalizer | Iterable[Normalizer] = (),
    ) -> None:
        if isinstance(ignore, (str, bytes)) or not isinstance(ignore, Iterable):
            msg = f"ignore must be a collection of key names, got {ignore!r}"
            raise ValueError(msg)
        if not isinstance(scrub, bool):
            msg = f"scrub must be True or False, got {scrub!r}"
            raise ValueError(msg)
        functions = (normalize,) if callable(normalize) or not isinstance(normalize, Iterable) else tuple(normalize)
        for function in functions:
            if not callable(function):
                msg = f"normalize must hold functions from str to str, got {function!r}"
                raise ValueError(msg)
        object.__setattr__(self, "ignore", frozenset(ignore))
        object.__setattr__(self, "scrub", scrub)
        object.__setattr__(self, "normalize", functions)

    def fingerprint(self, payload: Any) -> str:
        """Return the 128-bit xxh3 hash of the payload's canonical form, as 32 hex digits.

        Raises:
            FingerprintError: The payload holds an object without a canonical form, contains itself, or is nested too
                deeply or too large (see `core.canonical`).
        """
        if type(payload) is str:  # the common case, without the walk
            return xxh3_128_hexdigest(orjson.dumps(self.text(payload)))
        return xxh3_128_hexdigest(self.canonical(payload))

    def fingerprints(self, update: Mapping[str, Any]) -> dict[str, str | int]:
        """Return one fingerprint per key of a node's update; ignored keys and generated ids are left out.

        A whole number (64 bit) stands as itself, so that a counter can be told from content.

        Raises:
            FingerprintError: See `fingerprint`.
        """
        out: dict[str, str | int] = {}
        for key, value in update.items():
            if self.drops(key, value):
                continue
            plain = type(value) is int and -(2**63) <= value < 2**63
            name = fold_text(key) if isinstance(key, str) else f"<{self.canonical(key).decode()}>"
            out[name] = value if plain else self.fingerprint(value)
        return out

    def canonical(self, payload: Any) -> bytes:
        """Return the bytes that are hashed: JSON with sorted keys, everything volatile folded away.

        Raises:
            FingerprintError: See `fingerprint`.
        """
        found = serialized(
            payload, ignore=self.ignore, scrub=self.scrub, text=self.text, normalizes=bool(self.normalize)
        )
        if found is not None:
            return found
        return dumps(self.tree(payload))

    def tree(self, payload: Any) -> Any:
        """Return the canonical form as plain JSON, before it is written as bytes.

        Raises:
            FingerprintError: See `fingerprint`.
        """
        return self._walk().tree(payload)

    def text(self, text: str) -> str:
        """Return a text as it counts for the fingerprint.

        Raises:
            FingerprintError: A function of `normalize` gave something that is not a text.
        """
        if text.isalnum() and text.isascii() and "0x" not in text and not self.normalize:
            return text  # one plain word: nothing to fold
        text = fold_text(text)
        if self.scrub:
            text = scrub_volatile(text)
        for function in self.normalize:
            text = function(text)
            if not isinstance(text, str):
                msg = f"normalize must hold functions from str to str, but {function!r} gave {text!r}"
                raise FingerprintError(msg)
        return text

    def drops(self, key: Any, value: Any) -> bool:
        """Whether an entry of a mapping does not count: an ignored key, or a generated id."""
        return key in self.ignore or (self.scrub and is_generated_id(key, value))

    def _walk(self) -> Walk:
        return Walk(self.text, self.drops)

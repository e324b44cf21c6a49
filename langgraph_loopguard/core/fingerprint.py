"""Canonical form and fingerprint of a payload.

Two payloads have one fingerprint when a reader would call them the same handoff: key order, message ids, usage,
line ends, Unicode composition, trailing blanks and generated ids, times and temporary paths do not count.
Plain numbers do: three failures, then two, is progress.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from langchain_core.messages import BaseMessage, ChatMessage
from pydantic import BaseModel, SecretBytes, SecretStr
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.errors import FingerprintError

MAX_DEPTH = 200
"""Levels of nesting that a payload may have (a payload that contains itself has more)."""

_TAG = "\x00"
"""First character of the keys that mark what JSON cannot say; a payload's own keys that begin with it get one more."""

_DASHED = re.compile(r"-(?:[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-|\d\d-\d\d[T ])")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_ISO_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z\b|[+-]\d\d:?\d\d\b)?")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_TEMP_DIRS = r"(?:/private)?(?:/var)?/tmp|(?:/private)?/var/folders/[^/\s]+/[^/\s]+/T|[A-Za-z]:\\(?:[^\\\s]+\\)*?Temp"
_TEMP_PATH = re.compile(
    rf"(?<![\w/.])(?:{_TEMP_DIRS})[/\\](?:(?P<inner>[^/\\\s\"'`:;,)\]}}>]+[/\\])+)?(?P<leaf>[^/\\\s\"'`:;,)\]}}>]*)"
)
_GENERATED_ID = re.compile(
    r"(?:call|msg|message|run|lc_run|chatcmpl|toolu|tooluse|tool|resp|req|fc|evt|event|trace|span|gen)[-_][\w-]+"
    r"|[0-9a-f]{16,64}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)

Normalizer = Callable[[str], str]
"""A function that folds away what does not count in a text."""


def _scrub_temp_path(match: re.Match[str]) -> str:
    # The directory is made anew each time, a file below it keeps its name; a file directly in /tmp does not.
    return f"<tmp>/{match['leaf']}" if match["inner"] else "<tmp>"


def scrub_volatile(text: str) -> str:
    """Replace what differs at each run by a placeholder: UUIDs, ISO times, hex addresses, temporary paths.

    Plain numbers and dates without a time stay: they are often the very thing that changes.
    """
    # One literal character or prefix decides at memory speed whether a pattern is worth running.
    if "-" in text and _DASHED.search(text):
        text = _ISO_TIME.sub("<time>", _UUID.sub("<uuid>", text))
    if "0x" in text:
        text = _ADDRESS.sub("<address>", text)
    if ("/" in text and ("/tmp/" in text or "/var/folders/" in text)) or ("\\" in text and "Temp\\" in text):
        text = _TEMP_PATH.sub(_scrub_temp_path, text)
    return text


def fold_text(text: str) -> str:
    """Fold what an editor may change: Unicode to NFC, line ends to LF, trailing blanks and final newlines.

    Lone surrogates become `?`, as the savers store them, so that a text hashes alike before and after a checkpoint.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\n" in text and (" \n" in text or "\t\n" in text):
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    return text.rstrip(" \t\n")


@dataclasses.dataclass(frozen=True, slots=True)
class Fingerprinter:
    """How payloads are compared. The defaults need no tuning; each field makes the comparison coarser.

    Attributes:
        ignore: Names of keys that do not count, at any depth.
        scrub: Replace volatile text (see `scrub_volatile`) and drop generated ids. `False` compares it too.
        normalize: Further functions from text to text, applied in order to every text.

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
            FingerprintError: The payload holds an object without a canonical form, or is nested too deeply.
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
            if self._drops(key, value):
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
        return orjson.dumps(self._walk(payload, 0), option=orjson.OPT_SORT_KEYS)

    def text(self, text: str) -> str:
        """Return a text as it counts for the fingerprint."""
        if text.isalnum() and text.isascii() and "0x" not in text and not self.normalize:
            return text  # one plain word: nothing to fold
        text = fold_text(text)
        if self.scrub:
            text = scrub_volatile(text)
        for function in self.normalize:
            text = function(text)
        return text

    def _drops(self, key: Any, value: Any) -> bool:
        if key in self.ignore:
            return True
        if not self.scrub or type(value) is not str or not isinstance(key, str):
            return False
        return key[-2:] in ("id", "Id", "ID") and _GENERATED_ID.fullmatch(value) is not None

    def _walk(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str:
            return self.text(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return _integer(value)
        if kind is float:
            return _number(value)
        if depth >= MAX_DEPTH:
            msg = f"payload is nested deeper than {MAX_DEPTH} levels, or contains itself"
            raise FingerprintError(msg)
        if kind is dict:
            return self._walk_mapping(value, depth)
        if kind is list or kind is tuple:
            return [self._walk(item, depth + 1) for item in value]
        return self._walk_object(value, depth)

    def _walk_mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        out: dict[str, Any] = {}
        clashes: dict[str, list[Any]] = {}
        others: list[tuple[bytes, Any]] = []
        for key, item in value.items():
            if self._drops(key, item):
                continue
            walked = self._walk(item, depth + 1)
            if isinstance(key, str):
                plain = type(key) is str and key.isascii() and key.isidentifier()
                name = key if plain else _key(key)
                if name in out:  # two keys that fold to one: neither hides the other, whichever comes first
                    clashes.setdefault(name, [out[name]]).append(walked)
                out[name] = walked
            else:
                # {1: x} is not {"1": x}: keys that are no strings stand apart, in the order of their canonical form.
                others.append((self.canonical(key), walked))
        for name, items in clashes.items():
            out[name] = {_TAG + "clash": _sorted(items)}
        if others:
            others.sort(key=lambda pair: pair[0])
            out[_TAG + "keys"] = [[key.decode(), item] for key, item in others]
        return out

    def _walk_object(self, value: Any, depth: int) -> Any:
        simple = _simple(value)
        if isinstance(simple, _Tagged):
            return {_TAG + simple.kind: simple.text}
        if simple is not value:
            return self._walk(simple, depth + 1)
        if isinstance(value, BaseMessage):
            return self._walk(_message(value), depth + 1)
        if isinstance(value, Mapping):
            return self._walk_mapping(value, depth)
        if isinstance(value, Set):
            return {_TAG + "set": _sorted(self._walk(item, depth + 1) for item in value)}
        if isinstance(value, Sequence):
            return [self._walk(item, depth + 1) for item in value]
        msg = f"no canonical form for an object of type {type(value).__module__}.{type(value).__qualname__}"
        raise FingerprintError(msg)


class _Tagged(NamedTuple):
    """What JSON has no kind for: a kind of our own, and the exact value as text."""

    kind: str
    text: str


def _key(key: str) -> str:
    """Return a key as it counts: folded like text, never scrubbed, and never one of the tags."""
    folded = fold_text(key)
    return _TAG + folded if folded.startswith(_TAG) else folded


def _sorted(walked: Iterable[Any]) -> list[str]:
    return [member.decode() for member in sorted(orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in walked)]


def _simple(value: Any) -> Any:
    """Return the plain value that stands for a common object; the object itself where there is none."""
    match value:
        case Enum():
            return value.value
        case str():
            return str.__str__(value)
        case bool() | int():
            return int(value)
        case float():
            return float(value)
        case bytes() | bytearray() | memoryview():
            return _Tagged("bytes", bytes(value).hex())
        case datetime():
            return value.astimezone(timezone.utc).isoformat() if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return _decimal(value)
        case Fraction():
            return value.numerator if value.denominator == 1 else str(value)
        case UUID() | PurePath():
            return str(value)
        case SecretStr() | SecretBytes():
            return _Tagged("secret", xxh3_128_hexdigest(repr(value.get_secret_value()).encode("utf-8", "replace")))
        case BaseModel() if not isinstance(value, BaseMessage):
            return dict(value)
        case BaseException():
            return {"type": type(value).__qualname__, "message": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    # numpy arrays and scalars, pandas frames and series; neither is imported for it
    for method in ("to_dict", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, (type, Mapping, Sequence)):
            return convert()
    return value


_CALLS = {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta"}
_THOUGHTS = {"reasoning", "reasoning_content", "thinking", "redacted_thinking"}
_NO_BLOCKS = frozenset({"text"} | _CALLS | _THOUGHTS)


def _message(message: BaseMessage) -> dict[str, Any]:
    """A message counts by role, text, other content blocks, and tool calls (name, arguments).

    What a model thinks before it speaks is worded anew each time and hands nothing over.
    """
    role = message.role if isinstance(message, ChatMessage) else message.type.removesuffix("MessageChunk").lower()
    out: dict[str, Any] = {"role": role, "text": str(message.text)}
    if isinstance(message.content, list):
        blocks = [
            {key: item for key, item in block.items() if key not in ("id", "index")}
            for block in message.content
            if isinstance(block, dict) and block.get("type") not in _NO_BLOCKS
        ]
        if blocks:
            out["blocks"] = blocks
    for name, calls in (("calls", "tool_calls"), ("invalid", "invalid_tool_calls")):
        if found := getattr(message, calls, None):
            out[name] = [{"name": call["name"], "args": call["args"]} for call in found]
    return out


def _integer(value: int) -> Any:
    if -(2**63) <= value < 2**63:
        return value
    return {_TAG + "int": hex(value)}


def _number(value: float) -> Any:
    if value != value or value in (float("inf"), float("-inf")):
        return {_TAG + "float": repr(value)}
    return _integer(int(value)) if value.is_integer() else value


def _decimal(value: Decimal) -> Any:
    if not value:
        return 0
    if value.is_finite() and abs(value.adjusted()) < 400:  # no float goes further, and an int of it would have no end
        if value == (whole := int(value)):
            return whole
        if Decimal(repr(as_float := float(value))) == value:
            return as_float
    if not value.is_finite():
        return _Tagged("decimal", str(value))
    # The caller's own context would round.
    exact = Context(prec=len(value.as_tuple().digits), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    return _Tagged("decimal", str(value.normalize(exact)))

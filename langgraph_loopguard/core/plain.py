"""Objects as plain values: what a dataclass, a message, a date or an exact number counts as."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime, time, timedelta, timezone
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage, ChatMessage
from pydantic import BaseModel, SecretBytes, SecretStr
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.foreign import from_array

TAG = "\x00"
"""First character of the keys that mark what JSON cannot say; a payload's own keys that begin with it get one more."""


class Tagged(NamedTuple):
    """What JSON has no kind for: a kind of our own, and the exact value as text."""

    kind: str
    text: str


def plain(value: Any) -> Any:
    """Return the plain value that stands for a common object (one step); the object itself where there is none."""
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
            return Tagged("bytes", bytes(value).hex())
        case datetime():
            return value.astimezone(timezone.utc).isoformat() if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            nanoseconds = 1000 * (value // timedelta(microseconds=1)) + getattr(value, "nanoseconds", 0)  # pandas
            return _decimal(Decimal(nanoseconds).scaleb(-9, _EXACT))
        case Decimal():
            return _decimal(value)
        case Fraction():
            return value.numerator if value.denominator == 1 else str(value)
        case complex():
            return Tagged("complex", repr(complex(value)))
        case UUID() | PurePath():
            return str(value)
        case SecretStr() | SecretBytes():
            return Tagged("secret", xxh3_128_hexdigest(repr(value.get_secret_value()).encode("utf-8", "replace")))
        case BaseMessage():
            return _message(value)
        case BaseModel():
            return dict(value)
        case BaseException():
            return {"type": type(value).__qualname__, "message": str(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return from_array(value)


_CALLS = {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta"}
_THOUGHTS = {"reasoning", "reasoning_content", "thinking", "redacted_thinking"}
_NO_BLOCKS = frozenset({"text"} | _CALLS | _THOUGHTS)


def _message(message: BaseMessage) -> dict[str, Any]:
    """A message counts by role, text, other content blocks, and tool calls (name, arguments).

    What a model thinks before it speaks is worded anew each time and hands nothing over.
    """
    role = message.role if isinstance(message, ChatMessage) else message.type.removesuffix("MessageChunk").lower()
    content = message.content
    out: dict[str, Any] = {"role": role, "text": content if isinstance(content, str) else str(message.text)}
    if isinstance(content, list):
        blocks = [
            {key: item for key, item in block.items() if key not in ("id", "index")}
            for block in content
            if isinstance(block, dict) and block.get("type") not in _NO_BLOCKS
        ]
        if blocks:
            out["blocks"] = blocks
    for name, calls in (("calls", "tool_calls"), ("invalid", "invalid_tool_calls")):
        if found := getattr(message, calls, None):
            out[name] = [{"name": call["name"], "args": call["args"]} for call in found]
    return out


def integer(value: int) -> Any:
    """Return an integer as it counts."""
    if -(2**63) <= value < 2**63:
        return value
    return {TAG + "int": hex(value)}


def number(value: float) -> Any:
    """Return a float as it counts: a whole one is its integer."""
    if value != value or value in (float("inf"), float("-inf")):
        return {TAG + "float": repr(value)}
    return integer(int(value)) if value.is_integer() else value


_EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _decimal(value: Decimal) -> Any:
    if not value:
        return 0
    if value.is_finite() and abs(value.adjusted()) < 400:  # no float goes further, and an int of it would have no end
        if value == (whole := int(value)):
            return whole
        if Decimal(repr(as_float := float(value))) == value:
            return as_float
    if not value.is_finite():
        return Tagged("decimal", str(value))
    # The caller's own context would round.
    exact = Context(prec=len(value.as_tuple().digits), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    return Tagged("decimal", str(value.normalize(exact)))

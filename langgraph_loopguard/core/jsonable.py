"""Any Python value as plain JSON that every saver keeps: for what goes into state, records and interrupts.

Texts stay as they are, to the byte. What JSON or the savers cannot hold is written so that a person still sees what
it was: big integers and non-finite numbers as text, lone surrogates as their escape, secrets masked, and an object
that contains itself only once.
"""

from __future__ import annotations

import base64
import dataclasses
import math
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, SecretBytes, SecretStr

from langgraph_loopguard.core.foreign import from_array

MAX_DEPTH = 64
"""Levels of nesting that are kept; what lies deeper is written as its `repr`."""


def to_jsonable(value: Any, above: tuple[int, ...] = ()) -> Any:
    """Return `value` as dict, list, str, int (64 bit), finite float, bool or None. Never raises.

    Args:
        value: Anything.
        above: The objects that hold it, by `id`: for the calls within.
    """
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else _integer(value)
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if id(value) in above:
        return f"<{kind.__qualname__} that contains itself>"
    try:
        if len(above) >= MAX_DEPTH:
            return _text(repr(value))
        above = (*above, id(value))
        if kind is dict:
            return _mapping(value, above)
        if kind is list or kind is tuple:
            return [to_jsonable(item, above) for item in value]
        return _object(value, above)
    except Exception as error:  # a foreign __repr__, model or property may fail in any way: the record must not
        return f"<{kind.__qualname__} that cannot be shown: {type(error).__name__}>"


def _mapping(value: Mapping[Any, Any], above: tuple[int, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, item in value.items():
        name = key
        if type(key) is not str or not key.isascii():
            name = _key(key)
            while name in out or (name != key and name in value):  # {1: x, "1": y} keeps both
                name += "'"
        out[name] = to_jsonable(item, above)
    return out


def _object(value: Any, above: tuple[int, ...]) -> Any:
    match value:
        case BaseMessage():
            return _message(value, above)
        case Enum():
            return to_jsonable(value.value, above)
        case str():
            return _text(str.__str__(value))
        case bool() | int():
            return to_jsonable(int(value), above)
        case float():
            return to_jsonable(float(value), above)
        case SecretStr() | SecretBytes():
            return "**********"
        case BaseModel():
            return _mapping(dict(value), above)
        case Mapping():
            return _mapping(value, above)
        case bytes() | bytearray() | memoryview():
            return {"base64": base64.b64encode(bytes(value)).decode()}
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal() | UUID() | PurePath():
            return str(value)
        case BaseException():
            return {"type": type(value).__qualname__, "message": _text(str(value))}
        case Set():
            return sorted((to_jsonable(item, above) for item in value), key=repr)
        case Sequence():
            return [to_jsonable(item, above) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return _mapping(fields, above)
    converted = from_array(value)
    return _text(repr(value)) if converted is value else to_jsonable(converted, above)


def _message(message: BaseMessage, above: tuple[int, ...]) -> dict[str, Any]:
    out: dict[str, Any] = {"type": message.type, "content": to_jsonable(message.content, above)}
    for name in ("name", "id", "tool_calls", "invalid_tool_calls", "tool_call_id", "status"):
        if found := getattr(message, name, None):
            out[name] = to_jsonable(found, above)
    return out


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _text(str.__str__(key))
    shown = to_jsonable(key)
    return shown if isinstance(shown, str) else repr(shown)


def _integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no more than 4,300 decimal digits
        return hex(value)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text

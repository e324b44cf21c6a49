"""Any Python value as plain JSON that every saver keeps: for what goes into state, records and interrupts.

Texts stay as they are, to the byte. What JSON or the savers cannot hold is written so that a person still sees what
it was: big integers and non-finite numbers as text, lone surrogates as their escape, secrets masked.
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

MAX_DEPTH = 64
"""Levels of nesting that are kept; what lies deeper is written as its `repr`."""


def to_jsonable(value: Any, depth: int = 0) -> Any:
    """Return `value` as dict, list, str, int (64 bit), finite float, bool or None. Never raises."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if -(2**63) <= value < 2**63 else str(value)
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if depth >= MAX_DEPTH:
        return _repr(value)
    if kind is dict:
        return {
            key if type(key) is str and key.isascii() else _key(key): to_jsonable(item, depth + 1)
            for key, item in value.items()
        }
    if kind is list or kind is tuple:
        return [to_jsonable(item, depth + 1) for item in value]
    try:
        return _object(value, depth)
    except Exception as error:  # a foreign __repr__, model or property may fail in any way: the record must not
        return f"<{type(value).__qualname__} that cannot be shown: {type(error).__name__}>"


def _object(value: Any, depth: int) -> Any:
    match value:
        case BaseMessage():
            return _message(value, depth)
        case Enum():
            return to_jsonable(value.value, depth)
        case str():
            return _text(str.__str__(value))
        case bool() | int():
            return to_jsonable(int(value), depth)
        case float():
            return to_jsonable(float(value), depth)
        case SecretStr() | SecretBytes():
            return "**********"
        case BaseModel():
            return to_jsonable(dict(value), depth)
        case Mapping():
            return to_jsonable(dict(value), depth)
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
            return sorted((to_jsonable(item, depth + 1) for item in value), key=repr)
        case Sequence():
            return [to_jsonable(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return to_jsonable(fields, depth)
    for method in ("to_dict", "tolist"):  # numpy, pandas
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            return to_jsonable(convert(), depth + 1)
    return _repr(value)


def _message(message: BaseMessage, depth: int) -> dict[str, Any]:
    out: dict[str, Any] = {"type": message.type, "content": to_jsonable(message.content, depth + 1)}
    for name in ("name", "id", "tool_calls", "tool_call_id", "status"):
        if found := getattr(message, name, None):
            out[name] = to_jsonable(found, depth + 1)
    return out


def _key(key: Any) -> str:
    return _text(key) if isinstance(key, str) else _repr(key)


def _repr(value: Any) -> str:
    return _text(repr(value))


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text

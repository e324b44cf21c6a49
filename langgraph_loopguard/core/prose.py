"""The running text in a payload, and what the payload names beside it: what a wording is compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from langgraph_loopguard.core.ledger import POSITIONS
from langgraph_loopguard.core.scrub import scrub_volatile

ROOM = 2000
"""Characters of running text that are collected from an update."""

LONGEST_JSON = 20_000
"""Characters of a text that are parsed where it looks like JSON."""

DEPTH = 16
"""Levels of nesting of a payload that are looked at."""

LABELS, LABEL = 32, 64
"""Names that are kept of a payload's values, and characters of each."""


def prose(payload: Any) -> tuple[str, list[str]]:
    """Return the running text in a payload, and what its other values name (bounded, both).

    Of an update, the texts with a blank in them are prose, in the order of their keys. The other ones (a verdict, a
    path) and numbers that say where in the work it is (`page`, `line`) are names; ids and other numbers do not count,
    for they may change with each message. A text that is JSON is read as what it says.
    """
    if type(payload) is str:
        text = payload.strip()
        if text[:1] not in ("{", "[") or (parsed := _parsed(text)) is None:
            return text, []
        payload = parsed
    found = _Found([], [], ROOM)
    found.add(payload, "", 0)
    return "\n".join(found.parts), found.labels[:LABELS]


def _parsed(text: str) -> Any:
    """Return the object or list that a text is the JSON of; `None` when it is none, or too long to look."""
    if len(text) > LONGEST_JSON:
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


@dataclass(slots=True)
class _Found:
    parts: list[str]
    labels: list[str]
    room: int

    def add(self, value: Any, key: str, depth: int) -> None:
        """Add what `value` holds while there is room."""
        if self.room <= 0 or depth > DEPTH:
            return
        if isinstance(value, str):
            self._text(value.strip(), key, depth)
        elif isinstance(value, (int, float)):
            if key.lower() in POSITIONS:
                self.labels.append(f"{key}={value}")
        elif isinstance(value, BaseMessage):
            self.add(str(value.text), key, depth)
        elif isinstance(value, BaseModel):
            self.add(dict(value), key, depth)
        elif isinstance(value, Mapping):
            for name in sorted(value, key=str):
                self.add(value[name], str(name), depth + 1)
        elif isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
            for item in value[:ROOM]:
                self.add(item, key, depth + 1)

    def _text(self, text: str, key: str, depth: int) -> None:
        if " " in text or depth == 0:
            self.parts.append(text[: self.room])
            self.room -= len(text)
        elif text and not key.lower().endswith("id") and len(self.labels) < LABELS:
            self.labels.append(scrub_volatile(text[:LABEL]).lower())

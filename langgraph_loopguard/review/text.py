"""Text from agents and repositories, made safe to show: what would steer a terminal is shown, not obeyed."""

from __future__ import annotations

import unicodedata
from typing import Any

from langgraph_loopguard.core.jsonable import to_jsonable

STEERING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
"""Unicode categories that can move the cursor, hide text, turn its direction round, or show as nothing."""


def inline(text: object) -> str:
    r"""Return a text for one line: everything that is not plainly visible is written as an escape."""
    shown = str(text)
    return shown if shown.isprintable() and shown.isascii() else "".join(map(_escaped, shown))


def block(text: str, indent: str = "    ") -> str:
    """Return a text of several lines, each of them safe and indented."""
    return "\n".join(f"{indent}{_line(line)}".rstrip() for line in text.split("\n"))


def _line(text: str) -> str:
    return "\t".join(inline(part) for part in text.split("\t"))


def _escaped(char: str) -> str:
    if unicodedata.category(char) in STEERING:
        return char.encode("unicode_escape").decode("ascii")
    return char


def storable(value: Any) -> Any:
    """Return a JSON value with texts that every store keeps: without lone surrogates and NUL."""
    if isinstance(value, str):
        return to_jsonable(value).replace("\0", "\\0")
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [storable(item) for item in value]
    return value

"""Makes text from tools and models safe to print: what would steer a terminal is shown, not obeyed."""

from __future__ import annotations

import unicodedata

STEERING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""Unicode categories that can move the cursor, hide text or turn its direction round."""

LAYOUT = frozenset("\n\t")
"""Control characters that stay: they only lay text out."""


def visible(text: str) -> str:
    r"""Return the text with control and direction characters written as escapes.

    Example:
        ```python
        from langgraph_loopguard.demo.text import visible

        assert visible("red \x1b[31m") == r"red \x1b[31m"
        ```
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) for char in text)


def _escaped(char: str) -> str:
    if char in LAYOUT or unicodedata.category(char) not in STEERING:
        return char
    return char.encode("unicode_escape").decode("ascii")


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: `1 cycle`, `2 cycles`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

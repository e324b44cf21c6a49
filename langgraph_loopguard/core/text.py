"""Makes text from tools and models safe to show: what would steer a terminal or a page is shown, not obeyed."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from typing import Any

STEERING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs"})
"""Unicode categories that can move the cursor, hide text or turn its direction round."""

LAYOUT = frozenset("\n\t")
"""Control characters that stay: they only lay text out."""

SHOWN = 400
"""Characters of one text that a small table shows."""


def visible(text: str) -> str:
    r"""Return the text with control and direction characters written as escapes.

    Example:
        ```python
        from langgraph_loopguard.core.text import visible

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


def shortened(text: str, length: int = SHOWN) -> str:
    """Return the text's first characters, with an ellipsis where something was left out."""
    return text if len(text) <= length else text[: length - 1] + "…"


def html_text(value: Any) -> str:
    """Return a value as HTML that shows it as text, whoever wrote it; also safe inside a quoted attribute."""
    return html.escape(visible(str(value)))


def html_table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Return a small table of names and values for a notebook. Everything in it is shown as text."""
    cells = "".join(
        f'<tr><th style="text-align:left">{html_text(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{html_text(shortened(str(value)))}</td></tr>'
        for name, value in rows
        if value is not None and value != ""
    )
    return f'<table><caption style="text-align:left">{html_text(title)}</caption><tbody>{cells}</tbody></table>'

r"""Texts that agents wrote, shown as text: nothing in them may act on the terminal, page or document that shows them.

A control character can hide a line of a diff from the person who decides on it, a right-to-left override can show
`access` as something else, and a zero-width character makes two names look like one. So every character that has no
picture of its own is shown as `\uXXXX`. Line feeds and tabs stay.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

KEPT = "\n\t"
"""Control characters that are shown as what they are."""

BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that have no picture, besides those that their category tells."""

_ODD = re.compile(r"[^\n\t\x20-\x7e]")
"""Characters that need a look: few of most texts."""


@lru_cache(maxsize=4096)
def is_hidden(character: str) -> bool:
    """Whether a character has no picture of its own: controls, bidi marks, zero-width, separators, fillers."""
    if character in KEPT:
        return False
    if character in BLANKS or "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        return True
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp") or (category == "Zs" and character != " ")


def escaped(character: str) -> str:
    r"""Return how a hidden character is shown: `\u202e`, `\U000e0001`."""
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the text in runs of `(shown, hidden)`: hidden runs are already escaped."""
    start = 0
    for found in _ODD.finditer(text):
        character = found.group()
        if is_hidden(character):
            if found.start() > start:
                yield text[start : found.start()], False
            yield escaped(character), True
            start = found.end()
    if start < len(text):
        yield text[start:], False


def visible(text: str) -> str:
    r"""Return the text with every hidden character as `\uXXXX`: for terminals, logs and plain files."""
    return "".join(shown for shown, _ in pieces(text))


def one_line(text: str, limit: int = 200) -> str:
    """Return the text on one line of at most `limit` characters, hidden characters shown."""
    line = visible(re.sub(r"[ \t\n]+", " ", text).strip())
    return line if len(line) <= limit else line[: limit - 1] + "\u2026"


def to_html(text: str) -> str:
    """Return the text for an HTML element or a quoted attribute's value in one: escaped, hidden characters marked.

    What is hidden stands in `<span class="hidden-character">`, so that it can be told from a text that spells it out.
    Not for attributes: there, use `html.escape(visible(text))`.
    """
    return "".join(
        f'<span class="hidden-character">{shown}</span>' if hidden else html.escape(shown)
        for shown, hidden in pieces(text)
    )


def fenced(text: str, language: str = "") -> str:
    """Return the text as a Markdown code block, with a fence longer than any run of backticks in it."""
    shown = visible(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{shown}{'' if shown.endswith(chr(10)) else chr(10)}{fence}\n"


def inline(text: str) -> str:
    """Return the text as Markdown inline code on one line, whatever it holds."""
    shown = one_line(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or not shown.strip() else ""
    return f"{fence}{pad}{shown or ' '}{pad}{fence}"

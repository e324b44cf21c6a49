"""The one error of the demo that a user sees."""

from __future__ import annotations

from langgraph_loopguard.demo.text import visible


class DemoError(Exception):
    """Something that the user can put right. The message is one line; `loopguard` prints it and exits with 2."""


def first_line(error: object, limit: int = 300) -> str:
    """Return the first line of an error's text that says something, at most `limit` characters long."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return visible(text if len(text) <= limit else text[: limit - 3] + "...")

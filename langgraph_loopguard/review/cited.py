"""The code that a finding cites, in a form that moving, reindenting and reformatting leave as it is.

Python is read by its tokens: a cited line stands for the whole statement it belongs to, whatever lines that takes.
Other languages are read line by line, without their white space.
"""

from __future__ import annotations

import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from langgraph_loopguard.review.source import Snapshot

MAX_CITED = 4000
"""Characters of normalised code that are kept of one finding."""

JOINT = "\n"
"""Stands between statements; none holds it, for white space is normalised."""

PYTHON = (".py", ".pyi")

HEADER = re.compile(r"^(?:async\s+)?(?:def|class|function|func|fn|struct|impl|interface|module|namespace)\b|.*[{:]$")
"""How a line begins or ends that encloses others."""

SKIPPED = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENCODING})

STRING = re.compile(r"^([A-Za-z]*)'([^'\"\\\n]*)'$")
CLOSERS = frozenset(")]}")


class Statement(NamedTuple):
    """One statement: its first and last line, and its normalised code."""

    first: int
    last: int
    code: str


@dataclass(frozen=True)
class Place:
    """Where a finding is, and what it cites.

    Attributes:
        line: The first line of what it cites.
        end_line: The last.
        code: The normalised code; empty when there is none.
        context: The headers of what encloses it, normalised.
    """

    line: int | None
    end_line: int | None
    code: str
    context: str


class Text:
    """A file's text, read statement by statement.

    Args:
        name: The file's name.
        text: Its text.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.split("\n")
        self._text = text

    @cached_property
    def statements(self) -> Sequence[Statement]:
        """All statements, in their order."""
        if self.name.endswith(PYTHON):
            try:
                return _python_statements(self._text)
            except (tokenize.TokenError, SyntaxError, ValueError):
                pass
        found = ((n, "".join(line.split())) for n, line in enumerate(self.lines, 1))
        return [Statement(n, n, code) for n, code in found if code]

    @cached_property
    def _firsts(self) -> list[int]:
        return [statement.first for statement in self.statements]

    def cite(self, line: int | None, end_line: int | None = None) -> Place:
        """Return what stands at a range of lines; a line outside the text cites nothing."""
        if line is None or line > len(self.lines):
            return Place(None, None, "", "")
        last = min(max(line, end_line or line), len(self.lines))
        start = max(0, bisect_right(self._firsts, line) - 1)
        cited = []
        for statement in self.statements[start:]:
            if statement.first > last:
                break
            if statement.last >= line:
                cited.append(statement)
        code = JOINT.join(statement.code for statement in cited)[:MAX_CITED]
        return Place(line, last if end_line else None, code, self.context(line))

    def context(self, line: int) -> str:
        """Return the headers of what encloses a line, the outermost first."""
        if not self.lines[line - 1].strip():
            return ""
        indent = _indent(self.lines[line - 1])
        if indent == 0:
            return ""
        headers: list[str] = []
        for above in range(line - 2, -1, -1):
            text = self.lines[above]
            if not text.strip() or _indent(text) >= indent:
                continue
            if HEADER.match(text.strip()):
                headers.append(_name_of_header(text))
                indent = _indent(text)
            if indent == 0:
                break
        return " > ".join(reversed(headers))

    @cached_property
    def _by_code(self) -> Mapping[str, Sequence[int]]:
        out: dict[str, list[int]] = {}
        for number, statement in enumerate(self.statements):
            out.setdefault(statement.code, []).append(number)
        return out

    def find(self, code: str) -> list[Place]:
        """Return all places that hold a normalised code, one statement or several in a row."""
        if not code or len(code) >= MAX_CITED:
            return []
        parts = code.split(JOINT)
        out = []
        for start in self._by_code.get(parts[0], ()):
            window = self.statements[start : start + len(parts)]
            if [statement.code for statement in window] == parts:
                first, last = window[0].first, window[-1].last
                out.append(Place(first, last if last > first else None, code, self.context(first)))
        return out

    def twins(self, place: Place) -> list[str]:
        """Return the contexts of the other places that hold the same code."""
        contexts = [other.context for other in self.find(place.code)]
        if place.context in contexts:
            contexts.remove(place.context)
        return sorted(contexts)

    def find_quote(self, quote: str) -> int | None:
        """Return the line where a text begins, white space aside; `None` when it is nowhere."""
        wanted = ["".join(line.split()) for line in quote.strip().splitlines() if line.strip()]
        if not wanted:
            return None
        numbered = [(n, "".join(line.split())) for n, line in enumerate(self.lines, 1) if line.strip()]
        for start in range(len(numbered) - len(wanted) + 1):
            if all(part in numbered[start + k][1] for k, part in enumerate(wanted)):
                return numbered[start][0]
        return None


class Texts:
    """The texts of a source state, each read once.

    Args:
        snapshot: The source state.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._read: dict[str, Text | None] = {}

    def get(self, name: str | None) -> Text | None:
        """Return a file's text; `None` when there is none to read."""
        if name is None:
            return None
        if name not in self._read:
            text = self.snapshot.text(name)
            self._read[name] = None if text is None else Text(name, text)
        return self._read[name]

    def hash_of(self, name: str | None) -> str | None:
        """Return a file's content hash; `None` when it is not there."""
        entry = self.snapshot.files.get(name or "")
        return entry.oid if entry else None


def similar(a: str, b: str) -> float:
    """Return how much two normalised codes have in common, 0 to 1, as the share of common pairs of tokens."""
    if a == b:
        return 1.0
    one, two = _pairs(a), _pairs(b)
    if not one or not two:
        return 0.0
    return 2 * len(one & two) / (len(one) + len(two))


def _pairs(code: str) -> set[tuple[str, str]]:
    tokens = re.findall(r"\w+|[^\w\s]", code)
    return set(zip(["", *tokens], [*tokens, ""], strict=True)) if tokens else set()


def _python_statements(text: str) -> list[Statement]:
    out: list[Statement] = []
    tokens: list[str] = []
    first = last = 0
    comments: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append((token.start[0], token.string))
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if tokens:
                out.append(Statement(first, last, _joined(tokens)))
            tokens = []
        elif token.type not in SKIPPED:
            if not tokens:
                first = token.start[0]
            last = token.end[0]
            tokens.append(STRING.sub(r'\1"\2"', token.string))
    taken = {line for statement in out for line in range(statement.first, statement.last + 1)}
    # A comment on a line of its own can be cited; one at the end of a statement is no part of it.
    out += [Statement(line, line, " ".join(comment.split())) for line, comment in comments if line not in taken]
    return sorted(out)


def _joined(tokens: Sequence[str]) -> str:
    """Join tokens; a comma before a closing bracket is there or not as the formatter likes."""
    kept = [
        token
        for token, following in zip(tokens, [*tokens[1:], ""], strict=True)
        if not (token == "," and following in CLOSERS and following)
    ]
    return " ".join(kept)


def _indent(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _name_of_header(line: str) -> str:
    """A function keeps its name when its parameters change."""
    text = line.strip()
    match = re.match(r"^((?:async\s+)?(?:def|class|function|func|fn)\s+\w+)", text)
    return " ".join(match[1].split()) if match else "".join(text.split())

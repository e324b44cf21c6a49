"""Normalisers to choose from, for `Fingerprinter(normalize=...)`: functions from a text to a coarser text.

They run after folding and scrubbing, in the order given, over every text of a payload. Each one hides differences of
one kind and nothing else; a text that is not of its kind (prose for `python_source`) comes back as it is.

Example:
    ```python
    from langgraph_loopguard import Fingerprinter, normalize

    f = Fingerprinter(normalize=(normalize.unified_diff, normalize.whitespace))
    assert f.fingerprint("@@ -1 +1 @@\\n-a\\n+b") == f.fingerprint("@@ -7 +9 @@\\n-a\\n+b")
    ```
"""

from __future__ import annotations

import ast
import re
import textwrap
import threading
import unicodedata
import warnings

from langgraph_loopguard.core.scrub import scrub_volatile

__all__ = ["case", "digits", "python_source", "unified_diff", "volatile", "whitespace"]

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_DIGITS = re.compile(r"\d+")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CLOCK = re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b")
_DURATION = re.compile(
    r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?"
    r"(?:ns|us|\u00b5s|ms|s|secs?|seconds?|mins?|minutes?|hours?|milliseconds?|microseconds?|nanoseconds?)\b"
)
_DIGEST = re.compile(r"\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,128}\b")
_PROCESS = re.compile(r"\b(pid|PID|thread|port|seed)([ =:]{1,2})\d+\b")


def unified_diff(text: str) -> str:
    """Leave out where a unified diff applies: hunk positions and lengths, `index` lines, dates of the file names.

    What is added, removed and kept stays, with the file names and the heading of each hunk. The lines of a hunk are
    counted, so that a removed line `-- x` is not taken for a file name.
    """
    if "@@ -" not in text:
        return text
    out: list[str] = []
    removed = added = 0  # lines that the present hunk still has
    for line in text.split("\n"):
        if removed > 0 or added > 0:
            removed -= not line.startswith(("+", "\\"))
            added -= not line.startswith(("-", "\\"))
        elif match := _HUNK.match(line):
            removed, added = (int(count) if count is not None else 1 for count in match.groups())
            line = "@@" + line[match.end() :]
        elif line.startswith("index "):
            continue
        elif line.startswith(("--- ", "+++ ")):
            line = line.partition("\t")[0]
        out.append(line)
    return "\n".join(out)


_no_warnings = threading.Lock()  # `catch_warnings` changes the process, not the thread


def python_source(text: str) -> str:
    """Return Python source as its syntax tree reads: layout, comments, quotes and redundant parentheses do not count.

    Names, docstrings and order do. Indented pieces are read too; what does not parse comes back as it is. The form is
    the one of `ast.unparse`, which may differ between Python versions.
    """
    try:
        with _no_warnings, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the source's own faults, as an invalid escape
            tree = ast.parse(textwrap.dedent(text))
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # no Python, NUL bytes, or nested beyond the parser
        return text


def whitespace(text: str) -> str:
    """Make every run of white space, line ends included, one blank. Do not use it where indentation means something."""
    return " ".join(text.split())


def case(text: str) -> str:
    """Fold upper and lower case, as Unicode defines it."""
    return unicodedata.normalize("NFC", text.casefold())


def volatile(text: str) -> str:
    """Replace more of what differs at each run than `scrub=True` does.

    Beyond its UUIDs, times, addresses and temporary paths: clock times, durations with a unit, hex digests from seven
    digits, numbers of processes, threads, ports and seeds, and terminal colours. Bare numbers stay.
    """
    text = scrub_volatile(_COLOUR.sub("", text))
    text = _DURATION.sub("<duration>", _CLOCK.sub("<time>", text))
    return _PROCESS.sub(r"\1\2<number>", _DIGEST.sub("<digest>", text))


def digits(text: str) -> str:
    """Make every run of digits one `#`. It also hides progress: three failures, then two, are equal then."""
    return _DIGITS.sub("#", text)

"""Each normaliser hides one kind of difference, and nothing else."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import Fingerprinter, normalize
from tests.core.payloads import TEXTS

GIT = """diff --git a/m.py b/m.py
index 83db48f..bf2a1c3 100644
--- a/m.py
+++ b/m.py
@@ -{at},3 +{at},3 @@ def send():
 x = 1
--- x
+++ y
 z = 2"""

EQUAL: list[tuple[Callable[[str], str], str, str]] = [
    (normalize.unified_diff, GIT.format(at=1), GIT.format(at=40).replace("83db48f", "0000000")),
    (normalize.unified_diff, "--- a\t2026-01-01\n+++ b\t1\n@@ -1 +1 @@\n-x\n+y", "--- a\n+++ b\n@@ -9 +9 @@\n-x\n+y"),
    (normalize.python_source, "x = f( 'a' )  # why", 'x=f("a")'),
    (normalize.python_source, "def f(a):\n    return (a)\n", "def f(a):\n\n  return a"),
    (normalize.python_source, "    x = 1\n    y = 2", "x = 1\ny = 2"),
    (normalize.whitespace, "a  b\n\tc", "a b c"),
    (normalize.case, "STRASSE \u00c9", "stra\u00dfe \u00e9"),
    (normalize.volatile, "3 passed in 0.12s", "3 passed in 1.5 s"),
    (normalize.volatile, "12:30:01.5 no", "9:01:59 no"),
    (normalize.volatile, "commit 83db48f", "commit 0f3c22e"),
    (normalize.volatile, "worker pid=12 failed", "worker pid=977 failed"),
    (normalize.volatile, "\x1b[31mno\x1b[0m", "no"),
    (normalize.volatile, "see /tmp/a1/f.py", "see /tmp/b2/f.py"),
    (normalize.digits, "line 12: 3 failures", "line 7: 22 failures"),
]

DIFFERENT: list[tuple[Callable[[str], str], str, str]] = [
    (normalize.unified_diff, GIT.format(at=1), GIT.format(at=1).replace("+++ y", "+++ w")),
    (normalize.unified_diff, GIT.format(at=1), GIT.format(at=1).replace("--- x", "--- x\tw")),
    (normalize.unified_diff, GIT.format(at=1), GIT.format(at=1).replace("a/m.py", "a/n.py")),
    (normalize.unified_diff, GIT.format(at=1), GIT.format(at=1).replace("send", "receive")),
    (normalize.unified_diff, "index a", "index b"),
    (normalize.python_source, "x = 1", "x = 2"),
    (normalize.python_source, "x = 'a'", "x = b'a'"),
    (normalize.python_source, "x = 1", "x = '1'"),
    (normalize.python_source, "a; b", "b; a"),
    (normalize.python_source, "if a:\n    b\n    c", "if a:\n    b\nc"),
    (normalize.python_source, "fix the loop", "fix  the loop"),
    (normalize.whitespace, "ab", "a b"),
    (normalize.case, "a", "b"),
    (normalize.volatile, "3 failures", "2 failures"),
    (normalize.volatile, "line 12", "line 13"),
    (normalize.volatile, "port of a1", "port of a2"),
    (normalize.volatile, "1234567 rows", "1234568 rows"),
    (normalize.volatile, "defaced", "effaced"),
    (normalize.volatile, "2 items", "3 items"),
    (normalize.digits, "a1", "ab"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "one", "other"), EQUAL)
def test_what_a_normaliser_hides(function: Callable[[str], str], one: str, other: str) -> None:
    """The two texts are one with it, and two without."""
    assert Fingerprinter(normalize=function).fingerprint({"k": [one]}) == Fingerprinter(normalize=function).fingerprint(
        {"k": [other]}
    )
    assert Fingerprinter(scrub=False).fingerprint(one) != Fingerprinter(scrub=False).fingerprint(other)


@pytest.mark.parametrize(("function", "one", "other"), DIFFERENT)
def test_what_a_normaliser_leaves(function: Callable[[str], str], one: str, other: str) -> None:
    """Other differences count as before."""
    assert function(one) != function(other)


LINES = st.lists(st.sampled_from(["a", "b", "- x", "-- x", "++ y", "@@ -1 +1 @@", "index 1", "", "c d"]), max_size=12)


@given(LINES, LINES, st.integers(1, 20))
def test_a_diff_counts_alike_wherever_it_applies(before: list[str], after: list[str], shift: int) -> None:
    """Lines above the changed ones move the hunks and change nothing, whatever the lines look like."""

    def diff(above: int) -> str:
        top = [f"top {number}" for number in range(above)]
        tail = [f"{number} near" for number in range(3)]
        return "\n".join(difflib.unified_diff(top + tail + before, top + tail + after, "a", "b", lineterm=""))

    assert normalize.unified_diff(diff(0)) == normalize.unified_diff(diff(shift + 3))


@given(LINES, LINES, LINES)
def test_different_changes_are_different_diffs(before: list[str], one: list[str], other: list[str]) -> None:
    """No line of a hunk is lost: the new file can still be told."""

    def diff(after: list[str]) -> str:
        return normalize.unified_diff("\n".join(difflib.unified_diff(before, after, "a", "b", n=99, lineterm="")))

    assert (one == other) == (diff(one) == diff(other))


@given(TEXTS)
def test_python_source_keeps_the_tree(text: str) -> None:
    """What parses has the same tree afterwards; what does not is untouched."""
    found = normalize.python_source(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.dump(ast.parse(text))
        except (SyntaxError, ValueError):
            return
        assert tree == ast.dump(ast.parse(found))


@pytest.mark.parametrize("text", ["(" * 5000, "\x00", "-" * 200_000 + "1", "x = [" * 99 + "]" * 99, "x = '\\d'"])
def test_python_source_never_raises(text: str) -> None:
    """Neither source beyond the parser's limits nor an invalid escape (a warning) is an error."""
    assert isinstance(normalize.python_source(text), str)


@given(TEXTS)
def test_normalising_twice_changes_nothing(text: str) -> None:
    """A text that is handed on counts as before."""
    for function in (normalize.whitespace, normalize.case, normalize.digits, normalize.unified_diff):
        assert function(text) == function(function(text))


def test_normalisers_are_reached_from_the_package() -> None:
    """They are public by name."""
    assert {"case", "digits", "python_source", "unified_diff", "volatile", "whitespace"} == set(normalize.__all__)

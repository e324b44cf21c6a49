"""Arrays and frames count by what they hold, whole and in order; the record shows them so as well."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from langgraph_loopguard import Fingerprinter, FingerprintError
from langgraph_loopguard.core.jsonable import to_jsonable

fingerprint = Fingerprinter().fingerprint
exact = Fingerprinter(scrub=False).fingerprint

FRAME = pd.DataFrame({"file": ["a.py", "b.py"], "line": [1, 2]})


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.0, 2.5], dtype="float32"), [1, 2.5]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"a"]), [b"a"]),
        (np.array([None, {"a": 1}], dtype=object), [None, {"a": 1}]),
        (np.array(7), 7),
        (np.array([math.nan]), [math.nan]),
        (np.uint64(2**63), 2**63),
        (np.int8(-1), -1),
        (np.bool_(True), True),
        (np.datetime64("2026-01-02"), "2026-01-02"),
        (np.array(["2026-01-02"], dtype="datetime64[D]"), ["2026-01-02"]),
        (np.complex128(1 + 2j), 1 + 2j),
        (FRAME, {"columns": ["file", "line"], "index": [0, 1], "rows": [["a.py", 1], ["b.py", 2]]}),
        (FRAME["line"], {"name": "line", "index": [0, 1], "values": [1, 2]}),
        (pd.Index(["x", "y"]), ["x", "y"]),
        (pd.Categorical(["x", "y"]), ["x", "y"]),
        (pd.Timestamp("2026-01-02T03:04:05"), "2026-01-02T03:04:05"),
        (pd.Timedelta(seconds=1.5), 1.5),
        (pd.Period("2026-01", "M"), "2026-01"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_they_are_what_they_hold(value: Any, plain: Any) -> None:
    """Alone and inside a payload."""
    assert exact(plain) == exact(value)
    assert exact({"k": [plain]}) == exact({"k": [value]})


DIFFERENT: list[Any] = [
    FRAME,
    FRAME.iloc[::-1],
    FRAME.set_index("line"),
    FRAME[["line", "file"]],
    FRAME.rename(columns={"file": "line"}),
    FRAME.assign(line=["1", "2"]),
    FRAME.set_axis([0, 0], axis=0),
    FRAME.set_axis([0, 0], axis=0).assign(line=[3, 2]),
    FRAME["line"],
    FRAME["line"].set_axis([0, 0]),
    FRAME["line"].rename("x"),
    FRAME.to_dict(),
    pd.NA,
    pd.DataFrame(),
    np.array([1, 2]),
    np.array([[1, 2]]),
    np.array([True, False]),
    np.datetime64("2026-01-02T00:00:00.000000001"),
    np.array(["2026-01-02T00:00:00.000000001"], dtype="datetime64[ns]"),
    pd.Timestamp("2026-01-02T00:00:00.000000001").value,
    pd.Timedelta(nanoseconds=1),
    pd.Timedelta(nanoseconds=2),
    np.complex128(1),
]


def test_no_two_of_them_are_one() -> None:
    """Rows with one index, columns with one name, and times in nanoseconds hide nothing."""
    assert len(DIFFERENT) == len({exact(value) for value in DIFFERENT})


def test_volatile_text_inside_of_them_is_scrubbed() -> None:
    """A frame is a payload like any other."""
    one, other = (FRAME.assign(at=f"2026-01-0{day}T00:00:00Z") for day in (1, 2))
    assert fingerprint(one) == fingerprint(other)
    assert exact(one) != exact(other)


class Endless:
    """Says each time that it is another one."""

    def to_dict(self) -> Endless:
        return Endless()


def test_an_object_that_never_becomes_plain_is_refused() -> None:
    """It ends with an error that names the type."""
    with pytest.raises(FingerprintError, match=r"tests.core.test_foreign.Endless"):
        fingerprint([Endless()])


@pytest.mark.parametrize("frame", DIFFERENT[:10], ids=lambda value: type(value).__name__)
def test_the_record_shows_all_of_a_frame(frame: Any) -> None:
    """Nothing is lost, whatever the index and the names of the columns are."""
    shown = to_jsonable(frame)
    assert exact(frame) == exact(shown)


def test_neither_is_imported_for_it() -> None:
    """The package does not pay for libraries that a program does not use."""
    code = "import sys, langgraph_loopguard; print({'numpy', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert "set()" == done.stdout.strip()

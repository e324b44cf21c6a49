"""Findings, and how to read them out of what the tools print."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from typing_extensions import TypedDict

FOLDER = "lib"
"""Where the copied modules stand in the repository. Not at its top: there they would shadow the tools' own imports."""


class Finding(TypedDict):
    """One thing that a tool finds wrong."""

    id: str
    """Rule and place: `"F401 lib/queue.py:7:8"`."""
    check: str
    """Label of the check that found it."""
    file: str
    line: int
    rule: str
    message: str


def finding(check: str, file: str, line: int, rule: str, message: str, *, column: int | None = None) -> Finding:
    """Return a finding with its id."""
    where = f"{FOLDER}/{PurePath(file).name}"
    place = f"{where}:{line}" if column is None else f"{where}:{line}:{column}"
    return Finding(id=f"{rule} {place}", check=check, file=where, line=line, rule=rule, message=message)


def from_ruff(check: str, output: str) -> list[Finding]:
    """Read `ruff check --output-format json`."""
    return [
        finding(
            check,
            item["filename"],
            item["location"]["row"],
            item["code"] or "syntax",
            item["message"],
            column=item["location"]["column"],
        )
        for item in json.loads(output or "[]")
    ]


PYCODESTYLE_LINE = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?P<col>\d+): (?P<rule>[A-Z]\d+) (?P<message>.*)$")


def from_pycodestyle(check: str, output: str) -> list[Finding]:
    """Read pycodestyle's default format."""
    matches = filter(None, map(PYCODESTYLE_LINE.match, output.splitlines()))
    return [finding(check, m["file"], int(m["line"]), m["rule"], m["message"], column=int(m["col"])) for m in matches]


HUNK = re.compile(r"^@@ -(\d+)")
SHOWN = 60


def from_diff(check: str, output: str) -> list[Finding]:
    """Read the diff of a formatter that was told to change nothing: each hunk is a finding."""
    found: list[Finding] = []
    file, line, open_hunk = "", 0, False
    for text in output.splitlines():
        if text.startswith("--- ") and not open_hunk:
            file = text[4:].partition("\t")[0].removesuffix(":before")
        elif text.startswith("+++ ") and not open_hunk:
            continue
        elif hunk := HUNK.match(text):
            line, open_hunk = int(hunk[1]), True
        elif text[:1] in ("-", "+") and open_hunk:
            found.append(finding(check, file, line, check.split()[0], _would(text)))
            open_hunk = False
        elif open_hunk:
            line += 1
    return found


def _would(text: str) -> str:
    shown = text[1:].strip()[:SHOWN]
    what = f"`{shown}`" if shown else "blank lines"
    return f"would reformat {what}" if text.startswith("-") else f"would add {what}"

"""Text as it counts: what an editor may change is folded, and what differs at each run becomes a placeholder."""

from __future__ import annotations

import re
import unicodedata

# These begin with one literal character, which `re` finds at memory speed: faster than `in` finds two.
_END_OF_LINE_BLANK = re.compile(r"\n(?<=[ \t]\n)")
_HEX = re.compile(r"0(?=x)")
_TEMP = re.compile(r"/(?=tmp/|var/folders/)")
_DASHED = re.compile(r"-(?:[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-|\d\d-\d\d[T ])")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b")
_ISO_TIME = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z\b|[+-]\d\d:?\d\d\b)?")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_TEMP_DIRS = (
    r"(?:/private)?(?:/var)?/tmp/|(?:/private)?/var/folders/[^/\s]+/[^/\s]+/T/|[A-Za-z]:\\(?:[^\\\s:]+\\)*?Temp\\"
)
_TEMP_PATH = re.compile(
    rf"(?<![\w/.])(?:{_TEMP_DIRS})(?:(?P<inner>[^/\\\s\"'`:;,)\]}}>]+[/\\])+)?(?P<leaf>[^/\\\s\"'`:;,)\]}}>]*)"
)

GENERATED_ID = (
    r"(?:call|msg|message|run|lc_run|chatcmpl|toolu|tooluse|tool|resp|req|fc|evt|event|trace|span|gen)[-_][\w-]+"
    r"|[0-9a-f]{16,64}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
"""Pattern of ids that are made anew at each run."""


def _temp_path(match: re.Match[str]) -> str:
    # The directory is made anew each time, a file below it keeps its name; a file directly in /tmp does not.
    return f"<tmp>/{match['leaf']}" if match["inner"] else "<tmp>"


def may_be_volatile(text: str) -> bool:
    """Whether `scrub_volatile` may change a text, or one of several texts that are joined to one. Cheap."""
    if "-" in text and _DASHED.search(text):
        return True
    return ("x" in text and _HEX.search(text) is not None) or _may_hold_temp(text)


def _may_hold_temp(text: str) -> bool:
    return ("/" in text and _TEMP.search(text) is not None) or ("\\" in text and "Temp\\" in text)


def scrub_volatile(text: str) -> str:
    """Replace what differs at each run by a placeholder: UUIDs, ISO times, hex addresses, temporary paths.

    Plain numbers and dates without a time stay: they are often the very thing that changes.
    """
    # One literal character decides at memory speed whether a pattern is worth running.
    if "-" in text and _DASHED.search(text):
        text = _ISO_TIME.sub("<time>", _UUID.sub("<uuid>", text))
    if "x" in text and _HEX.search(text):
        text = _ADDRESS.sub("<address>", text)
    if _may_hold_temp(text):
        text = _TEMP_PATH.sub(_temp_path, text)
    return text


def strip_lines(text: str) -> str:
    """Take the blanks off the end of every line but the last. Line ends are LF."""
    if "\n" in text and _END_OF_LINE_BLANK.search(text):
        text = "\n".join([line.rstrip(" \t") for line in text.split("\n")])
    return text


def fold_text(text: str) -> str:
    """Fold what an editor may change: Unicode to NFC, line ends to LF, trailing blanks and final newlines.

    Lone surrogates become `?`, as the savers store them, so that a text hashes alike before and after a checkpoint.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode("utf-8"))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return strip_lines(text).rstrip(" \t\n")

"""Finds which known finding a new report is: by its claim and the code that it cites, not by line or wording."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from langgraph_loopguard.review.cited import Place, Texts, similar
from langgraph_loopguard.review.claims import SAME_WORDS, likeness, same_rule, words
from langgraph_loopguard.review.models import Finding, Report

SAME_CODE = 0.5
"""Share of common code from which an edited statement is taken for the same one, if the rule is the same."""

NEAR = 3
"""Lines between two places that are near each other."""

RENAMED_RULE = 0.8
"""Share of common words from which a reviewer's two names for a rule are taken for one."""


class Placed(NamedTuple):
    """A report together with the place it cites."""

    report: Report
    place: Place


def locate(report: Report, texts: Texts) -> Placed:
    """Return a report with the code that it cites in a source state; a quote counts for more than a line."""
    text = texts.get(report.file)
    if text is None:
        return Placed(report, Place(report.line, report.end_line, "", ""))
    line, end_line = report.line, report.end_line
    if report.quote:
        at_line = text.cite(line, end_line)
        found = text.find_quote(report.quote)
        if found is not None and not _holds(report.quote, at_line):
            span = len(report.quote.strip().splitlines())
            line, end_line = found, found + span - 1 if span > 1 else None
    return Placed(report, text.cite(line, end_line))


def _holds(quote: str, place: Place) -> bool:
    return bool(place.code) and "".join(quote.split()) in "".join(place.code.split())


def match(placed: Sequence[Placed], findings: Iterable[Finding]) -> dict[int, Finding]:
    """Return which report (by its index) is which finding; each finding is taken once."""
    found: dict[int, Finding] = {}
    left = dict(enumerate(placed))
    known = {finding.id: finding for finding in findings}
    _assign(left, known, found, lambda file, code: (file, code) if code else None, _exact)
    _assign(left, known, found, lambda file, code: file if code else None, _edited)
    _assign(left, known, found, lambda file, code: None if code else file or "", _without_code)
    return found


Key = Callable[[str | None, str], object]
Score = Callable[[Placed, Finding], tuple[float, ...] | None]


def _assign(
    left: dict[int, Placed], known: dict[str, Finding], found: dict[int, Finding], key: Key, score: Score
) -> None:
    buckets: dict[object, list[Finding]] = defaultdict(list)
    for finding in known.values():
        if (bucket := key(finding.file, finding.code)) is not None:
            buckets[bucket].append(finding)
    pairs = []
    for index, placed in left.items():
        for finding in buckets.get(key(placed.report.file, placed.place.code), ()):
            value = score(placed, finding)
            if value is not None:
                pairs.append((value, -index, finding.id))
    for _, index, identity in sorted(pairs, reverse=True):
        if -index in left and identity in known:
            found[-index] = known.pop(identity)
            del left[-index]


def _claim(placed: Placed, finding: Finding) -> float | None:
    """Return how alike two claims are; `None` when they are two."""
    report = placed.report
    alike = likeness(report.message, finding.message)
    same = same_rule(report.rule, finding.rule)
    if same:
        return 1 + alike
    if same is None:
        return alike if alike >= SAME_WORDS else None
    # A tool's rules are what they are; a reviewer may call one thing by two names.
    return alike if finding.provenance.source == "reviewer" and alike >= RENAMED_RULE else None


def _distance(placed: Placed, finding: Finding) -> int:
    return abs((placed.place.line or 0) - (finding.line or 0))


def _exact(placed: Placed, finding: Finding) -> tuple[float, ...] | None:
    claim = _claim(placed, finding)
    here = placed.place.context == finding.context
    if claim is None or (not here and placed.place.context in finding.twins):
        return None  # the same code stood there before: it is another place, not the one that moved
    return (float(here), claim, -_distance(placed, finding))


def _edited(placed: Placed, finding: Finding) -> tuple[float, ...] | None:
    claim = _claim(placed, finding)
    if claim is None:
        return None
    code = similar(placed.place.code, finding.code)
    there = placed.place.context == finding.context or _distance(placed, finding) <= NEAR
    return (code, claim, -_distance(placed, finding)) if there and code >= SAME_CODE else None


def _without_code(placed: Placed, finding: Finding) -> tuple[float, ...] | None:
    claim = _claim(placed, finding)
    return None if claim is None else (claim, -_distance(placed, finding))


def identity(placed: Placed, origin: str, taken: set[str]) -> str:
    """Return an id for a new finding: the same for the same claim about the same code, wherever it stands.

    Args:
        placed: The report.
        origin: The check that reports it, or `reviewer`.
        taken: Ids in use: two equal claims about two equal statements are two findings.
    """
    report, place = placed
    claim = report.rule or " ".join(sorted(words(report.message))) or report.message
    number = 0
    while True:
        parts = (origin, claim, report.file or "", place.code, place.context, str(number))
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
        if digest not in taken:
            return digest
        number += 1

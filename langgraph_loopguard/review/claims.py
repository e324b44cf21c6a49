"""What a finding claims: a rule's name where there is one, and the words of its message."""

from __future__ import annotations

import re

SAME_WORDS = 0.6
"""Share of common words from which two messages are taken for one claim."""

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")

EMPTY = frozenset(
    [
        "about",
        "all",
        "also",
        "and",
        "any",
        "are",
        "because",
        "been",
        "but",
        "can",
        "cannot",
        "could",
        "does",
        "for",
        "from",
        "has",
        "have",
        "here",
        "into",
        "its",
        "may",
        "might",
        "must",
        "not",
        "now",
        "only",
        "please",
        "should",
        "some",
        "still",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "use",
        "used",
        "uses",
        "was",
        "were",
        "when",
        "where",
        "which",
        "while",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
"""Words that any message may have."""

ENDINGS = ("ing", "ed", "es", "s")


def words(message: str) -> frozenset[str]:
    """Return the words that a message is about, without their endings."""
    found = (word.lower() for word in WORD.findall(message))
    return frozenset(_stem(word) for word in found if word not in EMPTY)


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending)
    return word


def likeness(a: str, b: str) -> float:
    """Return how much two messages have in common, 0 to 1."""
    one, two = words(a), words(b)
    if not one or not two:
        return float(a.split() == b.split())
    return 2 * len(one & two) / (len(one) + len(two))


def same_rule(a: str | None, b: str | None) -> bool | None:
    """Whether two rules are one; `None` when one of them has none."""
    if not a or not b:
        return None
    return _plain(a) == _plain(b)


def _plain(rule: str) -> str:
    return re.sub(r"[\s_-]+", "-", rule.strip().lower())

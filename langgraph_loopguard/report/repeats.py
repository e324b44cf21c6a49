"""Which visits of a node wrote the same, seen over the whole run as the ledger sees it over its window."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.ledger import POSITIONS


def fingerprints(visits: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return one fingerprint per visit of one node: equal where it wrote the same, `None` where it wrote nothing.

    A whole number that grows by one per visit is a counter, and what the node never moved is somebody else's: neither
    tells two visits apart, unless nothing else was written.

    Args:
        visits: What the history keeps of the visits (`keys`, `unmoved`), oldest first.
    """
    idle = _counters(visits) | _never_moved(visits)
    out: list[str | None] = []
    for visit in visits:
        keys: Mapping[str, Any] = visit.get("keys") or {}
        said = {key: value for key, value in keys.items() if key not in idle} or keys
        out.append(xxh3_128_hexdigest(json.dumps(said, sort_keys=True).encode()) if said else None)
    return out


def _counters(visits: Sequence[Mapping[str, Any]]) -> set[str]:
    seen: dict[str, set[int]] = {}
    found: set[str] = set()
    for number, visit in enumerate(visits):
        for key, value in (visit.get("keys") or {}).items():
            if type(value) is int and key.lower() not in POSITIONS:
                seen.setdefault(key, set()).add(value - number)
            else:
                found.add(key)  # no counter: not a number here
    return {key for key, starts in seen.items() if len(starts) == 1 and key not in found} if len(visits) > 1 else set()


def _never_moved(visits: Sequence[Mapping[str, Any]]) -> set[str]:
    written = {key for visit in visits for key in visit.get("keys") or ()}
    return written - {key for visit in visits for key in visit.get("keys") or () if key not in visit.get("unmoved", ())}

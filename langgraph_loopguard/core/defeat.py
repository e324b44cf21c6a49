"""A repeat that no guard can see, because one key of what a node writes is new each time: a nonce, a time, an id.

`RepeatedPayload` and `Oscillation` can then never fire. Whoever set them should hear of it, with the name of the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph_loopguard.core.conditions import AllOf, AnyOf, Condition, Oscillation, RepeatedPayload
from langgraph_loopguard.core.explain import looks_volatile
from langgraph_loopguard.core.ledger import POSITIONS, alike

FEWEST = 3
"""Visits that it takes to believe it."""


def defeating_key(
    condition: Condition, node: str, window: Sequence[Mapping[str, Any]], content: Mapping[Any, Any]
) -> str | None:
    """Return the key that keeps a condition from seeing a repeat, at the visit at which that becomes clear.

    Pure, and not `None` for one visit of such a row only, so that it can be logged without a memory of its own.

    Args:
        condition: What the guard stops on.
        node: The node that was visited last.
        window: Its last emissions, from the ledger.
        content: What it wrote at the last visit. Only a value that looks volatile is blamed: a patch or a review is
            new because the work is.
    """
    if len(window) < FEWEST or (key := _only_difference(window[-2], window[-1])) is None:
        return None
    if not looks_volatile(content.get(key)):
        return None
    times = min([max(times, FEWEST) for name, times in _looks_back(condition) if name in (None, node)], default=0)
    if not times or _row(window, key) != times or _moves_one_way(window[-times:], key):
        return None
    # In a window that holds no more than the row, an earlier visit may have said it.
    return key if len(window) > times or window[0]["n"] == 1 else None


def _looks_back(condition: Condition) -> Iterator[tuple[str | None, int]]:
    """Yield the node (`None`: any) and the number of equal emissions for each condition that compares emissions."""
    if isinstance(condition, (AnyOf, AllOf)):
        for part in condition.conditions:
            yield from _looks_back(part)
    elif isinstance(condition, RepeatedPayload):
        yield condition.node, condition.times
    elif isinstance(condition, Oscillation):
        yield None, condition.laps


def _only_difference(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str | None:
    """Return the one key but for which two emissions in a row are alike; `None` when there is no such key."""
    first, second = earlier["keys"], later["keys"]
    if first.keys() != second.keys():
        return None
    changed = [key for key in second if first[key] != second[key] and not _counts(first[key], second[key])]
    if len(changed) != 1 or changed[0].lower() in POSITIONS:
        return None
    key: str = changed[0]
    return key if alike(_without(earlier, key), _without(later, key)) else None


def _counts(before: Any, value: Any) -> bool:
    return type(before) is int and type(value) is int and value - before == 1


def _row(window: Sequence[Mapping[str, Any]], key: str) -> int:
    """Return how many emissions at the end of a window are alike but for a key that is new in each."""
    last, seen, length = _without(window[-1], key), [], 0
    for entry in reversed(window):
        value = entry["keys"].get(key)
        if value is None or value in seen or (length and not alike(_without(entry, key), last)):
            break
        seen.append(value)
        length += 1
    return length


def _moves_one_way(window: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a whole number only falls or only rises: it counts something, as failures that become fewer."""
    values = [entry["keys"][key] for entry in window]
    if not all(isinstance(value, int) for value in values):
        return False
    return values in (sorted(values), sorted(values, reverse=True))


def _without(entry: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {"n": entry["n"], "keys": {name: value for name, value in entry["keys"].items() if name != key}}

"""Places inside of a payload, and the place where one contains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

Path = tuple[Any, ...]
"""Keys and indexes from the payload down to a value."""


def words(path: Path) -> str:
    """Return a path as a reader writes it: `findings[3].line`; a key that is no text in its `repr`."""
    out = ""
    for part in path:
        if isinstance(part, str):
            out += f".{part}" if out else part
        else:
            out += f"[{part!r}]"
    return out


def find_cycle(payload: Any, plain: Callable[[Any], Any]) -> tuple[Path, Path] | None:
    """Return the path of a value that contains itself, and the path at which it comes again; `None` without one.

    Args:
        payload: Any value.
        plain: Makes an object a plain value (one step), or returns it as it is.
    """
    above: dict[int, Path] = {}
    done: set[int] = set()
    kept: list[Any] = []  # what `plain` makes must live as long as its id is remembered

    def visit(value: Any, path: Path) -> tuple[Path, Path] | None:
        kept.append(value)
        if id(value) in above:
            return above[id(value)], path
        if id(value) in done:
            return None
        above[id(value)] = path
        for step, below in _items(value, plain):
            if (found := visit(below, path + step)) is not None:
                return found
        del above[id(value)]
        done.add(id(value))
        return None

    return visit(payload, ())


def _items(value: Any, plain: Callable[[Any], Any]) -> Iterable[tuple[Path, Any]]:
    if value is None or isinstance(value, (str, bytes, int, float)):
        return ()
    simple = plain(value)
    if simple is not value:
        return (((), simple),)  # the same place
    if isinstance(value, Mapping):
        return (((key,), item) for key, item in value.items())
    if isinstance(value, (Sequence, Set)):
        return (((index,), item) for index, item in enumerate(value))
    return ()

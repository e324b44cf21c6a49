"""Whether a node's function may hand over by a `Command`, read from its code: nothing else declares it."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

MOST = 500
"""Functions looked into at most."""

FOREIGN = frozenset({*sys.stdlib_module_names, "langchain", "langchain_core", "langgraph", "langgraph_loopguard"})
"""Packages whose functions are not looked into: they hand over nothing on a node's behalf."""


def may_command(function: Any) -> bool:
    """Whether a function, or one that it calls, names `Command`. True too for a callable whose code cannot be read."""
    found = _functions_behind(function)
    if not found:
        return True
    seen: set[int] = set()
    while found and len(seen) < MOST:
        one, owner = found.pop()
        if id(one.__code__) in seen:
            continue
        seen.add(id(one.__code__))
        names = set(_names(one.__code__))
        if any("Command" in name for name in names):
            return True
        for thing in _reached(one, owner, names):
            if _module(thing) not in FOREIGN:
                found += _functions_behind(thing)
    return False


def _functions_behind(thing: Any) -> list[tuple[FunctionType, Any]]:
    """Return the plain functions behind a callable, each with the object that it is a method of."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    owner = None
    if isinstance(thing, MethodType):
        thing, owner = thing.__func__, thing.__self__
    elif not isinstance(thing, FunctionType) and not inspect.isclass(thing):
        call = getattr(type(thing), "__call__", None)  # noqa: B004 - the method itself, with its code
        thing, owner = call, thing
    if not isinstance(thing, FunctionType):
        return []
    wrapped = getattr(thing, "__wrapped__", None)
    return [(thing, owner), *(_functions_behind(wrapped) if wrapped is not None else [])]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _reached(function: FunctionType, owner: Any, names: set[str]) -> Iterator[Any]:
    """Yield what a function can call by the names in its code: functions, and methods of the objects it holds."""
    values = [owner, *(function.__globals__.get(name) for name in names)]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a name that is not bound yet
            values.append(cell.cell_contents)
    for value in values:
        if value is None or _module(value) in FOREIGN:
            continue
        yield value
        place = value if isinstance(value, ModuleType) else type(value)
        for name in names:
            if isinstance(found := inspect.getattr_static(place, name, None), FunctionType):
                yield found if place is value else MethodType(found, value)


def _module(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", type(thing).__module__)
    return str(name).partition(".")[0]

"""Finds the graph that `deliver` and `reconcile` are told, and runs them with it, sync or async."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def load(target: str) -> Any:
    """Return what `module:name` or `file.py:name` names.

    Raises:
        ValueError: It has another form, or names nothing.
        ImportError: The module or file cannot be imported.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        msg = f"graph must be like module:name or file.py:name, got {target!r}"
        raise ValueError(msg)
    module = _from_file(Path(where)) if where.endswith(".py") else _from_module(where)
    try:
        found: Any = module
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        msg = f"graph {target!r}: {where} has no {name}"
        raise ValueError(msg) from error
    return found


def run_with_graph(
    target: str,
    run: Callable[[Any], T],
    arun: Callable[[Any], Awaitable[T]],
    *,
    asynchronous: bool,
    every: float | None = None,
) -> Iterator[T]:
    """Yield what `run` gives with the graph: once, or again and again.

    Args:
        target: Names a compiled graph; or a function without parameters, sync or async, that returns one or a context
            manager that yields one (for a checkpointer that must be opened and closed).
        run: The operation.
        arun: The same for graphs that only run on an event loop.
        asynchronous: Which of the two.
        every: Seconds between runs; `None` for one run.
    """
    found = load(target)
    if not asynchronous:
        with ExitStack() as stack:
            made = found() if _makes(found) else found
            if inspect.iscoroutine(made) or hasattr(made, "__aenter__"):
                if inspect.iscoroutine(made):
                    made.close()
                msg = f"graph {target!r} is made asynchronously: give --async"
                raise ValueError(msg)
            graph = stack.enter_context(made) if hasattr(made, "__enter__") else made
            yield run(graph)
            while every is not None:
                time.sleep(every)
                yield run(graph)
        return
    with asyncio.Runner() if sys.version_info >= (3, 11) else _Runner() as loop:
        stack_ = AsyncExitStack()
        try:
            graph = loop.run(_aopen(found, stack_))
            yield loop.run(_awaited(arun, graph))
            while every is not None:
                loop.run(asyncio.sleep(every))
                yield loop.run(_awaited(arun, graph))
        finally:
            loop.run(stack_.aclose())


async def _aopen(found: Any, stack: AsyncExitStack) -> Any:
    made = found() if _makes(found) else found
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__"):
        return await stack.enter_async_context(made)
    return stack.enter_context(made) if hasattr(made, "__enter__") else made


async def _awaited(arun: Callable[[Any], Awaitable[T]], graph: Any) -> T:
    return await arun(graph)


def _makes(found: Any) -> bool:
    return inspect.isroutine(found)


def _from_module(name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    return import_module(name)


def _from_file(path: Path) -> Any:
    if not path.is_file():
        msg = f"graph: there is no file {str(path)!r}"
        raise ValueError(msg)
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        msg = f"graph: {str(path)!r} cannot be imported"
        raise ValueError(msg)
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # string annotations of its classes are looked up there
    if str(path.parent.resolve()) not in sys.path:
        sys.path.insert(0, str(path.parent.resolve()))
    spec.loader.exec_module(module)
    return module


class _Runner:
    """`asyncio.Runner` for Python 3.10, as far as it is used here."""

    def __enter__(self) -> _Runner:
        self._loop = asyncio.new_event_loop()
        return self

    def run(self, coroutine: Any) -> Any:
        """Run to its end."""
        return self._loop.run_until_complete(coroutine)

    def __exit__(self, *_: Any) -> None:
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

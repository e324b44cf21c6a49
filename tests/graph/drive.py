"""Runs a graph through every door that LangGraph has, and says what came out."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.types import Command

from tests.graph.graphs import plain

STREAMS = ("values", "updates", "custom", "messages", "tasks", "checkpoints", "debug")
SYNC_DOORS = ("invoke", "batch", "invoke_v2", *(f"stream_{mode}" for mode in STREAMS), "stream_v2")
ASYNC_DOORS = ("ainvoke", "abatch", "ainvoke_v2", *(f"astream_{mode}" for mode in STREAMS), "astream_v2")


def run(app: Any, door: str, config: dict[str, Any], start: Any = None, resume: Any = "go") -> tuple[Any, list[Any]]:
    """Run until the graph ends, answering each of its own interrupts; return the final state and what was streamed.

    An interrupt of a guard ends the run.
    """
    given: Any = {"n": 0, "log": ["start"]} if start is None else start
    streamed: list[Any] = []
    result: Any = None
    while True:
        result, chunks = (
            asyncio.run(_astep(app, door, given, config)) if door.startswith("a") else _step(app, door, given, config)
        )
        streamed += chunks
        if app.checkpointer is None:
            return result, in_order(streamed)
        pending = app.get_state(config).interrupts
        if not pending or any(isinstance(one.value, dict) and "escalation" in one.value for one in pending):
            return app.get_state(config).values, in_order(streamed)
        given = Command(resume=resume)


def _step(app: Any, door: str, given: Any, config: dict[str, Any]) -> tuple[Any, list[Any]]:
    match door:
        case "invoke":
            return app.invoke(given, config), []
        case "batch":
            return app.batch([given], config)[0], []
        case "invoke_v2":
            return app.invoke(given, config, version="v2").value, []
        case "stream_v2":
            return _parts(list(app.stream(given, config, stream_mode=[*STREAMS], version="v2")))
    mode = door.removeprefix("stream_")
    chunks = list(app.stream(given, config, stream_mode=[mode, "values"] if mode != "values" else ["values"]))
    final = [data for kind, data in chunks if kind == "values"][-1]
    return final, [project(kind, data) for kind, data in chunks if kind == mode]


async def _astep(app: Any, door: str, given: Any, config: dict[str, Any]) -> tuple[Any, list[Any]]:
    match door:
        case "ainvoke":
            return await app.ainvoke(given, config), []
        case "abatch":
            return (await app.abatch([given], config))[0], []
        case "ainvoke_v2":
            return (await app.ainvoke(given, config, version="v2")).value, []
        case "astream_v2":
            return _parts([part async for part in app.astream(given, config, stream_mode=[*STREAMS], version="v2")])
    mode = door.removeprefix("astream_")
    modes = [mode, "values"] if mode != "values" else ["values"]
    chunks = [chunk async for chunk in app.astream(given, config, stream_mode=modes)]
    final = [data for kind, data in chunks if kind == "values"][-1]
    return final, [project(kind, data) for kind, data in chunks if kind == mode]


def _parts(parts: list[Any]) -> tuple[Any, list[Any]]:
    """The last values of a stream of version 2, and its parts by mode, values with the name of their class."""
    values = [part["data"] for part in parts if part["type"] == "values"]
    streamed = [
        (mode, type(part["data"]).__name__ if mode == "values" else "", project(mode, part["data"]))
        for mode in STREAMS
        for part in parts
        if part["type"] == mode
    ]
    return values[-1], streamed


def in_order(chunks: list[Any]) -> list[Any]:
    """Put chunks of tasks that run side by side into one order: which of them ends first is chance."""
    out: list[Any] = []
    run: list[Any] = []
    for chunk in [*chunks, None]:
        if chunk is not None and _of_task(chunk):
            run.append(chunk)
            continue
        out += [*sorted(run, key=repr), *([chunk] if chunk is not None else [])]
        run = []
    return out


def _of_task(chunk: Any) -> bool:
    return isinstance(chunk, dict) or (isinstance(chunk, tuple) and chunk[0] != "checkpoint")


def project(mode: str, data: Any) -> Any:
    """Return a chunk of a stream without the guard's keys and without what differs from run to run."""
    match mode:
        case "updates":
            return {node: plain(_interrupts(update)) for node, update in data.items()}
        case "messages":
            message, metadata = data
            return plain(message), metadata["langgraph_node"], metadata["langgraph_step"]
        case "tasks":
            return _task(data)
        case "checkpoints":
            return plain(data["values"]), sorted(data["next"]), data["metadata"]["step"]
        case "debug":
            payload = data["payload"]
            inner = _task(payload) if data["type"] != "checkpoint" else project("checkpoints", payload)
            return data["type"], data["step"], inner
    return plain(_interrupts(data))


def _task(data: dict[str, Any]) -> Any:
    return (
        data["name"],
        plain(data.get("input")),
        plain(data.get("result")),
        data.get("error"),
        sorted(data.get("triggers", ())),
        len(data.get("interrupts", ())),
    )


def _interrupts(update: Any) -> Any:
    if isinstance(update, dict) and "__interrupt__" in update:
        return {**update, "__interrupt__": [one.value for one in update["__interrupt__"]]}
    if isinstance(update, tuple) and update and hasattr(update[0], "value"):
        return [one.value for one in update]
    return update

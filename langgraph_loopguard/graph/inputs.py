"""What a new input means to the guards: budgets per turn are renewed, what was said of an earlier run is past."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import START
from langgraph.graph import StateGraph

from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import HISTORY, LEDGERS, NEW_INPUT, STANDING, flatten
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.state import SHOWN, Shape
from langgraph_loopguard.graph.tool_calls import answer_tool_calls

INPUT = "loopguard_input"
"""Name of the conditional edge on `START` that sees new inputs."""


class InputGate(Runnable[Any, Any]):
    """A conditional edge on `START` that leads nowhere: it runs for new inputs only, not for resumes."""

    name = INPUT

    def __init__(self, guards: tuple[LoopGuard, ...], shape: Shape, builder: StateGraph[Any, Any, Any, Any]) -> None:
        self.guards = guards
        self.shape = shape
        self.builder = builder

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[str]:
        """Write what the input changes, if anything; go nowhere.

        Raises:
            ValueError: Nothing else leaves `START`. LangGraph refuses such a graph when it is compiled, but takes this
                edge for one that enters it.
        """
        if not self._entered():
            msg = "Graph must have an entrypoint: add at least one edge from START to another node"
            raise ValueError(msg)
        if config is not None:
            shown = [key for key in SHOWN if self.shape.is_guards(key)]
            # With the input's own writes: a state that is handed in again brings its old outcome along.
            found = _pregel.read(config, (LEDGERS, STANDING, *shown), fresh=True)
            writes: list[tuple[str, Any]] = [(key, NEW_INPUT) for key in (STANDING, *shown) if key in found]
            if events := self._events(found.get(LEDGERS) or {}, config):
                writes.append((LEDGERS, events))
            if _waits(found.get(LEDGERS)):
                # The question is passed over: before an agent goes on, the calls that the shut edge left are answered.
                text = "the loop guard stopped the loop, and a new input came"
                writes += answer_tool_calls(self.shape, config, text, fresh=True).items()
            if writes:
                _pregel.write(config, writes)
        return []

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[str]:
        """The same as `invoke`."""
        return self.invoke(input, config)

    def _entered(self) -> bool:
        builder = self.builder
        starts = [start for start, _ in builder.edges] + [one for many, _ in builder.waiting_edges for one in many]
        return START in starts or len(builder.branches[START]) > 1

    def _events(self, ledgers: dict[str, Any], config: RunnableConfig) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        for guard in self.guards:
            event = {**guard.stamp, "event": "input", "scope": None}
            if guard.per == "turn" and ledgers.get(guard.name):
                start = len(flatten(_pregel.read(config, (HISTORY,), fresh=False).get(HISTORY)))
                events.append({**event, "event": "turn", "history_from": start})
            elif any(ledger.get("waiting") for ledger in ledgers.get(guard.name, {}).values()):
                events.append(event)
        return events


def _waits(ledgers: dict[str, Any] | None) -> bool:
    """Whether a loop of the thread is shut and no person has decided yet."""
    return any(ledger.get("tripped") for scopes in (ledgers or {}).values() for ledger in scopes.values())

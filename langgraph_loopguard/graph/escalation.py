"""The two nodes behind a shut edge: one writes the record into state, the next one asks a person.

They are two because a node that interrupts runs again from its start when it is resumed. Each record is asked for by a
task of its own, so that several trips of one superstep have several questions, each answered by its own id; what the
answers mean is then done by one more task for all, so that they do not stand in each other's way.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.constants import END
from langgraph.types import Command, Send, interrupt

from langgraph_loopguard.core.errors import EscalationError
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import ESCALATIONS, HELD, HISTORY, LEDGERS, STANDING
from langgraph_loopguard.graph.decision import answer_schema, hitl_request
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.graph.record import build_escalation
from langgraph_loopguard.graph.resolution import Resolution, written_down
from langgraph_loopguard.graph.restore import chosen_work
from langgraph_loopguard.graph.state import Shape
from langgraph_loopguard.graph.tool_calls import answer_tool_calls

ASK = "loopguard_ask"
"""Name of the node that asks a person."""

logger = logging.getLogger("langgraph_loopguard")


class _GuardNode(Runnable[Any, Any]):
    """A node that serves all guards of one builder."""

    def __init__(self, name: str, guards: tuple[LoopGuard, ...], shape: Shape) -> None:
        self.name = name
        self.guards = guards
        self.shape = shape

    def guard(self, name: str) -> LoopGuard | None:
        """The guard of a name; `None` for one that this graph does not have (an older version of it had)."""
        return next((guard for guard in self.guards if guard.name == name), None)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same as `invoke`: there is nothing to wait for."""
        if config is None:
            return self.invoke(input, config, **kwargs)
        # Before Python 3.11 a task has no context of its own, and `interrupt` would find no config.
        with set_config_context(config) as context:
            return context.run(self.invoke, input, config, **kwargs)


class EscalationNode(_GuardNode):
    """Writes a record for every trip that has none yet, and sends each one on."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the records and where they go."""
        if config is None:
            msg = "the escalation node runs in a graph only"
            raise ValueError(msg)
        found = _pregel.read(config, (LEDGERS, HISTORY, ESCALATIONS), fresh=False)
        known: Mapping[str, Any] = found.get(ESCALATIONS) or {}
        records: dict[str, dict[str, Any]] = {}
        asked_again: dict[str, dict[str, Any]] = {}
        passed_by: dict[str, dict[str, Any]] = {}
        events: list[dict[str, Any]] = []
        goto: list[str | Send] = []
        for guard in self.guards:
            for scope, data in (found.get(LEDGERS) or {}).get(guard.name, {}).items():
                trip = data.get("tripped")
                if trip is None:
                    continue
                new = trip.get("id") not in known
                if new:
                    record = build_escalation(guard, scope, Ledger(data), found.get(HISTORY), config)
                    records[record["id"]] = record
                    events.append({**guard.stamp, "event": "recorded", "scope": scope, "id": record["id"]})
                else:
                    record = known[trip["id"]]
                way = self._way_on(guard, scope, record, config, new=new)
                if not new:
                    (passed_by if way is None else asked_again)[trip["id"]] = record
                if way is not None and way not in goto:
                    goto.append(way)
        update: dict[str, Any] = {LEDGERS: events, ESCALATIONS: records} if records else {}
        if present := {**asked_again, **records} or passed_by:
            *_, last = present.values()
            update[STANDING] = {key: record["outcome"] for key, record in present.items()}
            update |= self.shape.shown(escalation=last, outcome=last["outcome"])
        questions = [way.arg for way in goto if isinstance(way, Send)]
        if len(questions) == 1:
            questions[0]["alone"] = True
        if not goto:
            update |= answer_tool_calls(self.shape, config, "the loop guard stopped the loop")
        return Command(update=update, goto=goto or END)

    def _way_on(
        self, guard: LoopGuard, scope: str, record: dict[str, Any], config: RunnableConfig, *, new: bool
    ) -> str | Send | None:
        message = f"guard {guard.name!r} stopped {record['edge']}: {record['reason']['message']}"
        if guard.escalate_to is not None:
            logger.warning("%s", message)
            # A second try at a shut edge ends the run: the user's own node has had the record once.
            return guard.escalate_to if new else None
        waits = _pregel.has_checkpointer(config)
        if guard.ask_human and not waits:
            advice = "ask_human=True needs a checkpointer: compile(checkpointer=...); the record is in error.escalation"
            raise EscalationError(f"{message}. {advice}", record)
        if guard.ask_human is False or not waits:
            logger.warning("%s; the run ends here, the record is in state['escalation']", message)
            return None
        logger.warning("%s; a person is asked", message)
        return Send(ASK, {"id": record["id"], "scope": scope})


class AskNode(_GuardNode):
    """Asks a person about one escalation and writes down what they say; then, run once for all, does it."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Wait for the decision and write it down; without an escalation in the input, do what is written down."""
        if config is None:
            msg = "the asking node runs in a graph only"
            raise ValueError(msg)
        found = _pregel.read(config, (LEDGERS, ESCALATIONS, HELD, STANDING), fresh=False)
        if "id" not in input:
            return Resolution(self.shape, config).add_all(self.guards, found)
        record = (found.get(ESCALATIONS) or {}).get(input["id"])
        if record is None or record["decision"] is not None:
            return None
        guard = self.guard(record["loop"])
        if guard is None:
            logger.warning("escalation %s is of guard %r, which the graph has no longer", record["id"], record["loop"])
            return None

        def check(decision: Decision) -> None:
            if isinstance(guard.artifact, str):
                chosen_work(guard.artifact, record, decision, self.shape, config, given=decision.artifact)

        decision: Decision = interrupt(hitl_request(record), response_schema=answer_schema(record, check))
        tripped = ((found.get(LEDGERS) or {}).get(guard.name, {}).get(input["scope"]) or {}).get("tripped") or {}
        update = written_down(guard, input["scope"], record, decision, tripped, self.shape, config)
        update |= self.shape.shown(escalation=update[ESCALATIONS][record["id"]])
        if not input.get("alone"):
            return Command(update=update, goto=ASK)
        # Nobody else is asked in this superstep: what is decided is done in the same one.
        held = {**(found.get(HELD) or {}), **update.pop(HELD)}
        records = {**(found.get(ESCALATIONS) or {}), **update[ESCALATIONS]}
        resolution = Resolution(self.shape, config)
        resolution.add_all(self.guards, {**found, ESCALATIONS: records, HELD: held})
        return Command(update={**update, **resolution.update}, goto=resolution.goto or END)

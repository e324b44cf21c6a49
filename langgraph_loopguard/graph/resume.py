"""Answers one escalation by its id, and refuses an answer to one that does not wait.

`Command(resume=...)` goes to whatever question waits, and to none without a word when the thread is over. An answer
that comes by way of a queue or an inbox is about one escalation, and may come late or twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt

from langgraph_loopguard.core.errors import StaleDecisionError
from langgraph_loopguard.graph.channels import ESCALATIONS
from langgraph_loopguard.graph.decision import parse_decision
from langgraph_loopguard.graph.models import Decision

Compiled = CompiledStateGraph[Any, Any, Any, Any]


def resume(
    graph: Compiled, config: RunnableConfig, decision: Any, *, escalation_id: str | None = None, **kwargs: Any
) -> Any:
    """Resume a graph with the decision on one escalation.

    Args:
        graph: The compiled graph, with its checkpointer.
        config: The thread's config.
        decision: As for `Command(resume=...)`: a dict with an `action`, a `Decision`, or what LangChain's front ends
            send.
        escalation_id: The escalation that it is about; by default the one that the decision names, else the one that
            waits.
        **kwargs: For `graph.invoke`.

    Returns:
        What `graph.invoke` returns.

    Raises:
        StaleDecisionError: That escalation does not wait for a decision: it is decided already, of an earlier round, or
            unknown. Nothing is changed.
        ValueError: The decision does not fit, or several escalations wait and none is named. Nothing is changed.

    Example:
        ```python
        from typing_extensions import TypedDict
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph
        from langgraph_loopguard import StaleDecisionError, guard_loop, resume

        class State(TypedDict, total=False):
            review: str
            patch: str

        builder = StateGraph(State)
        builder.add_node("reviewer", lambda state: {"review": "Please handle None."})
        builder.add_node("fixer", lambda state: {"patch": "if x is None: return"})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")
        guard_loop(builder, "reviewer", "fixer", max_cycles=3)
        graph = builder.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "pr-17"}}
        record = graph.invoke({}, config)["escalation"]

        resume(graph, config, {"action": "accept"}, escalation_id=record["id"])
        try:
            resume(graph, config, {"action": "reject"}, escalation_id=record["id"])
        except StaleDecisionError as error:
            assert "decided already: accept" in str(error)
        ```
    """
    asking, answer = _addressed(graph.get_state(config), decision, escalation_id)
    result = graph.invoke(Command(resume={asking.id: answer}), config, **kwargs)
    _check_taken(graph.get_state(_thread(config)), answer)
    return result


async def aresume(
    graph: Compiled, config: RunnableConfig, decision: Any, *, escalation_id: str | None = None, **kwargs: Any
) -> Any:
    """The same as `resume`, with `graph.ainvoke`."""
    asking, answer = _addressed(await graph.aget_state(config), decision, escalation_id)
    result = await graph.ainvoke(Command(resume={asking.id: answer}), config, **kwargs)
    _check_taken(await graph.aget_state(_thread(config)), answer)
    return result


def _addressed(state: Any, decision: Any, escalation_id: str | None) -> tuple[Interrupt, dict[str, Any]]:
    """Return the question that a decision answers, and the decision as it goes in."""
    waiting = {record["id"]: (one, record) for one, record in _escalations(state.interrupts)}
    wanted = escalation_id if escalation_id is not None else _named(decision)
    if wanted is None and len(waiting) > 1:
        msg = f"escalation_id must name one of those that wait: {', '.join(waiting)}"
        raise ValueError(msg)
    if wanted is None and waiting:
        (wanted,) = waiting
    if wanted not in waiting:
        raise StaleDecisionError(_why_not(state, wanted, waiting))
    asking, record = waiting[wanted]
    found = parse_decision(decision, record)
    # Only what was said: an artifact of a class of its own stays one.
    answer = {name: getattr(found, name) for name in found.model_fields_set}
    return asking, {**answer, "escalation_id": record["id"], "decided_at": found.decided_at}


def _escalations(interrupts: Iterable[Interrupt]) -> Iterable[tuple[Interrupt, Mapping[str, Any]]]:
    for one in interrupts:
        record = one.value.get("escalation") if isinstance(one.value, Mapping) else None
        if isinstance(record, Mapping) and "id" in record:
            yield one, record


def _named(decision: Any) -> str | None:
    if isinstance(decision, Decision):
        return decision.escalation_id
    if isinstance(decision, Mapping) and "action" in decision:
        found: str | None = decision.get("escalation_id", decision.get("id"))
        return found
    return None


def _why_not(state: Any, wanted: str | None, waiting: Iterable[str]) -> str:
    known = (state.values.get(ESCALATIONS) or {}) if isinstance(state.values, Mapping) else {}
    record = known.get(wanted) if isinstance(wanted, str) else None
    if wanted is None:
        return "no escalation of this thread waits for a decision"
    if record is None:
        why = "is unknown to this thread"
    elif record["decision"] is not None:
        why = f"is decided already: {record['decision']['action']}"
    else:
        why = "is not asked about at present: its loop waits for the next try at its edge, or a new turn has opened it"
    return f"escalation {wanted!r} {why}; waiting: {', '.join(waiting) or 'none'}"


def _check_taken(state: Any, answer: Mapping[str, Any]) -> None:
    """Refuse to call an answer taken when another one was quicker. (The records of a subgraph are not seen here.)"""
    known = (state.values.get(ESCALATIONS) or {}) if isinstance(state.values, Mapping) else {}
    decided = (known.get(answer["escalation_id"]) or {}).get("decision")
    if decided is not None and decided["decided_at"] != answer["decided_at"]:
        msg = f"escalation {answer['escalation_id']!r} was decided by someone else meanwhile: {decided['action']}"
        raise StaleDecisionError(msg)


def _thread(config: RunnableConfig) -> RunnableConfig:
    """The config of the thread's latest checkpoint, where the given one names an earlier one."""
    configurable = {key: value for key, value in config["configurable"].items() if key != "checkpoint_id"}
    return {**config, "configurable": configurable}

"""From a person's answer to a `Decision`: every shape that LangGraph's front ends send, checked before it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from langgraph_loopguard.core.errors import StaleDecisionError
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.graph.options import needed_budget


def parse_decision(answer: Any, record: Mapping[str, Any]) -> Decision:
    """Return the decision that an answer to an escalation stands for.

    Args:
        answer: The contract's own dict (or a `Decision`); LangChain's `HITLResponse`
            (`{"decisions": [{"type": "approve"}]}`); or the older Agent Inbox list (`[{"type": "accept"}]`).
        record: The escalation's record.

    Raises:
        StaleDecisionError: The answer names another escalation.
        ValueError: The answer has none of these shapes, or does not fit this escalation.
    """
    decision = answer if isinstance(answer, Decision) else _decode(answer, record)
    _check(decision, record)
    if decision.decided_at is None:
        decision = decision.model_copy(update={"decided_at": datetime.now(timezone.utc).isoformat()})
    return decision.model_copy(update={"escalation_id": record["id"]})


def answer_schema(record: Mapping[str, Any], check: Callable[[Decision], Any] = lambda decision: None) -> Any:
    """Return the type for `interrupt(response_schema=...)`: a bad answer is refused and the interrupt stays open.

    Args:
        record: The escalation's record.
        check: Raises `ValueError` for a decision that cannot be carried out.
    """

    def parse(answer: Any) -> Decision:
        decision = parse_decision(answer, record)
        check(decision)
        return decision

    return Annotated[
        Any,
        BeforeValidator(parse),
        WithJsonSchema(_json_schema(record)),
    ]


def _json_schema(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a front end needs for a form: the actions and the fields that there are for this escalation."""
    properties: dict[str, Any] = dict(Decision.model_json_schema()["properties"])
    usable = {name for option in record["options"] for name in option["fields"]}
    unused = {"fix", "artifact"} - usable | {"decided_at", "schema_version"}
    kept = {name: found for name, found in properties.items() if name not in unused}
    actions = [option["action"] for option in record["options"]]
    means = " ".join(f"{option['action']}: {option['description']}" for option in record["options"])
    kept["action"] = {"type": "string", "enum": actions, "title": "Action", "description": means}
    if "fix" in kept:
        number = {"type": "integer", "minimum": 1, "maximum": len(record["fixes"])}
        kept["fix"] = {**kept["fix"], "anyOf": [number, {"type": "null"}]}
    return {
        "type": "object",
        "title": "Decision",
        "description": record["question"],
        "properties": kept,
        "required": ["action"],
    }


def hitl_request(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the interrupt's value: LangChain's `HITLRequest` with the record beside it."""
    name = f"{record['loop']} escalation"
    fields = [name for option in record["options"] for name in option["fields"]]
    args = {"action": "accept"} | {name: 0 if name.startswith("extra_") else None for name in fields}
    return {
        "action_requests": [{"name": name, "args": args, "description": record["question"]}],
        "review_configs": [{"action_name": name, "allowed_decisions": ["approve", "edit", "reject", "respond"]}],
        "escalation": record,
    }


def _decode(answer: Any, record: Mapping[str, Any]) -> Decision:
    if isinstance(answer, Mapping) and "action" in answer:
        return Decision.model_validate(dict(answer))
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), list):
        return _from_typed(_only(answer["decisions"], "decisions"), record)
    if isinstance(answer, list):
        return _from_typed(_only(answer, "answer"), record)
    msg = (
        'answer must be {"action": "accept" | "reject" | "edit" | "retry", ...}, '
        f'{{"decisions": [{{"type": ...}}]}} or [{{"type": ...}}], got {answer!r}'
    )
    raise ValueError(msg)


def _only(items: list[Any], name: str) -> Mapping[str, Any]:
    if len(items) != 1 or not isinstance(items[0], Mapping):
        msg = f"{name} must hold exactly one decision, got {items!r}"
        raise ValueError(msg)
    return items[0]


def _from_typed(item: Mapping[str, Any], record: Mapping[str, Any]) -> Decision:
    """Read one decision of a `HITLResponse` or of the older Agent Inbox."""
    kind = item.get("type")
    args = item.get("args")
    if kind in ("approve", "accept"):
        return Decision(action="accept")
    if kind in ("reject", "ignore"):
        return Decision(action="reject", note=_words(item))
    if kind in ("respond", "response"):
        more: Mapping[str, Any] = next(
            (option["respond_with"] for option in record["options"] if option["action"] == "retry"), {}
        )
        if (words := _words(item)) is None:
            msg = f"a {kind} must carry a message, got {item!r}"
            raise ValueError(msg)
        return Decision(action="retry", guidance=words, **more)
    if kind == "edit":
        action = item.get("edited_action") or args
        edited = action.get("args") if isinstance(action, Mapping) else None
        if isinstance(edited, Mapping) and "action" in edited:
            return Decision.model_validate({key: value for key, value in edited.items() if value is not None})
        if isinstance(edited, Mapping) and edited.get("artifact") is not None:
            return Decision(action="edit", artifact=edited["artifact"])
        msg = f"an edit must carry args with an action or an artifact, got {item!r}"
        raise ValueError(msg)
    msg = f"type must be approve, accept, reject, ignore, edit, respond or response, got {kind!r}"
    raise ValueError(msg)


def _words(item: Mapping[str, Any]) -> str | None:
    """What a person said: `message` in a `HITLResponse`, `args` in the older Agent Inbox."""
    words = item.get("message") or item.get("args") or None
    if words is not None and not isinstance(words, str):
        msg = f"the words of a {item['type']} must be a text, got {words!r}"
        raise ValueError(msg)
    return words


def _check(decision: Decision, record: Mapping[str, Any]) -> None:
    named = decision.escalation_id
    if named is not None and named != record["id"]:
        msg = f"escalation_id {named!r} is not the one that waits for a decision: {record['id']!r}"
        raise StaleDecisionError(msg)
    allowed = [option["action"] for option in record["options"]]
    if decision.action not in allowed:
        msg = f"action must be one of {', '.join(allowed)} here, got {decision.action!r}"
        raise ValueError(msg)
    usable = next(option["fields"] for option in record["options"] if option["action"] == decision.action)
    if decision.fix is not None and "fix" not in usable:
        why = "there is no attempt" if not record["fixes"] else "the guard has no artifact= that is a state key"
        msg = f"fix={decision.fix} cannot be put into the state: {why}; accept without fix"
        raise ValueError(msg)
    if decision.fix is not None and decision.fix > len(record["fixes"]):
        msg = f"fix must be at most {len(record['fixes'])}, the number of attempts, got {decision.fix}"
        raise ValueError(msg)
    text = decision.artifact
    if isinstance(text, str) and ("\0" in text or to_jsonable(text) != text):
        # PostgreSQL cannot store it under a state key, and would fail again at each resume.
        msg = "artifact must be a text without NUL and lone surrogates"
        raise ValueError(msg)
    needed = needed_budget(record["reason"])
    if decision.action == "retry" and needed is not None and not getattr(decision, needed):
        msg = f"{needed} must be positive: that budget is spent, and a retry renews only what it names"
        raise ValueError(msg)

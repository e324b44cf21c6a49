"""Brings a work product back from a record, where it stands as JSON, into the state, with its type there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.graph.state import Shape

KEEP: Any = object()
"""Stands for a work product that is in the state already."""


def chosen_work(
    key: str, record: Mapping[str, Any], decision: Decision, shape: Shape, config: RunnableConfig, *, given: Any = None
) -> Any:
    """Return the value that a decision puts under the state key of the work product; `KEEP` for none.

    Args:
        key: The state key.
        record: The escalation's record.
        decision: What the person said.
        shape: What is known of the state.
        config: The present task's config.
        given: The person's own work as it was given, for an edit.

    Raises:
        ValueError: The attempt holds no work product, or it cannot be brought back into the type that the state has.
    """
    if decision.action == "edit":
        return typed(shape, key, given, "artifact")
    if decision.fix is None:
        return KEEP
    fix = record["fixes"][decision.fix - 1]
    chosen = fix["artifact"] if fix.get("artifact") is not None else fix["content"].get(key)
    if chosen is None:
        msg = f"fix={decision.fix} holds no work product; accept without fix, or another attempt"
        raise ValueError(msg)
    present = _pregel.read(config, (key,), fresh=False).get(key)
    # What is in the state is the attempt itself, its JSON may be less (a secret is masked there).
    return KEEP if to_jsonable(present) == chosen else typed(shape, key, chosen, f"fix={decision.fix}")


def typed(shape: Shape, key: str, value: Any, name: str) -> Any:
    """Return the value of the key's declared type that has this JSON; the JSON itself where the type asks for none.

    Args:
        shape: What is known of the state.
        key: The state key.
        value: JSON, or a value that has its type already.
        name: What the value is, for the error.

    Raises:
        ValueError: The key holds a model or a dataclass, and the value is none.
    """
    channel = shape.channels.get(key)
    declared: Any = channel.ValueType if channel is not None else Any
    try:
        found = TypeAdapter(declared).validate_python(value)
    except PydanticUserError:  # a type that pydantic knows nothing of
        return value
    except ValidationError as error:
        if not _is_class(declared):
            return value  # a plain annotation, which LangGraph does not check either
        msg = f"{name} cannot be put into the state key {key!r} as {declared!r}: {error}"
        raise ValueError(msg) from error
    # Pydantic would make a number of a text, too: a plain annotation may not change what the value says.
    return found if _is_class(declared) or to_jsonable(found) == to_jsonable(value) else value


def _is_class(declared: Any) -> bool:
    """Whether a type is a model or a dataclass, or holds one (`list[Model]`, `Model | None`)."""
    if isinstance(declared, type) and (issubclass(declared, BaseModel) or dataclasses.is_dataclass(declared)):
        return True
    return any(_is_class(part) for part in get_args(declared))

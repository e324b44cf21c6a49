"""The user's state as the guard's selectors see it, whatever kind of class it is."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langgraph.channels.base import BaseChannel
from langgraph.graph import StateGraph
from pydantic import BaseModel

from langgraph_loopguard.core.reader import Selector as Selector
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import ESCALATION, GUARD_KEYS, OUTCOME, ValueChannel

PLAIN = "__loopguard_plain_state__"
"""Attribute of a class of `without_guard_keys`: the user's own."""

SHOWN = (ESCALATION, OUTCOME)
"""Keys that stand in what `invoke` returns."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """What is known of a graph's state: its class, its keys, and the channels that hold them.

    `channels` is the builder's own mapping, so that keys which later nodes bring along are seen too.
    """

    schema: type[Any]
    channels: Mapping[str, BaseChannel[Any, Any, Any]]
    keys: tuple[str, ...]

    @classmethod
    def of(cls, builder: StateGraph[Any, Any, Any, Any]) -> Shape:
        """Return the shape of a builder's state.

        Raises:
            ValueError: The state has no keys (`StateGraph(list)`), so there is no place for a guard's channels.
        """
        schema = getattr(builder.state_schema, PLAIN, builder.state_schema)
        keys = tuple(key for key in builder.schemas[schema] if key in builder.channels)
        if "__root__" in builder.channels:
            msg = f"the state {schema!r} has no keys: a guard needs a state with keys for its own channels"
            raise ValueError(msg)
        return cls(schema, builder.channels, keys)

    def whole(self, values: Mapping[str, Any]) -> Any:
        """Return the state as its nodes get it: a dict, or an object of the state's class."""
        return self.schema(**values) if is_object(self.schema) else dict(values)

    def is_guards(self, key: str) -> bool:
        """Whether a key is the guard's own, and not one of the user's that has the same name."""
        return key in GUARD_KEYS and (key not in SHOWN or isinstance(self.channels.get(key), ValueChannel))

    def shown(self, **values: Any) -> dict[str, Any]:
        """Return the update of `escalation` and `outcome`, as far as they are the guard's."""
        return {key: value for key, value in values.items() if self.is_guards(key)}


def is_object(schema: Any) -> bool:
    """Whether a state class makes objects (dataclass, pydantic) and not dicts."""
    return isinstance(schema, type) and (issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema))


def without_guard_keys(schema: type[Any]) -> type[Any]:
    """Return a class that makes objects of `schema` from values among which there are the guard's.

    LangGraph makes the state's class from all channels when it streams with `version="v2"`; a class that knows no
    private channels would refuse them.
    """

    def make(cls: type[Any], **values: Any) -> Any:
        return schema(**{key: value for key, value in values.items() if key not in GUARD_KEYS or key in known})

    known = set(get_type_hints(schema))
    return type(schema.__name__, (schema,), {"__new__": make, PLAIN: schema, "__module__": schema.__module__})


class StateView:
    """The state after the present task's writes, read on demand.

    Args:
        config: The task's config.
        shape: What is known of the state; `None` when a guard is wired by hand and not yet added to the builder.
        value: The state that LangGraph handed to the router or the node.
        pending: Updates that LangGraph will write only after the present call (a node's own `Command`).
    """

    __slots__ = ("_config", "_pending", "_shape", "_value")

    def __init__(
        self, config: RunnableConfig, shape: Shape | None, value: Any, pending: Mapping[str, Any] | None = None
    ) -> None:
        self._config = config
        self._shape = shape
        self._value = value
        self._pending = pending or {}

    def select(self, selector: Selector, extra: Any = None) -> Any:
        """Return what a selector says; keys of `extra` (a `Send`'s argument) come before those of the state."""
        if isinstance(selector, str):
            if isinstance(extra, Mapping) and selector in extra:
                return extra[selector]
            return self._key(selector)
        state = self._whole()
        if isinstance(extra, Mapping) and isinstance(state, dict):
            state = {**state, **extra}
        return selector(state)

    def _key(self, key: str) -> Any:
        if self._shape is not None and key not in self._shape.channels:
            msg = f"the state has no key {key!r}; its keys are {', '.join(sorted(self._shape.keys))}"
            raise LookupError(msg)
        found = _pregel.read(self._config, [key], fresh=True) if self._shape is not None else _fields(self._value)
        return self._after(key, found.get(key)) if key in self._pending else found.get(key)

    def _whole(self) -> Any:
        if self._shape is None:
            return {**_fields(self._value), **self._pending} if self._pending else self._value
        values = _pregel.read(self._config, self._shape.keys, fresh=True)
        for key in self._pending:
            if key in self._shape.keys:
                values[key] = self._after(key, values.get(key))
        return self._shape.whole(values)

    def _after(self, key: str, current: Any) -> Any:
        channel = self._shape.channels.get(key) if self._shape is not None else None
        if channel is None:
            return self._pending[key]
        # A copy: a reducer that changes its left side in place must not change the state itself.
        after = channel.copy() if current is None else channel.from_checkpoint(copy.copy(current))
        after.update([self._pending[key]])
        return after.get()


def _fields(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, BaseModel):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {}

"""Node caching beside a guard.

LangGraph caches a whole step, its routing too, so a hit would pass the gate without being judged. For a node in a loop
the cache key therefore holds what the gate judges by: a hit stands only where the judgement is the same. What is cached
in one thread still serves another that has come just as far; a loop that goes round does not live off its cache.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from langgraph.graph import StateGraph
from typing_extensions import get_type_hints
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.fingerprint import Fingerprinter
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import LEDGERS, STEPS
from langgraph_loopguard.graph.state import is_object
from langgraph_loopguard.graph.wiring import RecordedNode

PASSING = ("seconds", "steps_left", "stride", "growth", "at")
"""Parts of a ledger that differ from run to run and decide nothing by themselves."""

_plain = Fingerprinter(scrub=False)


def cache_inside(builder: StateGraph[Any, Any, Any, Any], node: str) -> None:
    """Let a recorded node's cache policy, its own or the builder's default, ask for the ledgers too."""
    spec = builder.nodes[node]
    policy = spec.cache_policy or _pregel.default_cache_policy(builder)
    if policy is None or isinstance(policy.key_func, JudgedKey) or not isinstance(spec.runnable, RecordedNode):
        return
    original = spec.input_schema
    with_ledgers = type(original.__name__, (), {"__annotations__": get_type_hints(original, include_extras=True)})
    own: dict[str, Any] = {LEDGERS: builder.channels[LEDGERS], STEPS: builder.managed[STEPS]}
    builder.schemas[with_ledgers] = {**builder.schemas[original], **own}
    plain = PlainInput(original)
    recorded = RecordedNode(spec.runnable.inner, spec.runnable.recorder, plain)
    keyed = dataclasses.replace(policy, key_func=JudgedKey(policy.key_func, plain))
    builder.nodes[node] = dataclasses.replace(spec, runnable=recorded, cache_policy=keyed, input_schema=with_ledgers)


@dataclasses.dataclass(frozen=True)
class PlainInput:
    """Turns the input of a node that is also handed the ledgers into the one that it knows."""

    schema: type[Any]

    def __call__(self, value: Any) -> Any:
        """Return the node's own input; the argument of a `Send` comes without ledgers and is it already."""
        if not isinstance(value, Mapping) or STEPS not in value:
            return value
        own = {key: item for key, item in value.items() if key not in (LEDGERS, STEPS)}
        return self.schema(**own) if is_object(self.schema) else own


@dataclasses.dataclass(frozen=True)
class JudgedKey:
    """A cache key that holds the ledgers beside the node's input."""

    key_func: Callable[..., str | bytes]
    plain: PlainInput

    def __call__(self, value: Any) -> str:
        """Return the key; a task made by `Send` is not handed the ledgers, so its key is new each time."""
        if not isinstance(value, Mapping) or STEPS not in value:
            return uuid4().hex
        ledgers = {
            guard: {
                scope: {key: item for key, item in ledger.items() if key not in PASSING}
                for scope, ledger in scopes.items()
            }
            for guard, scopes in (value.get(LEDGERS) or {}).items()
        }
        key = self.key_func(self.plain(value))
        text = key if isinstance(key, str) else xxh3_128_hexdigest(key)
        return f"{text}|{_plain.fingerprint(ledgers)}"

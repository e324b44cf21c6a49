"""`InvalidPayload`: a handoff that does not have the shape it must have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from langgraph_loopguard.core.conditions import Condition
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.core.reader import Reader
from langgraph_loopguard.core.verdict import PROCEED, Verdict, trip

ERRORS = 5
"""Errors of one payload that are kept as evidence."""

TEXT = 200
"""Characters of an error that are kept."""


@dataclass(frozen=True)
class SchemaReader:
    """Notes what is wrong with a payload."""

    model: Any
    node: str | None
    key: str | None

    @property
    def name(self) -> str:
        """See `Reader.name`."""
        name = getattr(self.model, "__qualname__", None)
        shown = f"{self.model.__module__}.{name}" if name else repr(self.model)
        return ":".join(("schema", shown[:TEXT], self.node or "", self.key or ""))

    @property
    def skips_makers(self) -> bool:
        """See `Reader.skips_makers`."""
        return False

    def read(self, node: str, payload: Any, earlier: Iterable[Any]) -> Any:
        """See `Reader.read`. A text is read as JSON, unless the schema takes it as it is."""
        if self.node is not None and node != self.node:
            return None
        if self.key is not None:
            if not isinstance(payload, Mapping) or self.key not in payload:
                return None
            payload = payload[self.key]
        elif payload is None or payload == {}:
            return None  # nothing was handed over
        adapter = _adapter(self.model)
        try:
            adapter.validate_python(payload)
        except ValidationError as error:
            if isinstance(payload, (str, bytes)):
                try:
                    adapter.validate_json(payload)
                except ValidationError as as_json:
                    return _errors(as_json)
                return None
            return _errors(error)
        return None


@dataclass(frozen=True, repr=False)
class InvalidPayload(Condition):
    """The handoff fails its schema.

    Args:
        model: A pydantic model, or any type that pydantic can check.
        node: The only node to look at; `None` looks at each.
        key: The key of the update to check; a node that did not write it is not judged. `None`: the whole payload.

    Example:
        ```python
        from pydantic import BaseModel
        from langgraph_loopguard import InvalidPayload, LoopGuard

        class Review(BaseModel):
            verdict: str

        guard = LoopGuard("reviewer", "fixer", stop_when=InvalidPayload(Review, node="reviewer", key="review"))
        ledger, verdict = guard.observe(None, "reviewer", {"review": {"verdict": 7}})
        assert verdict.tripped and verdict.reason.kind == "invalid"
        ```
    """

    model: Any
    node: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        for parameter, value in (("node", self.node), ("key", self.key)):
            if value is not None and (not isinstance(value, str) or not value):
                msg = f"InvalidPayload({parameter}) must be a name, got {value!r}"
                raise ValueError(msg)
        try:
            if self.model is None or isinstance(self.model, str):  # pydantic would look for a type of that name later
                raise TypeError(self.model)
            _adapter(self.model)
        except Exception as error:
            msg = f"InvalidPayload(model) must be a type that pydantic can check, got {self.model!r}"
            raise ValueError(msg) from error

    @property
    def reader(self) -> SchemaReader:
        """What looks into the payloads."""
        return SchemaReader(self.model, self.node, self.key)

    @property
    def readers(self) -> tuple[Reader, ...]:
        """See `Condition.readers`."""
        return (self.reader,)

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        node = ledger.last
        window = ledger.window(node) if node is not None else []
        note = window[-1].get("notes", {}).get(self.reader.name) if window else None
        if note is None:
            return PROCEED
        shown = getattr(self.model, "__name__", None) or repr(self.model)
        first = note["errors"][0]
        where = f" in {first['where']}" if first["where"] else ""
        return trip(
            self.name,
            "invalid",
            threshold=shown,
            observed=note["count"],
            message=f"what {node} handed over is no valid {shown}{where}: {first['message']}",
            evidence=({"node": node, "visit": window[-1]["n"], "cycle": window[-1]["cycle"], **note},),
        )


@lru_cache(maxsize=256)
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _errors(error: ValidationError) -> dict[str, Any]:
    """Return the first errors, without the values that caused them."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return {
        "count": len(found),
        "errors": [
            {"where": ".".join(map(str, one["loc"]))[:TEXT], "message": one["msg"][:TEXT], "type": one["type"]}
            for one in found[:ERRORS]
        ],
    }

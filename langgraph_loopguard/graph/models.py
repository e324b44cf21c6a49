"""The record handed to a person, and what the person may answer. State and interrupts hold their JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator, model_validator

from langgraph_loopguard.core.text import html_table

SCHEMA_VERSION = 1
"""Version of the shapes of `Escalation` and `Decision`."""

Outcome = Literal["complete", "blocked", "escalated"]
"""How a loop ended.

- `complete`: by itself, as the graph's own routing says.
- `blocked`: it waits for something that the system can obtain; a guard that broke ends here too.
- `escalated`: it waits for a person.
"""

Action = Literal["accept", "reject", "edit", "retry"]
"""What a person may decide: end the loop with the work as it is, without it, with their own, or let it go on."""

ACTIONS: tuple[Action, ...] = ("accept", "reject", "edit", "retry")


class Emission(BaseModel):
    """One review or one fix attempt, as the node wrote it."""

    model_config = ConfigDict(extra="allow")

    n: int
    """Number among the reviews, or among the fix attempts, from 1."""
    cycle: int
    """The cycle that it belongs to, from 1; 0 before the first."""
    node: str
    time: str
    """When, ISO 8601 in UTC."""
    content: Any
    """The update that the node returned, as JSON, texts to the byte."""
    fingerprint: str | None = None
    tokens: int = 0
    seconds: float = 0.0
    measure: float | None = None
    """What was still open after it."""
    artifact: Any = None
    """The whole work product after it, where it does not stand in `content` already."""


class Spent(BaseModel):
    """What the loop cost until the trip."""

    seconds: float = 0.0
    tokens: int = 0
    usd: str | None = None
    """US dollars as an exact decimal; `None` where no price is known."""


class Decision(BaseModel):
    """What a person said.

    Raises:
        pydantic.ValidationError: A field is unknown, missing or of the wrong kind; the message names it.
    """

    model_config = ConfigDict(extra="forbid")

    action: Action
    fix: int | None = Field(default=None, ge=1, description="accept this fix attempt (its number, from 1)")
    artifact: Any = Field(default=None, description="edit: the work product as it shall be")
    guidance: str | None = Field(default=None, description="retry: what the nodes shall take into account")
    extra_cycles: int = Field(default=0, ge=0, le=1_000_000, description="retry: cycles added to the cap")
    extra_tokens: int = Field(default=0, ge=0, le=10**15, description="retry: tokens added to the budget")
    extra_seconds: float = Field(default=0, ge=0, le=10**9, description="retry: seconds added to the budget")
    extra_usd: Decimal = Field(
        default=Decimal(0), ge=0, le=10**9, description="retry: US dollars added to the budget, as an exact decimal"
    )
    decided_by: str | None = None
    note: str | None = None
    escalation_id: str | None = Field(
        default=None,
        validation_alias=AliasChoices("escalation_id", "id"),
        description="the escalation that is answered; another one is refused",
    )
    decided_at: str | None = None
    schema_version: int = Field(default=SCHEMA_VERSION, ge=1, le=SCHEMA_VERSION)

    @field_validator(
        "fix", "extra_cycles", "extra_tokens", "extra_seconds", "extra_usd", "schema_version", mode="before"
    )
    @classmethod
    def _no_bool(cls, value: Any) -> Any:
        if isinstance(value, bool):  # pydantic would take True for 1
            msg = f"must be a number, got {value!r}"
            raise ValueError(msg)
        return value

    @model_validator(mode="after")
    def _fits_action(self) -> Decision:
        if self.action == "edit" and self.artifact is None:
            msg = "action 'edit' needs an artifact"
            raise ValueError(msg)
        if self.action != "retry" and (self.extra_cycles or self.extra_tokens or self.extra_seconds or self.extra_usd):
            msg = f"extra cycles, tokens, seconds and usd go with action 'retry', not with {self.action!r}"
            raise ValueError(msg)
        if self.action != "accept" and self.fix is not None:
            msg = f"fix={self.fix} goes with action 'accept', not with {self.action!r}"
            raise ValueError(msg)
        return self


class Escalation(BaseModel):
    """Everything that a person needs to decide about a loop that was stopped."""

    model_config = ConfigDict(extra="allow")

    id: str
    """The same over retry and resume; new at each trip."""
    thread_id: str | None
    loop: str
    """Name of the guard."""
    nodes: list[str]
    edge: str
    """The edge that stays shut, `"source->target"`."""
    scope_key: Any
    outcome: Outcome
    reason: dict[str, Any]
    """`condition`, `kind`, `threshold`, `observed`, `message`, `evidence`."""
    cycles: int
    spent: Spent
    diff: str
    """The work product: its unified diff from attempt to attempt, or itself when it is a patch already."""
    reviews: list[Emission]
    fixes: list[Emission]
    findings: list[Any]
    """What is still open."""
    evidence: list[Any]
    best_fix: dict[str, Any] | None
    """`fix` (its number), `measure` and `why`."""
    question: str
    options: list[dict[str, Any]]
    created_at: str
    decision: Decision | None = None
    schema_version: int = SCHEMA_VERSION

    def _repr_html_(self) -> str:
        spent = f"{self.spent.seconds:g} s, {self.spent.tokens:,} tokens"
        decision = self.decision
        return html_table(
            f"Escalation {self.id}",
            [
                ("loop", self.loop),
                ("edge", self.edge),
                ("thread", self.thread_id),
                ("scope key", self.scope_key),
                ("outcome", self.outcome),
                ("reason", f"{self.reason.get('condition')}: {self.reason.get('message')}"),
                ("cycles", self.cycles),
                ("spent", spent if self.spent.usd is None else f"{spent}, ${self.spent.usd}"),
                ("reviews, fixes", f"{len(self.reviews)}, {len(self.fixes)}"),
                ("last review", self.reviews[-1].content if self.reviews else None),
                ("diff", self.diff),
                ("question", self.question),
                ("decision", f"{decision.action} by {decision.decided_by or 'unknown'}" if decision else "open"),
            ],
        )

"""`CostBudget`: US dollars, by the prices of `genai-prices`, as exact decimals."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from langgraph_loopguard.core.conditions import Condition, graded
from langgraph_loopguard.core.ledger import MONEY, Ledger
from langgraph_loopguard.core.verdict import PROCEED, Verdict

logger = logging.getLogger("langgraph_loopguard")

Amount = Decimal | int | float | str
"""US dollars. A float counts as it is written: 0.1 is ten cents."""


@dataclass(frozen=True, repr=False)
class CostBudget(Condition):
    """At most `usd` US dollars for the model calls in the loop's nodes. Judged at handoffs, as `TokenBudget` is.

    Prices come from `genai-prices` (the extra `cost`), by the model's name in each message's metadata. A model whose
    price is not known costs nothing here: its tokens are counted as unpriced, the log warns once per model, and the
    evidence names them. A budget for such models is a `TokenBudget`.

    Args:
        usd: US dollars that are allowed.
        warn_at: US dollars from which on the verdict warns.

    Raises:
        ImportError: `genai-prices` is not installed.

    Example:
        ```python
        from langgraph_loopguard import CostBudget, LoopGuard

        guard = LoopGuard("reviewer", "fixer", stop_when=CostBudget("0.50", warn_at="0.40"))
        usage = {"input_tokens": 200_000, "output_tokens": 10_000, "model": "gpt-4o"}
        ledger, verdict = guard.observe(None, "reviewer", "remark", usage=usage)
        assert verdict.tripped and verdict.reason.condition == "CostBudget"
        ```
    """

    usd: Amount
    warn_at: Amount | None = None

    def __post_init__(self) -> None:
        limit = read_usd("CostBudget(usd)", self.usd)
        if limit <= 0:
            msg = f"CostBudget(usd) must be a positive amount, got {self.usd!r}"
            raise ValueError(msg)
        warn_at = None if self.warn_at is None else read_usd("CostBudget(warn_at)", self.warn_at)
        if warn_at is not None and warn_at >= limit:
            msg = f"CostBudget(warn_at) must be below {limit}, where it trips, got {self.warn_at!r}"
            raise ValueError(msg)
        if find_spec("genai_prices") is None:
            msg = "CostBudget needs genai-prices: pip install 'langgraph-loopguard[cost]'"
            raise ImportError(msg)
        object.__setattr__(self, "_limit", limit)
        object.__setattr__(self, "_warn_at", warn_at)

    @property
    def needs_cost(self) -> bool:
        """See `Condition.needs_cost`."""
        return True

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        own: Decimal = self._limit  # type: ignore[attr-defined]
        warn_at: Decimal | None = self._warn_at  # type: ignore[attr-defined]
        more, spent = ledger.granted_usd, ledger.usd
        limit = MONEY.add(own, more)
        if spent < (limit if warn_at is None else MONEY.add(warn_at, more)):
            return PROCEED
        message = f"{spent} US dollars are spent, the budget is {limit}"
        evidence = {"visits": ledger.visits, "tokens": ledger.tokens, "unpriced_tokens": ledger.unpriced}
        return graded(spent >= limit, self.name, "exhausted", f"{limit:f}", f"{spent:f}", message, evidence)


def read_usd(parameter: str, amount: Any) -> Decimal:
    """Return an amount of US dollars as an exact decimal.

    Raises:
        ValueError: It is no finite amount of at least 0; with the parameter's name and the value.
    """
    if isinstance(amount, (Decimal, int, float, str)) and not isinstance(amount, bool):
        try:
            exact = Decimal(str(amount))
        except InvalidOperation:
            exact = Decimal("NaN")
        if exact.is_finite() and exact >= 0:
            return exact
    msg = f"{parameter} must be a finite amount of US dollars, got {amount!r}"
    raise ValueError(msg)


def price(usage: Mapping[str, Any], model: str | None, provider: str | None = None) -> Decimal | None:
    """Return what one model call cost in US dollars; `None` when the price is not known (the log says so once).

    Args:
        usage: LangChain's `usage_metadata`: `input_tokens`, `output_tokens`, perhaps `input_token_details`.
        model: Name of the model, as in `response_metadata["model_name"]`.
        provider: Who serves it, as in `response_metadata["model_provider"]`; `None` finds the first that has the model.

    Raises:
        ImportError: `genai-prices` is not installed.
    """
    if not model:
        _say_once(None, None)
        return None
    try:
        from genai_prices import Usage, calc_price
    except ImportError as error:
        msg = "prices need genai-prices: pip install 'langgraph-loopguard[cost]'"
        raise ImportError(msg) from error
    details = usage.get("input_token_details") or {}
    counts = Usage(
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=details.get("cache_read") or 0,
        cache_write_tokens=details.get("cache_creation") or 0,
        input_audio_tokens=details.get("audio") or 0,
        output_audio_tokens=(usage.get("output_token_details") or {}).get("audio") or 0,
    )
    for by in (provider, None) if provider else (None,):  # LangChain's name of a provider need not be a known one
        try:
            return calc_price(counts, model_ref=model, provider_id=by).total_price
        except (LookupError, ValueError):  # an unknown model, or counts that contradict each other
            continue
    _say_once(model, provider)
    return None


@lru_cache(maxsize=1024)
def _say_once(model: str | None, provider: str | None) -> None:
    if model is None:
        logger.warning("a model call names no model, so it has no price: its tokens are counted as unpriced")
        return
    logger.warning("no price is known for model %r (provider %r): its tokens are counted as unpriced", model, provider)


class Call(NamedTuple):
    """One model call, as LangChain's messages tell of it."""

    usage: Mapping[str, Any]
    model: str | None
    provider: str | None

    @property
    def tokens(self) -> int:
        """Tokens in and out."""
        usage = self.usage
        return int(usage.get("total_tokens") or ((usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)))


def cost_of(calls: Iterable[Call]) -> tuple[str, int]:
    """Return what calls cost together in US dollars, as an exact decimal, and the tokens that have no known price."""
    usd, unpriced = Decimal(0), 0
    for call in calls:
        found = price(call.usage, call.model, call.provider)
        if found is None:
            unpriced += call.tokens
        else:
            usd = MONEY.add(usd, found)
    return f"{usd:f}", unpriced

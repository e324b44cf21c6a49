"""`NoProgress`: what is open has not reached a new low for some cycles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from langgraph_loopguard.core.conditions import Condition, at_least, graded, warns_before
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.core.reader import Selector
from langgraph_loopguard.core.verdict import PROCEED, Verdict


@dataclass(frozen=True, repr=False)
class NoProgress(Condition):
    """For `patience` whole cycles the measure of what is open has reached no new low.

    Swapping one finding for another is no progress, and neither is winning back what was lost: only fewer open ones
    than ever before. While nothing is measured the condition says nothing.

    Args:
        patience: Cycles in a row without a new low.
        measure: What is open, as a number or a collection of ids: a state key or a function of the state (outside a
            graph: of the payload). `None`: what the guard measures (`LoopGuard(measure=...)`, `observe(measure=...)`).
        warn_at: Such cycles from which on the verdict warns.

    Example:
        ```python
        from langgraph_loopguard import LoopGuard, NoProgress

        guard = LoopGuard("reviewer", "fixer", max_cycles=99, stop_when=NoProgress(2))
        ledger = None
        for cycle, findings in enumerate([["F1", "F2"], ["F2"], ["F3"], ["F4"]]):
            ledger, verdict = guard.observe(ledger, "reviewer", f"remark {cycle}", measure=findings)
        assert verdict.tripped and verdict.reason.message.startswith("1 are open, no new low for 2 cycles")
        ```
    """

    patience: int = 3
    measure: Selector | None = None
    warn_at: int | None = None

    def __post_init__(self) -> None:
        at_least("NoProgress(patience)", self.patience, 1)
        warns_before("NoProgress(warn_at)", self.warn_at, self.patience)
        measure = self.measure
        if measure is not None and not callable(measure) and (not isinstance(measure, str) or not measure):
            msg = f"NoProgress(measure) must be a key or a function, got {measure!r}"
            raise ValueError(msg)

    @property
    def measures(self) -> Mapping[str, Selector]:
        """See `Condition.measures`."""
        return {self._name: self.measure} if self.measure is not None and self._name is not None else {}

    @property
    def _name(self) -> str | None:
        if self.measure is None or isinstance(self.measure, str):
            return self.measure
        return str(getattr(self.measure, "__qualname__", type(self.measure).__qualname__))

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        measure = ledger.measured(self._name)
        if not measure:
            return PROCEED
        count = max(0, ledger.cycles - 1 - measure["cycle"])  # the cycle that begins now is not over
        if count < (self.warn_at or self.patience):
            return PROCEED
        best, last = measure["best"], measure["last"]
        message = f"{last:g} are open, no new low for {count} cycle{'s' * (count > 1)} (the lowest was {best:g})"
        evidence = {"best": best, "last": last, "reached_in_cycle": measure["cycle"], "cycle": ledger.cycles}
        return graded(count >= self.patience, self.name, "stalled", self.patience, count, message, evidence)

"""`RestatedPayload`: the same complaint in other words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.embeddings import Embeddings

from langgraph_loopguard.core.conditions import Condition, graded, holds
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.core.prose import prose
from langgraph_loopguard.core.reader import Reader
from langgraph_loopguard.core.similarity import Similarity, as_similarity, jaccard, words_and_names
from langgraph_loopguard.core.verdict import PROCEED, Verdict

SAME_NAMES = 0.6
"""Share of the names in two texts that must be in both. Below, they are about different things."""


@dataclass(frozen=True)
class TextReader:
    """Notes how a text is worded (as a `Similarity` remembers it) and what it names."""

    similarity: Similarity
    node: str | None = None

    @property
    def name(self) -> str:
        """See `Reader.name`."""
        return f"text:{self.similarity.name}{f':{self.node}' if self.node is not None else ''}"

    @property
    def skips_makers(self) -> bool:
        """See `Reader.skips_makers`."""
        return self.node is None

    def read(self, node: str, payload: Any, earlier: Iterable[Any]) -> Any:
        """See `Reader.read`."""
        if self.node is not None and node != self.node:
            return None
        text, labels = prose(payload)
        if not text:
            return None
        words, names = words_and_names(text)
        return {**self.similarity.note(text, words, earlier), "names": labels + names}


@dataclass(frozen=True, repr=False)
class RestatedPayload(Condition):
    """A node says the same `times` times in other words, within its last `window` emissions.

    The nodes that make the work product are left out: what they write is alike by nature. A text that names other
    things (files, numbers, people), or fewer of them, is about other work, however alike the wording: batches, pages
    and lists that shrink are no loop.

    Args:
        threshold: How alike two texts must be, from above 0 to 1. `None`: what suits the similarity (0.25 for words).
        times: Emissions that say the same, the present one included; at least 2.
        node: The only node to look at; `None` looks at each that does not make the work product.
        window: Emissions of the node to look back on; it must hold `times`. `None`: twice `times`.
        similarity: Any LangChain `Embeddings`, or a `Similarity`. `None`: by the words, in microseconds.
        same_names: Two texts say the same only if most of their names and numbers are the same.
        warn_at: Emissions from which on the verdict warns.

    Example:
        ```python
        from langgraph_loopguard import LoopGuard, RestatedPayload

        guard = LoopGuard("reviewer", "fixer", max_cycles=10, stop_when=RestatedPayload(times=2))
        ledger, _ = guard.observe(None, "reviewer", "The login handler never checks whether the token expired.")
        ledger, _ = guard.observe(ledger, "fixer", "Done.")
        ledger, verdict = guard.observe(ledger, "reviewer", "Again: the login handler never checks the token expired.")
        assert verdict.tripped and verdict.reason.condition == "RestatedPayload"
        ```
    """

    threshold: float | None = None
    times: int = 3
    node: str | None = None
    window: int | None = None
    similarity: Embeddings | Similarity | None = field(default=None, hash=False)  # an Embeddings may have no hash
    same_names: bool = True
    warn_at: int | None = None

    def __post_init__(self) -> None:
        holds("RestatedPayload", self.times, self.node, self.window, self.warn_at)
        number = isinstance(self.threshold, (int, float)) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (number and 0 < self.threshold <= 1):
            msg = f"RestatedPayload(threshold) must be a number above 0 and at most 1, got {self.threshold!r}"
            raise ValueError(msg)
        object.__setattr__(self, "_reader", TextReader(as_similarity(self.similarity), self.node))

    @property
    def reader(self) -> TextReader:
        """What looks into the texts."""
        found: TextReader = self._reader  # type: ignore[attr-defined]
        return found

    @property
    def readers(self) -> tuple[Reader, ...]:
        """See `Condition.readers`."""
        return (self.reader,)

    @property
    def memory(self) -> int:
        """See `Condition.memory`."""
        return self.window or 2 * self.times

    @property
    def needs_artifact(self) -> bool:
        """The work product tells which nodes make it."""
        return self.node is None

    def check(self, ledger: Ledger) -> Verdict:
        """See `Condition.check`."""
        node = ledger.last
        if node is None or (self.node is not None and node != self.node):
            return PROCEED
        window = ledger.window(node)[-self.memory :]
        least = self.warn_at or self.times
        if len(window) < least or (self.node is None and node in ledger.makers):
            return PROCEED
        key = self.reader.name
        note = window[-1].get("notes", {}).get(key)
        if note is None:
            return PROCEED
        names = set(note["names"])
        noted = [
            (entry, earlier)
            for entry in window[:-1]
            if (earlier := entry.get("notes", {}).get(key)) is not None
            and (not self.same_names or about_the_same(names, set(earlier["names"])))
        ]
        if len(noted) < least - 1:
            return PROCEED
        scores = self.reader.similarity.alike(note, [earlier for _, earlier in noted])
        same = [
            {"visit": entry["n"], "cycle": entry["cycle"], "alike": round(score, 2)}
            for (entry, _), score in zip(noted, scores, strict=True)
            if score >= self._threshold
        ]
        count = 1 + len(same)
        if count < least:
            return PROCEED
        message = f"{node} has said the same {count} times in other words"
        evidence = {"node": node, "visit": window[-1]["n"], "cycle": window[-1]["cycle"], "restates": same}
        evidence |= {"similarity": key, "threshold": self._threshold, "names": note["names"]}
        return graded(count >= self.times, self.name, "stalled", self.times, count, message, evidence)

    @property
    def _threshold(self) -> float:
        return self.reader.similarity.threshold if self.threshold is None else self.threshold


def about_the_same(names: set[str], earlier: set[str]) -> bool:
    """Whether a text names what an earlier one named: most of it, and not merely less (then the list gets shorter).

    Where both give numbers, one at least must be the same: five open findings are not the six of before.
    """
    if names == earlier:
        return True
    if jaccard(names, earlier) < SAME_NAMES:
        return False
    numbers, earlier_numbers = _numbers(names), _numbers(earlier)
    if numbers and earlier_numbers and not numbers & earlier_numbers:
        return False
    return not names - numbers < earlier - earlier_numbers


def _numbers(names: set[str]) -> set[str]:
    return {name for name in names if name[0].isdigit()}

"""What a history says about a cap: the answer of `tune`, as rows, a frame and a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.core.text import html_text
from langgraph_loopguard.report.errors import need
from langgraph_loopguard.report.survival import CycleStep

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """What a cap would have done, per loop.

    Attributes:
        cap: `max_cycles`.
        resolved: Share of loops that come to an end by themselves within it.
        escalated: Share that a person has to look at: all others.
        cycles: Cycles that a loop takes, on average.
        seconds: Seconds of the loop's nodes, on average.
        minutes: A person's minutes, on average.
        loop_usd: Dollars for the loop's cycles, on average; `None` where a cycle has no price.
        person_usd: Dollars for the person's minutes, on average; `None` without a price of a minute.
        usd: Both together.
    """

    cap: int
    resolved: float
    escalated: float
    cycles: float
    seconds: float
    minutes: float
    loop_usd: float | None
    person_usd: float | None
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What the history of one loop says about its cap. Made by `tune`.

    Attributes:
        loop: The guard's name.
        endings: Loops by how they can be read (see `Ending`).
        level: Of the intervals.
        steps: What is known of each cycle.
        caps: What each cap would have done, as far as enough loops went.
        recommended: The cap that costs least; `None` when that cannot be said.
        at_least: The best cap may be the highest that is known of, so a still higher one may be better.
        agreement: Share of resampled histories whose best cap is within one of the best here; `None` without prices.
        why: One sentence.
    """

    loop: str
    endings: dict[str, int]
    level: float
    steps: tuple[CycleStep, ...]
    caps: tuple[Cap, ...]
    recommended: int | None
    at_least: bool
    agreement: float | None
    why: str

    def frame(self) -> DataFrame:
        """Return the caps as a pandas frame, the chance and the share with their intervals beside them.

        Raises:
            MissingExtraError: pandas is not installed (extra `notebook`).
        """
        frame: DataFrame = need("pandas").DataFrame(self.rows())
        return frame

    def rows(self) -> list[dict[str, Any]]:
        """Return one flat, plain row per cap."""
        rows = []
        for cap in self.caps:
            step = self.steps[cap.cap]
            seen: dict[str, Any] = {"cap": cap.cap, "at_risk": step.at_risk}
            for name, interval in (("chance", step.chance), ("resolved", step.share)):
                seen |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
            rows.append(seen | {name: value for name, value in asdict(cap).items() if name not in seen})
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON."""
        head = {name: getattr(self, name) for name in ("loop", "endings", "level", "recommended", "at_least")}
        return {**head, "agreement": self.agreement, "why": self.why, "caps": self.rows()}

    def _repr_html_(self) -> str:
        rows = self.rows()
        names = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
        head = "".join(f"<th>{html_text(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html_text(shown(row[name]))}</td>' for name in names)}</tr>" for row in rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{html_text(self.loop)}: {html_text(self.why)}</p>{table}"


def shown(value: Any) -> str:
    """Return a cell of the table: whole numbers as they are, shares and dollars with two digits."""
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)

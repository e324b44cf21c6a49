"""Prints the tables, and writes them into the docs on request. See the package's docstring."""

from __future__ import annotations

import argparse
import logging
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.detection import made
from benchmarks.detection.play import Score, bare, score, wilson
from benchmarks.detection.rules import RULES, stuck_detector
from benchmarks.detection.similarity import curve, default, interval, read_pairs
from benchmarks.detection.timing import event_cost
from benchmarks.detection.traces import Trace, read

BEGIN, END = "<!-- made by benchmarks.detection: begin -->", "<!-- end -->"
SETS = {
    "made": "made",
    "made, bare": "made, bare",
    "families": "families",
    "families, bare": "families, bare",
    "streams": "streams",
    "openhands": "OpenHands",
    "chatdev_review": "review",
    "chatdev_review, text": "review, text",
    "chatdev_test": "test",
    "magentic_one": "Magentic",
    "tau_airline": "τ air",
    "tau_retail": "τ retail",
}
PRESETS = [rule for rule in RULES if rule.startswith("preset")]
BY_VERDICT = ("streams", "openhands")
"""Sets of single cases, for which the right verdicts are counted."""


def main() -> None:
    """Read the arguments and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description="What the conditions detect.")
    parser.add_argument("folder", nargs="?", type=Path, help="labelled runs (see the package's docstring)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks in this file")
    parser.add_argument("--wrong", action="store_true", help="name the runs that each preset gets wrong")
    arguments = parser.parse_args()
    logging.getLogger("langgraph_loopguard").setLevel(logging.ERROR)  # the tables say it
    sets = collected(arguments.folder)
    scores = {rule: {name: score(traces, make) for name, traces in sets.items()} for rule, make in RULES.items()}
    text = "\n".join(report(arguments.folder, sets, scores))
    print(text)
    if arguments.wrong:  # never into the docs: these are names of recorded runs
        for rule in PRESETS:
            for name, found in scores[rule].items():
                for case in found.wrong:
                    print(f"- {rule}, {name}: {case}")
    if arguments.write is not None:
        page = arguments.write.read_text(encoding="utf-8")
        head, rest = page.split(BEGIN)
        tail = rest.split(END, 1)[1]
        arguments.write.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")


def collected(folder: Path | None) -> dict[str, list[Trace]]:
    """All sets, in the order of the columns."""
    sets: dict[str, list[Trace]] = defaultdict(list)
    sets["made"] = made.traces()
    for trace in read(folder) if folder is not None else ():
        sets[trace.set].append(trace)
    without = {"made, bare": "made", "families, bare": "families", "chatdev_review, text": "chatdev_review"}
    for name, of in without.items():
        sets[name] = [bare(trace) for trace in sets.get(of, [])]
    return {name: sets[name] for name in SETS if sets.get(name)}


def report(folder: Path | None, sets: dict[str, list[Trace]], scores: dict[str, dict[str, Score]]) -> Iterator[str]:
    """Yield the lines of all tables."""
    yield "Stopped runs: looping ones / honest ones (/ those of unknown label); of `streams` and `OpenHands` the right"
    yield "verdicts. The first line says how many there are."
    yield ""
    yield f"| rule | {' | '.join(SETS[name] for name in sets)} |"
    yield f"|---|{'---|' * len(sets)}"
    first = next(iter(scores.values()))
    yield f"| *runs* | {' | '.join(total(name, first[name]) for name in sets)} |"
    for rule, by_set in scores.items():
        yield f"| {rule} | {' | '.join(cell(name, by_set[name]) for name in sets)} |"
    yield ""
    yield "When and at what cost: the median cycle of the stops of looping runs, and the share of their text that was"
    yield "written until the stop (a run that is not stopped counts as 100 %)."
    yield ""
    timed = [name for name in sets if name not in BY_VERDICT and first[name].runs["loop"]]
    yield f"| rule | {' | '.join(SETS[name] for name in timed)} |"
    yield f"|---|{'---|' * len(timed)}"
    for rule, by_set in scores.items():
        yield f"| {rule} | {' | '.join(when(by_set[name]) for name in timed)} |"
    yield ""
    yield "Rates of the presets with Wilson's 95 % interval: loops found, and honest runs stopped."
    yield ""
    yield "| set | preset | loops | honest |"
    yield "|---|---|---|---|"
    for name in sets:
        if name in BY_VERDICT:
            continue
        for rule in PRESETS:
            found = scores[rule][name]
            yield f"| {SETS[name]} | {rule.removeprefix('preset ')} | {rate(found, 'loop')} | {rate(found, 'ok')} |"
    if "openhands" in sets:
        own = score(sets["openhands"], stuck_detector)
        yield ""
        cases = sum(own.runs.values())
        yield f"With the thresholds of the OpenHands cases, in our conditions: {own.right} of {cases} right."
    yield from similarity(folder)
    yield from cost()


def similarity(folder: Path | None) -> Iterator[str]:
    """Yield the curve of the measures of likeness."""
    recorded = read_pairs(folder) if folder is not None else []
    pairs = recorded or made.pairs()
    rows, missing = curve(pairs)
    same = sum(pair[2] for pair in pairs)
    yield ""
    yield f"Which of {len(pairs)} pairs of complaints are the same one ({same} are): area under the curve, share found"
    yield "at 0, 2 and 5 % false ones, and processor time per pair."
    yield ""
    yield "| measure | AUC | at 0 % | at 2 % | at 5 % | µs |"
    yield "|---|---|---|---|---|---|"
    for row in sorted(rows, key=lambda row: -row.auc):
        recalls = " | ".join(f"{value:.2f}" for value in row.recalls)
        yield f"| {row.name} | {row.auc:.3f} | {recalls} | {row.microseconds:.0f} |"
    if recorded and folder is not None:
        low, high = interval(recorded, folder, default)
        yield ""
        yield f"95 % interval of the default's AUC, drawn over whole runs: {low:.3f} to {high:.3f}."
    if missing:
        yield ""
        yield f"Not measured here, because it is not installed: {', '.join(missing)}."


def cost() -> Iterator[str]:
    """Yield what an event costs."""
    yield ""
    yield "One event (`observe`, 1 kB of text, every condition of the preset on), in microseconds,"
    yield "the best batch of 50:"
    yield ""
    yield "| preset | first 1,000 events | after 10,000 | 10 kB |"
    yield "|---|---|---|---|"
    for preset in ("strict", "progress"):
        costs = event_cost(preset), event_cost(preset, before=10_000), event_cost(preset, size=10_000)
        yield f"| `{preset}` | {' | '.join(f'{one:.0f}' for one in costs)} |"


def shown(counts: dict[str, int], found: Score) -> str:
    """Counts by label; the unknown ones only where there are any."""
    labels = ("loop", "ok", "unknown") if found.runs["unknown"] else ("loop", "ok")
    return " / ".join(str(counts[label]) for label in labels)


def total(name: str, found: Score) -> str:
    """How many runs there are."""
    return str(sum(found.runs.values())) if name in BY_VERDICT else shown(found.runs, found)


def cell(name: str, found: Score) -> str:
    """What was stopped."""
    return str(found.right) if name in BY_VERDICT else shown(found.stopped, found)


def when(found: Score) -> str:
    """When the looping ones were stopped, and what had been paid by then."""
    cycle = "-" if found.cycle is None else f"{found.cycle:g}"
    late = f", {found.late} late" if found.late else ""
    return f"{cycle} ({100 * (found.paid or 0):.0f} %{late})"


def rate(found: Score, label: str) -> str:
    """A rate with its interval."""
    hits, runs = found.stopped[label], found.runs[label]
    if not runs:
        return "-"
    low, high = wilson(hits, runs)
    return f"{hits} of {runs} ({100 * low:.0f}-{100 * high:.0f} %)"


if __name__ == "__main__":
    main()

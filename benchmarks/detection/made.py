"""Runs of our own making: the kinds of loop that people report, and honest work that looks like them.

Every run has a label by construction. A seed makes the words; no sentence is taken from any recorded run.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from benchmarks.detection.traces import Event, Trace

PAIR = ("reviewer", "fixer")
THINGS = [
    "lock",
    "cursor",
    "header",
    "cache",
    "parser",
    "index",
    "upload",
    "session",
    "queue",
    "counter",
    "margin",
    "socket",
]
FAULTS = {
    "is never released": ["stays taken for good", "is not given back at the end", "leaks when the call returns"],
    "ignores the locale": ["does not look at the locale", "takes no notice of the locale", "works for one locale only"],
    "breaks on empty input": ["fails when nothing is given", "cannot take empty input", "dies on an empty input"],
    "is read without a check": ["is used unchecked", "is trusted without any check", "needs a check before it is read"],
}
FRAMES = [
    "Please look at the {thing} again: it still {fault}, and this has to be dealt with before we can merge the change.",
    "As far as I can see the {thing} still {fault}; this has to be dealt with before we can merge the change.",
    "The {thing} in this change {fault}. This has to be dealt with before we can merge the change, please.",
    "One remark is left on the {thing}: it {fault}, which has to be dealt with before we can merge the change.",
]


def remark(random_: random.Random, thing: str, fault: str) -> str:
    """One complaint, worded at random."""
    return random_.choice(FRAMES).format(thing=thing, fault=fault)


def patch(random_: random.Random) -> str:
    """A patch that was never seen before."""
    lines = [f"+    {random_.choice(THINGS)} = take({random_.randrange(10**6)})" for _ in range(6)]
    return "\n".join([f"--- a/{random_.choice(THINGS)}.py", *lines])


def same(r: random.Random) -> Iterator[Event]:
    """Review and patch are the same, to the letter."""
    text, diff = remark(r, "lock", "is never released"), patch(r)
    for _ in range(10):
        yield Event("reviewer", {"review": text}, diff, ["F1"])
        yield Event("fixer", {"patch": diff}, diff, ["F1"])


def restated(r: random.Random) -> Iterator[Event]:
    """The same complaint in other words; every fix changes something."""
    thing = r.choice(THINGS)
    for number in range(10):
        yield Event(
            "reviewer", {"review": FRAMES[number % 4].format(thing=thing, fault="is never released")}, None, ["F1"]
        )
        yield Event("fixer", {"patch": (diff := patch(r))}, diff, ["F1"])


def nothing_changes(r: random.Random) -> Iterator[Event]:
    """New complaints; the fixer promises much and changes nothing."""
    diff = patch(r)
    for number in range(10):
        yield Event("reviewer", {"review": remark(r, THINGS[number], r.choice(list(FAULTS)))}, diff, [f"F{number}"])
        yield Event("fixer", {"note": f"Done, part {number}."}, diff, [f"F{number}"])


def flaps(r: random.Random) -> Iterator[Event]:
    """Two fixes in turn, each undoing the other."""
    diffs = patch(r), patch(r)
    for number in range(10):
        yield Event(
            "reviewer", {"review": remark(r, THINGS[number], r.choice(list(FAULTS)))}, diffs[number % 2 - 1], ["F1"]
        )
        yield Event("fixer", {"patch": diffs[number % 2]}, diffs[number % 2], ["F1"])


def swaps(r: random.Random) -> Iterator[Event]:
    """Each fix opens a new finding as it closes one."""
    for number in range(10):
        finding = [f"F{number}", "F99"]
        yield Event("reviewer", {"review": remark(r, THINGS[number], r.choice(list(FAULTS)))}, None, finding)
        yield Event("fixer", {"patch": (diff := patch(r))}, diff, finding)


def honest(r: random.Random) -> Iterator[Event]:
    """Six findings, one fixed in each round."""
    found = r.sample(THINGS, 6)
    diff = patch(r)
    for number in range(6):
        yield Event("reviewer", {"review": remark(r, found[number], r.choice(list(FAULTS)))}, diff, found[number:])
        yield Event("fixer", {"patch": (diff := patch(r))}, diff, found[number:])


def batch(r: random.Random) -> Iterator[Event]:
    """Eight files, one after the other, with one form of words for all."""
    files = [f"src/{thing}.py" for thing in r.sample(THINGS, 8)]
    for number, file in enumerate(files):
        yield Event(
            "reviewer",
            {"review": f"I have read {file} and it is fine, go on with the next file."},
            None,
            files[number + 1 :],
        )
        yield Event("fixer", {"next": files[(number + 1) % 8]}, None, files[number + 1 :])


def shorter(r: random.Random) -> Iterator[Event]:
    """The same list each time, less what was done."""
    left = [f"{thing.capitalize()}Store" for thing in r.sample(THINGS, 7)]
    while left:
        text = f"Please handle the missing input check in each of these classes: {', '.join(left)}."
        yield Event("reviewer", {"review": text}, None, list(left))
        left.pop(r.randrange(len(left)))
        yield Event("fixer", {"patch": (diff := patch(r))}, diff, list(left))


def paging(r: random.Random) -> Iterator[Event]:
    """One call after the other, with another page each time."""
    for number in range(9):
        yield Event("reviewer", {"call": "read", "page": number}, None, 9 - number)
        yield Event("fixer", {"text": "the header of every page is the same one", "page": number}, None, 9 - number)


LOOPS: list[Callable[[random.Random], Iterator[Event]]] = [same, restated, nothing_changes, flaps, swaps]
WORK: list[Callable[[random.Random], Iterator[Event]]] = [honest, batch, shorter, paging]


def traces(seeds: int = 8) -> list[Trace]:
    """All kinds, once per seed."""
    return [
        Trace("made", f"{make.__name__}/{seed}", label, PAIR, list(make(random.Random(f"{make.__name__} {seed}"))))
        for label, kinds in (("loop", LOOPS), ("ok", WORK))
        for make in kinds
        for seed in range(seeds)
    ]


def pairs(runs: int = 60) -> list[tuple[str, str, bool]]:
    """Pairs of complaints: the same one in other words, or another one in the same form of words."""
    r = random.Random("pairs")
    out = []
    for _ in range(runs):
        thing, other = r.sample(THINGS, 2)
        fault = r.choice(list(FAULTS))
        first = remark(r, thing, fault)
        out.append((first, remark(r, thing, r.choice(FAULTS[fault])), True))
        out.append((first, remark(r, other, r.choice([one for one in FAULTS if one != fault])), False))
    return out

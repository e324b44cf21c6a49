"""What each condition and each preset stops, and what it stops by mistake, on labelled runs.

`python -m benchmarks.detection [FOLDER] [--write docs/detection.md]`

Without a folder it plays only the data of its own making (`made.py`), which is here to be re-run by anyone. With one,
it reads `families.jsonl`, `streams.jsonl`, `openhands_*_traces.jsonl` and `traces/*.jsonl` as far as they are there.

How a recorded run is fed to `LoopGuard.observe` (`traces.py`); nothing that a label follows from is shown to a guard,
unless it is named here:

- **families** (reviewer and fixer, some with a planner): every event is an emission, its `msg` the payload; `open` is
  the measure and `rev` the artifact. The columns "bare" show the same traces with the payload alone.
- **streams** (one edge each): the emissions of the edge's source. A human's line is a `retry`, a visit of an outer loop
  is a new scope key. Right is the labelled verdict at the labelled handoff.
- **openhands** (unit tests of a stuck detector, as hashes): an action with what it got to see is one emission; a user's
  message is a new turn where the mode is interactive. Right is the verdict at the end of the trace.
- **chatdev_review**, **chatdev_test** (Code Reviewer or Test Engineer, and Programmer): what each wrote is the payload.
  The artifact is a number for the state of the code: a new one when the log recorded a change, an old one when it
  recorded a return to that. No measure was recorded. The label counts rounds without change too, so a rule that looks
  at the artifact is **partly circular** here; the columns "text" show the same runs without it.
- **magentic_one** (Orchestrator first, then its team in order of appearance): events of the framework are hidden, the
  task itself is no emission. There is no artifact and no measure.
- **tau_airline**, **tau_retail** (agent and simulated user): what both say, the agent's calls included; a tool is no
  agent and its results are left out. Only runs with full reward count, as runs in which nothing may trip; nobody has
  looked for repetition in them.

"Paid" is the share of all text of the looping runs that was written until the stop (1 where nothing stopped): what the
rule saves is the rest. Intervals are Wilson's, at 95 %.
"""

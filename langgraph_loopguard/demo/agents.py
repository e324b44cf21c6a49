"""The two agents when they are tools: a Reviewer that runs checkers, and Fixers that run what fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from typing_extensions import TypedDict

from langgraph_loopguard.demo.findings import Finding
from langgraph_loopguard.demo.git import Git
from langgraph_loopguard.demo.project import BASE, OpenPull
from langgraph_loopguard.demo.shell import Shell
from langgraph_loopguard.demo.tools import Command


class ReviewState(TypedDict, total=False):
    """State of the review of one pull request."""

    title: str
    review: str
    """What the Reviewer says, for people."""
    findings: list[Finding]
    """What is still open."""
    open: list[str]
    """Ids of the findings: the measure."""
    fix: str
    """What the last Fixer did."""
    diff: str
    """The pull request's diff against its base: the work product, written by Fixers only."""


Agent = Callable[[ReviewState], ReviewState]
Agents = dict[str, Agent]
"""The agents of one run by the name of their node."""


class Bench:
    """What the agents of one run share: the pull request, checked out on a branch of the run's own.

    Attributes:
        pull: The pull request.
        shell: Runs the tools, and counts them.
        tokens: Tokens that models used.
    """

    def __init__(self, repository: Path, pull: OpenPull, run: str) -> None:
        self.pull = pull
        self.git = Git(repository)
        self.shell = Shell(repository)
        self.tokens = 0
        self.git.checkout(f"{run}/{pull.name}", pull.name)

    @property
    def path(self) -> Path:
        """The file under review."""
        return self.git.path / self.pull.file

    def find(self) -> list[Finding]:
        """Run the pull request's checks."""
        return self.shell.find(self.pull.pull.checks, [self.pull.file])

    def diff(self) -> str:
        """Return the pull request's diff against its base."""
        return self.git.diff(BASE, self.pull.file)

    def commit(self, message: str) -> str:
        """Commit the file and say what has changed."""
        if self.git.commit(message, [self.pull.file]) is None:
            return "changed nothing"
        added, removed, _ = self.git.run("show", "--numstat", "--format=", "HEAD").split(maxsplit=2)
        return f"changed {self.pull.file}: {added} lines in, {removed} out"


def tool_agents(bench: Bench) -> Agents:
    """Return a Reviewer and Fixers that are tools, one for each node of the pull request's loop."""
    first, *fixers = bench.pull.pull.nodes
    agents: Agents = {first: lambda state: review_of(bench, bench.find())}
    if len(fixers) == 1:
        agents[fixers[0]] = OneThingAtATime(bench)
    else:
        for name, check in zip(fixers, bench.pull.pull.checks, strict=True):
            agents[name] = AlwaysTheSame(bench, check.fix(0, ""))
    return agents


def review_of(bench: Bench, found: Sequence[Finding]) -> ReviewState:
    """Return the Reviewer's update for what it has found."""
    return {
        "review": _spoken(bench.pull.title, found),
        "findings": list(found),
        "open": [item["id"] for item in found],
    }


class OneThingAtATime:
    """A Fixer that works on the first open finding, with the tool that is there for it; the next time with another."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._attempts: dict[str, int] = {}

    def __call__(self, state: ReviewState) -> ReviewState:
        """Fix, commit, and tell."""
        first = state["findings"][0]
        check = next(check for check in self._bench.pull.pull.checks if check.label == first["check"])
        attempt = self._attempts.get(check.label, 0)
        self._attempts[check.label] = attempt + 1
        return _apply(self._bench, check.fix(attempt, first["rule"]), f"against {first['rule']}")


class AlwaysTheSame:
    """An agent of a ring that runs its one tool whenever it is its turn."""

    def __init__(self, bench: Bench, command: Command) -> None:
        self._bench = bench
        self._command = command

    def __call__(self, state: ReviewState) -> ReviewState:
        """Fix, commit, and tell."""
        return _apply(self._bench, self._command, "as always")


def _apply(bench: Bench, command: Command, why: str) -> ReviewState:
    bench.shell.fix(command, [bench.pull.file])
    changed = bench.commit(f"Run {command[0]} {why}")
    return {"fix": f"$ {' '.join((*command, bench.pull.file))}\n{changed}", "diff": bench.diff()}


def _spoken(title: str, found: Sequence[Finding]) -> str:
    if not found:
        return f"{title}: nothing left to ask for."
    asked = [f"- {item['file']}:{item['line']} {item['rule']} ({item['check']}) {item['message']}" for item in found]
    return "\n".join((f"{title}: please see to this.", *asked))

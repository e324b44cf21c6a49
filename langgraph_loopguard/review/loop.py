"""`review_loop`: the ready graph. load, recheck, review, classify, judge, then fix and round again, or end.

```
START -> load -> recheck -> review -> classify -> judge -> end -> END
          ^                    (known answer) ->    |       |
          +------------- fix <----------------------+       |   (the guarded edge)
          +------------- ask <------------------------------+   (a person, where the run can wait)
```
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langgraph_loopguard.graph.api import guard_loop
from langgraph_loopguard.graph.channels import GuardedState
from langgraph_loopguard.review.asking import asks, make_ask
from langgraph_loopguard.review.budget import agree, current_budget
from langgraph_loopguard.review.passes import Pass
from langgraph_loopguard.review.place import desk
from langgraph_loopguard.review.repository import Repository
from langgraph_loopguard.review.settings import Settings, make_settings
from langgraph_loopguard.review.store import ReviewStore


class ReviewState(GuardedState, total=False):
    """The state of a review, as plain JSON."""

    round: int
    """Number of the pass, over all runs."""
    source: dict[str, Any] | None
    """The source state (`SourceState`); `None` when it cannot be read."""
    problem: str | None
    """Why it cannot."""
    findings: list[dict[str, Any]]
    """All findings (`Finding`)."""
    open: list[str]
    """Ids of the actionable findings that are open in scope."""
    attempt: dict[str, Any] | None
    """The attempt of this pass (`Attempt`), or the one whose answer is taken again."""
    answer: dict[str, Any] | None
    """What the reviewer answered in this pass."""
    reused: bool
    """Whether nobody was asked in this pass."""
    failure: str | None
    """Why the reviewer gave no answer."""
    fresh_scope: str | None
    """Why the whole scope was reviewed anew."""
    ruling: dict[str, Any]
    """What the stop rule says (`Ruling`)."""
    stuck: str | None
    """Why the fixer got nowhere."""
    patch: str | None
    """What the fixer has changed, as a patch of the commit that it began on."""
    fixed_from: str | None
    """That commit."""
    handoff: dict[str, Any] | None
    """The record for a person (`HandOff`), in a terminal state."""


def review_loop(
    root: str | Path,
    *,
    reviewer: Any,
    fixer: Any = None,
    goal: str = "",
    base: str | None = None,
    files: Sequence[str] = (),
    checks: Sequence[Any] = (),
    lines: Literal["file", "changed"] = "file",
    context: str = "",
    max_attempts: int = 3,
    max_seconds: float | None = None,
    extra_attempts: int = 0,
    granted_by: str | None = None,
    timeout: float = 1800.0,
    retry_failed: bool = False,
    store: ReviewStore | str | Path | None = None,
    change: str | None = None,
    ask_human: bool | None = None,
    checkpointer: BaseCheckpointSaver[Any] | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph that reviews a folder until the stop rule says that it is finished, or there is none to repair.

    `invoke({})` runs it. The result's `outcome` is `complete`, `blocked` or `escalated`, and `handoff` is the record;
    without an outcome the review is not finished and waits for a repair, as `ruling` says. It approves nothing.

    Args:
        root: The source's folder: a git work tree, or any folder. A fixer works in it.
        reviewer: A command (text or list), a chat model, a Runnable or a function of the question. It must only look.
        fixer: The same, for repairs. `None`: someone else repairs, and runs the review again.
        goal: What the change is meant to do.
        base: The ref that the change starts from. `None`: every file in scope belongs to the change.
        files: Files, folders or globs that are in scope. Default: those of the change.
        checks: The agreed checks: commands, LangChain tools, functions, or `Check` objects.
        lines: `"changed"`: a reviewer's finding is in scope on changed lines only.
        context: Further text for reviewer and fixer.
        max_attempts: Calls of the reviewer, over all runs of this change.
        max_seconds: Seconds of work, over all runs of this change.
        extra_attempts: What a person has added to them, in all.
        granted_by: Who has.
        timeout: Seconds for one call of a reviewer or fixer that is a command.
        retry_failed: Make a failed attempt again though nothing has changed.
        store: Where it is remembered. Default: a folder of the user's, outside the source.
        change: Name of the change, for the default store. Default: the branch.
        ask_human: Whether a review that is blocked or escalated stops with `interrupt()` for a decision: `accept`,
            `reject`, or `retry` with `guidance`, `extra_cycles` (further attempts) and `decided_by`. `None`: when
            there is a checkpointer.
        checkpointer: As in `compile`.

    Raises:
        ValueError: A setting makes no sense; with its name and value.
        ReviewError: The store cannot be used, or the budget would be raised without a name.

    Example:
        ```python
        import tempfile
        from pathlib import Path
        from langgraph_loopguard.review import review_loop

        root, memory = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
        (root / "sum.py").write_text("print(1 + 1)")
        graph = review_loop(
            root,
            reviewer=lambda question: {"findings": [], "summary": "Nothing to say."},
            checks=["python3 sum.py"],
            store=memory / "review.sqlite",
        )
        result = graph.invoke({})
        assert result["outcome"] == "complete"
        assert result["handoff"]["evidence"][0]["result"] == "pass"
        ```
    """
    settings = make_settings(
        root,
        reviewer=reviewer,
        fixer=fixer,
        store=_store(Path(root), store, change),
        goal=goal,
        base=base,
        files=files,
        checks=checks,
        lines=lines,
        context=context,
        max_attempts=max_attempts,
        max_seconds=max_seconds,
        extra_attempts=extra_attempts,
        granted_by=granted_by,
        timeout=timeout,
        retry_failed=retry_failed,
    )
    return build_graph(settings, ask_human).compile(checkpointer=checkpointer, name="review")


RETRIES = 1000
"""Rounds that persons may add in one thread before its guard stops them; their number is bounded by what they grant."""


def build_graph(settings: Settings, ask_human: bool | None) -> StateGraph[ReviewState, Any, Any, Any]:
    """Return the graph of a review, with its guard, not yet compiled."""
    agree(settings)
    nodes = Pass(settings)

    def end(state: ReviewState, config: RunnableConfig) -> Any:
        return nodes.end(dict(state), config["configurable"].get("thread_id"))

    builder = StateGraph(ReviewState)
    for name in ("load", "recheck", "review", "classify", "judge", "fix"):
        builder.add_node(name, getattr(nodes, name))
    builder.add_node("end", end)
    builder.add_edge(START, "load")
    builder.add_conditional_edges("load", lambda state: _after_load(state), ["recheck", "judge"])
    builder.add_edge("recheck", "review")
    builder.add_conditional_edges("review", lambda state: _after_review(state), ["classify", "judge"])
    builder.add_edge("classify", "judge")
    builder.add_conditional_edges("judge", lambda state: _after_judge(state, settings), ["fix", "end"])
    builder.add_conditional_edges("fix", lambda state: _after_fix(state), ["load", "judge", "end"])
    if ask_human is False:
        builder.add_edge("end", END)
    else:
        _add_ask(builder, settings, ask_human)
    allowed = current_budget(settings, settings.store.load()).allowed
    # The stop rule bounds the attempts; the guard bounds the rounds, whatever becomes of the rule.
    guard_loop(
        builder,
        "judge",
        "fix",
        max_cycles=allowed if ask_human is False else allowed + RETRIES,
        artifact="patch",
        measure="open",
        escalate_to="end",
        name="review",
    )
    return builder


def _add_ask(builder: StateGraph[ReviewState, Any, Any, Any], settings: Settings, ask_human: bool | None) -> None:
    """Add the node that asks a person. What bounds this way round is what the person grants."""

    def after_end(state: ReviewState, config: RunnableConfig) -> str:
        return "ask" if asks(dict(state), config, ask_human) else END

    builder.add_node("ask", make_ask(settings), destinations=("load", "fix", END))
    builder.add_conditional_edges("end", after_end, ["ask", END])


def _after_load(state: ReviewState) -> str:
    return "judge" if state["source"] is None else "recheck"


def _after_review(state: ReviewState) -> str:
    return "classify" if state.get("answer") else "judge"


def _after_judge(state: ReviewState, settings: Settings) -> str:
    ruling = state["ruling"]
    return "fix" if settings.fixer is not None and ruling["reason"] == "findings" else "end"


def _after_fix(state: ReviewState) -> str:
    if state["source"] is None:
        return "judge"
    return "end" if state.get("stuck") else "load"


def _store(root: Path, store: ReviewStore | str | Path | None, change: str | None) -> ReviewStore:
    if isinstance(store, ReviewStore):
        return store
    if store is not None:
        return ReviewStore(Path(store))
    root = root.resolve()
    repository = Repository.find(root)
    if repository is None:
        return ReviewStore(desk(root, change or "folder", top=root).store)
    name = change or repository.branch() or "detached"
    return ReviewStore(desk(repository.common, name, top=repository.top).store)

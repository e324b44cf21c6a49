"""The functional API has no edges, so the loop asks the guard itself: `guard.observe`, and `guard.decide` for a person.

The ledger is plain JSON. `entrypoint.final(save=...)` keeps it, and it comes back as `previous`: the count holds over
all the calls of a thread.
"""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import Command, interrupt

from langgraph_loopguard import LoopGuard

guard = LoopGuard("reviewer", "fixer", max_cycles=3)


@task
def review(patch: str) -> str:
    return f"Not yet: {patch!r} does not handle None."


@task
def fix(patch: str, remark: str) -> str:
    return patch + " or 0"


@entrypoint(checkpointer=InMemorySaver())
def pair(patch: str, *, previous: dict[str, Any] | None = None) -> entrypoint.final[str, dict[str, Any]]:
    ledger = previous
    while True:
        remark = review(patch).result()
        ledger, verdict = guard.observe(ledger, "reviewer", remark)
        if verdict.tripped:
            decision = interrupt({"why": verdict.reason.message, "patch": patch, "review": remark})
            ledger = guard.decide(ledger, **decision)
            if decision["action"] != "retry":
                return entrypoint.final(value=patch, save=ledger)
        patch = fix(patch, remark).result()  # after a retry this is the handoff that had been refused
        ledger, _ = guard.observe(ledger, "fixer", {"patch": patch}, artifact=patch)


def show(title: str, result: Any) -> None:
    waits = isinstance(result, dict) and "__interrupt__" in result
    print(f"{title}:", result["__interrupt__"][0].value if waits else result)


config = {"configurable": {"thread_id": "pull-request-17"}}
show("first", pair.invoke("return x", config))
show("retry", pair.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), config))
show("accept", pair.invoke(Command(resume={"action": "accept"}), config))
show("next input", pair.invoke("return y", config))  # the thread's budget is still spent

"""The five pull requests that the pair can never close, each for a reason of its own."""

from __future__ import annotations

from langgraph_loopguard.demo.pulls import RING, PullRequest
from langgraph_loopguard.demo.tools import BLACK, ISORT_ALONE, OPERATORS, TOO_LONG, UNDEFINED, YAPF

TWO_FORMATTERS = PullRequest(
    module="graphlib",
    title="add between()",
    code="""
        def between(rows, lower, upper, step):
            return rows[lower+1:upper-1] + rows[lower+step:]
    """,
    checks=(BLACK, YAPF),
    cycles=None,
    why="black and yapf undo each other",
)

OPERATOR_SIDES = PullRequest(
    module="sched",
    title="add is_due()",
    code="""
        def is_due(event, now, skipped, forced):
            return (
                event.time <= now
                and event.action not in skipped
                and event.priority < 10
                or event in forced
            )
    """,
    checks=(OPERATORS,),
    cycles=None,
    why="W503 and W504 forbid both sides of an operator",
)

NOBODY_KNOWS = PullRequest(
    module="netrc",
    title="retry the lookup",
    code="""
        def lookup_with_retry(lookup, host):
            for _ in range(retry_policy.attempts):
                entry = lookup(host)
                if entry is not None:
                    return entry
            return None
    """,
    checks=(UNDEFINED,),
    cycles=None,
    why="no tool knows which retry_policy is meant",
)

NO_ROOM = PullRequest(
    module="getopt",
    title="point to the handbook",
    code=f"""
        def complain(option, known, stream):
            message = "option {{}} is not known here; these are: {{}}; see {{}}"
            stream.write(message.format(option, ", ".join(sorted(known)), HANDBOOK) + "\\n")


        HANDBOOK = "https://docs.example.org/{"command-line-conventions/" * 5}short-and-long-options.html"
    """,
    checks=(TOO_LONG,),
    cycles=None,
    why="one formatter after the other, and none can break a link",
)

THREE_IN_A_RING = PullRequest(
    module="reprlib",
    title="add container_names()",
    imports="""
        from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
    """,
    code="""
        def container_names():
            kinds = (ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque)
            return sorted(kind.__name__ for kind in kinds)
    """,
    checks=(BLACK, ISORT_ALONE),
    nodes=RING,
    cycles=None,
    why="black and isort without a profile wrap imports differently",
)

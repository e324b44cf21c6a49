"""Source is read like the graph that it would build, and nothing of it is run."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import AuditReport, audit
from langgraph_loopguard.graph.audit.load import audit_target
from langgraph_loopguard.graph.audit.source import audit_source

HEAD = """
from typing import Any, Literal
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from langgraph_loopguard import LoopGuard, guard_compiled, guard_loop

def noop(state):
    return {}
"""

PAIR = """
builder = StateGraph(MessagesState)
builder.add_node("a", noop)
builder.add_node("b", noop)
builder.add_edge(START, "a")
builder.add_edge("a", "b")
builder.add_edge("b", "a")
"""


def read(tmp_path: Path, text: str, files: dict[str, str] | None = None) -> AuditReport:
    (tmp_path / "app.py").write_text(HEAD + textwrap.dedent(text))
    for name, more in (files or {}).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + textwrap.dedent(more))
    return audit_source(tmp_path)


def found(report: AuditReport) -> dict[str, str]:
    return {f"{cycle.graph}: {cycle}": cycle.verdict for cycle in report.cycles}


def test_a_pair_and_its_guard(tmp_path: Path) -> None:
    """The one line closes it; without it the place of the node is said."""
    report = read(tmp_path, PAIR)
    assert {"app.py:builder: a -> b -> a": "missing"} == found(report)
    assert str(tmp_path / "app.py") == report.open[0].place.file  # type: ignore[union-attr]
    guarded = PAIR + 'guard_loop(builder, "a", "b")\n'
    assert {"app.py:builder: a -> b -> a": "guarded"} == found(read(tmp_path, guarded))
    observed = PAIR + 'guard_loop(builder, "a", "b", mode="observe")\n'
    assert {"app.py:builder: a -> b -> a": "ineffective"} == found(read(tmp_path, observed))
    late = guarded + 'builder.add_edge("a", "b")\nbuilder.add_edge("b", "a")\n'
    assert {"app.py:builder: a -> b -> a": "bypassed"} == found(read(tmp_path, late))


def test_nothing_is_run(tmp_path: Path) -> None:
    """A file that would end the process, or write a file, is only read; one that is no Python is named."""
    (tmp_path / "bad.py").write_text("def StateGraph(:\n")
    report = read(tmp_path, "import os\nopen('written', 'w')\nos._exit(3)\n" + PAIR)
    assert {"app.py:builder: a -> b -> a": "missing"} == found(report)
    assert not Path("written").exists()
    assert [True] == [note.startswith("bad.py") for note in report.notes]


def test_environments_are_no_source(tmp_path: Path) -> None:
    """What others have written and installed is left out."""
    for folder in (".venv", "node_modules", "build"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "app.py").write_text(HEAD + PAIR)
    assert () == audit_source(tmp_path).graphs


WAYS = {
    "a function that builds": """
        def build(names=("a", "b")):
            graph = StateGraph(MessagesState)
            for name in names:
                graph.add_node(name, noop)
            graph.add_edge(names[0], "b")
            graph.add_edge("b", "a")
            return graph

        GRAPH
        """,
    "a chain": """
        GRAPH = (
            StateGraph(MessagesState)
            .add_node("a", noop)
            .add_node("b", noop)
            .add_edge("a", "b")
            .add_edge("b", "a")
            .compile()
        )
        """,
    "a class": """
        class Team:
            SECOND = "b"

            def __init__(self):
                self.builder = StateGraph(MessagesState)
                self._nodes()
                self.builder.add_conditional_edges("b", self.route)
                self.graph = self.builder.compile()

            def _nodes(self):
                self.builder.add_node("a", self.first)
                self.builder.add_node(self.SECOND, noop)

            def first(self, state):
                return Command(goto=self.SECOND)

            def route(self, state):
                return "a" if state["messages"] else END
        """,
    "a loop over pairs": """
        GRAPH = StateGraph(MessagesState)
        for name, node in [("a", noop), ("b", noop)]:
            GRAPH.add_node(name, node)
        for start, end in (("a", "b"), ("b", "a")):
            GRAPH.add_edge(start, end)
        """,
    "a function that is handed the builder": """
        def wire(graph):
            graph.add_edge("a", "b")
            graph.add_edge("b", "a")

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_sequence([("a", noop), ("b", noop)])
        wire(GRAPH)
        """,
    "keywords and constants": """
        A, B = "a", "b"
        FIRST = "a"
        SECOND = "b"
        GRAPH = StateGraph(state_schema=MessagesState)
        GRAPH.add_node(node=FIRST, action=noop)
        GRAPH.add_node(SECOND, action=noop, destinations=(FIRST,))
        GRAPH.add_edge(start_key=FIRST, end_key=SECOND)
        """,
    "an enum": """
        from enum import Enum

        class Step(str, Enum):
            A = "a"
            B = "b"

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node(Step.A, noop)
        GRAPH.add_node(Step.B.value, noop)
        GRAPH.add_edge(Step.A, Step.B)
        GRAPH.add_conditional_edges(Step.B, lambda state: Step.A, {"x": Step.A.value, "y": END})
        """,
    "both ways of an if": """
        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", noop)
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("a", "b")
        try:
            if unknown():
                GRAPH.add_edge("b", "a")
            else:
                GRAPH.add_edge("b", END)
        except ValueError:
            pass
        """,
    "a table of routes": """
        ROUTES = {"again": "a", "done": END}

        def route(state):
            return ROUTES[state["verdict"]]

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", noop)
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("a", "b")
        GRAPH.add_conditional_edges("b", route)
        """,
    "nodes without a name": """
        def a(state):
            return {}

        class b:
            def __call__(self, state):
                return {}

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node(a)
        GRAPH.add_node("b", b())
        GRAPH.add_edge("a", "b")
        GRAPH.add_edge("b", "a")
        GRAPH.set_finish_point("b")
        """,
    "annotated names": """
        FIRST: str = "a"
        GRAPH: StateGraph = StateGraph(MessagesState)
        GRAPH.add_node(FIRST, noop)
        GRAPH.add_node("b", noop)
        with open("x") as file:
            GRAPH.add_edge(FIRST, "b")
        if (other := GRAPH) is not None:
            other.add_edge("b", FIRST)
        """,
    "a pair of graphs": """
        def both():
            return StateGraph(MessagesState), 3

        GRAPH, number = StateGraph(MessagesState), 3
        GRAPH.add_node("a", noop)
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("a", "b")
        (GRAPH if number else None).compile().builder.add_edge("b", "a")
        """,
    "attributes of objects": """
        class Names:
            first: str = "a"

            def __init__(self):
                self.second = "b"

            @staticmethod
            def route(state):
                return "a"

        NAMES = Names()
        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node(NAMES.first, noop)
        GRAPH.add_node(NAMES.second, noop)
        GRAPH.add_edge(NAMES.first, NAMES.second)
        GRAPH.add_conditional_edges(NAMES.second, Names.route)
        """,
    "a handler of errors": """
        def failed(state):
            return Command(goto="b")

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", noop, error_handler=failed)
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("a", "b")
        GRAPH.add_conditional_edges("b", lambda state, *, to="a": to)
        """,
    "a hint": """
        def route(state) -> Literal["a", "__end__"]:
            return state["verdict"]

        async def hand(state) -> Command[Literal["b"]]:
            return Command(goto=state["next"])

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", hand)
        GRAPH.add_node("b", noop)
        GRAPH.add_conditional_edges("b", route)
        """,
    "a callable object": """
        class Node:
            def __call__(self, state):
                return Command(goto="b")

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", Node())
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("b", "a")
        """,
    "a partial and a send": """
        from functools import partial

        def hand(target, state):
            return Command(goto=[Send(target, state)])

        GRAPH = StateGraph(MessagesState)
        GRAPH.add_node("a", partial(hand, "b"))
        GRAPH.add_node("b", noop)
        GRAPH.add_edge("b", "a")
        """,
}


@pytest.mark.parametrize("way", sorted(WAYS))
def test_ways_to_build_a_graph(way: str, tmp_path: Path) -> None:
    """However the source gets to its graph, the one cycle is found, once."""
    report = read(tmp_path, WAYS[way])
    cycles = [(cycle.verdict, cycle.nodes) for cycle in report.cycles]
    assert [("missing", ("a", "b"))] == [cycle for cycle in cycles if len(cycle[1]) == 2]
    assert all("__error_handler__a" in nodes for _, nodes in cycles if len(nodes) != 2)


def test_names_from_other_files(tmp_path: Path) -> None:
    """Nodes, routers, names and agents come from other files of the folder, by every form of import."""
    report = read(
        tmp_path,
        """
        import package.routes
        from package import nodes
        from package.nodes import SECOND, hand as first
        from package.agents import inner

        builder = StateGraph(MessagesState)
        builder.add_node("a", first)
        builder.add_node(SECOND, nodes.back)
        builder.add_node("c", inner)
        builder.add_conditional_edges(SECOND, package.routes.route)
        """,
        {
            "package/__init__.py": "",
            "package/nodes.py": """
                SECOND = "b"
                FIRST: str = "a"
                def hand(state):
                    return Command(goto=SECOND)
                def back(state):
                    return {}
            """,
            "package/routes.py": """
                from .nodes import FIRST
                from . import nodes
                def route(state):
                    return FIRST if state["messages"] == nodes.SECOND else END
            """,
            "package/agents.py": """
                from langchain.agents import create_agent
                def look(path):
                    return path
                inner = create_agent("model", tools=[look], name="inner")
            """,
        },
    )
    expected = {"app.py:builder: a -> b -> a": "missing", "app.py:builder/c: model -> tools -> model": "missing"}
    assert expected == found(report)


def test_a_function_that_is_called_is_not_read_by_itself(tmp_path: Path) -> None:
    """A builder that is guarded where it is called is guarded."""
    text = "def build():\n" + textwrap.indent(PAIR, "    ") + "    return builder\n\n"
    assert {"missing"} == set(found(read(tmp_path, text)).values())
    text += 'graph = build()\nguard_loop(graph, "a", "b")\n'
    assert {"guarded"} == set(found(read(tmp_path, text)).values())


def test_guards_in_pieces(tmp_path: Path) -> None:
    """`guard.node`, `guard.edge`, `guard.add_to`; without the last there is no guard."""
    text = """
        guard = LoopGuard("a", "b")
        builder = StateGraph(MessagesState)
        builder.add_node("a", guard.node("a", noop))
        builder.add_node("b", guard.node("b", lambda state: Command(goto="a")))
        builder.add_conditional_edges("a", *guard.edge("a", "b"))
    """
    assert {"missing"} == set(found(read(tmp_path, text)).values())
    assert {"guarded"} == set(found(read(tmp_path, text + "    guard.add_to(builder)\n")).values())


def test_agents_and_their_tools(tmp_path: Path) -> None:
    """An agent with tools goes round; its guarded copy does not; a swarm's handoffs are edges."""
    agents = (
        "from langchain.agents import create_agent\nfrom langgraph_swarm import create_handoff_tool, create_swarm\n"
    )
    agent = agents + 'agent = create_agent("m", [noop])\n'
    assert {"app.py:agent: model -> tools -> model": "missing"} == found(read(tmp_path, agent))
    agent += 'agent = guard_compiled(agent, "model", "tools")\n'
    assert {"app.py:agent: model -> tools -> model": "guarded"} == found(read(tmp_path, agent))
    limited = agents + (
        "from langchain.agents.middleware import ModelCallLimitMiddleware\n"
        'agent = create_agent("m", [noop], middleware=[ModelCallLimitMiddleware(run_limit=3)])\n'
    )
    assert {"app.py:agent: model -> tools -> model": "weak"} == found(read(tmp_path, limited))
    swarm = agents + (
        'x = create_agent("m", [create_handoff_tool(agent_name="y")], name="x")\n'
        'y = create_agent("m", [create_handoff_tool(agent_name="x")], name="y")\n'
        'team = create_swarm([x, y], default_active_agent="x")\n'
    )
    assert {"app.py:team: x -> y -> x": "missing"} == found(read(tmp_path, swarm))
    assert {"app.py:team: x -> y -> x": "guarded"} == found(read(tmp_path, swarm + 'guard_loop(team, "x", "y")\n'))


def test_an_agent_inside_a_node(tmp_path: Path) -> None:
    """A node that calls a graph is looked into; it is reported there, and not once more for itself."""
    inner = PAIR.replace("builder", "inner") + "inner = inner.compile()\n"
    text = f"""
def call(state):
    return inner.invoke(state)
{inner}
outer = StateGraph(MessagesState)
outer.add_node("in", call)
"""
    assert {"app.py:outer/in: a -> b -> a": "missing"} == found(read(tmp_path, text))


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A router of elsewhere, a node of elsewhere that no edge leaves, a name that is known at run time only."""
    report = read(
        tmp_path,
        """
        from elsewhere import node, route
        builder = StateGraph(MessagesState)
        builder.add_node("a", noop)
        builder.add_node("b", node)
        builder.add_node(input(), noop)
        builder.add_conditional_edges("a", route)
        """,
    )
    assert {f"app.py:builder: {name} -> ?": "unknown" for name in ("a", "b", "?")} == found(report)
    assert "adds a node whose name is known at run time only" in report.cycles[-1].reason
    assert report.without(["a", "b -> ?", "?"]).ok


def test_a_recursion_limit(tmp_path: Path) -> None:
    """Set on the compiled graph, by a dict or by name; a limit that is none counts for none."""
    limits = {'{"recursion_limit": 25}': "weak", "recursion_limit=25": "weak", '{"recursion_limit": 10000}': "missing"}
    for limit, verdict in limits.items():
        text = PAIR + f"graph = builder.compile().with_config({limit})\n"
        assert {verdict} == set(found(read(tmp_path, text)).values())


def test_agents_of_another_module(tmp_path: Path) -> None:
    """By attribute of the module, in a list, and from an object that keeps one."""
    report = read(
        tmp_path,
        """
        import agents
        from agents import inner as imported

        class Team:
            def __init__(self):
                self.agent = imported
                self.team = StateGraph(MessagesState)
                self.team.add_node("a", self.ask)

            def ask(self, state):
                return self.agent.invoke(state)

        builder = StateGraph(MessagesState)
        builder.add_node("a", agents.inner)
        """,
        {
            "agents.py": """
                from langchain.agents import create_agent
                inner = create_agent("model", tools=[noop], name="inner")
            """
        },
    )
    cycles = {f"app.py:{name}/a: model -> tools -> model": "missing" for name in ("builder", "team")}
    assert cycles == found(report)


def test_long_chains_of_imports(tmp_path: Path) -> None:
    """A hundred modules that import each other's graphs are each read once."""
    files = {
        f"m{n}.py": f"from m{n + 1} import builder as other\n" + PAIR + f'builder.add_node("o{n}", other)\n'
        for n in range(100)
    }
    report = read(tmp_path, "", files)
    assert 100 <= len(report.open)


def test_the_common_agent_loop(tmp_path: Path) -> None:
    """`tools_condition` and `ToolNode`, of whose code nothing is in the folder."""
    report = read(
        tmp_path,
        """
        from langgraph.prebuilt import ToolNode, tools_condition
        tools = [noop]
        builder = StateGraph(MessagesState)
        builder.add_node("model", noop)
        builder.add_node("tools", ToolNode(tools=tools))
        builder.set_entry_point("model")
        builder.add_conditional_edges("model", tools_condition)
        builder.add_edge("tools", "model")
        graph = builder.compile()
        """,
    )
    assert {"app.py:builder: model -> tools -> model": "missing"} == found(report)


def test_a_map_and_edges_that_are_read_in_part(tmp_path: Path) -> None:
    """What is known counts, and that there is more is said."""
    report = read(
        tmp_path,
        """
        from elsewhere import OTHER, route
        builder = StateGraph(MessagesState)
        builder.add_sequence([("a", noop), ("b", noop)])
        builder.add_conditional_edges("b", route, {"again": "a", "other": OTHER})
        builder.add_edge(OTHER, "a")
        graph = builder.compile(interrupt_before=["a"])
        """,
    )
    unknown = {f"app.py:builder: {name} -> ?": "unknown" for name in ("b", "?")}
    assert {"app.py:builder: a -> b -> a": "weak", **unknown} == found(report)
    assert "an edge whose ends" in report.cycles[-1].reason


def test_code_that_calls_itself_in_many_ways_ends(tmp_path: Path) -> None:
    """It is followed a little, and then it is unknown; sums of a thousand texts are read."""
    report = read(
        tmp_path,
        f"""
        def one(state):
            return two(state) or two(state) or two(state) or three(state) or three(state)
        def two(state):
            return one(state) or one(state) or three(state) or three(state) or "b"
        def three(state):
            return one(state) or two(state) or two(state) or one(state) or two(state)
        def long(state):
            return {{"text": {" + ".join(["'x'"] * 1000)} + state["text"]}}
        builder = StateGraph(MessagesState)
        builder.add_node("a", long)
        builder.add_node("b", noop)
        builder.add_conditional_edges("a", one)
        builder.add_edge("b", "a")
        """,
    )
    assert {"app.py:builder: a -> b -> a": "missing", "app.py:builder: a -> ?": "unknown"} == found(report)


def test_a_file_that_is_nested_too_deep_is_named(tmp_path: Path) -> None:
    """One file that cannot be followed does not cost the others."""
    chain = "GRAPH = StateGraph(MessagesState)" + ".add_node('a', noop)" * 900
    report = read(tmp_path, PAIR, {"deep.py": chain})
    assert {"app.py:builder: a -> b -> a": "missing"} == found(report)


NAMES = ("a", "b", "c")
FORMS = ("plain", "map", "list", "no_map", "literal", "send", "command", "declared")


def source(edges: dict[tuple[str, str], str], joins: list[tuple[tuple[str, ...], str]], loop: Any) -> str:
    """Write a module with a graph of these edges."""
    before, lines = [], []
    for number, ((start, end), form) in enumerate(edges.items()):
        if form == "plain":
            lines.append(f'builder.add_edge("{start}", "{end}")')
        elif form not in ("command", "declared"):
            hint = f' -> Literal["{end}", "__end__"]' if form == "literal" else ""
            value = f'[Send("{end}", state)]' if form == "send" else f'"{end}"'
            before.append(f"def route_{number}(state){hint}:\n    return {value} if state else END\n")
            path_map = {"map": f', {{"{end}": "{end}", END: END}}', "list": f', ["{end}", END]'}.get(form, "")
            lines.append(f'builder.add_conditional_edges("{start}", route_{number}{path_map})')
    for name in NAMES:
        own = [(end, form) for (start, end), form in edges.items() if start == name]
        targets = [end for end, form in own if form == "command"]
        declared = [end for end, form in own if form == "declared"]
        body = f"Command(goto={targets!r})" if targets else "{}"
        before.append(f"def node_{name}(state):\n    return {body}\n")
        more = f", destinations={tuple(declared + targets)!r}" if declared else ""
        lines.insert(0, f'builder.add_node("{name}", node_{name}{more})')
    lines += [f'builder.add_edge({list(starts)!r}, "{end}")' for starts, end in joins]
    lines += [f'builder.add_edge(START, "{name}")' for name in NAMES]
    if loop:
        lines.append(f"try:\n    guard_loop(builder, {', '.join(map(repr, loop))})\nexcept ValueError:\n    pass")
    return "\n".join([HEAD, *before, "builder = StateGraph(MessagesState)", *lines, ""])


@given(
    st.dictionaries(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), st.sampled_from(FORMS), max_size=6),
    st.lists(st.tuples(st.permutations(NAMES).map(lambda p: tuple(p[:2])), st.sampled_from(NAMES)), max_size=1),
    st.none() | st.permutations(NAMES).map(lambda names: names[:2]),
)
def test_source_reads_like_the_graph_that_it_builds(
    tmp_path_factory: pytest.TempPathFactory, edges: Any, joins: Any, loop: Any
) -> None:
    """The audit of a file and that of the graph it makes say the same."""
    file = tmp_path_factory.mktemp("source") / "app.py"
    file.write_text(source(edges, joins, loop))
    live = audit_target(f"{file}:builder")
    linked = {edge for edge in edges if loop and set(edge) == set(loop)} or any(
        loop and end in loop and set(starts) & set(loop) - {end} for starts, end in joins
    )
    if loop and not linked:
        return  # such a guard is refused when the file runs
    read_only = audit_source(file)
    said = [{(cycle.nodes, cycle.verdict, cycle.guards) for cycle in report.cycles} for report in (live, read_only)]
    assert said[0] == said[1]


def test_live_names_are_the_same(tmp_path: Path) -> None:
    """`audit` and `audit_source` call a report the same thing."""
    assert isinstance(audit_source(tmp_path), AuditReport)
    assert audit.__name__ == "audit"

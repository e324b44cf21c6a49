"""`loopguard audit`: what it can be pointed at, what it writes, and its exit status."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from langgraph_loopguard.cli import main

ROOT = Path(__file__).parents[3]

OPEN = """
import contextlib
from langgraph.graph import START, MessagesState, StateGraph
print("noise")
def make(config):
    builder = StateGraph(MessagesState)
    builder.add_node("a", lambda state: {})
    builder.add_node("b", lambda state: {})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("b", "a")
    return builder
async def make_later():
    return make({})
@contextlib.asynccontextmanager
async def lend():
    yield make({})
@contextlib.contextmanager
def lend_now(config):
    yield make(config)
builder = make({})
graph = builder.compile()
number = 3
class Team:
    graph = graph
def broken():
    raise RuntimeError("no key")
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "audited_app.py").write_text(OPEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "audited_app", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "target",
    [
        "audited_app:graph",
        "audited_app.py:builder",
        "audited_app.py:make",
        "audited_app.py:make_later",
        "audited_app.py:lend",
        "audited_app.py:lend_now",
        "audited_app:Team.graph",
        ".",
        "audited_app.py",
    ],
)
def test_targets(target: str, app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A module, a file, a function that makes the graph, an attribute, a folder, a file that is only read."""
    assert 1 == main(["audit", target])
    printed = capsys.readouterr().out
    assert "a -> b -> a" in printed
    assert "noise" not in printed


def test_a_langgraph_json(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All its graphs, by the names that it gives them, in both forms of an entry."""
    graphs = {"one": "./audited_app.py:graph", "two": {"path": "./audited_app.py:make", "description": "x"}}
    (app / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    assert 1 == main(["audit", "langgraph.json", "--format", "json"])
    assert ["one", "two"] == [graph["name"] for graph in json.loads(capsys.readouterr().out)["graphs"]]


def test_a_functional_graph_has_no_edges(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no error in a `langgraph.json` that names it, and the report says what it is."""
    assert 0 == main(["audit", f"{ROOT / 'examples' / 'functional_api.py'}:pair"])
    assert "is no StateGraph" in capsys.readouterr().out


def test_formats_and_files(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed is only the report, so that it can be piped on."""
    assert 1 == main(["audit", "audited_app.py:graph", "--format", "sarif", "--sarif", "a.sarif", "--mermaid", "a.mmd"])
    printed = capsys.readouterr().out
    assert json.loads(printed) == json.loads(Path("a.sarif").read_text())
    assert Path("a.mmd").read_text().startswith("flowchart TD")
    assert 1 == main(["audit", "audited_app.py:graph", "--format", "mermaid"])
    assert Path("a.mmd").read_text() == capsys.readouterr().out


def test_allowed_cycles(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A cycle that is meant leaves the status 0; one that is not there is an error."""
    assert 0 == main(["audit", ".", "--allow", "a -> b"])
    assert 2 == main(["audit", ".", "--allow", "a -> c"])
    assert "'a -> c' is no open cycle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "'nowhere' is no folder, no file"),
        (["nowhere.py:graph"], "there is no file"),
        (["nowhere:graph"], "importing nowhere failed"),
        (["audited_app.py:nothing"], "has no 'nothing'"),
        (["audited_app.py:number"], "'number' is a int, not a StateGraph"),
        (["audited_app.py:broken"], "calling it failed: RuntimeError('no key')"),
        (["empty.json"], "no graphs are named in it"),
        ([".", "--limit", "0"], "--limit 0: it must be at least 1"),
        ([".", "--sarif", "no/such/folder"], "no/such/folder: No such file or directory"),
    ],
)
def test_errors_are_one_line(arguments: list[str], said: str, app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Usage errors have status 2 and say what is wrong, with the value."""
    (app / "empty.json").write_text("{}")
    assert 2 == main(["audit", *arguments])
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("loopguard audit: error: ")
    assert said in err


def test_a_missing_extra_is_named(
    app: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without rustworkx, the error says what to install."""
    monkeypatch.setitem(sys.modules, "rustworkx", None)
    assert 2 == main(["audit", "."])
    assert "langgraph-loopguard[audit]" in capsys.readouterr().err


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command in `docs/audit.md`, pasted as it stands."""
    page = (ROOT / "docs" / "audit.md").read_text()
    lines = [line for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    statuses = []
    for line in lines:
        program, *arguments = shlex.split(line, comments=True)
        assert "loopguard" == program
        statuses.append(main(arguments))
    assert [0, 0, 1, 0] == statuses  # the folder holds the examples from before their guards
    assert {"audit.sarif", "audit.mmd"} <= {file.name for file in tmp_path.iterdir()}

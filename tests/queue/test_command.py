"""`loopguard queue`: what it prints, how it exits, and which graph it delivers to."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from langgraph_loopguard.cli import main
from langgraph_loopguard.queue import EscalationQueue
from langgraph_loopguard.queue.command import _seconds
from tests.queue.rows import fill, record

GRAPHS = str(Path(__file__).parent / "graph_file.py")


class Command:
    """Runs `loopguard queue` on one database."""

    def __init__(self, url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.capsys = capsys

    def __call__(self, *args: str) -> tuple[int, str, str]:
        """Return exit status, output and errors."""
        status = main(["queue", args[0], "--url", self.url, *args[1:]])
        return (status, *self.capsys.readouterr())

    def json(self, *args: str, status: int = 0) -> Any:
        """Return what is printed with `--json`."""
        found, out, err = self(args[0], "--json", *args[1:])
        assert status == found, err
        assert out.isascii()
        return json.loads(out)


@pytest.fixture
def command(lite: EscalationQueue, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command on an SQLite file."""
    return Command(lite.database.url.render_as_string(False), capsys)


def test_list_is_a_table_or_json(command: Command, lite: EscalationQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """By age, filtered, in pages."""
    assert "nothing" in command("list")[1]
    monkeypatch.setenv("COLUMNS", "140")
    ids = fill(lite, 5)
    lite.claim(ids[1], "ada")
    status, out, _ = command("list", "--limit", "2")
    assert 0 == status
    assert ids[0][:12] in out
    assert "claimed by ada" in out
    assert ids[2][:12] not in out
    page = command.json("list", "--limit", "2")
    assert ids[:2] == [row["id"] for row in page["rows"]]
    assert f"more: --after {page['next']}" in out
    assert ids[2:4] == [row["id"] for row in command.json("list", "--limit", "2", "--after", page["next"])["rows"]]
    for options, expected in (
        (["--claimed"], [ids[1]]),
        (["--no-claimed"], [*ids[:1], *ids[2:]]),
        (["--owner", "ada"], [ids[1]]),
        (["--text", "QUESTION 3"], [ids[3]]),
        (["--thread", "thread-2"], [ids[2]]),
        (["--loop", "other"], []),
        (["--min-age", "1d"], ids),
        (["--max-age", "1h"], []),
        (["--state", "decided"], []),
        (["--graph-name", ""], ids),
    ):
        assert expected == [row["id"] for row in command.json("list", *options)["rows"]], options


def test_no_text_of_an_agent_acts_on_the_terminal(command: Command, lite: EscalationQueue) -> None:
    """Controls and bidi marks are spelt out, rich markup is none."""
    bad = "\x1b[2J\x9b31m\u202e[red]x[/red] :skull:"
    lite.put(record(1, question=bad, loop=bad, thread_id=bad, diff=f"+{bad}\n", reviews=[{"content": bad, "n": 1}]))
    for args in (["list"], ["show", record(1)["id"]], ["list", "--json"], ["export"]):
        status, out, _ = command(*args)
        assert 0 == status
        assert not {"\x1b", "\x9b", "\u202e"} & set(out)
    assert "[red]x[/red] :skull:" in command("show", record(1)["id"])[1]


def test_show_takes_the_beginning_of_an_id(command: Command, lite: EscalationQueue) -> None:
    """As long as it is the only one; an unknown one is named."""
    one, two = fill(lite, 2)
    lite.put(record(7, id=f"{one[:5]}x"))
    assert one == command.json("show", one[:8])["id"]
    assert "message 1" in command("show", two)[1]
    status, _, err = command("show", one[:5])
    assert (2, True) == (status, "beginning of several ids" in err)
    status, _, err = command("show", "%")
    assert (2, True) == (status, "'%' is not in the queue" in err)


def test_claim_decide_and_losing(command: Command, lite: EscalationQueue) -> None:
    """Status 0 for who wins, 1 for who comes too late, 2 for an answer that does not fit; each in one line."""
    one, two = fill(lite, 2)
    assert "claimed by ada" in command("claim", one, "--by", "ada")[1]
    status, _, err = command("claim", one, "--by", "bob")
    assert (1, 1) == (status, len(err.splitlines()))
    assert "open" in command("claim", one, "--by", "ada", "--release")[1]
    assert command("claim", one, "--lease", "1h")[0] == 0
    command("claim", one, "--release")
    status, _, err = command("decide", one, "retry", "--by", "ada")
    assert (2, 1) == (status, len(err.splitlines()))
    assert "extra_cycles must be positive" in err
    status, _, err = command("decide", one, "accept", "--fix", "0")
    assert (2, True) == (status, "fix" in err)
    status, out, _ = command("decide", one, "retry", "--extra-cycles", "2", "--guidance", "be brief", "--by", "ada")
    assert (0, True) == (status, "decided, retry with 2 cycles more by ada" in out)
    status, _, err = command("decide", one, "accept", "--by", "bob")
    assert (1, 1) == (status, len(err.splitlines()))
    assert "retry with 2 cycles more by ada" in err
    assert "decided" == command.json("decide", two, "reject", "--note", "no")["state"]
    decision = lite.show(two).decision or {}
    assert "no" == decision["note"]
    assert decision["decided_by"]


def test_edit_reads_the_work_from_a_file(
    command: Command, lite: EscalationQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text to the byte, or JSON; `-` is standard input."""
    one, two, three, four = fill(lite, 4)
    (tmp_path / "text").write_bytes(b"a\r\nb\n")
    (tmp_path / "json").write_text('{"a": [1, null]}')
    (tmp_path / "bad").write_bytes(b"\xff")
    command("decide", one, "edit", "--artifact", str(tmp_path / "text"))
    command("decide", two, "edit", "--artifact-json", str(tmp_path / "json"))
    monkeypatch.setattr(sys, "stdin", io.StringIO("typed\n"))
    command("decide", three, "edit", "--artifact", "-")
    assert ["a\r\nb\n", {"a": [1, None]}, "typed\n"] == [
        (lite.show(each).decision or {})["artifact"] for each in (one, two, three)
    ]
    for option, name in (("--artifact", "none"), ("--artifact", "bad"), ("--artifact-json", "text")):
        status, _, err = command("decide", four, "edit", option, str(tmp_path / name))
        assert (2, 1) == (status, len(err.splitlines())), err


def test_health_is_one_line_and_a_status(command: Command, lite: EscalationQueue) -> None:
    """0 when all is well, 1 when something is over its limit; the limits have defaults."""
    assert (0, "ok: 0 open (0 claimed), 0 undelivered\n") == command("health")[:2]
    fill(lite, 3)
    status, out, _ = command("health")
    assert (1, 1) == (status, len(out.splitlines()))
    assert out.startswith("the oldest waits for")
    assert "the limit is 1d" in out
    status, out, _ = command("health", "--max-age", "9999d", "--max-open", "3")
    assert (0, True) == (status, out.startswith("ok: 3 open (0 claimed), the oldest for "))
    found = command.json("health", "--max-open", "2", "--max-age", "9999d", status=1)
    assert (3, ["3 are open, the limit is 2"]) == (found["open"], found["problems"])


def test_export_is_one_object_per_line(command: Command, lite: EscalationQueue) -> None:
    """Whole records, all states."""
    ids = fill(lite, 3)
    lite.decide(ids[1], {"action": "accept"})
    lines = [json.loads(line) for line in command("export")[1].splitlines()]
    assert ids == [line["id"] for line in lines]
    assert "question 2" == lines[2]["record"]["question"]
    assert ids[1] == json.loads(command("export", "--state", "decided")[1])["id"]


@pytest.mark.parametrize(("name", "options"), [("opened", []), ("aopened", ["--async"])])
def test_reconcile_and_deliver_find_the_graph(
    name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file, or a module; the queue is made where there is none; a decision is applied once."""
    import asyncio

    from tests.queue import graph_file

    monkeypatch.setattr(graph_file, "DATABASE", str(tmp_path / "threads.db"))
    config: Any = {"configurable": {"thread_id": "pr-17"}}

    async def begin() -> None:
        async with graph_file.aopened() as graph:
            await graph.ainvoke({}, config)

    if options:
        asyncio.run(begin())
    else:
        with graph_file.opened() as graph:
            graph.invoke({}, config)
    command = Command(f"sqlite:///{tmp_path}/queue.db", capsys)
    monkeypatch.setenv("LOOPGUARD_TEST_THREADS", str(tmp_path / "threads.db"))
    status, _, err = command("list")
    assert (2, True) == (status, "there is no queue at" in err)
    target = f"{GRAPHS}:{name}"
    (one,) = command.json("reconcile", "--graph", target, *options)["added"]
    assert "1 threads, 0 added" in command("reconcile", "--graph", target, "--thread", "pr-17", *options)[1]
    assert "nothing to deliver" in command("deliver", "--graph", target, *options)[1]
    command("decide", one, "accept", "--fix", "1")
    target = f"tests.queue.graph_file:{name}"
    status, out, _ = command("deliver", "--graph", target, *options)
    assert (0, f"{one} of thread pr-17: applied\n") == (status, out)
    assert [] == command.json("deliver", "--graph", target, "--id", one, *options)
    assert "applied" == command.json("show", one)["state"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["deliver"], "deliver needs --graph"),
        (["deliver", "--graph", "nonsense"], "graph must be like module:name"),
        (["deliver", "--graph", "no_such_module:graph"], "No module named 'no_such_module'"),
        (["deliver", "--graph", "none.py:graph"], "there is no file 'none.py'"),
        (["deliver", "--graph", f"{GRAPHS}:nothing"], "has no nothing"),
        (["deliver", "--graph", f"{GRAPHS}:bare"], "compiled with a checkpointer"),
        (["deliver", "--graph", f"{GRAPHS}:DATABASE"], "graph must be a compiled StateGraph, got str"),
        (["deliver", "--graph", f"{GRAPHS}:made"], "give --async"),
        (["deliver", "--graph", f"{GRAPHS}:aopened"], "give --async"),
        (["list", "--limit", "0"], "limit must be"),
        (["list", "--after", "x"], "after must be"),
    ],
)
def test_mistakes_are_one_line(command: Command, args: list[str], message: str) -> None:
    """With what to do about it."""
    status, out, err = command(*args)
    assert (2, "", 1) == (status, out, len(err.splitlines())), err
    assert message in err


def test_the_url_comes_from_the_environment(
    lite: EscalationQueue, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or is asked for; one that is none, and one that is not there, are refused without a password."""
    monkeypatch.delenv("LOOPGUARD_QUEUE_URL", raising=False)
    assert 2 == main(["queue", "list"])
    assert "give --url or set LOOPGUARD_QUEUE_URL" in capsys.readouterr().err
    monkeypatch.setenv("LOOPGUARD_QUEUE_URL", lite.database.url.render_as_string(False))
    assert 0 == main(["queue", "list"])
    for url in ("mysql://ada:geheim@h/d", "postgresql://ada:geheim@127.0.0.1:1/d"):
        capsys.readouterr()
        assert 2 == main(["queue", "list", "--url", url])
        err = capsys.readouterr().err
        assert 1 == len(err.splitlines()), err
        assert "geheim" not in err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5s", 1.5), ("30m", 1800), ("4h", 14400), ("1h30m", 5400), ("2d", 172800)],
)
def test_ages_are_read(text: str, seconds: float) -> None:
    """In days, hours, minutes and seconds."""
    assert seconds == _seconds(text)


@pytest.mark.parametrize("text", ["", "h", "4x", "-1", "1h-"])
def test_other_ages_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As usage errors."""
    with pytest.raises(SystemExit) as stopped:
        main(["queue", "health", "--max-age", text])
    assert 2 == stopped.value.code
    assert "1h30m" in capsys.readouterr().err or text == "-1"

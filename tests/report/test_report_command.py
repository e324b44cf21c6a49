"""The commands: what they print, and how they exit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_loopguard.cli import main
from tests.graph.pairs import pair, thread
from tests.report.runs import every_end, run, spend

HOSTILE = "<b>[red]\x1b[2J"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A SQLite file with every end, and enough loops to tune by."""
    path = str(tmp_path_factory.mktemp("runs") / "runs.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        every_end(saver)
        app, _ = pair(spend, lambda n: {"patch": "ab"[n % 2]}, saver=saver, max_cycles=4)
        app.invoke({}, thread(HOSTILE))
        for number in range(40):
            run(saver, f"n{number}", 1 + number % 2)
    return path


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_a_report_prints_sums_and_rows(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Within 80 columns; what is left out is said; a hostile name is shown and steers nothing."""
    assert 0 == main(["report", database, "--rows", "3"])
    out = capsys.readouterr().out
    assert "50: 43 complete, 5 escalated, 1 blocked, 1 open" in " ".join(out.split())
    assert "12.0%" in out
    assert "and 47 more: --rows 0 lists all" in out
    assert r"<b>[red]\x1b[2J" in "".join(out.split())
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert 0 == main(["report", database, "--rows", "0"])
    assert "more" not in capsys.readouterr().out


def test_one_thread_is_printed_visit_by_visit(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Equal fingerprints have equal letters."""
    assert 0 == main(["report", database, "--thread", HOSTILE])
    lines = capsys.readouterr().out.splitlines()
    assert ["A", "B", "A", "B"] == [line.split()[4] for line in lines if " fixer " in line]


def test_json_is_all_of_it(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pure ASCII, so that it may be printed anywhere."""
    assert 0 == main(["report", database, "--json", "--threshold", "2"])
    out = capsys.readouterr().out
    found = json.loads(out)
    assert out.isascii()
    assert (50, 2, 50) == (found["summary"]["loops"], found["summary"]["threshold"], len(found["loops"]))
    assert 0 == main(["report", database, "--json", "--thread", "complete", "--loop", "reviewer-fixer"])
    assert 5 == len(json.loads(capsys.readouterr().out)["visits"])


def test_pictures_are_written(database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of one thread, of all, and of a tuning."""
    one, many, tuned = (str(tmp_path / name) for name in ("one.png", "many.svg", "tuned.pdf"))
    assert 0 == main(["report", database, "--thread", HOSTILE, "--plot", one, "--theme", "dark"])
    assert 0 == main(["report", database, "--plot", many])
    assert 1 == main(["tune", database, "--plot", tuned])
    assert b"\x89PNG" == Path(one).read_bytes()[:4]
    assert "<svg" in Path(many).read_text()
    assert b"%PDF" == Path(tuned).read_bytes()[:4]


def test_tune_recommends_a_cap(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 with one, 1 without; the table fits."""
    assert 0 == main(["tune", database, "--minute-usd", "2", "--million-tokens-usd", "3"])
    out = capsys.readouterr().out
    assert "a cap of 2 or more costs least" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "%" in line)
    assert 0 == main(["tune", database, "--minute-usd", "2", "--cycle-usd", "0.1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (2, True) == (found["recommended"], found["at_least"])
    assert 1 == main(["tune", database])
    assert "without the price of a person's minute" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["report", "nowhere.sqlite"], "there is no file"),
        (["report", "{db}", "--thread", "nobody"], "there is no thread 'nobody'"),
        (["report", "{db}", "--threshold", "-1"], "threshold must be a number of cycles"),
        (["report", "{db}", "--plot", "x.txt"], "must end in one of .png, .svg, .pdf"),
        (["report", "{db}", "--plot", "/nowhere/x.png"], "/nowhere/x.png"),
        (["tune", "{db}", "--minute-usd", "1"], "recorded no dollars: give cycle_usd="),
        (["tune", "{db}", "--loop", "other"], "there is no loop 'other'"),
        (["tune", "{db}", "--level", "2"], "level must be between 0 and 1"),
        (["tune", "{db}", "--plot", "x.txt"], "must end in one of"),
    ],
)
def test_errors_are_one_line(argv: list[str], message: str, database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2."""
    assert 2 == main([part.replace("{db}", database) for part in argv])
    err = capsys.readouterr().err
    assert 1 == len(err.splitlines())
    assert message in err

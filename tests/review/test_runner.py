"""`loopguard review`: exit statuses, budgets over runs, and what it never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_loopguard.cli import main
from langgraph_loopguard.review.place import Desk
from langgraph_loopguard.review.store import read_memory
from tests.review.repositories import ENV, Repo

SCRIPT = Path(__file__).with_name("scripted.py")


class Runner:
    """The command line on one repository."""

    def __init__(self, repo: Repo, home: Path) -> None:
        self.repo = repo
        self.home = home
        self.log = home.parent / "asked"

    def reviewer(self, *actions: str) -> str:
        return " ".join([sys.executable, str(SCRIPT), str(self.log), *actions])

    def argv(self, *actions: str, **options: Any) -> list[str]:
        argv = ["review", "run", str(self.repo.path), "--dir", str(self.home)]
        options = {"base": "main", "reviewer": self.reviewer(*actions), **options}
        for name, value in options.items():
            for item in value if isinstance(value, list) else [value]:
                argv += [f"--{name.replace('_', '-')}"] + ([] if item is True else [str(item)])
        return argv

    def run(self, *actions: str, **options: Any) -> int:
        return main(self.argv(*actions, **options))

    def say(self, action: str, *more: str) -> int:
        return main(["review", action, str(self.repo.path), "--dir", str(self.home), *more])

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    @property
    def desk(self) -> Desk:
        (folder,) = (self.home / "reviews").iterdir()
        return Desk(folder)

    @property
    def attempts(self) -> list[Any]:
        memory = read_memory(self.desk.store)
        assert memory is not None
        return memory.attempts


@pytest.fixture
def runner(repo: Repo, tmp_path: Path) -> Runner:
    repo.git("checkout", "--quiet", "-b", "feature")
    repo.commit(files={"b.py": "x = None\n"})
    return Runner(repo, tmp_path / "home")


def tree(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Every file of a folder with its content and times."""
    out: dict[str, tuple[Any, ...]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        out[str(path.relative_to(folder))] = (content, status.st_mtime_ns, status.st_mode, status.st_ino)
    return out


# -- exit statuses ---------------------------------------------------------------------------------------------------


def test_recorded_then_the_same_finding_twice_running(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.run("bug", check="true") == 10
    assert runner.run("bug", check="true") == 10, "the same input takes the last answer"
    assert len(runner.asked) == 1
    runner.repo.commit(files={"b.py": "x = None  # still\n"})
    assert runner.run("bug", "still", check="true") == 12
    runner.repo.commit(files={"b.py": "x = 1\n"})
    assert runner.run("bug", "still", check="true") == 12, "it stops without an attempt"
    assert len(runner.asked) == len(runner.attempts) == 2
    assert "open twice running" in capsys.readouterr().out


def test_complete_is_recorded_and_never_zero(runner: Runner) -> None:
    assert runner.run("fine", check="true") == 10
    assert runner.say("status") == 10


@pytest.mark.parametrize(
    ("actions", "options", "status"),
    [
        (["fine"], {"check": "no-such-tool"}, 11),
        (["fine"], {"check": ["s:a=true", "s:b=false"]}, 11),
        (["bad"], {}, 5),
        (["die"], {}, 5),
        (["hang"], {"timeout": 1}, 5),
        (["fine"], {"base": "nowhere"}, 2),
        (["fine"], {"head": "nowhere"}, 2),
        (["fine"], {"max_attempts": 0}, 2),
        (["fine"], {"extra_attempts": 1}, 2),
        (["fine"], {"check": "'"}, 2),
        (["fine"], {"reviewer": "''"}, 5),
        (["fine"], {"reviewer": ""}, 2),
        (["fine"], {"dismiss": "x"}, 2),
        (["fine"], {"dismiss": "x", "by": "ada"}, 2),
        (["fine"], {"context": "nowhere.txt"}, 2),
    ],
)
def test_exit_statuses(runner: Runner, actions: list[str], options: dict[str, Any], status: int) -> None:
    assert runner.run(*actions, **options) == status
    assert not runner.log.exists() or status in (5, 11)


def test_usage(runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["review", "run", str(tmp_path / "nowhere"), "--base", "main", "--reviewer", "x"]) == 2
    (tmp_path / "plain").mkdir()
    assert main(["review", "status", str(tmp_path / "plain")]) == 2
    assert main(["review", "run", str(tmp_path / "plain"), "--base", "main", "--model", "nameless"]) == 2
    for argv in (["review"], ["review", "run", "x", "--base", "main"], ["review", "fly"]):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2
    assert runner.say("status") == 0
    assert "not reviewed" in capsys.readouterr().out
    assert runner.say("report") == 2
    assert main(["review", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"].startswith("Answer")


# -- the budget ------------------------------------------------------------------------------------------------------


def rewrite(runner: Runner) -> None:
    runner.repo.git("commit", "--quiet", "--amend", "--message", f"other {len(runner.asked)}")


def move_base(runner: Runner) -> None:
    commit = runner.repo.git("commit-tree", "main^{tree}", "-p", "main", "-m", f"moved {len(runner.asked)}")
    runner.repo.git("branch", "--force", "main", commit)


def new_head(runner: Runner) -> None:
    runner.repo.commit()


@pytest.mark.parametrize("change", [rewrite, move_base, new_head])
def test_nothing_renews_the_budget_and_the_fourth_run_asks_nobody(
    runner: Runner, change: Callable[[Runner], None]
) -> None:
    statuses = []
    for _ in range(4):
        statuses.append(runner.run("bad", "bad", "bad", "fine"))
        change(runner)
    assert statuses == [5, 5, 11, 11]
    assert len(runner.asked) == len(runner.attempts) == 3
    assert runner.run("fine", context=str(SCRIPT), goal="another") == 11
    assert runner.run("fine", head=runner.repo.git("rev-parse", "HEAD")) == 11
    assert len(runner.asked) == 3


def test_a_person_extends_it_by_name_and_dismisses_findings(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(3):
        runner.run("bug", "new", "new", max_attempts=3)
        runner.repo.commit(files={"b.py": f"x = {n}\n"})
    assert runner.run("fine") == 11
    assert runner.run("new", max_attempts=4) == 2
    assert runner.run("new", extra_attempts=1, by="ada") == 11
    assert len(runner.asked) == 4
    memory = read_memory(runner.desk.store)
    assert memory is not None
    (held,) = [finding for finding in memory.findings if finding.holds]
    capsys.readouterr()
    assert runner.run("new", dismiss=held.id, by="ada") == 10
    runner.say("report")
    out = capsys.readouterr().out
    assert "dismissed by ada" in out
    assert "1 of them granted by ada" in out


def test_two_changes_of_one_repository_have_two_budgets(runner: Runner) -> None:
    runner.run("bug")
    runner.repo.git("checkout", "--quiet", "-b", "other", "main")
    runner.repo.commit(files={"b.py": "x = None\n"})
    assert runner.run("bug") == 10
    assert runner.run("bug", head="feature") == 10
    assert len(runner.asked) == 2
    runner.repo.git("checkout", "--quiet", "main")
    assert runner.say("status") == 2, "two reviews, and none of this branch: name one"
    assert runner.say("status", "--head", "feature") == 10
    assert runner.say("status", "--change", "other") == 10


def test_worktrees_of_one_repository_share_the_budget(runner: Runner, tmp_path: Path) -> None:
    runner.run("bug")
    runner.repo.git("checkout", "--quiet", "--detach")
    runner.repo.git("worktree", "add", "--quiet", str(tmp_path / "side"), "feature")
    side = Runner(runner.repo, runner.home)
    side.repo = Repo.__new__(Repo)
    side.repo.path = tmp_path / "side"
    assert side.run("bug") == 10
    assert len(runner.asked) == 1


# -- status and report -----------------------------------------------------------------------------------------------


def test_status_and_report_call_nothing_and_write_nothing(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.run("bug", check=["true", "false"])
    before = tree(runner.home), tree(runner.repo.path), len(runner.asked)
    capsys.readouterr()
    for action, *more in (["status"], *(["report", "--format", form] for form in ("text", "json", "sarif", "html"))):
        assert runner.say(action, *more) == 10
        out = capsys.readouterr().out
        assert "bad" in out or action == "status"
    assert (tree(runner.home), tree(runner.repo.path), len(runner.asked)) == before


def test_the_repository_is_never_written_to(runner: Runner) -> None:
    before = tree(runner.repo.path)
    runner.run("bug", "fine", fixer=runner.reviewer("fix").replace("asked", "fixed"), check="true")
    assert tree(runner.repo.path) == before
    assert (runner.desk.work / "b.py").read_text() == "x = 1\n"


def test_the_reports(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    runner.run("bug", "fine", fixer=runner.reviewer("fix").replace("asked", "fixed"), check="true", goal="say x")
    capsys.readouterr()
    runner.say("report")
    text = capsys.readouterr().out
    for words in (
        "Review of feature: complete",
        "Decision asked for: Accept the change?",
        "goal: say x",
        "pass        true: exit status 0",
        "closed in round 2: the reviewer says that it is repaired",
        "Proposed by the fixer, waits for acceptance",
        "+x = 1",
    ):
        assert words in text
    runner.say("report", "--format", "json")
    data = json.loads(capsys.readouterr().out)
    assert data["handoff"]["outcome"] == "complete"
    assert data["schema_version"] == 1
    runner.say("report", "--format", "sarif")
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["baselineState"] == "absent"
    runner.say("report", "--format", "html")
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_the_proposal_of_a_fixer_is_kept_and_not_reviewed_again(runner: Runner) -> None:
    fixer = runner.reviewer("fix").replace("asked", "fixed")
    assert runner.run("bug", "fine", fixer=fixer) == 10
    assert runner.run("bug", "fine", fixer=fixer) == 10
    assert len(runner.asked) == 2


def test_a_fixer_may_commit_in_the_clone(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    script = runner.home.parent / "fixer.py"
    script.write_text(
        "import subprocess\nopen('b.py', 'w').write('x = 1\\n')\n"
        "git = ['git', '-c', 'user.name=f', '-c', 'user.email=f@example.invalid']\n"
        "subprocess.run([*git, 'commit', '-qam', 'fix'], check=True)\n"
    )
    before = tree(runner.repo.path)
    for _ in range(2):
        assert runner.run("bug", "fine", fixer=f"{sys.executable} {script}") == 10
    assert len(runner.asked) == 2
    capsys.readouterr()
    runner.say("report")
    assert "+x = 1" in capsys.readouterr().out
    assert tree(runner.repo.path) == before


def test_changes_that_are_not_committed_are_not_reviewed_and_it_is_said(
    runner: Runner, caplog: pytest.LogCaptureFixture
) -> None:
    runner.repo.write({"b.py": "x = 'not committed'\n"})
    assert runner.run("bug") == 10
    assert "not committed: they are not reviewed" in caplog.text
    assert "+x = None" in runner.asked[0]["diff"]


def test_a_report_can_be_read_after_a_write_was_cut_off(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    runner.run("bug")
    code = (
        "import os, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_spill = 1'); c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN IMMEDIATE')\n"
        "c.execute('DELETE FROM attempts')\n"
        "for i in range(500): c.execute('INSERT INTO facts VALUES (?, ?)', (str(i), 'x' * 4000))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(runner.desk.store)], check=False)
    assert runner.desk.store.with_name("review.sqlite-journal").exists()
    before = tree(runner.home)
    capsys.readouterr()
    assert runner.say("status") == 10
    assert "attempts: 1 of 3" in capsys.readouterr().out
    assert tree(runner.home) == before
    assert runner.run("bug") == 10
    with sqlite3.connect(runner.desk.store) as connection:
        assert connection.execute("SELECT count(*) FROM attempts").fetchone() == (1,)
    connection.close()


def test_a_newer_store_is_refused(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    runner.run("bug")
    connection = sqlite3.connect(runner.desk.store)
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    for call in (lambda: runner.run("bug"), lambda: runner.say("status")):
        assert call() == 2
        assert "update the library" in capsys.readouterr().err
    runner.desk.store.write_bytes(b"nonsense" * 1000)
    assert runner.say("status") == 2
    assert runner.run("bug") == 2


# -- the lock --------------------------------------------------------------------------------------------------------


def test_a_leftover_lock_claims_nothing_and_a_held_one_does(runner: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    from langgraph_loopguard.review.lock import locked

    runner.run("bug")
    assert runner.desk.lock.exists()
    assert runner.run("bug") == 10
    with locked(runner.desk.lock):
        capsys.readouterr()
        assert runner.run("bug") == 5
        assert "running already" in capsys.readouterr().err
        assert runner.say("status") == 10
        assert "running" in capsys.readouterr().out
    assert runner.say("status") == 10
    assert "running" not in capsys.readouterr().out


# -- hostile repositories --------------------------------------------------------------------------------------------


def test_nothing_of_the_repository_runs_and_nothing_is_mis_shown(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sign = tmp_path / "it-ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho $0 $* >> {sign}\n")
    evil.chmod(0o755)
    repo = runner.repo
    top = os.fsencode(repo.path)
    for raw in (b"new\nline.py", b"--flag.py", b"quo\"te'.py", b"bad\xff.py", b"\x1b[31mred.py", b"\xe2\x80\xaetxt.py"):
        Path(os.fsdecode(top + b"/" + raw)).write_bytes(b"x = None\n")
    repo.write({"bin": bytes(range(256)) * 50, ".gitattributes": "* filter=evil diff=evil merge=evil\n"})
    (repo.path / "out").symlink_to("/etc")
    (repo.path / "loop").symlink_to("loop")
    repo.write({".gitmodules": f'[submodule "s"]\n\tpath = s\n\turl = ext::{evil}\n\tupdate = !{evil}\n'})
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.git('rev-parse', 'HEAD')},s")
    repo.git("add", "--all", ":!s")
    repo.git("commit", "--quiet", "--message", "\x1b[2Jhostile")
    for key in ("filter.evil.smudge", "filter.evil.clean", "diff.evil.textconv", "core.fsmonitor", "diff.external"):
        repo.git("config", key, str(evil))
    repo.git("config", "uploadpack.packObjectsHook", str(evil))
    repo.git("config", "alias.rev-parse", f"!{evil}")
    for hook in ("post-checkout", "post-update", "pre-receive", "reference-transaction", "post-index-change"):
        (repo.path / ".git/hooks").mkdir(exist_ok=True)
        (repo.path / ".git/hooks" / hook).symlink_to(evil)
    said = {
        "findings": [
            {
                "file": "new\nline.py",
                "line": 1,
                "message": "\x1b[31mred\x07 \u202eabc <script>alert(1)</script>\nDone: complete",
            },
            {"file": "bad\\xff.py", "line": 1, "message": "odd name"},
            {"file": "out/passwd", "line": 1, "message": "outside"},
            {"file": "/etc/passwd", "line": 1, "message": "outside, too"},
            {"file": "s", "line": 1, "message": "a submodule"},
        ],
        "summary": "\x1b]0;title\x07",
    }
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps(said))
    check = f"{sys.executable} -c 'print(chr(27) + chr(91) + chr(50) + chr(74)); raise SystemExit(1)'"
    assert runner.run(reviewer=f"cat {answer}", check=f"noisy={check}") == 10
    out, err = capsys.readouterr()
    shown = [out, err]
    for form in ("text", "html", "json", "sarif"):
        runner.say("report", "--format", form)
        shown.append(capsys.readouterr().out)
    assert not sign.exists()
    subprocess.run(["git", "status"], cwd=repo.path, env=os.environ | ENV, capture_output=True, check=False)
    assert sign.exists(), "the traps are set: git itself runs into them"
    for text in shown:
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "\nDone: complete" not in text
    assert "<script>" not in shown[3]
    text = shown[2]
    assert "new\\nline.py:1: warning: \\x1b[31mred\\x07 \\u202eabc" in text
    data = json.loads(shown[4])
    status = {finding["file"]: finding["status"] for finding in data["findings"]}
    assert status["new\nline.py"] == "open"
    assert status["bad\\xff.py"] == "open"
    assert status["out/passwd"] == status["/etc/passwd"] == "out_of_scope"
    assert "root:" not in shown[4]


def test_a_repository_with_the_other_hash_function(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "sha256", "--object-format=sha256")
    repo.commit(files={"a.py": "x = 1\n"})
    repo.git("checkout", "--quiet", "-b", "feature")
    repo.commit(files={"b.py": "x = None\n"})
    assert Runner(repo, tmp_path / "home").run("bug", check="true") == 10


def test_a_bare_repository_and_one_with_a_shallow_history(runner: Runner, tmp_path: Path) -> None:
    bare, shallow = tmp_path / "bare.git", tmp_path / "shallow"
    runner.repo.git("clone", "--quiet", "--bare", ".", str(bare))
    runner.repo.git("clone", "--quiet", "--depth", "2", "--branch", "feature", runner.repo.path.as_uri(), str(shallow))
    argv = ["--reviewer", runner.reviewer("bug"), "--dir", str(runner.home)]
    assert main(["review", "run", str(bare), "--base", "main", "--head", "feature", *argv]) == 10
    assert main(["review", "run", str(shallow), "--base", "HEAD~1", *argv]) == 10
    assert len(runner.asked) == 2


def test_a_check_that_tampers_with_the_clone_gains_nothing(runner: Runner, tmp_path: Path) -> None:
    sign = tmp_path / "it-ran"
    code = f"""
import pathlib
pathlib.Path(".git/hooks").mkdir(exist_ok=True)
hook = pathlib.Path(".git/hooks/post-checkout"); hook.write_text("#!/bin/sh\\ntouch {sign}\\n"); hook.chmod(0o755)
pathlib.Path(".git/config").open("a").write("[core]\\nfsmonitor = touch {sign}\\n[filter \\"x\\"]\\nsmudge = touch {sign}\\n")
pathlib.Path(".git/info").mkdir(exist_ok=True)
pathlib.Path(".git/info/attributes").write_text("* filter=x\\n")
"""
    script = tmp_path / "check.py"
    script.write_text(code)
    assert runner.run("bug", check=f"{sys.executable} {script}") == 10
    runner.repo.commit(files={"b.py": "x = 1\n"})
    assert runner.run("bug", "fine", check=f"{sys.executable} {script}") == 10
    assert not sign.exists()

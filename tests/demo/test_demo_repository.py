"""The repository is real git, and the directory is cleared of nothing but the demo's own."""

from __future__ import annotations

import json
import stat
import sysconfig
from pathlib import Path

import pytest

from langgraph_loopguard.demo.catalogue import CATALOGUE
from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.git import Git
from langgraph_loopguard.demo.modules import assign, read_modules
from langgraph_loopguard.demo.project import make_project
from langgraph_loopguard.demo.workdir import MARKER, find_existing, start_afresh
from tests.demo.playing import Played

SMALL = {1: CATALOGUE[1]}


def test_each_pull_request_is_a_branch_with_one_commit(played: Played) -> None:
    """One commit on top of main, that changes one file and adds to it."""
    git = Git(played.work.repository)
    for pull in played.opened:
        assert git.run("rev-list", "--count", f"main..{pull.name}").strip() == "1"
        added, _, file = git.run("diff", "--numstat", "main", pull.name).split()
        assert pull.file == file
        assert int(added) > 0


def test_git_finds_nothing_wrong_with_the_repository(played: Played) -> None:
    """`git fsck` passes."""
    assert Git(played.work.repository).run("fsck", "--strict", "--no-dangling") == ""


def test_the_modules_are_those_of_this_python(played: Played) -> None:
    """The first commit holds the standard library's text."""
    git = Git(played.work.repository)
    first = git.run("rev-list", "--max-parents=0", "main").strip()
    pull = played.opened[0]

    source = Path(sysconfig.get_path("stdlib"), f"{pull.module}.py").read_text(encoding="utf-8")

    assert source == git.run("show", f"{first}:{pull.file}")


def test_git_does_not_depend_on_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signing, hooks, an identity that is missing, and variables of a running hook change nothing."""
    hook = tmp_path / "hooks" / "pre-commit"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(hook.stat().st_mode | stat.S_IEXEC)
    config = f"[core]\nhooksPath = {hook.parent}\nautocrlf = true\n[commit]\ngpgSign = true\n[diff]\nnoprefix = true\n"
    (tmp_path / ".gitconfig").write_text(config)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))

    work, _ = make_project(tmp_path / "demo", SMALL)

    assert Git(work.repository).run("rev-list", "--count", "main..PR-01").strip() == "1"
    assert not (tmp_path / "elsewhere").exists()


def test_a_second_run_keeps_what_the_demo_did_not_make(tmp_path: Path) -> None:
    """Files of the user's own survive, wherever they are; the history begins anew."""
    work, _ = make_project(tmp_path, SMALL)
    own = [tmp_path / "notes.txt", work.repository / "notes.txt", work.repository / "lib" / "notes.py"]
    for path in own:
        path.write_text("mine")
    Git(work.repository).checkout("guarded/PR-01", "main")

    make_project(tmp_path, SMALL)

    assert [path.read_text() for path in own] == ["mine"] * 3
    assert "guarded" not in Git(work.repository).run("branch")


def test_a_directory_that_is_not_the_demos_is_left_alone(tmp_path: Path) -> None:
    """A file where the demo would write is refused, and named."""
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "setup.cfg").write_text("mine")

    with pytest.raises(DemoError, match=r"repo/setup\.cfg is there, and the demo did not make it"):
        make_project(tmp_path, SMALL)

    assert (tmp_path / "repo" / "setup.cfg").read_text() == "mine"


def test_a_repository_with_other_peoples_commits_is_left_alone(tmp_path: Path) -> None:
    """Somebody has worked in it: it is not cleared."""
    work, _ = make_project(tmp_path, SMALL)
    git = Git(work.repository)
    git.run("-c", "user.email=me@example.org", "commit", "--quiet", "--allow-empty", "--message", "Mine")

    with pytest.raises(DemoError, match=r"commits by me@example\.org"):
        make_project(tmp_path, SMALL)

    assert "Mine" in git.run("log", "--format=%s")


@pytest.mark.parametrize("linked", ["repo", "escalations.sqlite"])
def test_links_are_not_followed(tmp_path: Path, linked: str) -> None:
    """A link in place of something of the demo's is refused."""
    root = tmp_path / "root"
    root.mkdir()
    (root / linked).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(DemoError, match="choose another directory"):
        start_afresh(root, ["setup.cfg"])


@pytest.mark.parametrize("name", ["../precious", "/precious", "out/precious"])
def test_the_marker_cannot_name_files_outside(tmp_path: Path, name: str) -> None:
    """A marker that was tampered with deletes nothing elsewhere."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (root / MARKER).write_text(json.dumps({"files": [name]}))

    start_afresh(root, [])

    assert precious.exists()


def test_a_marker_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """It is not taken for an empty one."""
    (tmp_path / MARKER).write_text("{")

    with pytest.raises(DemoError, match="cannot be read"):
        start_afresh(tmp_path, [])


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    """A file in place of the directory."""
    (tmp_path / "file").write_text("")

    with pytest.raises(DemoError, match="--dir"):
        start_afresh(tmp_path / "file" / "demo", [])


def test_there_must_be_a_run_to_look_at(tmp_path: Path) -> None:
    """Without a database the user is told what to run first."""
    with pytest.raises(DemoError, match="run `loopguard demo` first"):
        find_existing(tmp_path)


def test_git_never_works_on_a_repository_around_it(tmp_path: Path) -> None:
    """Where the demo's own is missing or broken, git fails rather than look further up."""
    users = Git(tmp_path)
    users.init()
    users.run("commit", "--quiet", "--allow-empty", "--message", "Mine")
    inner = tmp_path / "demo"
    inner.mkdir()

    with pytest.raises(DemoError, match="not a git repository"):
        Git(inner).checkout("other", "main")

    assert users.run("branch", "--show-current").strip() == "main"


def test_a_run_that_was_cut_short_is_no_obstacle(tmp_path: Path) -> None:
    """A repository without a commit is cleared like any other."""
    work = start_afresh(tmp_path, [])
    Git(work.repository).init()

    make_project(tmp_path, SMALL)

    assert "PR-01" in Git(work.repository).run("branch")


def test_git_that_is_missing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names git."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(DemoError, match="needs git"):
        Git(tmp_path).init()


def test_modules_that_are_missing_or_broken_are_left_out(tmp_path: Path) -> None:
    """Only what is there and is Python is taken."""
    (tmp_path / "good.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("x = \n")
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")

    assert list(read_modules(["good", "broken", "latin", "missing"], tmp_path)) == ["good"]


def test_a_python_without_sources_is_one_line(tmp_path: Path) -> None:
    """The error says where the demo has looked."""
    with pytest.raises(DemoError, match="no source files"):
        read_modules(["bisect"], tmp_path)


def test_another_module_stands_in_for_a_missing_one() -> None:
    """First those that nobody else wants; at need one serves several."""
    assert assign(["a", "b", "c"], ["a", "x", "y"]) == ["a", "x", "y"]
    assert assign(["a", "b", "c"], ["a", "x"]) == ["a", "x", "x"]
    assert assign(["a", "b", "c"], ["a"]) == ["a", "a", "a"]

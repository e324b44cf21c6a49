"""The source state: the same for the same contents, another for any other; nothing of the repository runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard.review.change import read_change
from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.paths import covers, name_of, relative
from langgraph_loopguard.review.source import Snapshot, SourceState
from tests.review.repositories import ENV, Repo


def clone(repo: Repo, to: Path) -> Path:
    subprocess.run(
        ["git", "clone", "--quiet", str(repo.path), str(to)], check=True, env=os.environ | ENV, capture_output=True
    )
    return to


def test_a_clean_clone_has_the_same_state(repo: Repo, tmp_path: Path) -> None:
    repo.write({"run.sh": "echo\n"})
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("a.py")
    commit = repo.commit()
    state = SourceState.of(repo.path)
    assert SourceState.of(clone(repo, tmp_path / "clone")) == state
    assert (state.kind, state.commit, state.changes, state.files) == ("git", commit, None, 4)
    assert state.clean


EDITS: dict[str, Callable[[Repo], object]] = {
    "edit": lambda repo: repo.write({"a.py": "def f(x):\n    return x + 2\n"}),
    "same size": lambda repo: repo.write({"a.py": "def f(y):\n    return y + 1\n"}),
    "untracked": lambda repo: repo.write({"new.py": "x\n"}),
    "staged": lambda repo: (repo.write({"new.py": "x\n"}), repo.git("add", "new.py")),
    "staged though ignored": lambda repo: (
        repo.write({"x.log": "x\n", ".git/info/exclude": "*.log\n"}),
        repo.git("add", "-f", "x.log"),
    ),
    "deleted": lambda repo: (repo.path / "a.py").unlink(),
    "moved": lambda repo: (repo.path / "a.py").rename(repo.path / "b.py"),
    "mode": lambda repo: (repo.path / "a.py").chmod(0o755),
    "link": lambda repo: ((repo.path / "a.py").unlink(), (repo.path / "a.py").symlink_to("docs/readme.md")),
    "folder in its place": lambda repo: ((repo.path / "a.py").unlink(), repo.write({"a.py/b": "x"})),
}


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_changes_the_state_and_going_back_restores_it(repo: Repo, edit: str) -> None:
    before = SourceState.of(repo.path)
    EDITS[edit](repo)
    after = SourceState.of(repo.path)
    assert (after.commit, after.tree) == (before.commit, before.tree)
    assert after.changes is not None
    assert after.digest != before.digest
    repo.git("reset", "--quiet", "--hard")
    repo.git("clean", "-fdxq")
    assert SourceState.of(repo.path) == before


def test_staging_alone_does_not_change_the_state(repo: Repo) -> None:
    repo.write({"a.py": "pass\n"})
    before = SourceState.of(repo.path)
    repo.git("add", "a.py")
    assert SourceState.of(repo.path) == before


def test_ignored_files_and_what_checks_leave_behind_do_not_count(repo: Repo) -> None:
    repo.commit(files={".gitignore": "*.log\n"})
    before = SourceState.of(repo.path)
    repo.write({"x.log": "x", "__pycache__/a.pyc": b"\0", ".mypy_cache/x": "x", "docs/__pycache__/b.pyc": b"\1"})
    assert SourceState.of(repo.path) == before


def test_only_files_in_scope_count(repo: Repo) -> None:
    before = SourceState.of(repo.path, files=["docs"])
    repo.write({"a.py": "pass\n"})
    assert SourceState.of(repo.path, files=["docs"]) == before
    repo.write({"docs/readme.md": "# Other\n"})
    assert SourceState.of(repo.path, files=["docs"]) != before


def test_a_folder_inside_a_work_tree(repo: Repo) -> None:
    state = SourceState.of(repo.path / "docs")
    assert (state.kind, state.files, state.clean) == ("git", 1, True)
    repo.write({"a.py": "pass\n"})
    assert SourceState.of(repo.path / "docs") == state
    repo.write({"docs/readme.md": "# Other\n"})
    assert not SourceState.of(repo.path / "docs").clean


def test_a_folder_outside_git_is_hashed_by_content(tmp_path: Path) -> None:
    (tmp_path / "x/deep").mkdir(parents=True)
    (tmp_path / "x/deep/a.txt").write_text("a")
    before = SourceState.of(tmp_path / "x")
    assert (before.kind, before.commit, before.changes, before.files) == ("folder", None, None, 1)
    (tmp_path / "x/__pycache__").mkdir()
    (tmp_path / "x/__pycache__/a.pyc").write_bytes(b"\0")
    assert SourceState.of(tmp_path / "x") == before
    (tmp_path / "x/deep/a.txt").write_text("b")
    assert SourceState.of(tmp_path / "x") != before


@pytest.mark.parametrize("args", [("--object-format=sha256",), ()])
def test_an_empty_repository_and_both_hash_functions(make_repo: Callable[..., Repo], args: tuple[str, ...]) -> None:
    repo = Repo(make_repo("other").path.parent / "fresh", *args)
    assert SourceState.of(repo.path).commit is None
    repo.commit(files={"a": "a\n"})
    assert SourceState.of(repo.path).clean
    repo.write({"a": "b\n"})
    change = read_change(Snapshot.take(repo.path), repo.git("rev-parse", "HEAD"))
    assert "+b" in change.patch


def test_line_ends_made_by_attributes_are_no_change(repo: Repo, tmp_path: Path) -> None:
    repo.commit(files={".gitattributes": "*.bat text eol=crlf\n", "run.bat": "one\r\ntwo\r\n"})
    copy = clone(repo, tmp_path / "clone")
    assert (copy / "run.bat").read_bytes() == b"one\r\ntwo\r\n"
    assert SourceState.of(copy).clean
    (copy / "run.bat").write_bytes(b"one\r\nthree\r\n")
    assert not SourceState.of(copy).clean


def test_a_worktree_of_another_repository(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "side"))
    assert SourceState.of(tmp_path / "side") == SourceState.of(repo.path)


def test_a_submodule_counts_by_its_commit_and_its_own_changes(repo: Repo, make_repo: Callable[[str], Repo]) -> None:
    inner = make_repo("inner")
    inner.commit(files={"x": "x\n"})
    repo.git("submodule", "add", "--quiet", str(inner.path), "sub")
    repo.commit()
    before = SourceState.of(repo.path)
    assert before.clean
    (repo.path / "sub/x").write_text("y\n")
    assert not SourceState.of(repo.path).clean
    (repo.path / "sub/x").write_text("x\n")
    assert SourceState.of(repo.path) == before


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path, repo: Repo) -> None:
    with pytest.raises(SourceError, match="'.*nowhere' is not a folder"):
        SourceState.of(tmp_path / "nowhere")
    (repo.path / ".git/HEAD").write_text("nonsense")
    with pytest.raises(SourceError, match="rev-parse"):
        SourceState.of(repo.path)


# -- the change ------------------------------------------------------------------------------------------------------


def test_the_change_names_files_and_lines(repo: Repo) -> None:
    base = repo.commit(files={"b.py": "".join(f"x{i} = {i}\n" for i in range(40)), "c.py": "one\ntwo\nthree\n"})
    lines = (repo.path / "b.py").read_text().splitlines(keepends=True)
    lines[9:11] = ["changed = 9\n", "changed = 10\n", "more = 11\n"]
    del lines[30]
    repo.commit(files={"b.py": "".join(lines), "new.py": "x\ny\n"})
    repo.git("mv", "c.py", "d.py")
    (repo.path / "a.py").unlink()
    change = read_change(Snapshot.take(repo.path), base)
    assert {name: file.status for name, file in change.files.items()} == {
        "a.py": "deleted",
        "b.py": "modified",
        "d.py": "renamed",
        "new.py": "added",
    }
    assert change.files["b.py"].lines == ((10, 12), (30, 31))
    assert change.files["new.py"].lines == ((1, 2),)
    assert change.files["d.py"].old_name == "c.py"
    assert change.renamed_to("c.py") == "d.py"
    assert change.files["b.py"].touches(12, 14)
    assert not change.files["b.py"].touches(13, 20)


def test_the_patch_can_be_applied_to_the_base(repo: Repo, tmp_path: Path) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.write({"a.py": "pass\n", "bin": bytes(range(256)), "new": "no newline"})
    (repo.path / "link").symlink_to("/etc/hosts")
    patch = read_change(Snapshot.take(repo.path), base, binary=True).patch
    other = clone(repo, tmp_path / "clone")
    subprocess.run(["git", "apply"], cwd=other, input=patch.encode(), check=True, env=os.environ | ENV)
    assert SourceState.of(other) == SourceState.of(repo.path)


def test_a_file_that_became_a_link_does_not_shift_the_lines_of_others(repo: Repo) -> None:
    base = repo.commit(files={"b.py": "1\n2\n", "c.py": "1\n2\n3\n"})
    (repo.path / "b.py").unlink()
    (repo.path / "b.py").symlink_to("c.py")
    repo.write({"c.py": "1\n2\nthree\n"})
    change = read_change(Snapshot.take(repo.path), base)
    assert change.files["b.py"].status == "retyped"
    assert change.files["c.py"].lines == ((3, 3),)


def test_files_out_of_scope_are_not_in_the_change(repo: Repo) -> None:
    base = repo.git("rev-parse", "HEAD")
    repo.write({"a.py": "pass\n", "docs/readme.md": "# Other\n"})
    change = read_change(Snapshot.take(repo.path, ["docs"]), base)
    assert list(change.files) == ["docs/readme.md"]


# -- hostile repositories --------------------------------------------------------------------------------------------

ODD = [
    b"new\nline",
    b"quo\"te'",
    b"--flag",
    b"-rf",
    b"tab\t",
    b"caf\xc3\xa9",
    b"bad\xff\xfe",
    b"\x1b[31mred",
    b" ",
    b"back\\slash",
]


def test_odd_file_names(repo: Repo) -> None:
    base = repo.git("rev-parse", "HEAD")
    for raw in ODD:
        Path(os.fsdecode(os.fsencode(repo.path) + b"/" + raw)).write_bytes(b"x\n")
    dirty = read_change(Snapshot.take(repo.path), base)
    repo.commit()
    clean = Snapshot.take(repo.path)
    assert clean.state.clean
    committed = read_change(clean, base)
    assert set(committed.files) == {name_of(raw) for raw in ODD} == set(dirty.files)
    assert all(file.lines == ((1, 1),) for file in committed.files.values())
    assert committed.patch == dirty.patch


def test_nothing_that_the_repository_configures_is_run(repo: Repo, tmp_path: Path) -> None:
    sign = tmp_path / "it-ran"
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\necho $0 >> {sign}\nexit 1\n")
    evil.chmod(0o755)
    base = repo.git("rev-parse", "HEAD")
    repo.commit(files={".gitattributes": "* filter=evil diff=evil text eol=crlf ident\n", "b.py": "x\n"})
    keys = "core.fsmonitor core.sshCommand core.pager core.editor diff.external filter.evil.clean filter.evil.smudge"
    keys += " filter.evil.process diff.evil.textconv diff.evil.command credential.helper gpg.program core.alternateRefsCommand"
    for key in keys.split():
        repo.git("config", key, str(evil))
    repo.git("config", "core.hooksPath", str(tmp_path / "hooks"))
    (tmp_path / "hooks").mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"):
        (tmp_path / "hooks" / hook).symlink_to(evil)
    repo.git("config", "filter.evil.required", "true")
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "remote.origin.url", f"ext::{evil}")
    repo.git("config", "remote.origin.uploadpack", str(evil))
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "core.worktree", "/")
    repo.write({"a.py": "changed\n", "b.py": "x\r\n"})
    snapshot = Snapshot.take(repo.path)
    assert not snapshot.state.clean
    assert "changed" in read_change(snapshot, base).patch
    with pytest.raises(SourceError):
        read_change(snapshot, "1" * 40)
    assert not sign.exists()


def test_a_config_that_waits_for_ever_is_given_up(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(repo.path / "pipe")
    repo.git("config", "include.path", str(repo.path / "pipe"))
    monkeypatch.setattr("langgraph_loopguard.review.git.SECONDS", 0.5)
    with pytest.raises(SourceError, match="ended after 0.5 seconds"):
        SourceState.of(repo.path)


def test_links_out_of_the_tree_are_never_followed(repo: Repo, tmp_path: Path) -> None:
    secret = tmp_path / "outside"
    secret.mkdir()
    (secret / "readme.md").write_text("secret\n")
    base = repo.git("rev-parse", "HEAD")
    (repo.path / "docs/readme.md").unlink()
    (repo.path / "docs").rmdir()
    (repo.path / "docs").symlink_to(secret)
    (repo.path / "file").symlink_to(secret / "readme.md")
    snapshot = Snapshot.take(repo.path)
    change = read_change(snapshot, base)
    assert "secret\n" not in change.patch
    assert change.files["docs/readme.md"].status == "deleted"
    assert snapshot.text("docs/readme.md") is None
    assert snapshot.text("file") is None


def test_pipes_binaries_and_huge_files_break_nothing(repo: Repo) -> None:
    base = repo.git("rev-parse", "HEAD")
    os.mkfifo(repo.path / "pipe")
    repo.write({"bin": b"\0\xff" * 5000, "latin.py": b"x = '\xff'\n"})
    with (repo.path / "huge").open("wb") as file:
        file.truncate(40 * 1024 * 1024)
    snapshot = Snapshot.take(repo.path)
    change = read_change(snapshot, base)
    assert set(change.files) == {"bin", "huge", "latin.py"}
    assert len(change.patch) < 2000
    assert snapshot.text("latin.py") == "x = '\ufffd'\n"
    assert snapshot.text("bin") is None
    assert snapshot.text("huge") is None


@given(st.binary(max_size=20), st.binary(max_size=20))
def test_names_of_valid_text_are_themselves_and_are_told_apart(a: bytes, b: bytes) -> None:
    name = name_of(a)
    name.encode("utf-8")
    try:
        assert name == a.decode()
    except UnicodeDecodeError:
        assert "\\x" in name


def test_patterns_and_tools_names(tmp_path: Path) -> None:
    assert covers((), "x")
    assert covers(("src/",), "src/a/b.py")
    assert covers(("src",), "src/a.py")
    assert not covers(("src",), "src2/a.py")
    assert covers(("*.py",), "deep/a.py")
    assert relative(str(tmp_path / "a" / "b.py"), tmp_path) == "a/b.py"
    assert relative("./a.py", tmp_path) == "a.py"
    assert relative("/etc/hosts", tmp_path) == "/etc/hosts"
    assert relative("../x.py", tmp_path) == "../x.py"

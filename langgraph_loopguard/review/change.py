"""The change under review: what differs between the base and the source state, as git's own diff of two trees.

What is not committed is written as objects into a private git directory, and the diff is made there: neither the work
tree nor the repository's config takes part, so that no external diff, textconv or filter can run.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.files import Folder
from langgraph_loopguard.review.git import Git
from langgraph_loopguard.review.paths import name_of
from langgraph_loopguard.review.repository import GITLINK, SYMLINK, Entry
from langgraph_loopguard.review.source import Snapshot, committed_entries

MAX_PATCH = 32 * 1024 * 1024
"""Bytes of diff that are kept; the rest is cut off, and the change says so."""

HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")

DIFF = ("diff-tree", "-r", "-M", "--no-color", "--no-ext-diff", "--no-textconv")


@dataclass(frozen=True)
class FileChange:
    """What happened to one file.

    Attributes:
        name: Its name now (of a deleted file: its last).
        status: `added`, `deleted`, `modified`, `renamed`, `copied` or `retyped`.
        old_name: Its name in the base, where that was another.
        lines: Ranges of changed lines, first and last, by the numbers of now. A deletion touches the lines around it.
    """

    name: str
    status: str
    old_name: str | None
    lines: tuple[tuple[int, int], ...] = ()

    def touches(self, first: int, last: int) -> bool:
        """Whether a range of lines meets a changed one."""
        return any(first <= end and start <= last for start, end in self.lines)


@dataclass(frozen=True)
class Change:
    """The difference between the base and a source state.

    Attributes:
        base: The commit that the change starts from; `None` outside git.
        files: What happened to each file, by name.
        patch: The unified diff.
        truncated: Whether the patch was cut off.
    """

    base: str | None
    files: Mapping[str, FileChange]
    patch: str
    truncated: bool = False

    def renamed_to(self, old: str) -> str | None:
        """Return the name that a file of the base has now, if that is another."""
        return next((file.name for file in self.files.values() if file.old_name == old), None)


STATUSES = {"A": "added", "C": "copied", "D": "deleted", "M": "modified", "R": "renamed", "T": "retyped"}


def read_change(snapshot: Snapshot, base: str, *, binary: bool = False) -> Change:
    """Return what differs between a commit and a source state.

    Args:
        snapshot: The source state, of a git work tree.
        base: A commit, by its full hash.
        binary: Whether the patch holds the content of binary files, so that it can be applied.

    Raises:
        SourceError: The base cannot be read, or the snapshot is not of a git work tree.
    """
    repository = snapshot.repository
    if repository is None:
        msg = f"{str(snapshot.root)!r} is not under git: it has no change to read"
        raise SourceError(msg)
    prefix = "" if snapshot.root == repository.top else snapshot.root.relative_to(repository.top).as_posix()
    with repository.reader() as git:
        before = committed_entries(git, base, prefix)
        wanted = {entry.raw: entry for entry in snapshot.files.values()}
        # Files out of scope were not looked at: they stand in the new tree as in the old one.
        outside = {raw: entry for raw, entry in before.items() if not snapshot.covers(name_of(raw))}
        for entry in wanted.values():
            if entry.mode != GITLINK and snapshot.committed.get(name_of(entry.raw)) != entry:
                _write_blob(git, Folder(snapshot.root, repository.hash_name), entry)
        old = f"{base}:{prefix}" if before else git.run("hash-object", "-w", "-t", "tree", os.devnull).decode().strip()
        new = _write_tree(git, outside | wanted)
        names = _names(git.run(*DIFF, "--raw", "-z", old, new))
        full = ("--binary", "--full-index") if binary else ()
        patch, truncated = git.read(*DIFF, "-p", *full, old, new, limit=MAX_PATCH)
    files = {}
    for change, lines in zip(names, _line_ranges(patch, names), strict=True):
        files[change.name] = FileChange(change.name, change.status, change.old_name, tuple(lines))
    return Change(base, files, patch.decode("utf-8", "backslashreplace"), truncated)


def whole(snapshot: Snapshot) -> Change:
    """Return the change that has no base: every file in scope belongs to it."""
    files = {name: FileChange(name, "added", None, ((1, 2**31),)) for name in snapshot.files}
    return Change(None, files, "")


def _write_blob(git: Git, folder: Folder, entry: Entry) -> None:
    """Write a file's content as a loose object under its own hash."""
    assert git.git_dir is not None
    path = git.git_dir / "objects" / entry.oid[:2] / entry.oid[2:]
    if path.exists():
        return
    path.parent.mkdir(exist_ok=True)
    if entry.mode == SYMLINK:
        target = folder.link(entry.raw)
        path.write_bytes(zlib.compress(b"blob %d\0" % len(target) + target))
        return
    _stream(path, folder.chunks(entry.raw), os.fsdecode(entry.raw))


def _stream(path: Path, chunks: Iterator[bytes], name: str) -> None:
    packer = zlib.compressobj(1)
    try:
        with path.open("wb") as file:
            file.write(packer.compress(b"blob " + next(chunks) + b"\0"))
            for chunk in chunks:
                file.write(packer.compress(chunk))
            file.write(packer.flush())
    except OSError as error:
        msg = f"file {name!r} cannot be read: {error.strerror}"
        raise SourceError(msg) from error


def _write_tree(git: Git, entries: Mapping[bytes, Entry]) -> str:
    assert git.git_dir is not None
    lines = b"".join(b"%s %s\t%s\0" % (mode.encode(), oid.encode(), raw) for raw, mode, oid in entries.values())
    git.run("update-index", "-z", "--index-info", input=lines)
    return git.run("write-tree", "--missing-ok").decode().strip()


def _names(raw: bytes) -> list[FileChange]:
    """Read `--raw -z`: a line of facts, then one name, or two for a rename or a copy."""
    fields = iter(raw.split(b"\0"))
    out: list[FileChange] = []
    for facts in fields:
        if not facts:
            continue
        letter = facts.split(b" ")[4][:1].decode("ascii")
        first = name_of(next(fields))
        moved = letter in "RC"
        name = name_of(next(fields)) if moved else first
        out.append(FileChange(name, STATUSES.get(letter, "modified"), first if moved and letter == "R" else None))
    return out


def _line_ranges(patch: bytes, names: list[FileChange]) -> list[list[tuple[int, int]]]:
    """Return the changed lines of each file; the patch's sections stand in the order of the names.

    A file that became a link (or the other way) has two sections: it is deleted, and added.
    """
    sections = _sections(patch)
    out: list[list[tuple[int, int]]] = []
    for change in names:
        ranges = next(sections, [])
        if change.status == "retyped":
            ranges = next(sections, [])
        out.append(ranges)
    return out


def _sections(patch: bytes) -> Iterator[list[tuple[int, int]]]:
    ranges: list[tuple[int, int]] | None = None
    line, begun, deleted = 0, 0, False
    in_hunk = False

    def close() -> None:
        nonlocal begun, deleted
        if ranges is not None:
            if begun:
                ranges.append((begun, line - 1))
            elif deleted:
                ranges.append((max(1, line - 1), max(1, line)))
        begun, deleted = 0, False

    for text in patch.split(b"\n"):
        if text.startswith(b"diff --git "):
            close()
            if ranges is not None:
                yield ranges
            ranges, in_hunk = [], False
        elif text.startswith(b"@@") and (match := HUNK.match(text)):
            close()
            line, in_hunk = int(match[1]), True
        elif not in_hunk:
            continue
        elif text.startswith(b"+"):
            begun = begun or line
            line += 1
        elif text.startswith(b"-"):
            deleted = True
        elif text.startswith(b" "):
            close()
            line += 1
    close()
    if ranges is not None:
        yield ranges

"""The source state: which commit, which files, which changes that are not committed. Evidence is bound to it.

The state is of the contents, read by ourselves, so that a clean clone gives the same answer as the folder it was
cloned from, and so that no filter, hook or monitor of the repository runs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.files import Folder, is_byproduct
from langgraph_loopguard.review.git import Git
from langgraph_loopguard.review.paths import covers, name_of
from langgraph_loopguard.review.repository import GITLINK, SYMLINK, Entry, Repository, tree_entries

MAX_TEXT = 4 * 1024 * 1024
"""Bytes of a file that is read as text; a larger one is treated as binary."""


class SourceState(BaseModel):
    """Commit, tree hash, and the hash of uncommitted changes, of the files in scope.

    Example:
        ```python
        from langgraph_loopguard.review import SourceState

        before = SourceState.of(".", files=["langgraph_loopguard"])
        assert before == SourceState.of(".", files=["langgraph_loopguard"])
        ```
    """

    model_config = ConfigDict(frozen=True)

    schema_version: int = 1
    kind: Literal["git", "folder"]
    """`folder`: not under git; `tree` is the hash of its contents."""
    commit: str | None
    """The commit that is checked out; `None` before the first, and outside git."""
    tree: str
    """SHA-256 over name, mode and content hash of the commit's files in scope."""
    changes: str | None
    """SHA-256 over what differs from the commit; `None` when nothing does."""
    files: int
    """Number of files in scope."""

    @classmethod
    def of(cls, root: str | os.PathLike[str], files: Sequence[str] = ()) -> SourceState:
        """Return the state of a folder.

        Args:
            root: A git work tree, a folder in one, or any folder.
            files: What is in scope: files, folders or globs, relative to `root`. Default: everything.

        Raises:
            SourceError: It cannot be read.
        """
        return Snapshot.take(root, files).state

    @property
    def digest(self) -> str:
        """One hash of all of it: equal exactly for equal states."""
        parts = (self.kind, self.commit or "", self.tree, self.changes or "")
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def clean(self) -> bool:
        """Whether nothing differs from the commit."""
        return self.changes is None


@dataclass(frozen=True)
class Snapshot:
    """A source state together with the files that it was read from.

    Attributes:
        root: The folder.
        state: Its source state.
        files: The files in scope, by name.
        committed: The same of the commit.
        repository: The repository; `None` outside git.
        patterns: What is in scope; empty for everything.
    """

    root: Path
    state: SourceState
    files: Mapping[str, Entry]
    committed: Mapping[str, Entry]
    repository: Repository | None
    patterns: tuple[str, ...] = ()
    _texts: dict[str, str | None] = field(default_factory=dict, repr=False)

    @classmethod
    def take(cls, root: str | os.PathLike[str], files: Sequence[str] = ()) -> Snapshot:
        """Read a folder. Arguments and errors as for `SourceState.of`."""
        where = Path(root).resolve()
        repository = Repository.find(where)
        if repository is None:
            return _folder_snapshot(where, files)
        if repository.bare:
            msg = f"{str(root)!r} is a bare repository: there is no work tree to read"
            raise SourceError(msg)
        return _git_snapshot(where, repository, files)

    def text(self, name: str) -> str | None:
        """Return a file's text (invalid UTF-8 replaced); `None` for a link, a binary, a huge or a missing file."""
        if name not in self._texts:
            self._texts[name] = self._read(name)
        return self._texts[name]

    def covers(self, name: str) -> bool:
        """Whether a name is in scope."""
        return covers(self.patterns, name)

    def _read(self, name: str) -> str | None:
        entry = self.files.get(name)
        if entry is None or entry.mode in (SYMLINK, GITLINK):
            return None
        data = Folder(self.root).read(entry.raw, MAX_TEXT)
        return None if data is None or b"\0" in data[:8000] else data.decode("utf-8", "replace")


def _folder_snapshot(root: Path, patterns: Sequence[str]) -> Snapshot:
    folder = Folder(root)
    found = (entry for raw in folder.walk() if covers(patterns, name_of(raw)) and (entry := folder.entry(raw)))
    files = _named(found)
    state = SourceState(kind="folder", commit=None, tree=_hash(files.values()), changes=None, files=len(files))
    return Snapshot(root, state, files, files, None, tuple(patterns))


def _git_snapshot(root: Path, repository: Repository, patterns: Sequence[str]) -> Snapshot:
    commit = repository.head()
    prefix = "" if root == repository.top else root.relative_to(repository.top).as_posix()
    with repository.reader() as reader:
        entries = committed_entries(reader, commit, prefix)
        committed = {raw: entry for raw, entry in entries.items() if covers(patterns, name_of(raw))}
        folder = Folder(root, repository.hash_name)
        names = {raw for raw in _listed(repository, root) if covers(patterns, name_of(raw))} | committed.keys()
        current: dict[bytes, Entry] = {}
        doubtful: list[Entry] = []
        for raw in names:
            known = committed.get(raw)
            entry = _submodule(root, raw, known) if known and known.mode == GITLINK else folder.entry(raw)
            if entry is None:
                continue
            current[raw] = entry
            if known and known != entry and known.mode not in (GITLINK, SYMLINK) and entry.mode != SYMLINK:
                doubtful.append(entry)
        _undo_line_ends(current, committed, doubtful, reader, root)
    differing = [current.get(raw) or Entry(raw, "0", "") for raw in names if current.get(raw) != committed.get(raw)]
    state = SourceState(
        kind="git",
        commit=commit,
        tree=_hash(committed.values()),
        changes=_hash(differing) if differing else None,
        files=len(current),
    )
    return Snapshot(root, state, _named(current.values()), _named(committed.values()), repository, tuple(patterns))


def committed_entries(reader: Git, commit: str | None, prefix: str) -> dict[bytes, Entry]:
    """Return a commit's files below a folder, by their names from there."""
    if commit is None:
        return {}
    if not prefix:
        return {entry.raw: entry for entry in tree_entries(reader, commit)}
    below = os.fsencode(prefix) + b"/"
    return {
        entry.raw[len(below) :]: entry._replace(raw=entry.raw[len(below) :])
        for entry in tree_entries(reader, commit)
        if entry.raw.startswith(below)
    }


def _listed(repository: Repository, root: Path) -> set[bytes]:
    """Names of what is in the index, and of what is untracked and not ignored."""
    listed = Git(repository.git_dir, repository.top, cwd=root).run(
        "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"
    )
    out: set[bytes] = set()
    for line in listed.split(b"\0"):
        tag, raw = line[:1], line[2:]
        # A name that ends in a slash is another repository inside this one: it has a state of its own.
        if raw and (tag != b"?" or not (raw.endswith(b"/") or is_byproduct(raw))):
            out.add(raw)
    return out


def _submodule(root: Path, raw: bytes, known: Entry) -> Entry:
    """A submodule that is not checked out is as the commit says; else its own state counts."""
    path = root / os.fsdecode(raw)
    if path.is_symlink() or not os.path.lexists(path / ".git"):
        return known
    state = SourceState.of(path)
    return known if state.clean and state.commit == known.oid else known._replace(oid=state.digest)


def _undo_line_ends(
    current: dict[bytes, Entry],
    committed: Mapping[bytes, Entry],
    doubtful: Sequence[Entry],
    reader: Git,
    root: Path,
) -> None:
    """Take files for unchanged that differ only by what `.gitattributes` did to them at checkout (line ends)."""
    if not doubtful or b".gitattributes" not in {os.path.basename(raw) for raw in committed}:
        return
    git = Git(reader.git_dir, root)
    paths = b"".join(_c_quoted(entry.raw) + b"\n" for entry in doubtful)
    hashes = git.run("hash-object", "--stdin-paths", input=paths).decode("ascii").split()
    for entry, oid in zip(doubtful, hashes, strict=True):
        current[entry.raw] = entry._replace(oid=oid)


def _c_quoted(raw: bytes) -> bytes:
    escaped = b"".join(bytes([byte]) if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte for byte in raw)
    return b'"' + escaped + b'"'


def _named(entries: Iterable[Entry]) -> dict[str, Entry]:
    return {name_of(entry.raw): entry for entry in sorted(entries)}


def _hash(entries: Iterable[Entry]) -> str:
    digest = hashlib.sha256()
    for raw, mode, oid in sorted(entries):
        digest.update(b"%s %s %d " % (mode.encode(), oid.encode(), len(raw)) + raw)
    return digest.hexdigest()

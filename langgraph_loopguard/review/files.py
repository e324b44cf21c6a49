"""Reads a folder's files: by content, never through a symbolic link, never from a device or a pipe."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.repository import SYMLINK, Entry

BYPRODUCTS = frozenset(
    {
        b"__pycache__",
        b".coverage",
        b".git",
        b".hg",
        b".hypothesis",
        b".mypy_cache",
        b".nox",
        b".pytest_cache",
        b".ruff_cache",
        b".svn",
        b".tox",
        b".venv",
        b"node_modules",
    }
)
"""Names that checks leave behind; untracked files under them are no part of the source."""

CHUNK = 1 << 20


def is_byproduct(raw: bytes) -> bool:
    """Whether a file lies under one of the names that checks leave behind."""
    return any(part in BYPRODUCTS for part in raw.split(b"/"))


class Folder:
    """The files below one folder, read safely.

    Args:
        root: The folder.
        hash_name: Git's hash function, `"sha1"` or `"sha256"`.
    """

    def __init__(self, root: str | os.PathLike[str], hash_name: str = "sha256") -> None:
        self.root = os.fsencode(root)
        self.hash_name = hash_name
        self._folders: dict[bytes, bool] = {b"": True}

    def walk(self) -> Iterator[bytes]:
        """Yield the names of all files, without byproducts; links to folders are files."""
        pending = [b""]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(os.path.join(self.root, folder) or b".") as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                msg = f"folder {os.fsdecode(folder)!r} cannot be read: {error.strerror}"
                raise SourceError(msg) from error
            for entry in found:
                if entry.name in BYPRODUCTS:
                    continue
                raw = os.path.join(folder, entry.name)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(raw)
                else:
                    yield raw

    def entry(self, raw: bytes) -> Entry | None:
        """Return a file with git's mode and hash for it; `None` when there is none (or a folder in its place).

        Raises:
            SourceError: The file is there and cannot be read.
        """
        if not self._within(os.path.dirname(raw)):
            return None
        path = os.path.join(self.root, raw)
        try:
            status = os.lstat(path)
            if stat.S_ISLNK(status.st_mode):
                return Entry(raw, SYMLINK, self.hash_of(os.readlink(path)))
            if stat.S_ISREG(status.st_mode):
                mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
                return Entry(raw, mode, self._hash_file(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            msg = f"file {os.fsdecode(raw)!r} cannot be read: {error.strerror}"
            raise SourceError(msg) from error
        return None

    def read(self, raw: bytes, limit: int) -> bytes | None:
        """Return the content of a regular file; `None` when it is none, or larger than `limit` bytes."""
        if not self._within(os.path.dirname(raw)):
            return None
        try:
            descriptor = _open(os.path.join(self.root, raw))
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = file.read(limit + 1)
        return data if len(data) <= limit else None

    def link(self, raw: bytes) -> bytes:
        """Return where a symbolic link points."""
        return os.readlink(os.path.join(self.root, raw))

    def chunks(self, raw: bytes) -> Iterator[bytes]:
        """Yield a regular file's content piece by piece, its size in bytes (as text) first."""
        descriptor = _open(os.path.join(self.root, raw))
        with os.fdopen(descriptor, "rb") as file:
            yield str(os.fstat(descriptor).st_size).encode()
            while chunk := file.read(CHUNK):
                yield chunk

    def hash_of(self, data: bytes) -> str:
        """Return git's hash of a content."""
        return hashlib.new(self.hash_name, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def _hash_file(self, path: bytes) -> str:
        with os.fdopen(_open(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= CHUNK:
                return self.hash_of(file.read())
            digest = hashlib.new(self.hash_name, b"blob %d\0" % size, usedforsecurity=False)
            while chunk := file.read(CHUNK):
                digest.update(chunk)
            return digest.hexdigest()

    def _within(self, folder: bytes) -> bool:
        """Whether a folder is one all the way down: a file beyond a symbolic link is not ours."""
        known = self._folders.get(folder)
        if known is None:
            try:
                here = stat.S_ISDIR(os.lstat(os.path.join(self.root, folder)).st_mode)
            except OSError:
                here = False
            known = self._folders[folder] = here and self._within(os.path.dirname(folder))
        return known


def _open(path: bytes) -> int:
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)

"""Names of files: what a pattern covers, and names that are no valid text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase


def name_of(raw: bytes) -> str:
    r"""Return a file's name as text; bytes that are no UTF-8 are shown as `\xNN`."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def covers(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns is the file, a folder above it, or a glob that matches; no pattern covers all."""
    if not patterns:
        return True
    return any(
        name == pattern or name.startswith(pattern.rstrip("/") + "/") or fnmatchcase(name, pattern)
        for pattern in patterns
    )


def relative(name: str, root: str | os.PathLike[str]) -> str:
    """Return a file name as tools print it (absolute, or with `./`) in the form that a source state uses."""
    if os.path.isabs(name):
        for top in (os.fspath(root), os.path.realpath(root)):
            if name.startswith(top.rstrip(os.sep) + os.sep):
                name = os.path.relpath(name, top)
                break
        else:
            return os.path.normpath(name)
    return os.path.normpath(name).replace(os.sep, "/") if name else name

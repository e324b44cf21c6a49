"""A lock that dies with its process: what is left of it on disk claims nothing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph_loopguard.review.errors import BusyError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file.

    Raises:
        BusyError: Another process holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            msg = f"a review of this change is running already ({path})"
            raise BusyError(msg) from error
        yield
    finally:
        os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock. Writes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False

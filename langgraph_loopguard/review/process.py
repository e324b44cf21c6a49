"""Runs one command: an argument list, a time limit for its whole process group, output that is bounded and hashed.

The command ends with this process, even when this process is killed: a supervisor between the two holds one end of a
socket pair and ends the group when the other end closes. Output is streamed: only its head and its tail are kept.
What a command starts in a session of its own (a daemon) is out of reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

KEPT = 64 * 1024
"""Bytes of output that are kept of each end, unless told otherwise."""

CHUNK = 1 << 18

GRACE = 2.0
"""Seconds between the request to end and the kill, and for the last output of a group that was killed."""

ALLOWED = (
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
)
"""Environment variables that a command gets; keys and tokens stay outside unless they are named."""


def environment(names: Iterable[str] = (), values: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a command's environment: the allowed variables, those that `names` adds, and `values`."""
    wanted = (*ALLOWED, *names)
    return {name: os.environ[name] for name in wanted if name in os.environ} | dict(values or {})


@dataclass(frozen=True)
class Output:
    """What a command printed to one stream.

    Attributes:
        head: Its first bytes.
        tail: Its last bytes, where they are not in `head`.
        size: Number of bytes printed.
        sha256: Hash of all of them.
    """

    head: bytes
    tail: bytes
    size: int
    sha256: str

    @property
    def whole(self) -> bytes | None:
        """All of it; `None` when some was dropped."""
        return self.head + self.tail if len(self.head) + len(self.tail) == self.size else None

    def text(self) -> str:
        """Return what was kept, with a note of what was not."""
        kept = self.whole
        if kept is None:
            dropped = self.size - len(self.head) - len(self.tail)
            kept = self.head + f"\n[... {dropped} bytes not kept ...]\n".encode() + self.tail
        return kept.decode("utf-8", "replace")


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    Attributes:
        status: Its exit status, 128 + n for signal n; `None` when it did not end by itself or could not be started.
        stdout: What it printed.
        stderr: What it printed there.
        seconds: How long it took.
        timed_out: Whether the time limit ended it.
        error: Why it could not be started; `None` when it was.
    """

    status: int | None
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool = False
    error: str | None = None


class Drain(threading.Thread):
    """Reads a stream to its end; keeps the first and the last `keep` bytes."""

    def __init__(self, stream: IO[bytes], keep: int) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._keep = keep
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._size = 0
        self._digest = hashlib.sha256()
        self._guard = threading.Lock()
        self.start()

    def run(self) -> None:
        """Read until the end, or until the stream is closed under us."""
        with contextlib.suppress(ValueError, OSError):
            while chunk := os.read(self._stream.fileno(), CHUNK):
                with self._guard:
                    self._take(chunk)

    def _take(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._digest.update(chunk)
        room = self._keep - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk[-self._keep :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= self._keep:
                self._tail_size -= len(self._tail.popleft())

    def output(self) -> Output:
        """Return what was read so far."""
        with self._guard:
            tail = b"".join(self._tail)[-self._keep :]
            return Output(bytes(self._head), tail, self._size, self._digest.hexdigest())


EMPTY = Output(b"", b"", 0, hashlib.sha256().hexdigest())


def run_command(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
    keep: int = KEPT,
) -> Finished:
    """Run a command to its end.

    Args:
        command: The program and its arguments; there is no shell.
        cwd: Where it runs.
        env: Its whole environment.
        timeout: Seconds until its process group is ended.
        stdin: What it reads.
        keep: Bytes of each stream kept from its start, and from its end.

    Returns:
        How it ended. A signal to this process (KeyboardInterrupt, SystemExit) ends the group and is raised on.
    """
    started = time.monotonic()
    program = find_program(command[0], cwd, env)
    if program is None:
        return Finished(None, EMPTY, EMPTY, 0.0, error=f"{command[0]!r} is not a program that can be run here")
    ours, theirs = socket.socketpair()
    supervisor = [sys.executable, "-I", "-S", str(Path(__file__).with_name("_supervise.py")), str(theirs.fileno())]
    with ours:
        try:
            with theirs:
                process = subprocess.Popen(
                    [*supervisor, program, *command[1:]],
                    cwd=cwd,
                    env=dict(env),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except OSError as error:
            return Finished(None, EMPTY, EMPTY, 0.0, error=f"{command[0]!r} cannot be started: {error.strerror}")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        out, err = Drain(process.stdout, keep), Drain(process.stderr, keep)
        feed = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
        feed.start()
        timed_out = False
        try:
            status: int | None = process.wait(timeout=max(0.0, started + timeout - time.monotonic()))
        except subprocess.TimeoutExpired:
            timed_out, status = True, None
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=GRACE)
        finally:
            # Whatever the command left in its group ends with it: a check has no business afterwards.
            _signal(process.pid, signal.SIGKILL)
            process.wait()
        for drain in (out, err):
            drain.join(timeout=GRACE)
        error_number = _sent(ours)
        for stream in (process.stdin, process.stdout, process.stderr):
            if not (stream is process.stdin and feed.is_alive()):
                _close(stream)
    seconds = time.monotonic() - started
    if error_number is not None:
        why = f"{command[0]!r} cannot be started: {os.strerror(error_number)}"
        return Finished(None, out.output(), err.output(), seconds, error=why)
    if status is not None and status < 0:  # the command has signalled its whole group, the supervisor too
        status = 128 - status
    return Finished(status, out.output(), err.output(), seconds, timed_out=timed_out)


def find_program(name: str, cwd: Path, env: Mapping[str, str]) -> str | None:
    """Return the path of a program: as it stands when it has a slash (from `cwd`), else along the `PATH` of `env`."""
    if os.sep in name:
        path = cwd / name
        return str(path) if path.is_file() and os.access(path, os.X_OK) else None
    return shutil.which(name, path=env.get("PATH", os.defpath))


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.write(data)
    _close(stream)


def _close(stream: IO[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        stream.close()


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _sent(line: socket.socket) -> int | None:
    line.setblocking(False)
    with contextlib.suppress(BlockingIOError, ConnectionError):
        sent = line.recv(16)
        return int(sent) if sent else None
    return None

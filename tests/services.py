"""A private PostgreSQL server for the tests: made, started and stopped by them, on a port of its own."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def postgres_binaries() -> Path | None:
    """The folder with `initdb` and `pg_ctl`; `None` where PostgreSQL is not installed."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    return Path(folders[-1]) if folders else None


def _unprivileged() -> list[str]:
    """Prefix that runs a command as somebody else than root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return []
    user = next(name for name in ("postgres", "nobody") if _user_exists(name))
    return ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]


def _user_exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def postgres_server(binaries: Path) -> Iterator[str]:
    """Run a server on a new cluster; yield the URL of its `postgres` database."""
    prefix = _unprivileged()
    with tempfile.TemporaryDirectory(prefix="loopguard-pg-") as folder:
        data = Path(folder) / "data"
        if prefix:
            user = pwd.getpwnam(prefix[1].split("=")[1])
            os.chown(folder, user.pw_uid, user.pw_gid)
        log = Path(folder) / "log"
        run = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/", "env": {**os.environ, "LC_ALL": "C"}}
        subprocess.run(
            [*prefix, binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8"], **run
        )
        control = [*prefix, binaries / "pg_ctl", "-D", data, "-w"]
        port = _free_port()
        # TCP alone: the path of a socket may have 107 bytes, and temporary folders can be longer.
        options = f"-p {port} -h 127.0.0.1 -F -c unix_socket_directories= -c max_connections=200"
        try:
            try:
                subprocess.run([*control, "-l", log, "-o", options, "start"], **run)
            except subprocess.CalledProcessError as error:
                msg = f"PostgreSQL did not start on port {port}: {log.read_text() if log.exists() else 'no log'}"
                raise RuntimeError(msg) from error
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            # A start that was too slow for pg_ctl leaves a server behind, too.
            if (data / "postmaster.pid").exists():
                subprocess.run([*control, "-m", "immediate", "stop"], **run)

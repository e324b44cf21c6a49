"""Servers for the tests, PostgreSQL and LangGraph: made, started and stopped by them, on ports of their own."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest


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


START_SECONDS = 120


@contextmanager
def langgraph_server(project: Path, folder: Path) -> Iterator[str]:
    """Run `langgraph dev` on a copy of a project (the server writes beside it); yield its URL."""
    if reason := _langgraph_lacks():
        if os.environ.get("LOOPGUARD_REQUIRE_SERVICES"):
            pytest.fail(reason)
        pytest.skip(reason)
    copied = folder / "server"
    shutil.copytree(project, copied, ignore=shutil.ignore_patterns(".langgraph_api", "__pycache__"))
    port, log = _free_port(), folder / "server.log"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    root = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": root, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=copied, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _langgraph_lacks() -> str | None:
    """What `langgraph dev` lacks here; `None` when it can run."""
    for module in ("langgraph_cli", "langgraph_api"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install 'langgraph-cli[inmem]'"
    return None


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"langgraph dev ended with {process.returncode}:\n{log.read_text()}")
        try:
            if httpx.get(f"{url}/ok", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    pytest.fail(f"langgraph dev was not ready after {START_SECONDS} seconds:\n{log.read_text()}")

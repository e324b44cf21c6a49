"""Commands: bounded output, a time limit for the whole group, and no child that outlives its parent."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from langgraph_loopguard.review.process import environment, run_command

PYTHON = sys.executable


def run(code: str, cwd: Path, *, timeout: float = 30, stdin: bytes = b"", keep: int = 1000):  # type: ignore[no-untyped-def]
    return run_command([PYTHON, "-c", code], cwd=cwd, env=environment(), timeout=timeout, stdin=stdin, keep=keep)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(true, seconds: float = 20) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_status_streams_and_input(tmp_path: Path) -> None:
    done = run("import sys; print(sys.stdin.read()); sys.stderr.write('e'); sys.exit(7)", tmp_path, stdin=b"hello")
    assert (done.status, done.stdout.whole, done.stderr.whole) == (7, b"hello\n", b"e")
    assert not done.timed_out
    assert done.error is None


def test_input_that_nobody_reads_is_no_trouble(tmp_path: Path) -> None:
    assert run("pass", tmp_path, stdin=b"x" * 10_000_000).status == 0


def test_a_signal_is_told_as_shells_do(tmp_path: Path) -> None:
    assert run("import os; os.kill(os.getpid(), 9)", tmp_path).status == 137
    assert run("import os; os.kill(0, 9)", tmp_path).status == 137


def test_a_program_that_is_not_there_or_no_program(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("x")
    (tmp_path / "bad").chmod(0o755)
    for name in ("no-such-program", "./nor-this", "./bad"):
        done = run_command([name], cwd=tmp_path, env=environment(), timeout=10)
        assert done.status is None
        assert done.error is not None
        assert name in done.error
    done = run_command([PYTHON, "-c", ""], cwd=tmp_path / "nowhere", env=environment(), timeout=10)
    assert "cannot be" in (done.error or "")


def test_the_environment_is_an_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.setenv("NAMED", "n")
    code = "import os; print(sorted(k for k in os.environ if k != 'LC_CTYPE'))"
    done = run_command([PYTHON, "-c", code], cwd=tmp_path, env=environment(["NAMED"], {"SET": "1"}), timeout=30)
    assert b"SECRET_TOKEN" not in done.stdout.head
    assert b"'NAMED'" in done.stdout.head
    assert b"'SET'" in done.stdout.head


def test_output_is_bounded_and_hashed(tmp_path: Path) -> None:
    done = run("import sys\nfor i in range(200000): sys.stdout.write('%09d\\n' % i)", tmp_path, keep=100)
    expected = "".join(f"{i:09d}\n" for i in range(200000)).encode()
    assert done.stdout.size == len(expected)
    assert done.stdout.sha256 == hashlib.sha256(expected).hexdigest()
    assert (done.stdout.head, done.stdout.tail) == (expected[:100], expected[-100:])
    assert done.stdout.whole is None
    assert "[... 1999800 bytes not kept ...]" in done.stdout.text()


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 199, 200, 201])
def test_nothing_is_lost_at_the_edges(tmp_path: Path, size: int) -> None:
    data = bytes(range(65, 90)) * 9
    done = run(f"import sys; sys.stdout.buffer.write({data[:size]!r})", tmp_path, keep=100)
    assert (done.stdout.whole == data[:size]) == (size <= 200)


TREE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"])
print(child.pid, flush=True)
{then}
"""


def test_a_time_out_ends_the_whole_group(tmp_path: Path) -> None:
    done = run(TREE.format(then="time.sleep(600)"), tmp_path, timeout=1.5)
    assert done.timed_out
    assert done.status is None
    wait_for(lambda: not alive(int(done.stdout.head)))


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    done = run(TREE.format(then="sys.exit(3)"), tmp_path)
    assert done.status == 3
    wait_for(lambda: not alive(int(done.stdout.head)))


def test_a_daemon_that_holds_the_output_open_does_not_hold_us(tmp_path: Path) -> None:
    code = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        print(os.getpid(), flush=True)
        time.sleep(600)
    time.sleep(0.5)
    """
    done = run(textwrap.dedent(code), tmp_path)
    assert done.status == 0
    os.kill(int(done.stdout.head), signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_parent_leaves_no_child(tmp_path: Path, number: int) -> None:
    code = f"""
    import sys
    from pathlib import Path
    from langgraph_loopguard.review.process import environment, run_command
    tree = {TREE.format(then="time.sleep(600)")!r}.replace("print(child.pid, flush=True)", "open('pid', 'w').write(str(child.pid)); open('done', 'w')")
    run_command([sys.executable, "-c", tree], cwd=Path("."), env=environment(), timeout=600)
    """
    parent = subprocess.Popen([PYTHON, "-c", textwrap.dedent(code)], cwd=tmp_path, stderr=subprocess.DEVNULL)
    wait_for((tmp_path / "done").exists)
    pid = int((tmp_path / "pid").read_text())
    assert alive(pid)
    parent.send_signal(number)
    assert parent.wait(timeout=30) != 0
    wait_for(lambda: not alive(pid))


@pytest.mark.slow
def test_a_gigabyte_of_output_fills_neither_memory_nor_disk(tmp_path: Path) -> None:
    code = """
    import resource, sys
    from pathlib import Path
    from langgraph_loopguard.review.process import environment, run_command
    noisy = "import sys\\nb = b'x' * (1 << 20)\\nfor i in range(1024): sys.stdout.buffer.write(b)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = run_command([sys.executable, "-c", noisy], cwd=Path("."), env=environment(), timeout=600)
    assert done.stdout.size == 1 << 30, done
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run([PYTHON, "-c", textwrap.dedent(code)], cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) < 32 * 1024
    assert not list(tmp_path.iterdir())

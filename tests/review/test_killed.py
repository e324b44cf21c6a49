"""Runs that are stopped and killed: one attempt each, no child left, and the next run goes on."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from langgraph_loopguard.review.lock import is_locked
from langgraph_loopguard.review.store import read_memory
from tests.review.repositories import Repo
from tests.review.test_runner import Runner, runner, tree  # noqa: F401

pytestmark = pytest.mark.slow


def wait_for(true: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def start(runner: Runner, *actions: str, **options: str) -> subprocess.Popen[bytes]:  # noqa: F811
    argv = [sys.executable, "-m", "langgraph_loopguard.cli", *runner.argv(*actions, **options)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def hanging(runner: Runner) -> tuple[subprocess.Popen[bytes], list[int]]:  # noqa: F811
    """A run whose reviewer hangs, and the processes of that reviewer."""
    process = start(runner, "hang", "fine")
    pids = runner.log.with_name("pids")
    wait_for(pids.exists)
    return process, [int(pid) for pid in pids.read_text().split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_records_one_failure_and_leaves_no_child(runner: Runner, number: int) -> None:  # noqa: F811
    process, pids = hanging(runner)
    assert all(alive(pid) for pid in pids)
    process.send_signal(number)
    assert process.wait(timeout=60) == 5
    wait_for(lambda: not any(alive(pid) for pid in pids))
    (attempt,) = runner.attempts
    assert attempt.status == "interrupted"
    assert attempt.finished_at
    assert runner.say("status") == 5
    assert runner.run("hang", "fine") == 10
    assert [item.status for item in runner.attempts] == ["interrupted", "recorded"]


def test_a_time_out_records_one_failure_and_leaves_no_child(runner: Runner) -> None:  # noqa: F811
    assert runner.run("hang", timeout="3") == 5
    pids = [int(pid) for pid in runner.log.with_name("pids").read_text().split()]
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert [item.status for item in runner.attempts] == ["timed_out"]
    assert runner.run("fine", "fine", timeout="3") == 10, "another reviewer is another question"


def test_sigkill_during_the_reviewer(runner: Runner) -> None:  # noqa: F811
    process, pids = hanging(runner)
    assert runner.say("status") == 5
    process.kill()
    process.wait()
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert not is_locked(runner.desk.lock)
    before = tree(runner.home)
    assert runner.say("status") == 5, "the attempt in flight is interrupted, and it is said without a write"
    assert tree(runner.home) == before
    assert runner.run("hang", "fine") == 10
    assert [(item.n, item.status) for item in runner.attempts] == [(1, "interrupted"), (2, "recorded")]


POINTS = {
    "before the attempt is reserved": ("ReviewStore", "reserve", "before", 0),
    "after it is reserved, before the reviewer": ("ReviewStore", "reserve", "after", 1),
    "after the reviewer, before the answer is read": ("passes", "read_answer", "before", 1),
    "before the answer is recorded": ("passes", "take_answer", "before", 1),
    "after it is recorded": ("passes.Pass", "judge", "before", 1),
    "at the end": ("ReviewStore", "note", "after-ruling", 1),
}


@pytest.mark.parametrize("point", POINTS)
def test_sigkill_before_and_after_the_reviewer(runner: Runner, point: str) -> None:  # noqa: F811
    owner, name, when, attempts = POINTS[point]
    code = f"""
    import os, sys
    from langgraph_loopguard.cli import main
    from langgraph_loopguard.review import passes
    from langgraph_loopguard.review.store import ReviewStore
    owner, name, when = {owner}, {name!r}, {when!r}
    original = getattr(owner, name)
    def killed(*args, **kwargs):
        if when == "before":
            os.kill(os.getpid(), 9)
        value = original(*args, **kwargs)
        if when == "after" or "ruling" in kwargs:
            os.kill(os.getpid(), 9)
        return value
    setattr(owner, name, killed)
    main(sys.argv[1:])
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), *runner.argv("bug")]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == -signal.SIGKILL
    memory = read_memory(runner.desk.store)
    assert memory is not None
    assert len(memory.attempts) == attempts
    runner.say("status")
    assert runner.run("bug") == 10
    after = runner.attempts
    recorded = [item for item in after if item.status == "recorded"]
    assert len(recorded) == 1
    assert len(after) <= 2
    memory = read_memory(runner.desk.store)
    assert memory is not None
    assert [finding.message for finding in memory.findings] == ["The value is bad."]


def test_a_run_that_is_killed_while_it_clones(runner: Runner) -> None:  # noqa: F811
    code = """
    import os, sys
    from langgraph_loopguard.cli import main
    from langgraph_loopguard.review import clone
    def killed(*args, **kwargs):
        os.kill(os.getpid(), 9)
    clone._settle = killed
    main(sys.argv[1:])
    """
    argv = [sys.executable, "-c", textwrap.dedent(code), *runner.argv("bug")]
    assert subprocess.run(argv, capture_output=True, check=False).returncode == -signal.SIGKILL
    (runner.desk.work / ".git/index.lock").write_text("")
    (runner.desk.work / ".git/HEAD").write_text("")
    assert runner.run("bug") == 10


def test_two_runs_at_once_are_one(runner: Runner) -> None:  # noqa: F811
    process, _ = hanging(runner)
    assert runner.run("fine") == 5
    assert len(runner.asked) == 1
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=60)


def test_a_repository_of_many_files_and_a_large_diff(tmp_path: Path) -> None:
    """5,000 files, a diff of 20,000 lines, and a check that prints a gigabyte: memory stays bounded."""
    repo = Repo(tmp_path / "big")
    text = "".join(f"def function_{i}(x):\n    return x + {i}\n" for i in range(20))
    repo.write({f"pkg{n % 50}/module_{n}.py": text for n in range(5000)})
    repo.commit()
    repo.git("checkout", "--quiet", "-b", "feature")
    repo.write({f"pkg{n % 50}/module_{n}.py": text.replace("return x +", "return x -") for n in range(500)})
    repo.commit()
    big = Runner(repo, tmp_path / "home")
    noisy = f"{sys.executable} -c 'import sys; [sys.stdout.buffer.write(bytes(1 << 20)) for _ in range(1024)]'"
    argv = [sys.executable, "-c", PEAK, *big.argv("new", check=noisy)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    status, peak = done.stdout.split()[-2:]
    assert status == "10"
    assert int(peak) < 500_000, f"{peak} kB"
    (question,) = big.asked
    assert len(question["scope"]["files"]) == 500
    assert question["diff"].count("\n+    return") + question["diff"].count("\n-    return") == 20_000
    sizes = [path.stat().st_size for path in big.desk.folder.glob("review.sqlite*")]
    assert sum(sizes) < 4_000_000
    assert big.say("status") == 10


PEAK = """
import resource, sys
from langgraph_loopguard.cli import main
status = main(sys.argv[1:])
sys.stdout.write(f"{status} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}")
"""

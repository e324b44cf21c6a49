"""A function's name is the same in every process, and another one for another body."""

from __future__ import annotations

import subprocess
import sys

from langgraph_loopguard.review.named import name_of_callable

CODE = """
from langgraph_loopguard.review.named import name_of_callable
def check(root):
    inner = lambda x: x in {"a", "b", "c"}
    return inner(str(root)) and {1.5, None}
names = {name_of_callable(check) for _ in range(50)}
kept = [check.__code__.co_consts, check.__code__.co_names]
names |= {name_of_callable(check) for _ in range(50)}
assert len(names) == 1, names
print(names.pop())
"""


def test_the_same_in_every_process() -> None:
    names = {
        subprocess.run(
            [sys.executable, "-c", CODE], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1


def test_another_body_is_another_name() -> None:
    one, other = (lambda root: root == 1), (lambda root: root == 2)
    assert name_of_callable(one) != name_of_callable(other)
    assert name_of_callable(one) == name_of_callable(one)
    assert name_of_callable(len) == "builtins:len"

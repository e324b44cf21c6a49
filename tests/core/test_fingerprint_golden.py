"""Fingerprints stay what they are: in another process, under another hash seed, and in the next release.

A ledger in a database holds fingerprints of the release that wrote it. A change that moves one of these vectors makes
every open loop forget what it has seen, so it is a change for the changelog.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.golden import golden, hashed

ROOT = Path(__file__).parents[2]


def test_fingerprints_are_the_golden_ones() -> None:
    """Each payload has the fingerprint that is written down."""
    assert golden() == hashed()


def test_golden_payloads_differ() -> None:
    """The vectors would not show a hash that ignores its input."""
    assert len(golden()) == len({vector["exact"] for vector in golden()})


@pytest.mark.parametrize(("seed", "flags"), [("0", ()), ("1", ()), ("2", ()), ("0", ("-O",))])
def test_fingerprints_are_equal_in_a_fresh_process(seed: str, flags: tuple[str, ...]) -> None:
    """Neither the hash seed nor `python -O` has a say."""
    done = subprocess.run(
        [sys.executable, *flags, "-m", "tests.core.golden"],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    assert golden() == json.loads(done.stdout)

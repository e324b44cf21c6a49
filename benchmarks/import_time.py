"""Time to import the package against importing langgraph itself, each in fresh processes, in turns.

python benchmarks/import_time.py [--rounds 9]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

BASE = "import langgraph.graph, langgraph.types, langgraph.checkpoint.memory"
CLOCK = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


def seconds(code: str) -> float:
    """Import in a fresh process and return what it says."""
    done = subprocess.run([sys.executable, "-c", CLOCK.format(code)], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    """Print both, and the difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    base, package = [], []
    for _ in range(rounds + 1):
        base.append(seconds(BASE))
        package.append(seconds(f"{BASE}; import langgraph_loopguard"))
    plain, with_package = statistics.median(base[1:]), statistics.median(package[1:])
    print(f"langgraph {1000 * plain:.0f} ms, with langgraph_loopguard {1000 * with_package:.0f} ms:")
    print(f"{1000 * (with_package - plain):.0f} ms more, {with_package / plain:.2f}x")


if __name__ == "__main__":
    main()

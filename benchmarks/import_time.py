"""Time to import the package against importing langgraph itself, each in fresh processes, in turns.

python benchmarks/import_time.py [--rounds 9]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

BASE = "import langgraph.graph, langgraph.types, langgraph.checkpoint.memory"
CODES = ("pass", "import langgraph_loopguard", "from langgraph_loopguard import guard_loop, Decision")
"""Nothing, the package, and what most graphs need of it: a name is imported when it is first asked for."""
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
    taken: dict[str, list[float]] = {code: [] for code in CODES}
    for _ in range(rounds + 1):
        for code, times in taken.items():
            times.append(seconds(f"{BASE}; {code}"))
    plain = statistics.median(taken[CODES[0]][1:])
    print(f"langgraph: {1000 * plain:.0f} ms")
    for code in CODES[1:]:
        more = statistics.median(taken[code][1:]) - plain
        print(f"{code}: {1000 * more:.0f} ms more, {1 + more / plain:.2f}x")


if __name__ == "__main__":
    main()

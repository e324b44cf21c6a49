"""A reviewer or fixer for the command line: does what a script in its working folder's sibling says.

`python scripted.py LOG ACTION...`: each call appends a line to LOG. The n-th action is done at the n-th call, the last
one ever after.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BUG = {"file": "b.py", "line": 1, "rule": "bad-value", "message": "The value is bad."}


def main() -> None:
    log, actions = Path(sys.argv[1]), sys.argv[2:]
    question = json.load(sys.stdin)
    with log.open("a") as file:
        file.write(json.dumps(question) + "\n")
    done = len(log.read_text().splitlines())
    action = actions[min(done, len(actions)) - 1]
    rechecks = [{"id": item["id"], "repaired": "no"} for item in question.get("retained", ())]
    if action == "bug":
        sys.stdout.write(json.dumps({"findings": [BUG], "rechecks": rechecks, "summary": "one bug"}))
    elif action == "still":
        sys.stdout.write(json.dumps({"rechecks": rechecks}))
    elif action == "fine":
        sys.stdout.write(
            json.dumps({"rechecks": [{**item, "repaired": "yes"} for item in rechecks], "summary": "fine"})
        )
    elif action == "new":
        bug = {**BUG, "rule": f"rule-{done}", "message": f"trouble{done} with item{done}"}
        sys.stdout.write(
            json.dumps({"rechecks": [{**item, "repaired": "yes"} for item in rechecks], "findings": [bug]})
        )
    elif action == "bad":
        sys.stdout.write("I approve of this change.")
    elif action == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pids = log.with_name("pids")
        pids.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
        pids.with_suffix(".part").rename(pids)
        time.sleep(600)
    elif action == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "fix":
        Path("b.py").write_text("x = 1\n")


main()

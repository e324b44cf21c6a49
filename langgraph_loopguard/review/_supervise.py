"""Runs one command in the process group that it leads, and ends the group when its own parent is gone.

Started as `python -I -S _supervise.py FD COMMAND...`: FD is one end of a socket pair. An end of file there means that
the parent has died, however that happened. If the command cannot be started, the error's number is sent back.
Imports as little as it can, because it starts with every check.
"""

import contextlib
import os
import select
import signal
import sys


def main() -> None:
    """Start the command, wait for it or for the parent's end, and pass its exit status on."""
    line = int(sys.argv[1])
    os.set_inheritable(line, False)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(sys.argv[2], sys.argv[2:])
        except OSError as error:
            os.write(line, b"%d" % (error.errno or 1))
        os._exit(127)
    os.closerange(0, 1)  # the command alone reads what is sent to it
    while True:
        ready = select.select([line, woken], [], [])[0]
        if line in ready:
            os.killpg(0, signal.SIGKILL)
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 1024)
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()

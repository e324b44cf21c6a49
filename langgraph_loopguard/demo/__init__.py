"""`loopguard demo`: twenty pull requests that real tools review and fix, each with and without a guard on the loop.

`catalogue` says what the pull requests are, `project` makes the repository, `loop` is the graph and the one line that
guards it, `batch` runs everything, `table` and `show` print. `command` joins them to the command line.
"""

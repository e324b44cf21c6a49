"""Git as a reader of objects that runs nothing of the repository's own.

A repository's config can name programs (hooks, fsmonitor, filters, textconv, external diff, ssh, credential helpers).
Only three commands ever see that config, with everything in it that runs programs switched off: `rev-parse`,
`ls-files`, and the `upload-pack` that a fetch starts. All else works on the repository's objects through a private
git directory with a config of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraph_loopguard.review.errors import SourceError

SETTINGS = {
    "core.attributesFile": os.devnull,
    "core.bigFileThreshold": "8m",
    "core.editor": "false",
    "core.excludesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.quotePath": "false",
    "core.sshCommand": "false",
    "core.untrackedCache": "false",
    "credential.helper": "",
    "diff.external": "",
    "fetch.fsckObjects": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.version": "2",
    "submodule.recurse": "false",
}
"""What a repository's own config may not say."""

QUIET = {
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}

ALLOWED_PROTOCOLS = {False: "none", True: "file"}
"""A fetch is from a local path; nothing else may open a connection."""

SECONDS = 300.0
"""Seconds that one command may take: a config can include a pipe that nobody writes to."""

MAX_OUTPUT = 256 * 1024 * 1024
"""Bytes that one command may print."""


class Git:
    """The git program, bound to one git directory.

    Args:
        git_dir: The git directory; `None` lets git find it from `cwd`.
        work_tree: The work tree, or `None`.
        cwd: Where the commands run. Default: the work tree, else the git directory.
        objects: Object directories of other repositories to read from.
    """

    def __init__(
        self,
        git_dir: Path | None,
        work_tree: Path | None = None,
        *,
        cwd: Path | None = None,
        objects: tuple[Path, ...] = (),
    ) -> None:
        self.git_dir = git_dir
        self.work_tree = work_tree
        self.cwd = cwd or work_tree or git_dir
        self._env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | QUIET
        if git_dir is not None:
            self._env["GIT_DIR"] = str(git_dir)
        if work_tree is not None:
            self._env["GIT_WORK_TREE"] = str(work_tree)
        if objects:
            self._env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.pathsep.join(_quoted(path) for path in objects)
        self._prefix = ["git", *(part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}"))]

    def run(
        self, *args: str, input: bytes | None = None, local: bool = False, env: dict[str, str] | None = None
    ) -> bytes:
        """Run one command and return what it prints.

        Args:
            *args: The command and its arguments.
            input: Its standard input.
            local: Whether it may reach another repository by path.
            env: Further environment.

        Raises:
            SourceError: Git is not installed, the command failed (with git's own words), or it printed too much.
        """
        out, truncated = self.read(*args, input=input, limit=MAX_OUTPUT, local=local, env=env)
        if truncated:
            msg = f"git {args[0]} printed more than {MAX_OUTPUT} bytes"
            raise SourceError(msg)
        return out

    def read(
        self,
        *args: str,
        limit: int,
        input: bytes | None = None,
        local: bool = False,
        env: dict[str, str] | None = None,
    ) -> tuple[bytes, bool]:
        """Run one command; return at most `limit` bytes of what it prints, and whether there were more.

        Raises:
            SourceError: As for `run`, but for the amount.
        """
        environment = self._env | {"GIT_ALLOW_PROTOCOL": ALLOWED_PROTOCOLS[local]} | (env or {})
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr:
            if input:
                stdin.write(input)
                stdin.seek(0)
            try:
                process = subprocess.Popen(
                    [*self._prefix, *args],
                    cwd=self.cwd,
                    env=environment,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                )
            except OSError as error:
                msg = f"git cannot be started in {str(self.cwd)!r}: {error.strerror}"
                raise SourceError(msg) from error
            with process:
                assert process.stdout is not None
                watch = threading.Timer(SECONDS, process.kill)
                watch.start()
                try:
                    out = process.stdout.read(limit + 1)
                    if len(out) > limit:
                        process.kill()
                        return out[:limit], True
                    process.wait()
                finally:
                    watch.cancel()
            if process.returncode == -signal.SIGKILL:
                msg = f"git {args[0]} was ended after {SECONDS:g} seconds"
                raise SourceError(msg)
            if process.returncode:
                stderr.seek(0)
                msg = f"git {args[0]} failed: {_last_line(stderr.read(4096))}"
                raise SourceError(msg)
            return out, False

    def resolve(self, ref: str) -> str:
        """Return the commit that a ref names.

        Raises:
            SourceError: There is no such commit.
        """
        try:
            found = self.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except SourceError as error:
            msg = f"no commit is named {ref!r}"
            raise SourceError(msg) from error
        return found.decode().strip()


@contextmanager
def private(objects: Path, hash_name: str) -> Iterator[Git]:
    """Yield git on an empty directory that reads another repository's objects and none of its config."""
    with tempfile.TemporaryDirectory(prefix="loopguard-git-") as folder:
        yield _bare(Path(folder), hash_name, (objects,))


def _bare(folder: Path, hash_name: str, objects: tuple[Path, ...]) -> Git:
    for part in ("objects/info", "objects/pack", "refs/heads"):
        (folder / part).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    version = 0 if hash_name == "sha1" else 1
    extension = f"[extensions]\n\tobjectFormat = {hash_name}\n" if version else ""
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}")
    return Git(folder, objects=objects)


def _quoted(path: Path) -> str:
    text = str(path)
    if os.pathsep not in text and not text.startswith('"'):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _last_line(stderr: bytes) -> str:
    lines = [line for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"

"""Makes the repository: real modules, a house style, and a branch with a commit for each pull request."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from langgraph_loopguard.demo.catalogue import SPARES
from langgraph_loopguard.demo.findings import FOLDER
from langgraph_loopguard.demo.git import Git
from langgraph_loopguard.demo.modules import assign, file_of, read_modules
from langgraph_loopguard.demo.pulls import PullRequest, name
from langgraph_loopguard.demo.shell import Shell
from langgraph_loopguard.demo.tools import BLACK, CONFIG_FILES, HOUSE, HOUSE_STYLE, ISORT
from langgraph_loopguard.demo.workdir import WorkDir, start_afresh

BASE = "main"
"""The branch that the pull requests are against."""


@dataclass(frozen=True, slots=True)
class OpenPull:
    """A pull request as it stands in the repository.

    Attributes:
        number: From 1.
        pull: What it is.
        module: The module that it changes.
    """

    number: int
    pull: PullRequest
    module: str

    @property
    def name(self) -> str:
        """Its name, its thread's and its branch's: `PR-07`."""
        return name(self.number)

    @property
    def file(self) -> str:
        """The file that it changes, in the repository."""
        return file_of(self.module)

    @property
    def title(self) -> str:
        """Module and title."""
        return f"{self.module}: {self.pull.title}"


def make_project(root: Path, catalogue: Mapping[int, PullRequest]) -> tuple[WorkDir, list[OpenPull]]:
    """Make the repository afresh and open the pull requests in it.

    Args:
        root: The demo's directory.
        catalogue: The pull requests by number.

    Raises:
        DemoError: The directory is in the way, git or a tool failed, or there are no source files.
    """
    wanted = [pull.module for pull in catalogue.values()]
    sources = read_modules([*dict.fromkeys((*wanted, *SPARES))])
    work = start_afresh(root, [*CONFIG_FILES, *map(file_of, sources)])
    clean = _make_base(work.repository, sources)
    chosen = assign(wanted, clean)
    opened = [OpenPull(number, pull, module) for (number, pull), module in zip(catalogue.items(), chosen, strict=True)]
    for pull in opened:
        _open(work.repository, pull)
    return work, opened


def _make_base(repository: Path, sources: Mapping[str, str]) -> list[str]:
    """Commit the modules as they are, then in the house style; return those that pass the house's checks."""
    git = Git(repository)
    git.init()
    (repository / FOLDER).mkdir(exist_ok=True)
    for module, text in sources.items():
        _write(repository / file_of(module), text)
    for file, text in CONFIG_FILES.items():
        _write(repository / file, text)
    git.commit(f"Import {len(sources)} modules of Python {platform.python_version()}", [FOLDER, *CONFIG_FILES])
    shell = Shell(repository)
    files = [file_of(module) for module in sources]
    for command in HOUSE_STYLE:
        shell.fix(command, files)
    git.commit("Bring the modules into the house style", [FOLDER])
    open_files = {found["file"] for found in shell.find((*HOUSE, ISORT, BLACK), files)}
    return [module for module in sources if file_of(module) not in open_files] or list(sources)


def _open(repository: Path, pull: OpenPull) -> None:
    git = Git(repository)
    git.checkout(pull.name, BASE)
    path = repository / pull.file
    _write(path, pull.pull.edit(path.read_text(encoding="utf-8")))
    git.commit(pull.title, [pull.file])


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")

"""The real tools: what the Reviewer runs to find something, and what the Fixer runs against it.

Every call gets its settings on the command line or from the demo's repository, so that nobody's own settings matter.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.findings import Finding, from_diff, from_pycodestyle, from_ruff

Command = tuple[str, ...]
"""A tool and its arguments, without the file."""

MODULES = ("ruff", "black", "isort", "yapf", "pycodestyle", "autopep8")
"""What the demo runs, as modules of the running Python."""

EXTRA = "pip install 'langgraph-loopguard[demo]'"

LINE_LENGTH = 120

CONFIG_FILES = {
    "setup.cfg": f"[isort]\nhonor_noqa = true\n\n[pycodestyle]\nmax-line-length = {LINE_LENGTH}\n",
    "pyproject.toml": "[tool.black]\nline-length = 88\n",
}
"""Settings that the repository brings along."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a reviewer insists on.

    Attributes:
        label: How findings name it: the tool, and what of it.
        command: Finds; the file comes last.
        parse: Reads the findings out of the command's output.
        fixes: Commands that are tried against it, one per attempt, in turn. `{rule}` becomes the first finding's rule.
    """

    label: str
    command: Command
    parse: Callable[[str, str], list[Finding]]
    fixes: tuple[Command, ...]

    def read(self, output: str) -> list[Finding]:
        """Return the findings in the command's output."""
        return self.parse(self.label, output)

    def fix(self, attempt: int, rule: str) -> Command:
        """Return the command for an attempt (from 0) against a finding of this rule."""
        return tuple(part.replace("{rule}", rule) for part in self.fixes[attempt % len(self.fixes)])


def ruff(rules: str) -> Check:
    """Return the check of some of ruff's rules."""
    base = ("ruff", "check", "--isolated", "--no-cache", "--select", rules)
    return Check(f"ruff {rules}", (*base, "--output-format", "json"), from_ruff, ((*base, "--fix", "--quiet"),))


def pycodestyle(rules: str, *fixes: Command) -> Check:
    """Return the check of some of pycodestyle's rules, with autopep8 against them, or with what is given."""
    command = ("pycodestyle", "--config=setup.cfg", f"--select={rules}")
    return Check(f"pycodestyle {rules}", command, from_pycodestyle, fixes or (autopep8(rules),))


def autopep8(rules: str) -> Command:
    """Return the command that fixes some of pycodestyle's rules."""
    limits = ("--aggressive", f"--max-line-length={LINE_LENGTH}")
    return ("autopep8", "--global-config=", "--ignore-local-config", *limits, f"--select={rules}", "--in-place")


def black() -> Check:
    """Return the check of black's format."""
    base = ("black", "--quiet", "--config", "pyproject.toml")
    return Check("black", (*base, "--check", "--diff"), from_diff, (base,))


def yapf(style: str) -> Check:
    """Return the check of yapf's format in one of its styles."""
    base = ("yapf", "--no-local-style", "--style", style)
    return Check("yapf", (*base, "--diff"), from_diff, ((*base, "--in-place"),))


def isort(*settings: str) -> Check:
    """Return the check of isort's order, with more settings if given."""
    base = ("isort", "--settings-path", "setup.cfg", *settings)
    label = " ".join(("isort", *settings)).replace("--profile ", "")
    return Check(label, (*base, "--check-only", "--diff"), from_diff, ((*base, "--quiet"),))


BLACK, YAPF, ISORT, ISORT_ALONE = black(), yapf("pep8"), isort("--profile", "black"), isort()
UNUSED, EMPTY_F, OLD_TYPES = ruff("F401"), ruff("F541"), ruff("UP006")
COMPARED, BLANKS, SPACES = pycodestyle("E711"), pycodestyle("W291"), pycodestyle("E225,E231")

UNDEFINED = ruff("F821")
TOO_LONG = pycodestyle("E501", *(yapf(style).fixes[0] for style in ("pep8", "facebook", "google")))
OPERATORS = pycodestyle("W503,W504", autopep8("{rule}"))

HOUSE = (UNUSED, EMPTY_F, OLD_TYPES, COMPARED, BLANKS, SPACES)
"""What a module must pass before the pull requests begin, besides isort and black."""

HOUSE_STYLE: tuple[Command, ...] = (
    ("ruff", "check", "--isolated", "--no-cache", "--select", "F401,F541,UP006", "--fix", "--quiet", "--exit-zero"),
    autopep8("E711,W291"),
    *ISORT.fixes,
    *BLACK.fixes,
)
"""Commands that bring the modules into the house style, once."""


def require_tools() -> None:
    """Make sure that the tools are installed.

    Raises:
        DemoError: One is missing; it says how to get it.
    """
    missing = [name for name in (*MODULES, "rich", "langgraph.checkpoint.sqlite") if not _installed(name)]
    if missing:
        msg = f"the demo needs {', '.join(missing)}: {EXTRA}"
        raise DemoError(msg)


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False

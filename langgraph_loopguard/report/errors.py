"""What a report cannot do, said in one line; and the optional packages, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from langgraph_loopguard.core.errors import LoopGuardError


class ReportError(LoopGuardError):
    """A report cannot be made: its message is one line for the user."""


class MissingExtraError(ReportError, ImportError):
    """A package of an extra is not installed; the message names the extra."""


def need(module: str, extra: str = "notebook") -> Any:
    """Import a module of an optional package.

    Args:
        module: The module's full name.
        extra: The extra of this distribution that brings it along.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or (error.name != module and error.name.split(".")[0] != package):
            raise  # the package is there, and something that it needs is not
        name = module if package == "langgraph" else package
        msg = f"{name} is not installed: pip install 'langgraph-loopguard[{extra}]'"
        raise MissingExtraError(msg) from error

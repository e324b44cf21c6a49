"""What a condition may keep of a payload: a `Reader` looks once, at the visit, and leaves a note in the ledger.

Conditions are functions of the ledger, and the ledger holds no contents. A condition that judges by the content (its
wording, its shape) brings a reader; what the reader returns is bounded, plain JSON, and stands beside the emission's
fingerprints for as long as the window does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

Selector = str | Callable[[Any], Any]
"""A key, or a function: of the state in a graph, of the payload outside of one."""


class Reader(Protocol):
    """Reads payloads for a condition."""

    @property
    def name(self) -> str:
        """Name under which its notes stand; readers of one name are one."""
        ...

    @property
    def skips_makers(self) -> bool:
        """Whether what a node writes as the work product itself need not be looked at."""
        ...

    def read(self, node: str, payload: Any, earlier: Iterable[Any]) -> Any:
        """Return the note on a payload, as bounded, plain JSON; `None` when there is nothing to note.

        Args:
            node: The node that wrote it.
            payload: What it wrote.
            earlier: The notes that this reader has left on emissions which the ledger still holds.
        """
        ...

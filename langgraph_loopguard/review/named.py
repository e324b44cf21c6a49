"""Names for functions, by which one is told from another over processes."""

from __future__ import annotations

import hashlib
import marshal
from typing import Any


def name_of_callable(value: Any) -> str:
    """Return a callable's module and name, with a hash of its code: another body is another function."""
    named = value if hasattr(value, "__qualname__") else type(value)
    code = getattr(value, "__code__", None)
    body = f"#{hashlib.sha256(marshal.dumps(code)).hexdigest()[:12]}" if code is not None else ""
    return f"{named.__module__}:{named.__qualname__}{body}"

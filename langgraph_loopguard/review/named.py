"""Names for functions, by which one is told from another over processes."""

from __future__ import annotations

import hashlib
from types import CodeType
from typing import Any


def name_of_callable(value: Any) -> str:
    """Return a callable's module and name, with a hash of its code: another body is another function."""
    named = value if hasattr(value, "__qualname__") else type(value)
    code = getattr(value, "__code__", None)
    body = f"#{hashlib.sha256(_body(code).encode()).hexdigest()[:12]}" if isinstance(code, CodeType) else ""
    return f"{named.__module__}:{named.__qualname__}{body}"


def _body(code: CodeType) -> str:
    """What a code does, as text. (`marshal` writes one code in several ways.)"""
    constants = [_constant(item) for item in code.co_consts]
    return repr((code.co_code, constants, code.co_names, code.co_varnames))


def _constant(item: Any) -> str:
    if isinstance(item, CodeType):
        return _body(item)
    if isinstance(item, frozenset):  # its order is another one in each process
        return repr(sorted(map(repr, item)))
    return repr(item)

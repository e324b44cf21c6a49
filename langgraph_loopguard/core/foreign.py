"""Arrays and frames of numpy and pandas as plain values. Neither is imported: they come along with the payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def from_array(value: Any) -> Any:
    """Return the plain value of an array, a frame or a scalar that says what it is; otherwise the object itself.

    A frame counts by its columns, index and rows in their order, so that none hides behind another of the same name.
    """
    if isinstance(value, (type, Mapping, Sequence)):
        return value
    library = type(value).__module__.partition(".")[0]
    if library == "pandas":
        return _from_pandas(value)
    if library == "numpy" and getattr(getattr(value, "dtype", None), "kind", "") in ("M", "m"):
        return value.astype(str).tolist()  # in nanoseconds they would become plain integers
    for method in ("to_dict", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert):
            return convert()
    return value


def _from_pandas(value: Any) -> Any:
    if hasattr(value, "columns"):
        return {"columns": list(value.columns), "index": list(value.index), "rows": value.to_numpy(object).tolist()}
    if hasattr(value, "index"):
        return {"name": value.name, "index": list(value.index), "values": list(value)}
    if hasattr(value, "__iter__"):
        return list(value)  # an index
    return str(value) if type(value).__name__ in ("NAType", "Period", "Interval") else value

"""Payloads with known fingerprints, to be hashed in another process: `python -m tests.core.golden`.

`golden.json` holds each payload as a Python expression, so that sets, dates and messages can stand there as well.
"""

from __future__ import annotations

import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langgraph_loopguard import Fingerprinter

FILE = Path(__file__).with_name("golden.json")

NAMES: dict[str, Any] = {
    "AIMessage": AIMessage,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "HumanMessage": HumanMessage,
    "PurePosixPath": PurePosixPath,
    "ToolMessage": ToolMessage,
    "UUID": UUID,
    "date": date,
    "datetime": datetime,
    "inf": float("inf"),
    "nan": float("nan"),
    "time": time,
    "timedelta": timedelta,
    "utc": timezone.utc,
}


def golden() -> list[dict[str, str]]:
    """The vectors: `payload` (an expression), `scrubbed` and `exact` (fingerprints, the second with `scrub=False`)."""
    vectors: list[dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return vectors


def hashed() -> list[dict[str, str]]:
    """The same list with the fingerprints that this process finds."""
    scrubbed, exact = Fingerprinter(), Fingerprinter(scrub=False)
    out = []
    for vector in golden():
        payload = eval(vector["payload"], dict(NAMES))
        found = {"scrubbed": scrubbed.fingerprint(payload), "exact": exact.fingerprint(payload)}
        out.append({"payload": vector["payload"], **found})
    return out


if __name__ == "__main__":
    print(json.dumps(hashed()))  # noqa: T201

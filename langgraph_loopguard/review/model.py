"""A chat model as a command: `python -m langgraph_loopguard.review.model reviewer|fixer PROVIDER:NAME`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal, cast

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.review.agents import as_agent, ask


def main() -> int:
    """Read a question from standard input, ask the model, and write its answer as JSON."""
    role, spec = cast("Literal['reviewer', 'fixer']", sys.argv[1]), sys.argv[2]
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        sys.stderr.write("--model needs langchain: pip install 'langgraph-loopguard[review]'\n")
        return 1
    question = json.load(sys.stdin)
    try:
        model = init_chat_model(spec)
    except (ImportError, ValueError) as error:
        sys.stderr.write(f"model {spec!r} cannot be had: {error}\n")
        return 1
    reply = ask(as_agent(model, role), question, Path.cwd(), timeout=0)
    if reply.error is not None:
        sys.stderr.write(f"{reply.error}\n{reply.text}\n")
        return 1
    sys.stdout.write(json.dumps(to_jsonable(reply.value)) if not isinstance(reply.value, str) else reply.value)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The two agents when they are chat models. The tools still run: their findings are the Reviewer's evidence."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from langgraph_loopguard.demo.agents import Agents, Bench, ReviewState
from langgraph_loopguard.demo.errors import DemoError, first_line
from langgraph_loopguard.demo.findings import Finding, finding

REVIEWER = """You are the Reviewer of a pull request. The house insists on the checks that are named; what they find \
now is your evidence. Ask for what must change in this pull request, and for nothing else.
Answer with one JSON object and nothing around it:
{"review": "what you say to the Fixer", "findings": [{"line": 1, "rule": "name", "message": "what is wrong"}]}
An empty list of findings closes the pull request."""

FIXER = """You are the {role} of a pull request. Do what the Reviewer asks, by replacing pieces of the file.
Answer with one JSON object and nothing around it:
{{"note": "what you did", "edits": [{{"old": "text that stands in the file exactly once", "new": "text instead"}}]}}"""


def load_chat_model(spec: str) -> BaseChatModel:
    """Return the chat model that `--model provider:name` names.

    Raises:
        DemoError: The spec, the package or the key is missing; in one line.
    """
    if not all(spec.partition(":")):
        msg = f"--model {spec!r}: write provider:name"
        raise DemoError(msg)
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        msg = f"--model {spec!r} needs LangChain: pip install langchain"
        raise DemoError(msg) from None
    try:
        model: BaseChatModel = init_chat_model(spec)
    except Exception as error:  # every provider has errors of its own
        msg = f"--model {spec!r}: {_said(error)}"
        raise DemoError(msg) from error
    return model


def chat_agents(bench: Bench, model: BaseChatModel) -> Agents:
    """Return a Reviewer and Fixers that ask a chat model, one for each node of the pull request's loop."""
    first, *fixers = bench.pull.pull.nodes
    asker = _Asker(bench, model)
    agents: Agents = {first: ChatReviewer(asker)}
    return agents | {name: ChatFixer(asker, name) for name in fixers}


class ChatReviewer:
    """Asks the model for a review. What cannot be read as one stays an open finding: it never closes anything."""

    def __init__(self, asker: _Asker) -> None:
        self._ask = asker

    def __call__(self, state: ReviewState) -> ReviewState:
        """Review."""
        bench = self._ask.bench
        checks = ", ".join(check.label for check in bench.pull.pull.checks)
        found = [f"{item['id']} {item['message']}" for item in bench.find()]
        reply = self._ask(
            REVIEWER,
            f"Pull request: {bench.pull.title}\nFile: {bench.pull.file}\nChecks: {checks}\n"
            f"Findings of the tools:\n{_listed(found)}\nThe last fix: {state.get('fix', 'none yet')}\n"
            f"Diff:\n{bench.diff()}",
        )
        answer = read_object(reply)
        asked = answer.get("findings")
        if not isinstance(asked, list) or not all(isinstance(item, dict) for item in asked):
            asked = [{"rule": "unreadable", "message": first_line(reply)}]
        findings = [_finding(bench.pull.file, item) for item in asked]
        return {
            "review": str(answer.get("review") or reply),
            "findings": findings,
            "open": [item["id"] for item in findings],
        }


class ChatFixer:
    """Asks the model for edits, makes those that fit the file, and commits."""

    def __init__(self, asker: _Asker, role: str) -> None:
        self._ask = asker
        self._role = role.capitalize()

    def __call__(self, state: ReviewState) -> ReviewState:
        """Fix, commit, and tell."""
        bench = self._ask.bench
        before = bench.path.read_text(encoding="utf-8")
        reply = self._ask(
            FIXER.format(role=self._role),
            f"Pull request: {bench.pull.title}\nThe Reviewer says:\n{state['review']}\n"
            f"Findings:\n{_listed(state['open'])}\nFile {bench.pull.file}:\n{before}",
        )
        answer = read_object(reply)
        text, refused = apply_edits(before, answer.get("edits"))
        bench.path.write_text(text, encoding="utf-8", newline="\n")
        changed = bench.commit(f"{self._role}: answer the review")
        note = str(answer.get("note") or first_line(reply))
        return {"fix": "\n".join((note, changed, *refused)), "diff": bench.diff()}


class _Asker:
    """Calls the model, counts its tokens, and turns its errors into one line."""

    def __init__(self, bench: Bench, model: BaseChatModel) -> None:
        self.bench = bench
        self._model = model

    def __call__(self, system: str, human: str) -> str:
        try:
            message = self._model.invoke([SystemMessage(system), HumanMessage(human)])
        except Exception as error:  # every provider has errors of its own
            msg = f"--model: the call failed: {_said(error)}"
            raise DemoError(msg) from error
        usage: Mapping[str, Any] = message.usage_metadata or {}
        self.bench.tokens += int(usage.get("total_tokens", 0))
        return str(message.text)


def read_object(reply: str) -> dict[str, Any]:
    """Return the first JSON object in a reply, also from within a code fence; an empty one when there is none."""
    decoder = json.JSONDecoder()
    at = reply.find("{")
    while at >= 0:
        try:
            value = decoder.raw_decode(reply, at)[0]
        except ValueError:
            at = reply.find("{", at + 1)
            continue
        return value if isinstance(value, dict) else {}
    return {}


def apply_edits(text: str, edits: Any) -> tuple[str, list[str]]:
    """Return the text with the edits that fit made, and a line for each that does not.

    Edits that leave a text that is not Python are all refused: no tool could say anything about it.
    """
    refused: list[str] = []
    new = text
    for n, edit in enumerate(edits if isinstance(edits, list) else [], start=1):
        old = edit.get("old") if isinstance(edit, dict) else None
        if not isinstance(old, str) or not old or not isinstance(edit.get("new"), str) or new.count(old) != 1:
            refused.append(f"edit {n} refused: its old text does not stand in the file exactly once")
            continue
        new = new.replace(old, edit["new"])
    try:
        ast.parse(new)
    except (SyntaxError, ValueError) as error:
        return text, [f"all edits refused: the file would not be Python any more ({first_line(error)})"]
    return new, refused


def _finding(file: str, item: Mapping[str, Any]) -> Finding:
    line = item.get("line")
    number = line if isinstance(line, int) else 0
    return finding("review", file, number, str(item.get("rule", "review")), str(item.get("message", "")))


def _listed(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items) or "none"


def _said(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if callable(details):  # pydantic: its first line says only how many
        try:
            first = details()[0]
            return first_line(f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip())
        except (IndexError, KeyError, TypeError):
            pass
    return first_line(error)

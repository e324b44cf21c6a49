"""Chat models as agents, with a scripted model in place of a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langgraph_loopguard.demo import chat
from langgraph_loopguard.demo.batch import Row, Settings, run_batch
from langgraph_loopguard.demo.catalogue import CATALOGUE
from langgraph_loopguard.demo.chat import apply_edits, chat_agents, load_chat_model, read_object
from langgraph_loopguard.demo.errors import DemoError
from langgraph_loopguard.demo.project import make_project
from langgraph_loopguard.demo.workdir import WorkDir

USAGE = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
APPROVED = json.dumps({"review": "Good.", "findings": []})
ASKED = json.dumps({"review": "Remove it.", "findings": [{"line": 3, "rule": "unused", "message": "not used"}]})
FIXED = json.dumps({"note": "Removed.", "edits": [{"old": "import itertools\n", "new": ""}]})


class Talker(BaseChatModel):
    """Says what a function of the prompt says."""

    say: Callable[[Sequence[BaseMessage]], str]

    @property
    def _llm_type(self) -> str:
        return "talker"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = AIMessage(self.say(messages), usage_metadata=USAGE)
        return ChatResult(generations=[ChatGeneration(message=message)])


def play(root: Path, model: BaseChatModel, number: int = 1, bound: int = 2) -> tuple[WorkDir, Row]:
    """Run one pull request with a model for both agents."""
    work, opened = make_project(root, {number: CATALOGUE[number]})
    hire = partial(chat_agents, model=model)
    (row,) = run_batch(work, opened, hire, Settings(bound=bound), lambda *_: None)
    return work, row


def test_a_model_closes_a_pull_request(tmp_path: Path) -> None:
    """It asks, fixes and approves; the file and the tokens are as they must be."""
    replies = [AIMessage(text, usage_metadata=USAGE) for text in (ASKED, FIXED, APPROVED)] * 2

    work, row = play(tmp_path, GenericFakeChatModel(messages=iter(replies)))

    assert (row.unguarded.ended, row.guarded.ended) == ("complete", "complete")
    assert (row.guarded.cycles, row.guarded.tokens) == (1, 300)
    assert "import itertools" not in (work.repository / row.pull.file).read_text()


def test_a_model_that_is_never_content_is_escalated(tmp_path: Path) -> None:
    """Each time another complaint, and another change: the cap ends it."""
    count = iter(range(1000))

    def say(messages: Sequence[BaseMessage]) -> str:
        n = next(count)
        if "Reviewer of" in str(messages[0].content):
            return json.dumps({"review": f"No. {n}", "findings": [{"line": n, "rule": "taste", "message": "no"}]})
        return json.dumps({"edits": [{"old": "def rank", "new": f"# {n}\ndef rank"}]})

    _, row = play(tmp_path, Talker(say=say), bound=4)

    assert (row.unguarded.ended, row.unguarded.cycles) == ("stopped", 4)
    assert (row.guarded.ended, row.guarded.cycles, row.guarded.condition) == ("escalated", 3, "MaxCycles")
    assert row.logged
    assert row.guarded.tokens < row.unguarded.tokens


def test_a_ring_of_models(tmp_path: Path) -> None:
    """Each node of the ring is asked in its own role."""
    heard: list[str] = []

    def say(messages: Sequence[BaseMessage]) -> str:
        heard.append(str(messages[0].content).splitlines()[0])
        return ASKED

    _, row = play(tmp_path, Talker(say=say), number=17)

    assert row.guarded.ended == "escalated"
    assert {"Reviewer", "Formatter", "Sorter"} == {line.split("the ")[1].split(" of")[0] for line in heard}


@pytest.mark.parametrize("reply", ["Looks good to me!", '{"findings": "none"}', '{"findings": ["x"]}', ""])
def test_what_is_no_review_closes_nothing(tmp_path: Path, reply: str) -> None:
    """A reply that cannot be read stays an open finding, and the guard ends the loop."""
    _, row = play(tmp_path, Talker(say=lambda messages: reply))

    assert row.unguarded.ended == "stopped"
    assert row.guarded.ended == "escalated"


def test_a_call_that_fails_is_one_line(tmp_path: Path) -> None:
    """The provider's own words, without a traceback."""

    def say(messages: Sequence[BaseMessage]) -> str:
        msg = "401 no such key\nand much more"
        raise RuntimeError(msg)

    with pytest.raises(DemoError) as failed:
        play(tmp_path, Talker(say=say))

    assert str(failed.value) == "--model: the call failed: 401 no such key"


def test_edits_that_do_not_fit_are_refused() -> None:
    """Twice there, not there, or no edit at all: named, and the others are made."""
    edits = [
        {"old": "a = 1\n", "new": "a = 2\n"},
        {"old": "x", "new": ""},
        {"old": "b", "new": ""},
        "junk",
        {"old": ""},
    ]

    text, refused = apply_edits("a = 1\nb = b\n", edits)

    assert text == "a = 2\nb = b\n"
    assert [line[:6] for line in refused] == ["edit 2", "edit 3", "edit 4", "edit 5"]


def test_edits_that_break_the_file_are_refused() -> None:
    """What is not Python any more is not written."""
    text, refused = apply_edits("a = 1\n", [{"old": "1", "new": "("}])

    assert text == "a = 1\n"
    assert "would not be Python" in refused[0]


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Here:\n```json\n{"a": {"b": 2}}\n```\nDone.', {"a": {"b": 2}}),
        ('{not json} {"a": 1}', {"a": 1}),
        ("nothing", {}),
    ],
)
def test_the_object_in_a_reply(reply: str, value: dict[str, Any]) -> None:
    """Also in a fence, and after what only looks like one."""
    assert value == read_object(reply)


def test_errors_of_pydantic_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A validation error's first line only counts; the field and its message are told instead."""
    from pydantic import BaseModel

    class Provider(BaseModel):
        api_key: str

    models = pytest.importorskip("langchain.chat_models")
    monkeypatch.setattr(models, "init_chat_model", lambda spec: Provider())  # type: ignore[call-arg]

    with pytest.raises(DemoError, match=r"^--model 'a:b': api_key Field required$"):
        load_chat_model("a:b")


def test_langchain_that_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(chat.__dict__["__builtins__"], "__import__", _without_langchain)

    with pytest.raises(DemoError, match="needs LangChain: pip install langchain"):
        load_chat_model("a:b")


_import = __import__


def _without_langchain(name: str, *args: Any, **kwargs: Any) -> Any:
    if name == "langchain.chat_models":
        raise ImportError(name)
    return _import(name, *args, **kwargs)

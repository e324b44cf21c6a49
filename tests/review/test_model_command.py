"""A chat model as a command: what `--model` runs."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from langgraph_loopguard.review import model
from langgraph_loopguard.review.runner import model_reviewer
from tests.review.test_loop import BUG, FINE, Model
from tests.review.test_runner import Runner, runner  # noqa: F401

QUESTION = json.dumps({"protocol": 1})


def ask(monkeypatch: pytest.MonkeyPatch, chat: Any, role: str = "reviewer") -> int:
    def init(spec: str) -> Any:
        if isinstance(chat, Exception):
            raise chat
        return chat

    monkeypatch.setattr("langchain.chat_models.init_chat_model", init)
    monkeypatch.setattr("sys.argv", ["model", role, "scripted:one"])
    monkeypatch.setattr("sys.stdin", io.StringIO(QUESTION))
    return model.main()


def test_it_answers_by_the_schema(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(monkeypatch, Model(reply={"findings": [BUG]})) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "bad-value"
    assert ask(monkeypatch, Model(reply=json.dumps(FINE), tools=False)) == 0
    assert json.loads(capsys.readouterr().out) == FINE


@pytest.mark.parametrize("chat", [Model(reply={"findings": 7}), ValueError("no such provider"), ImportError("no x")])
def test_it_fails_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], chat: Any
) -> None:
    assert ask(monkeypatch, chat) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err


def test_a_model_that_cannot_be_had_is_a_failed_attempt(runner: Runner) -> None:  # noqa: F811
    assert runner.run(reviewer=[], model="nowhere:nothing") == 5
    (attempt,) = runner.attempts
    assert attempt.status == "failed"
    assert "nowhere" in attempt.text


def test_a_model_has_a_provider() -> None:
    assert model_reviewer("openai:gpt", []).argv[-2:] == ["reviewer", "openai:gpt"]
    for bad in ("gpt", ":gpt", "openai:"):
        with pytest.raises(ValueError, match="model must be provider:name"):
            model_reviewer(bad, [])

"""The conditions that look at content, measure and money, in real graphs: what a visit carries and what a trip says."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from langgraph_loopguard import (
    CostBudget,
    InvalidPayload,
    LoopGuard,
    MaxCycles,
    NoProgress,
    RestatedPayload,
    guard_loop,
)

CONFIG: Any = {"configurable": {"thread_id": "t"}}
SAME = [
    "The login handler never checks whether the token has expired, so old sessions stay open.",
    "Old sessions stay open: the login handler never checks whether the token has expired.",
    "As said before, the login handler never checks whether the token has expired.",
]


class State(TypedDict, total=False):
    review: str
    patch: str
    open: list[str]
    n: int


def looping(
    reviews: list[str], opens: list[list[str]] | None = None, call: Any = None, **settings: Any
) -> tuple[Any, LoopGuard]:
    """A reviewer that goes round its texts for ever, and a fixer whose patch is always new."""

    def reviewer(state: State) -> dict[str, Any]:
        n = state.get("n", 0)
        if call is not None:
            call(n)
        update: dict[str, Any] = {"review": reviews[n % len(reviews)], "n": n + 1}
        return update | ({"open": opens[min(n, len(opens) - 1)]} if opens else {})

    builder = StateGraph(State)
    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", lambda state: {"patch": f"patch {state['n']}"})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", **{"max_cycles": 30, **settings})
    return builder.compile(checkpointer=InMemorySaver()), guard


def tripped(graph: Any) -> dict[str, Any]:
    """The record of the trip; all that the guard remembers is plain JSON."""
    record: dict[str, Any] = graph.invoke({}, CONFIG)["escalation"]
    json.dumps(graph.get_state(CONFIG).values["loopguard"], allow_nan=False)
    return record


def test_a_restated_review_trips() -> None:
    """The counter beside the text hides nothing, and the patches of the fixer are not looked at."""
    graph, _ = looping(SAME, stop_when=RestatedPayload())
    record = tripped(graph)
    assert ("RestatedPayload", 2) == (record["reason"]["condition"], record["cycles"])
    assert ["reviewer"] == [item["node"] for item in record["evidence"]]


def test_new_reviews_go_on_to_the_cap() -> None:
    """Other complaints are no restatement."""
    texts = [f"The {thing} breaks when {what}." for thing in ("parser", "cache") for what in ("it is empty", "two run")]
    graph, _ = looping(
        texts[:1] + SAME[:1] + ["Money is added up in floats."], max_cycles=2, stop_when=RestatedPayload()
    )
    assert "MaxCycles" == tripped(graph)["reason"]["condition"]


class Letters(Embeddings):
    """A vector per letter count; it notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(text.count(chr(97 + at))) for at in range(26)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_vectors_are_cached_in_the_ledger() -> None:
    """A text that the window still holds is not embedded again, though each visit is a step of its own."""
    model = Letters()
    graph, _ = looping(
        ["first text of two", "second one of two"], stop_when=RestatedPayload(0.999, times=3, similarity=model)
    )
    assert "RestatedPayload" == tripped(graph)["reason"]["condition"]
    reviews = [text for text in model.asked if "of two" in text]
    assert ["first text of two", "second one of two"] == reviews


@pytest.mark.parametrize(
    "settings",
    [
        {"measure": "open", "stop_when": NoProgress(2)},
        {"measure": lambda state: state.get("open"), "stop_when": NoProgress(2)},
        {"stop_when": NoProgress(2, measure="open")},
        {"stop_when": NoProgress(2, measure=lambda state: state.get("open"))},
    ],
)
def test_no_progress_by_a_key_or_a_function(settings: dict[str, Any]) -> None:
    """The guard's measure or the condition's own, of the state after the visit."""
    graph, _ = looping([f"text {n}" for n in range(9)], [["a", "b"], ["a"], ["c"], ["d"]], **settings)
    record = tripped(graph)
    assert ("NoProgress", 3) == (record["reason"]["condition"], record["cycles"])


def test_the_progress_preset_lets_work_go_on() -> None:
    """While there are new lows it says nothing, whatever repeats; its cap is its own."""
    opens = [["f"] * 0 + [f"f{n}" for n in range(left)] for left in range(12, 0, -1)]
    graph, guard = looping(["the same text"], opens, preset="progress", measure="open", max_cycles=None)
    record = tripped(graph)
    assert 25 == guard.max_cycles
    assert 12 < record["cycles"] < 16
    assert "stalled" == record["reason"]["kind"]


def test_observe_only_diverts_nothing() -> None:
    """The run meets LangGraph's own limit; the ledger says where the guard would have stopped it."""
    graph, guard = looping(SAME, preset="observe-only")
    with pytest.raises(GraphRecursionError):
        graph.invoke({}, {**CONFIG, "recursion_limit": 20})
    assert None is graph.get_state(CONFIG).values.get("escalation")
    would = guard.ledger(graph.get_state(CONFIG)).data["would_trip"]
    assert "RestatedPayload" == would["reason"]["condition"]


class Review(BaseModel):
    verdict: str


def test_an_invalid_handoff_trips() -> None:
    """The fixer never sees it."""
    graph, _ = looping(['{"verdict": "no"}', "no json"], stop_when=InvalidPayload(Review, key="review"))
    record = tripped(graph)
    assert ("invalid", 1) == (record["reason"]["kind"], record["cycles"])
    assert 1 == len(record["fixes"])


def priced(model: str) -> GenericFakeChatModel:
    """A model whose every answer costs 0.0035 US dollars, if its name has a price."""
    usage: Any = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}

    def answers() -> Any:
        while True:
            yield AIMessage("hm", usage_metadata=usage, response_metadata={"model_name": model})

    return GenericFakeChatModel(messages=answers())


def test_dollars_are_counted_and_renewed() -> None:
    """Of calls inside the node, without a word in its code; a retry names what it adds, to the cent."""
    model = priced("gpt-4o")
    graph, _ = looping([f"text {n}" for n in range(9)], call=lambda n: model.invoke("hi"), stop_when=CostBudget("0.01"))
    record = tripped(graph)
    assert ("CostBudget", "exhausted") == (record["reason"]["condition"], record["reason"]["kind"])
    assert ("0.0105", 3300) == (record["spent"]["usd"], record["spent"]["tokens"])
    with pytest.raises(Exception, match="extra_usd must be positive"):
        graph.invoke(Command(resume={"action": "retry", "extra_cycles": 3}), CONFIG)
    again = graph.invoke(Command(resume={"action": "retry", "extra_usd": "0.004"}), CONFIG)
    assert "0.0140" == again["escalation"]["spent"]["usd"]
    assert "0.014" == again["escalation"]["reason"]["threshold"]


def test_an_answer_in_words_adds_about_one_cycle() -> None:
    """A `respond` names no budget; the dollars of one more cycle come with it, as the record says."""
    model = priced("gpt-4o")
    graph, _ = looping([f"text {n}" for n in range(9)], call=lambda n: model.invoke("hi"), stop_when=CostBudget("0.01"))
    options = {option["action"]: option for option in tripped(graph)["options"]}
    assert {"extra_usd": "0.0058"} == options["retry"]["respond_with"]
    again = graph.invoke(Command(resume={"decisions": [{"type": "respond", "message": "try None"}]}), CONFIG)
    assert ("CostBudget", "0.0158") == tuple(again["escalation"]["reason"][key] for key in ("condition", "threshold"))


def test_models_without_a_price_are_said(caplog: pytest.LogCaptureFixture) -> None:
    """The cap stops the loop; the log and the ledger say why the budget could not."""
    model = priced("house-blend-7")
    graph, guard = looping(["text"], call=lambda n: model.invoke("hi"), max_cycles=2, stop_when=CostBudget("0.0001"))
    with caplog.at_level(logging.WARNING, "langgraph_loopguard"):
        assert "MaxCycles" == tripped(graph)["reason"]["condition"]
    assert 1 == sum("house-blend-7" in record.message for record in caplog.records)
    assert 3300 == guard.ledger(graph.get_state(CONFIG)).unpriced


def test_a_warning_is_seen_in_the_stream_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """At each handoff before the trip, with the reason; without `warn_at` nothing is added to the stream."""
    for warn_at, expected in ((2, [2, 2, 3, 3]), (None, [])):
        graph, _ = looping(["text"], stop_when=MaxCycles(3, warn_at=warn_at))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "langgraph_loopguard"):
            chunks = [chunk for chunk in graph.stream({}, CONFIG, stream_mode="custom") if "loopguard" in chunk]
        assert expected == [chunk["loopguard"]["warning"]["observed"] for chunk in chunks]
        assert len(expected) == sum("this is cycle" in record.message for record in caplog.records)
        if chunks:
            assert {"guard": "reviewer-fixer", "node": "reviewer"}.items() <= chunks[0]["loopguard"].items()


async def test_a_warning_is_seen_in_an_async_stream() -> None:
    """The same way."""
    graph, _ = looping(["text"], stop_when=MaxCycles(3, warn_at=3))
    chunks = [chunk async for chunk in graph.astream({}, CONFIG, stream_mode="custom")]
    assert [3, 3] == [chunk["loopguard"]["warning"]["observed"] for chunk in chunks]

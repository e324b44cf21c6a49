"""`RestatedPayload` and what it stands on: likeness by words, by names and by vectors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from langgraph_loopguard import LoopGuard, RestatedPayload, Verdict
from langgraph_loopguard.core.prose import LABEL, LABELS, prose
from langgraph_loopguard.core.restated import about_the_same
from langgraph_loopguard.core.similarity import (
    HEAD,
    LARGEST_VECTOR,
    EmbeddedText,
    WordPairs,
    as_similarity,
    jaccard,
    words_and_names,
)
from tests.core.payloads import ANYTHING

NO_CAP = 10**6
SAME = [
    "The login handler never checks whether the token has expired, so old sessions stay open.",
    "Old sessions stay open: the login handler never checks whether the token has expired.",
    "As said before, the login handler never checks whether the token has expired.",
]
OTHER = [
    "The parser drops the last line when a file has no newline at its end.",
    "Money is added up in floats, which loses cents over a long invoice.",
    "There is no test for the retry after a timeout.",
]


def verdicts(condition: RestatedPayload, payloads: Iterable[Any], node: str = "a", **settings: Any) -> list[Verdict]:
    """What a guard says to one node's emissions; the ledger goes through JSON in between."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition, **settings)
    ledger: Any = None
    out = []
    for payload in payloads:
        ledger, verdict = guard.observe(json.loads(json.dumps(ledger)), node, payload)
        out.append(verdict)
    return out


def test_the_same_complaint_in_other_words_trips() -> None:
    """At the third time, with which visits it restates and how alike they are."""
    found = verdicts(RestatedPayload(), SAME)
    assert [False, False, True] == [verdict.tripped for verdict in found]
    reason = found[-1].reason
    assert reason is not None
    assert ("RestatedPayload", "stalled", 3, 3) == (reason.condition, reason.kind, reason.threshold, reason.observed)
    assert "a has said the same 3 times in other words" == reason.message
    evidence = reason.evidence[0]
    assert [(1, 0), (2, 1)] == [(one["visit"], one["cycle"]) for one in evidence["restates"]]
    assert all(0.25 <= one["alike"] <= 1 for one in evidence["restates"])


def test_other_complaints_do_not() -> None:
    """However many there are."""
    assert not any(verdict.tripped for verdict in verdicts(RestatedPayload(times=2), OTHER + SAME[:1]))


def test_it_warns_before_it_trips() -> None:
    """`warn_at` is seen, and lets the edge be crossed."""
    found = verdicts(RestatedPayload(warn_at=2), SAME)
    assert [(False, False), (False, True), (True, False)] == [(one.tripped, one.warned) for one in found]


@pytest.mark.parametrize(
    "payloads",
    [
        [f"LGTM on file {name}.py, please go on with the next file." for name in ("api", "auth", "cart", "db")],
        [f"Check the availability of {name} on Netflix and note it." for name in ("Casino", "Jaws", "Alien", "Heat")],
        [f"{left} findings are still open in the change that you sent." for left in (4, 3, 2, 1)],
        [{"text": "the header of every page is the same", "page": page} for page in range(4)],
        [
            f"Fix the checks in {', '.join(names)} now."
            for names in (["Ab", "Bc", "Cd", "De", "Ef"][at:] for at in range(4))
        ],
        [f'get_order_details({{"order_id": "W{number}"}})' for number in (778, 639, 551, 902)],
    ],
    ids=["files", "titles", "counts", "pages", "a list that shrinks", "calls"],
)
def test_other_things_in_one_form_of_words_are_work(payloads: list[Any]) -> None:
    """Batches, pages and lists that get shorter; without the names they would be the same."""
    assert not any(verdict.tripped for verdict in verdicts(RestatedPayload(), payloads))


def test_names_may_be_left_out() -> None:
    """Then a form of words is enough."""
    payloads = [f"LGTM on file {name}.py, please go on with the next file." for name in ("api", "auth", "cart")]
    assert verdicts(RestatedPayload(same_names=False), payloads)[-1].tripped


def test_the_maker_of_the_work_product_is_left_out() -> None:
    """Versions of one work product are alike by nature; with `node=` it is looked at all the same."""
    versions = [f"def total(rows): return sum(row.price for row in rows) # version {'x' * n}" for n in range(5)]
    assert not any(one.tripped for one in verdicts(RestatedPayload(), versions, node="b"))
    assert verdicts(RestatedPayload(node="b"), versions, node="b")[2].tripped


def test_a_maker_by_its_artifact_is_left_out() -> None:
    """Whichever node it is."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=RestatedPayload())
    ledger: Any = None
    for number, text in enumerate(SAME * 2):
        ledger, verdict = guard.observe(ledger, "a", text, artifact=f"version {number}")
        assert not verdict.tripped


def test_new_lows_of_the_measure_end_the_repeats() -> None:
    """Progress counts more than wording; the count begins anew with the emission that brought it."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=RestatedPayload())
    ledger: Any = None
    for number, text in enumerate(SAME * 2):
        ledger, verdict = guard.observe(ledger, "a", text, measure=10 - number)
        assert not verdict.tripped
    ledger, verdict = guard.observe(ledger, "a", SAME[0], measure=5)
    assert not verdict.tripped
    ledger, verdict = guard.observe(ledger, "a", SAME[1], measure=5)
    assert verdict.tripped


@given(st.integers(2, 6), st.integers(0, 6))
def test_it_fires_under_any_settings_that_are_accepted(times: int, more: int) -> None:
    """The window that is kept holds the threshold."""
    condition = RestatedPayload(times=times, window=times + more)
    found = verdicts(condition, [SAME[0]] * times)
    assert [False] * (times - 1) + [True] == [verdict.tripped for verdict in found]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"times": 1}, r"RestatedPayload\(times\) must be a whole number of at least 2, got 1"),
        ({"times": 4, "window": 3}, r"RestatedPayload\(window=3\) can never hold times=4 emissions"),
        ({"threshold": 0}, r"RestatedPayload\(threshold\) must be a number above 0 and at most 1, got 0"),
        ({"threshold": 1.1}, r"RestatedPayload\(threshold\) must be .*, got 1.1"),
        ({"threshold": True}, r"RestatedPayload\(threshold\) must be .*, got True"),
        ({"node": ""}, r"RestatedPayload\(node\) must be the name of a node, got ''"),
        ({"warn_at": 3}, r"RestatedPayload\(warn_at\) must be a number from 2 to below 3, where it trips, got 3"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], message: str) -> None:
    """With the parameter and the value."""
    with pytest.raises(ValueError, match=message):
        RestatedPayload(**settings)


# -- the words -------------------------------------------------------------------------------------------------------


@given(st.text())
def test_words_and_names_are_bounded_plain_texts(text: str) -> None:
    """Whatever the text, and never more than its head."""
    words, names = words_and_names(text)
    assert len(" ".join(words)) <= 2 * HEAD
    assert all(isinstance(one, str) and one and " " not in one for one in words + names)
    assert (words, names) == words_and_names(text[:HEAD])
    assert len(set(names)) == len(names)


@given(st.text(), st.text())
def test_likeness_is_symmetric_and_a_share(one: str, other: str) -> None:
    """From 0 to 1, and 1 for the same."""
    measure = WordPairs()
    first, second = (measure.note(text, words_and_names(text)[0]) for text in (one, other))
    (there,), (back,) = measure.alike(first, [second]), measure.alike(second, [first])
    assert there == back
    assert 0 <= there <= 1
    assert [1.0] == measure.alike(first, [first])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "The file api.py is read in PaintApp by Ada Lovelace. Then it is not.",
            ["api.py", "paintapp", "ada", "lovelace"],
        ),
        ("1. Add tests\n2) Add docs", []),
        ("3 failures are left, line 202", ["3", "202"]),
        ("please look at src/api/server.py: it breaks", ["src/api/server.py"]),
        ("", []),
    ],
)
def test_names(text: str, names: list[str]) -> None:
    """Told by their form; the number of a list's item and the first word of a sentence are none."""
    assert names == words_and_names(text)[1]


def test_what_is_named_the_same() -> None:
    """Most of it, one number at least, and not merely less."""
    assert about_the_same(set(), set())
    assert about_the_same({"api.py", "ada"}, {"api.py", "ada"})
    assert about_the_same({"api.py", "ada", "bob"}, {"api.py", "ada"})
    assert not about_the_same({"api.py", "ada"}, {"api.py", "ada", "bob"})
    assert not about_the_same({"api.py"}, {"auth.py"})
    assert not about_the_same({"5", "a.py", "b.py"}, {"6", "a.py", "b.py"})


class Finding(BaseModel):
    text: str
    line: int


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        ("  as it is  ", ("as it is", [])),
        ({"review": "please add a test", "verdict": "no", "id": "F1"}, ("please add a test", ["no"])),
        ({"b": "second text", "a": "first text"}, ("first text\nsecond text", [])),
        (
            {"messages": [HumanMessage("old text"), AIMessage([{"type": "text", "text": "new text"}])]},
            ("old text\nnew text", []),
        ),
        ({"findings": [Finding(text="a b", line=7)]}, ("a b", ["line=7"])),
        ({"count": 3, "page": 2, "seen": "2026-01-02T10:00:00Z"}, ("", ["page=2", "<time>"])),
        ('{"review": "please add a test", "file": "a.py"}', ("please add a test", ["a.py"])),
        ('[{"text": "a b"}]', ("a b", [])),
        ("{no json at all}", ("{no json at all}", [])),
        (None, ("", [])),
        (b"x y", ("", [])),
    ],
)
def test_prose(payload: Any, found: tuple[str, list[str]]) -> None:
    """Running text counts as text, other values as names; ids, times and counters do not count."""
    assert found == prose(payload)


@given(ANYTHING)
def test_prose_takes_anything(payload: Any) -> None:
    """And what comes out is bounded."""
    text, labels = prose(payload)
    assert isinstance(text, str)
    assert len(labels) <= LABELS
    assert all(len(label) <= LABEL + 16 for label in labels)


@given(st.sets(st.integers()), st.sets(st.integers()))
def test_jaccard_is_a_share(one: set[int], other: set[int]) -> None:
    """As the definition has it."""
    expected = len(one & other) / len(one | other) if one | other else 1.0
    assert expected == jaccard(one, other)


# -- vectors ---------------------------------------------------------------------------------------------------------


class Letters(Embeddings):
    """A vector per letter count; it notes what it was asked."""

    def __init__(self, size: int = 26) -> None:
        self.asked: list[str] = []
        self.size = size

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(text.count(chr(97 + at % 26))) for at in range(self.size)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_any_embeddings_can_be_plugged_in() -> None:
    """The threshold is the model's; the reason names it."""
    model = Letters()
    found = verdicts(RestatedPayload(0.99, similarity=model), ["abc def", "def abc", "cba fed"])
    assert [False, False, True] == [one.tripped for one in found]
    assert found[-1].reason is not None
    assert "text:vector:Letters" == found[-1].reason.evidence[0]["similarity"]
    assert not any(
        one.tripped for one in verdicts(RestatedPayload(0.99, similarity=model), ["aaa b", "ccc d", "eee f"])
    )


def test_a_text_that_is_remembered_is_not_embedded_again() -> None:
    """The vectors stand in the ledger, which goes through JSON between any two events."""
    model = Letters()
    verdicts(RestatedPayload(0.99, times=4, similarity=model), ["one text", "other text", "one text", "other text"])
    assert ["one text", "other text"] == model.asked


def test_vectors_in_the_ledger_are_bounded() -> None:
    """No more than the window holds, and none that is too long."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=RestatedPayload(0.99, similarity=Letters(384)))
    ledger: Any = None
    sizes = []
    for number in range(40):
        ledger, _ = guard.observe(ledger, "a", f"text {chr(97 + number % 26) * number}")
        sizes.append(len(json.dumps(ledger)))
    assert sizes[-1] < sizes[10] + 200
    _, verdict = LoopGuard("a", "b", stop_when=RestatedPayload(similarity=Letters(LARGEST_VECTOR + 1))).observe(
        None, "a", "a text"
    )
    assert verdict.reason is not None
    assert ("broken", "ValueError") == (verdict.reason.kind, verdict.reason.observed)


def test_a_model_that_fails_breaks_the_guard() -> None:
    """A guard that cannot see must not wave the loop through."""

    class Down(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            msg = "no connection"
            raise ConnectionError(msg)

    verdict = verdicts(RestatedPayload(similarity=Down()), ["some text"])[0]
    assert verdict.tripped
    assert verdict.reason is not None
    assert ("broken", "ConnectionError") == (verdict.reason.kind, verdict.reason.observed)


@given(st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=8), st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=8))
def test_vectors_keep_their_angle(one: list[float], other: list[float]) -> None:
    """One byte a dimension costs little of the cosine."""

    class Fixed(Letters):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [one if text == "one" else other for text in texts]

    measure = EmbeddedText(Fixed())
    found = measure.alike(measure.note("one", []), [measure.note("other", [])])[0]
    norm = (sum(x * x for x in one) * sum(x * x for x in other)) ** 0.5
    exact = sum(x * y for x, y in zip(one, other, strict=True)) / norm if norm else 0.0
    assert abs(found - max(0.0, exact)) < 0.02


def test_what_is_no_similarity_is_refused() -> None:
    """A class, a function, a name."""
    for thing in (Letters, str.lower, "words"):
        with pytest.raises(TypeError, match="similarity must be a LangChain Embeddings or a Similarity, got"):
            as_similarity(thing)
    with pytest.raises(TypeError, match="embeddings must be a LangChain Embeddings, got 'x'"):
        EmbeddedText("x")  # type: ignore[arg-type]
    assert isinstance(as_similarity(None), WordPairs)
    own = EmbeddedText(Letters())
    assert as_similarity(own) is own


def test_a_guard_with_a_model_can_be_hashed() -> None:
    """Though a model may have no hash."""

    class Unhashable(Letters):
        __hash__ = None  # type: ignore[assignment]

    assert isinstance(hash(LoopGuard("a", "b", stop_when=RestatedPayload(similarity=Unhashable()))), int)


def test_two_models_of_one_name_are_refused() -> None:
    """They would compare each other's vectors; a name of its own parts them, and the same one may be used twice."""
    model = Letters()
    same = RestatedPayload(similarity=model) | RestatedPayload(times=2, similarity=model)
    assert 1 == len(LoopGuard("a", "b", stop_when=same).readers)
    assert 1 == len(LoopGuard("a", "b", preset="progress", stop_when=RestatedPayload()).readers)
    other = RestatedPayload(similarity=model) | RestatedPayload(similarity=Letters())
    with pytest.raises(ValueError, match="two readers named 'text:vector:Letters'"):
        LoopGuard("a", "b", stop_when=other)
    named = RestatedPayload(similarity=model) | RestatedPayload(similarity=EmbeddedText(Letters(), name="vector:mine"))
    assert 2 == len(LoopGuard("a", "b", stop_when=named).readers)

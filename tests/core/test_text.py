"""Text from agents is shown as text, on a terminal and in a page."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import Escalation, Ledger, LoopGuard, MaxCycles
from langgraph_loopguard.core.text import html_table, html_text, shortened, visible

HOSTILE = "<script>alert('x')</script>\x1b[31m\u202e&\"quoted\""


class _Tags(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text())
def test_html_text_shows_any_text_and_makes_no_tag(text: str) -> None:
    """A browser shows exactly what a terminal would be shown."""
    page = _Tags(f"<p>{html_text(text)}</p>")
    assert {"p"} == page.tags
    assert visible(text) == page.text


@given(st.text())
def test_an_attribute_cannot_be_left(text: str) -> None:
    """Quotes are escaped too."""
    assert not {'"', "'", "<", ">"} & set(html_text(text))


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_shortened_keeps_the_beginning(text: str, length: int) -> None:
    """Never longer than allowed, and what is left out is marked."""
    short = shortened(text, length)
    assert len(short) <= length
    assert short == text if len(text) <= length else short.endswith("…") and text.startswith(short[:-1])


def test_a_table_leaves_out_what_is_not_known() -> None:
    """Zero is known."""
    page = html_table("t", [("a", None), ("b", ""), ("c", 0)])
    assert ("<th" in page, page.count("<tr>")) == (True, 1)


def escalation() -> Escalation:
    """A record in which everything an agent can write is hostile."""
    emission = {"n": 1, "cycle": 1, "node": HOSTILE, "time": "", "content": {HOSTILE: HOSTILE}}
    return Escalation.model_validate(
        {
            "id": HOSTILE,
            "thread_id": HOSTILE,
            "loop": HOSTILE,
            "nodes": [HOSTILE],
            "edge": HOSTILE,
            "scope_key": HOSTILE,
            "outcome": "escalated",
            "reason": {"condition": HOSTILE, "message": HOSTILE},
            "cycles": 1,
            "spent": {"usd": "0.10"},
            "diff": HOSTILE * 1000,
            "reviews": [emission],
            "fixes": [],
            "findings": [],
            "evidence": [],
            "best_fix": None,
            "question": HOSTILE,
            "options": [],
            "created_at": "",
            "decision": {"action": "reject", "decided_by": HOSTILE},
        }
    )


def test_notebook_views_show_what_agents_wrote_as_text() -> None:
    """Guard, ledger and escalation are small tables; nothing in them is markup or steers."""
    reason = {**MaxCycles(1).check(Ledger({"v": 1, "cycles": 2})).reason.to_json(), "message": HOSTILE}  # type: ignore[union-attr]
    ledger = {"v": 1, "cycles": 1, "handoffs": {HOSTILE: 1}, "tripped": {"reason": reason}}
    guard = LoopGuard("a<b>", "b", key=HOSTILE, name=HOSTILE.replace(":", ""), max_cycles=7)
    views = [escalation()._repr_html_(), Ledger(ledger)._repr_html_(), guard._repr_html_()]
    for view in views:
        page = _Tags(view)
        assert {"table", "caption", "tbody", "tr", "th", "td"} == page.tags
        assert "<script>" in page.text
        assert "\x1b" not in view
        assert "\u202e" not in view
        assert len(view) < 8000
    assert "$0.10" in views[0]
    assert "shut" in views[1]
    assert "7" in views[2]


def test_a_ledger_that_only_observed_says_what_would_have_been() -> None:
    """Neither shut nor quietly open."""
    guard = LoopGuard("a", "b", max_cycles=1, mode="observe")
    ledger = None
    for n in range(3):
        ledger, _ = guard.observe(ledger, "a", f"{n}", usage=5)
    assert ledger is not None
    assert "would have tripped" in Ledger(ledger)._repr_html_()
    assert {"cycles": 1, "tokens": 10} == ledger["would_trip"]["spent"]
    assert "open" in Ledger()._repr_html_()

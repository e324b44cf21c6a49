"""What a person reads of a record."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_loopguard.people import EscalationView, to_html, to_markdown
from langgraph_loopguard.people.view import decision_sentence, diff_lines
from tests.graph.pairs import pair, thread
from tests.people.hostile import record


def test_a_real_record_is_read() -> None:
    """The record of a real trip: reason, facts, rounds, diff."""
    app, _ = pair(max_cycles=2, artifact="patch")
    view = EscalationView.of(app.invoke({}, thread())["escalation"])
    assert view.why.startswith("The loop was stopped on reviewer->fixer: cycle 3 was asked for, the cap is 2")
    assert ("cycles", "2") in view.facts
    assert [1, 2, 3] == [one.cycle for one in view.rounds]
    assert [(1, 1), (1, 1), (1, 0)] == [(len(one.reviews), len(one.fixes)) for one in view.rounds]
    assert {"file", "hunk", "add", "same", "remove"} == {line.kind for line in view.diff}
    assert [("review", "remark 3")] == [part for part in view.rounds[2].reviews[0].parts if part[0] == "review"]
    assert view.decision is None
    assert view.redacted is None
    assert "remark 3" in to_html(view)
    assert "remark 3" in to_markdown(view)


@pytest.mark.parametrize("data", [{}, {"reason": None, "reviews": None, "spent": None}, {"findings": [1, None, [2]]}])
def test_a_record_that_lacks_things_is_read(data: dict[str, Any]) -> None:
    """An older or newer version's record shows what it has."""
    view = EscalationView.of(data)
    assert to_html(view)
    assert to_markdown(view)


def test_findings_have_their_place() -> None:
    """File and line, under the names that tools use."""
    found = [{"path": "a.py", "line": 3, "body": "wrong"}, {"filename": "b.py", "title": "odd"}, "plain", {"x": 1}]
    view = EscalationView.of(record(findings=found))
    assert [("a.py:3", "wrong"), ("b.py", "odd"), ("", "plain")] == [(f.place, f.message) for f in view.findings[:3]]
    assert '"x": 1' in view.findings[3].message


def test_lines_of_a_diff_are_told_apart() -> None:
    """A removed line that begins with dashes is no file head; the next attempt's head is one."""
    diff = (
        "--- before\n+++ attempt 1\n@@ -1,2 +1 @@\n--- a comment\n+++ x\n same\n--- attempt 1\n+++ attempt 2\n@@ @@\n"
    )
    kinds = [line.kind for line in diff_lines(diff)]
    assert ["file", "file", "hunk", "remove", "add", "same", "file", "file", "hunk"] == kinds
    assert diff == "".join(f"{line.text}\n" for line in diff_lines(diff))
    assert () == diff_lines("")


def test_a_decision_is_one_sentence() -> None:
    """Who, what, when, with what."""
    decision = {"action": "retry", "extra_cycles": 2, "decided_by": "ada", "decided_at": "noon", "guidance": "be brief"}
    assert "retry with 2 cycles more by ada at noon, guidance: be brief" == decision_sentence(decision)
    assert "accept attempt 3" == decision_sentence({"action": "accept", "fix": 3})
    assert decision_sentence(None) is None

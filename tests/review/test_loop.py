"""The ready graph: what it asks, when it asks nobody, and how it ends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langgraph_loopguard import EscalationError, assert_guarded, audit
from langgraph_loopguard.review import ReviewError, ReviewStore, review_loop
from langgraph_loopguard.review.answer import ReviewAnswer, answer_schema
from langgraph_loopguard.review.models import HandOff
from tests.review.repositories import Repo

BUG = {"file": "b.py", "line": 1, "rule": "bad-value", "message": "The value is bad."}


class Reviewer:
    """A scripted reviewer that keeps the questions it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def __call__(self, question: dict[str, Any]) -> Any:
        self.asked.append(question)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return answer(question) if callable(answer) else answer


def found(*findings: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"findings": list(findings), **more}


def rechecked(repaired: str, *findings: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def answer(question: dict[str, Any]) -> dict[str, Any]:
        rechecks = [{"id": item["id"], "repaired": repaired} for item in question["retained"]]
        return {"rechecks": rechecks, "findings": list(findings)}

    return answer


FINE: dict[str, Any] = {"findings": [], "summary": "Approved! Everything is done, merge it."}


@pytest.fixture
def work(repo: Repo) -> Repo:
    """A repository with a change on a branch."""
    repo.git("checkout", "--quiet", "-b", "feature")
    repo.commit(files={"b.py": "x = None\n"})
    return repo


def loop(work: Repo, reviewer: Any, **settings: Any) -> Any:
    settings = {"base": "main", "store": work.path.parent / "store/review.sqlite", **settings}
    return review_loop(work.path, reviewer=reviewer, **settings)


def attempts(work: Repo) -> list[Any]:
    return ReviewStore(work.path.parent / "store/review.sqlite").load().attempts


def check(code: str) -> list[str]:
    return [sys.executable, "-c", code]


PASSES = check("pass")
FAILS = check("raise SystemExit(1)")
IS_FIXED = check("import b; raise SystemExit(b.x is None)")


# -- the three ends --------------------------------------------------------------------------------------------------


def test_complete(work: Repo) -> None:
    result = loop(work, Reviewer(FINE), checks=[PASSES], goal="say x").invoke({})
    assert result["outcome"] == "complete"
    handoff = HandOff.model_validate(result["handoff"])
    assert handoff.evidence[0].source.commit == work.git("rev-parse", "HEAD")
    assert handoff.scope.goal == "say x"
    assert handoff.decision == "Accept the change?"
    assert "escalation" not in result


def test_praise_is_no_evidence(work: Repo) -> None:
    result = loop(work, Reviewer(FINE), checks=[FAILS]).invoke({})
    assert "outcome" not in result
    assert result["ruling"]["reason"] == "findings"


def test_blocked_by_a_check_that_cannot_run_asks_nobody_and_costs_nothing(work: Repo) -> None:
    reviewer = Reviewer(FINE)
    result = loop(work, reviewer, checks=[["no-such-tool"]]).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "check_unavailable")
    assert "no-such-tool" in result["ruling"]["needs"][0]
    assert reviewer.asked == []
    assert attempts(work) == []
    assert loop(work, reviewer, checks=[PASSES]).invoke({})["outcome"] == "complete"


def test_escalated_for_judgement_with_the_record_in_the_escalation(work: Repo) -> None:
    trade_off = {**BUG, "kind": "judgement", "message": "Fast or small?"}
    graph = loop(work, Reviewer(found(trade_off, summary="A trade-off.")), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "pr-1"}}
    result = graph.invoke({}, config)
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "judgement")
    record = result["escalation"]
    assert record["handoff"]["findings"][0]["message"] == "Fast or small?"
    assert record["question"] == "Fast or small? What shall be done about it?"
    assert record["reviews"][0]["content"]["summary"] == "A trade-off."
    assert record["thread_id"] == "pr-1"
    assert graph.get_state(config).values["escalations"] == {record["id"]: record}
    json.dumps(record)


def test_escalated_for_a_question(work: Repo) -> None:
    result = loop(work, Reviewer(found(questions=["May x be None?"]))).invoke({})
    assert (result["outcome"], result["handoff"]["decision"]) == ("escalated", "May x be None?")


def test_escalated_for_checks_that_disagree(work: Repo) -> None:
    checks = ["format:one=true", "format:two=false"]
    result = loop(work, Reviewer(FINE), checks=checks).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "disagreement")
    assert "'one'" in result["handoff"]["decision"]


def test_blocked_when_the_source_cannot_be_read(work: Repo) -> None:
    graph = loop(work, Reviewer(FINE))
    (work.path / ".git/HEAD").write_text("nonsense")
    result = graph.invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "source")


def test_a_folder_outside_git(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/b.py").write_text("x = None\n")
    reviewer = Reviewer(found(BUG), rechecked("yes"))
    graph = review_loop(tmp_path / "src", reviewer=reviewer, checks=[PASSES], store=tmp_path / "s/review.sqlite")
    assert graph.invoke({})["open"]
    (tmp_path / "src/b.py").write_text("x = 1\n")
    assert graph.invoke({})["outcome"] == "complete"


# -- with a fixer ----------------------------------------------------------------------------------------------------


def test_a_fixer_repairs_until_it_is_complete(work: Repo) -> None:
    def fixer(question: dict[str, Any]) -> None:
        assert BUG["message"] in {item["message"] for item in question["findings"]}
        work.write({"b.py": "x = 1\n"})

    reviewer = Reviewer(found(BUG), rechecked("yes"))
    result = loop(work, reviewer, fixer=fixer, checks=[IS_FIXED]).invoke({})
    assert result["outcome"] == "complete"
    assert "+x = 1" in result["handoff"]["patch"]
    assert [finding["status"] for finding in result["handoff"]["findings"]] == ["resolved", "resolved"]
    assert len(result["handoff"]["original_findings"]) == 2
    first, second = reviewer.asked
    assert (first["mode"], first["retained"]) == ("whole_scope", [])
    assert second["mode"] == "follow_up"
    assert second["changed_since_last_review"] == ["b.py"]
    assert second["retained"][0]["question"] == "Was this particular concern repaired?"


def test_a_fixer_that_changes_nothing_ends_it(work: Repo) -> None:
    reviewer = Reviewer(found(BUG))
    result = loop(work, reviewer, fixer=lambda question: None).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "unchanged")
    assert len(reviewer.asked) == 1


def test_a_fixer_that_cannot_run_blocks(work: Repo) -> None:
    result = loop(work, Reviewer(found(BUG)), fixer=["no-such-fixer"]).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "fixer")
    assert "no-such-fixer" in result["ruling"]["message"]


def test_a_fixer_may_dispute(work: Repo) -> None:
    def fixer(question: dict[str, Any]) -> dict[str, Any]:
        return {"disputes": [{"id": question["findings"][0]["id"], "reason": "None is meant"}]}

    result = loop(work, Reviewer(found(BUG)), fixer=fixer).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "disputed")
    assert "None is meant" in result["ruling"]["message"]


def test_the_same_finding_twice_running_stops_the_loop(work: Repo) -> None:
    edits = iter(range(100))
    reviewer = Reviewer(found(BUG), rechecked("no"))
    result = loop(
        work, reviewer, fixer=lambda q: work.write({"b.py": f"x = None\ny = {next(edits)}\n"}), max_attempts=10
    ).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "recurring")
    assert len(reviewer.asked) == 2


def other(n: int) -> dict[str, Any]:
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
    return {"file": "b.py", "line": 1, "rule": words[n], "message": f"{words[n]} is wrong"}


def test_a_bound_with_everything_known_escalates(work: Repo) -> None:
    edits = iter(range(100))
    reviewer = Reviewer(*(rechecked("yes", other(n)) for n in range(6)))
    result = loop(work, reviewer, fixer=lambda q: work.write({"b.py": f"x = {next(edits)}\n"})).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "bound")
    assert len(reviewer.asked) == 3
    assert result["handoff"]["budget"]["used"] == 3


def test_the_time_bound(work: Repo) -> None:
    edits = iter(range(100))
    reviewer = Reviewer(*(rechecked("yes", other(n)) for n in range(6)))
    fixer = lambda q: work.write({"b.py": f"x = {next(edits)}\n"})  # noqa: E731
    result = loop(work, reviewer, fixer=fixer, max_seconds=0.001, max_attempts=9).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "bound")
    assert reviewer.asked == []


def test_the_guard_bounds_the_rounds_whatever_becomes_of_the_rule(work: Repo) -> None:
    edits = iter(range(100))
    reviewer = Reviewer(*(rechecked("yes", other(n)) for n in range(6)))
    fixer = lambda q: work.write({"b.py": f"x = {next(edits)}\n"})  # noqa: E731
    graph = loop(work, reviewer, fixer=fixer, max_attempts=6, checks=[PASSES])
    result = graph.invoke({}, {"recursion_limit": 16})
    assert (result["outcome"], result["ruling"]["reason"]) == ("escalated", "guard")
    assert result["escalation"]["reason"]["condition"] == "StepReserve"
    assert result["escalation"]["handoff"]["attempts"]


# -- nobody is asked twice the same ----------------------------------------------------------------------------------


def test_identical_inputs_take_the_last_answer(work: Repo) -> None:
    reviewer = Reviewer(found(BUG))
    first = loop(work, reviewer).invoke({})
    again = loop(work, reviewer).invoke({})
    assert len(reviewer.asked) == len(attempts(work)) == 1
    assert again["reused"]
    assert again["ruling"] == first["ruling"]


def test_a_failed_attempt_is_not_retried_by_itself(work: Repo) -> None:
    reviewer = Reviewer("no JSON at all")
    first = loop(work, reviewer).invoke({})
    assert first["ruling"]["reason"] == "failed"
    assert loop(work, reviewer).invoke({})["ruling"]["reason"] == "failed"
    assert len(reviewer.asked) == 1
    assert attempts(work)[0].text == "no JSON at all"
    assert "no JSON" in attempts(work)[0].error
    reviewer.answers = [FINE]
    assert loop(work, reviewer, retry_failed=True).invoke({})["outcome"] == "complete"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[]",
        '{"findings": [{"line": 1}]}',
        '{"rechecks": [{"id": "x", "repaired": "maybe"}]}',
        '{"schema_version": 2}',
        "{" * 5000,
        '{"findings": [{"message": "x", "line": 1e300}]}',
        '{"findings": [{"message": "x", "line": 99999999999999999999}]}',
        None,
    ],
)
def test_a_bad_answer_is_a_failed_attempt_with_its_text_kept(work: Repo, answer: Any) -> None:
    result = loop(work, Reviewer(answer)).invoke({})
    assert "outcome" not in result
    (attempt,) = attempts(work)
    assert attempt.status == "failed"
    assert attempt.error


def test_texts_that_a_store_cannot_keep_are_written_as_escapes(work: Repo) -> None:
    answer = '{"summary": "\\ud800", "findings": [{"file": "./b.py", "line": 1, "message": "\\u0000\\udc00"}]}'
    result = loop(work, Reviewer(answer)).invoke({})
    (finding,) = result["findings"]
    assert (finding["file"], finding["status"]) == ("b.py", "open")
    assert "\0" not in finding["message"]
    assert attempts(work)[0].summary == "\\ud800"


def test_a_fenced_answer_is_read(work: Repo) -> None:
    assert loop(work, Reviewer("```json\n{}\n```")).invoke({})["outcome"] == "complete"


def test_every_failure_counts_and_the_fourth_run_asks_nobody(work: Repo) -> None:
    reviewer = Reviewer("bad")
    for n in range(3):
        work.commit(files={"b.py": f"x = {n}\n"})
        result = loop(work, reviewer).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "bound")
    work.commit(files={"b.py": "x = 10\n"})
    result = loop(work, reviewer).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "bound")
    assert len(reviewer.asked) == 3


def test_a_reviewer_that_changes_the_source_has_failed(work: Repo) -> None:
    reviewer = Reviewer(lambda question: work.write({"b.py": "x = 1\n"}) or FINE)
    loop(work, reviewer).invoke({})
    assert attempts(work)[0].status == "failed"
    assert "changed the source" in attempts(work)[0].error


def test_a_reviewer_that_raises_has_failed(work: Repo) -> None:
    loop(work, Reviewer(lambda question: 1 / 0)).invoke({})
    assert "ZeroDivisionError" in attempts(work)[0].error


def test_a_stopped_process_leaves_an_interrupted_attempt_that_counts(work: Repo) -> None:
    def stop(question: dict[str, Any]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        loop(work, stop).invoke({})
    assert attempts(work)[0].status == "interrupted"
    reviewer = Reviewer(FINE)
    assert loop(work, reviewer).invoke({})["outcome"] == "complete"
    assert [attempt.n for attempt in attempts(work)] == [1, 2]


def test_interrupted_attempts_spend_the_budget(work: Repo) -> None:
    def stop(question: dict[str, Any]) -> Any:
        raise SystemExit(1)

    for _ in range(3):
        with pytest.raises(SystemExit):
            loop(work, stop).invoke({})
    reviewer = Reviewer(FINE)
    assert loop(work, reviewer).invoke({})["ruling"]["reason"] == "bound"
    assert reviewer.asked == []


# -- what makes a fresh review, and what never renews the budget ------------------------------------------------------


def amend(work: Repo) -> None:
    work.git("commit", "--quiet", "--amend", "--message", "other")


def move_base(work: Repo) -> None:
    work.git("branch", "--force", "main", work.git("commit-tree", "main^{tree}", "-p", "main", "-m", "moved"))


@pytest.mark.parametrize(
    ("change", "settings", "why"),
    [
        (amend, {}, "the history was rewritten"),
        (move_base, {}, "the base has moved"),
        (lambda work: None, {"context": "more"}, "have changed"),
        (lambda work: None, {"goal": "other"}, "have changed"),
        (lambda work: None, {"checks": [PASSES]}, "have changed"),
        (lambda work: work.commit(), {}, None),
    ],
)
def test_a_fresh_review_of_the_whole_scope_within_the_same_budget(
    work: Repo, change: Callable[[Repo], Any], settings: dict[str, Any], why: str | None
) -> None:
    reviewer = Reviewer(found(BUG), rechecked("no"))
    loop(work, reviewer).invoke({})
    change(work)
    result = loop(work, reviewer, **settings).invoke({})
    assert len(reviewer.asked) == 2
    question = reviewer.asked[1]
    assert (result["fresh_scope"] or "").endswith(why or "")
    assert question["mode"] == ("whole_scope" if why else "follow_up")
    assert [item["status"] for item in question["retained"]] == ["carried"]
    assert [attempt.n for attempt in attempts(work)] == [1, 2]


def test_only_a_person_extends_a_budget_by_name(work: Repo) -> None:
    reviewer = Reviewer(found(BUG), rechecked("yes", other(1)), rechecked("yes"))
    loop(work, reviewer, max_attempts=2).invoke({})
    work.commit(files={"b.py": "x = 1\n"})
    assert loop(work, reviewer, max_attempts=2).invoke({})["ruling"]["reason"] == "bound"
    with pytest.raises(ReviewError, match="max_attempts=3 would raise the 2"):
        loop(work, reviewer, max_attempts=3)
    with pytest.raises(ValueError, match="extra_attempts=1 needs granted_by"):
        loop(work, reviewer, max_attempts=2, extra_attempts=1)
    work.commit(files={"b.py": "x = 2\n"})
    for _ in range(2):  # the same grant twice is one grant
        granted = loop(work, reviewer, max_attempts=2, extra_attempts=1, granted_by="ada")
        assert granted.invoke({})["outcome"] == "complete"
    assert len(reviewer.asked) == 3
    work.commit(files={"b.py": "x = 3\n"})
    result = loop(work, reviewer, max_attempts=2, extra_attempts=1, granted_by="ada").invoke({})
    assert result["handoff"]["budget"] == {
        **result["handoff"]["budget"],
        "max_attempts": 2,
        "extra_attempts": 1,
        "granted_by": "ada",
        "used": 3,
    }
    assert result["outcome"] == "blocked"


def test_a_grant_lets_a_recurring_finding_be_reviewed_once_more(work: Repo) -> None:
    reviewer = Reviewer(found(BUG), rechecked("no"), rechecked("yes"))
    for n in range(3):
        work.commit(files={"b.py": f"x = None\ny = {n}\n"})
        result = loop(work, reviewer).invoke({})
    assert result["ruling"]["reason"] == "recurring"
    assert len(reviewer.asked) == 2
    assert loop(work, reviewer, extra_attempts=1, granted_by="ada").invoke({})["outcome"] == "complete"
    assert len(reviewer.asked) == 3


def test_out_of_scope_findings_hold_nothing_up_and_are_not_lost(work: Repo) -> None:
    aside = {"file": "a.py", "line": 1, "message": "An old trouble.", "in_scope": True}
    result = loop(work, Reviewer(found(aside))).invoke({})
    assert result["outcome"] == "complete"
    (finding,) = result["handoff"]["findings"]
    assert (finding["status"], finding["message"]) == ("out_of_scope", "An old trouble.")


def test_a_retained_finding_without_an_answer_stays_carried_and_holds(work: Repo) -> None:
    reviewer = Reviewer(found(BUG), FINE)
    loop(work, reviewer).invoke({})
    work.commit(files={"b.py": "x = 1\n"})
    result = loop(work, reviewer).invoke({})
    assert "outcome" not in result or result["outcome"] == "escalated"
    assert [finding["status"] for finding in result["findings"]] == ["carried"]


# -- a person decides ------------------------------------------------------------------------------------------------


def asked(result: dict[str, Any]) -> dict[str, Any]:
    (question,) = result["__interrupt__"]
    record: dict[str, Any] = question.value["escalation"]
    return record


def test_a_person_accepts_or_rejects(work: Repo) -> None:
    trade_off = {**BUG, "kind": "judgement"}
    graph = loop(work, Reviewer(found(trade_off)), checkpointer=InMemorySaver())
    for action in ("accept", "reject"):
        config = {"configurable": {"thread_id": action}}
        record = asked(graph.invoke({}, config))
        assert record["handoff"]["outcome"] == "escalated"
        result = graph.invoke(Command(resume={"action": action, "decided_by": "ada"}), config)
        assert result["escalation"]["decision"]["action"] == action
        assert result["outcome"] == "escalated", "a decision does not rewrite how the automatic part ended"


def test_a_person_grants_attempts_and_guides(work: Repo) -> None:
    reviewer = Reviewer(found(BUG), rechecked("no"), rechecked("yes"))
    told: list[str] = []

    def fixer(question: dict[str, Any]) -> None:
        told.append(question["context"])
        work.write({"b.py": f"x = {len(told)}\n"})

    graph = loop(work, reviewer, fixer=fixer, checkpointer=InMemorySaver(), max_attempts=2)
    config = {"configurable": {"thread_id": "1"}}
    assert asked(graph.invoke({}, config))["reason"]["condition"] == "StopRule:bound"
    for bad in ({"action": "retry"}, {"action": "retry", "extra_cycles": 1}, {"action": "edit", "artifact": "x"}):
        with pytest.raises(ValueError, match=r"extra_cycles|decided_by|action"):
            graph.invoke(Command(resume=bad), config)
    answer = {"action": "retry", "extra_cycles": 1, "guidance": "None is meant", "decided_by": "ada"}
    result = graph.invoke(Command(resume=answer), config)
    assert result["outcome"] == "complete"
    assert told == ["", "None is meant"]
    assert reviewer.asked[2]["context"] == "None is meant"
    assert reviewer.asked[2]["mode"] == "whole_scope"
    assert result["handoff"]["budget"]["granted_by"] == "ada"
    assert len(reviewer.asked) == 3


def test_what_blocked_a_review_may_have_been_put_right(work: Repo) -> None:
    tool = work.path.parent / "tool"
    graph = loop(work, Reviewer(FINE), checks=[[str(tool)]], checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    assert asked(graph.invoke({}, config))["outcome"] == "blocked"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    result = graph.invoke(Command(resume={"action": "retry"}), config)
    assert result["outcome"] == "complete"
    assert result.get("escalation") is None


def test_a_later_run_of_a_thread_does_not_show_the_end_of_an_earlier_one(work: Repo) -> None:
    graph = loop(work, Reviewer(FINE, found(BUG)), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    assert graph.invoke({}, config)["outcome"] == "complete"
    work.commit(files={"b.py": "x = 2\n"})
    result = graph.invoke({}, config)
    assert result.get("outcome") is None
    assert result["handoff"] is None
    assert result["open"]


def test_asking_needs_a_checkpointer(work: Repo) -> None:
    trade_off = {**BUG, "kind": "judgement"}
    with pytest.raises(EscalationError, match="needs a checkpointer") as error:
        loop(work, Reviewer(found(trade_off)), ask_human=True).invoke({})
    assert error.value.escalation["handoff"]["findings"]
    graph = loop(work, Reviewer(found(trade_off)), ask_human=False, checkpointer=InMemorySaver())
    assert "__interrupt__" not in graph.invoke({}, {"configurable": {"thread_id": "1"}})


def test_no_way_round_is_without_a_guard_or_a_person(work: Repo) -> None:
    assert_guarded(loop(work, Reviewer(FINE), fixer=lambda q: None, ask_human=False))
    cycles = audit(loop(work, Reviewer(FINE), fixer=lambda q: None)).cycles
    assert all("ask" in cycle.nodes for cycle in cycles if cycle.verdict != "guarded")


def test_the_patch_of_a_fixer_that_commits(work: Repo) -> None:
    fixer = lambda q: work.commit(files={"b.py": "x = 1\n"})  # noqa: E731
    result = loop(work, Reviewer(found(BUG), rechecked("yes")), fixer=fixer).invoke({})
    assert result["outcome"] == "complete"
    assert "+x = 1" in result["handoff"]["patch"]


# -- evidence --------------------------------------------------------------------------------------------------------


def test_checks_run_once_for_one_source_state(work: Repo, tmp_path: Path) -> None:
    log = tmp_path / "log"
    counted = check(f"open({str(log)!r}, 'a').write('x')")
    reviewer = Reviewer(found(BUG), rechecked("yes"))
    loop(work, reviewer, checks=[counted]).invoke({})
    loop(work, reviewer, checks=[counted]).invoke({})
    assert log.read_text() == "x"
    work.commit(files={"b.py": "x = 1\n"})
    loop(work, reviewer, checks=[counted]).invoke({})
    assert log.read_text() == "xx"


def test_evidence_is_of_the_check_that_is_agreed_now(work: Repo) -> None:
    reviewer = Reviewer(FINE)
    assert loop(work, reviewer, checks=["tests=true"]).invoke({})["outcome"] == "complete"
    assert "outcome" not in loop(work, reviewer, checks=["tests=false"]).invoke({})


def test_a_check_that_changes_the_source_blocks(work: Repo) -> None:
    result = loop(work, Reviewer(FINE), checks=[check("open('b.py', 'a').write('y = 1\\n')")]).invoke({})
    assert (result["outcome"], result["ruling"]["reason"]) == ("blocked", "check_unavailable")
    assert "changed the source" in result["ruling"]["message"]


# -- reviewers of all kinds ------------------------------------------------------------------------------------------


class Model(BaseChatModel):
    """A chat model that answers by a tool call, or with a text."""

    reply: dict[str, Any] | str
    tools: bool = True

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        if not self.tools:
            raise NotImplementedError
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        assert json.loads(messages[-1].text)["protocol"] == 1
        if isinstance(self.reply, str):
            message = AIMessage(self.reply)
        else:
            message = AIMessage("", tool_calls=[{"name": "ReviewAnswer", "args": self.reply, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def in_a_while(question: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0)
    return FINE


@pytest.mark.parametrize(
    "reviewer",
    [
        lambda question: ReviewAnswer(),
        lambda question: json.dumps(FINE),
        lambda question: AIMessage(json.dumps(FINE)),
        lambda question: {"messages": [AIMessage(json.dumps(FINE))]},
        in_a_while,
        RunnableLambda(lambda question: FINE),
        Model(reply=FINE),
        Model(reply=json.dumps(FINE), tools=False),
        [sys.executable, "-c", "import json, sys; json.load(sys.stdin); print('{}')"],
        f"{sys.executable} -c 'print(123 and {{}})'",
    ],
)
def test_any_reviewer_will_do(work: Repo, reviewer: Any) -> None:
    assert loop(work, reviewer).invoke({})["outcome"] == "complete"
    assert loop(work, reviewer).invoke({})["reused"]


@pytest.mark.parametrize(
    ("reviewer", "why"),
    [
        (Model(reply={"findings": "x"}), "does not fit the schema"),
        (["no-such-reviewer"], "no-such-reviewer"),
        (check("import sys; print('partial'); sys.exit(3)"), "exit status 3"),
        (check("import time; time.sleep(60)"), "0.5 seconds"),
    ],
)
def test_reviewers_that_fail(work: Repo, reviewer: Any, why: str) -> None:
    result = loop(work, reviewer, timeout=0.5 if "sleep" in str(reviewer) else 60).invoke({})
    assert why in result["failure"]
    assert why in attempts(work)[0].error


def test_async_streams_and_checkpoints(work: Repo) -> None:
    graph = loop(work, Reviewer(found(BUG)), checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    result = asyncio.run(graph.ainvoke({}, config))
    assert result["open"]
    assert graph.get_state(config).values["ruling"] == result["ruling"]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"max_attempts": 0}, "max_attempts must be a whole number of at least 1, got 0"),
        ({"max_attempts": True}, "max_attempts must be"),
        ({"timeout": 0}, "timeout must be positive, got 0"),
        ({"max_seconds": -1}, "max_seconds must be positive, got -1"),
        ({"lines": "some"}, "lines must be"),
        ({"checks": ["true", "true"]}, "checks must have different names, got 'true' twice"),
        ({"checks": [7]}, "a check must be"),
        ({"reviewer": 7}, "reviewer must be a command"),
    ],
)
def test_nonsense_is_refused_when_it_is_built(work: Repo, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        loop(work, **{"reviewer": Reviewer(FINE), **settings})


def test_the_published_schema_is_that_of_the_answer() -> None:
    schema = json.loads((Path(__file__).parents[2] / "docs/review-answer.schema.json").read_text())
    assert schema == answer_schema()


def test_the_default_store_lies_outside_the_source(work: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOOPGUARD_HOME", str(tmp_path / "home"))
    assert review_loop(work.path, reviewer=Reviewer(FINE), base="main").invoke({})["outcome"] == "complete"
    assert list((tmp_path / "home/reviews").glob("repo-feature-*/review.sqlite"))
    monkeypatch.setenv("LOOPGUARD_HOME", str(work.path / "inside"))
    with pytest.raises(ReviewError, match="outside the repository"):
        review_loop(work.path, reviewer=Reviewer(FINE))

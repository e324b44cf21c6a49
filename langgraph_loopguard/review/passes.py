"""One pass of a review, node by node: load, recheck, review, classify, judge, fix, end.

What a review knows stands in its store and, as plain JSON, in the graph's state. A `Pass` object holds the settings
and, for speed alone, the source as last read.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from langgraph_loopguard.review.agents import ask
from langgraph_loopguard.review.answer import ReviewAnswer, read_answer, read_fix
from langgraph_loopguard.review.budget import current_budget
from langgraph_loopguard.review.change import Change, read_change, whole
from langgraph_loopguard.review.checks import gather
from langgraph_loopguard.review.cited import Texts
from langgraph_loopguard.review.errors import ReportError, SourceError
from langgraph_loopguard.review.findings import Moment, carry, dispute, take_answer, take_evidence
from langgraph_loopguard.review.handoff import build_handoff
from langgraph_loopguard.review.models import Attempt, Evidence, Finding, Ruling
from langgraph_loopguard.review.question import context_hash, fix_question, question_hash, review_question
from langgraph_loopguard.review.settings import Settings
from langgraph_loopguard.review.source import Snapshot, SourceState
from langgraph_loopguard.review.stop import Standing, actionable, judge, may_review
from langgraph_loopguard.review.store import Memory, interrupted
from langgraph_loopguard.review.times import now, stopwatch

logger = logging.getLogger("langgraph_loopguard")

State = dict[str, Any]


class Pass:
    """The nodes of a review.

    Args:
        settings: What it is set up with.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._moment: Moment | None = None
        self._spent = stopwatch()

    # -- load: what is remembered, compared with the current source state -------------------------------------------

    def load(self, state: State) -> State:
        """Read the source, and carry what is remembered to it."""
        settings = self.settings
        memory = settings.store.load()
        number = int(memory.facts.get("round", 0)) + 1
        try:
            moment = self._read(number)
        except SourceError as error:
            problem = str(error)
            update = {"round": number, "source": None, "problem": problem, "failure": None, "answer": None}
            return _cleared(state) | update
        findings = carry(memory.findings, moment, memory.facts.get("files") or {})
        fresh = self._fresh_scope(memory, moment)
        if fresh is not None:
            findings = [_remembered(finding) for finding in findings]
            logger.info("the whole scope is reviewed anew: %s", fresh)
        settings.store.save(findings, round=number, files=_hashes(moment))
        return {
            **_cleared(state),
            "round": number,
            "source": moment.snapshot.state.model_dump(),
            "problem": None,
            "failure": None,
            "answer": None,
            "attempt": None,
            "reused": False,
            "fresh_scope": fresh,
            "findings": _dumped(findings),
            "open": [finding.id for finding in actionable(findings)],
        }

    def _read(self, number: int, snapshot: Snapshot | None = None) -> Moment:
        settings = self.settings
        snapshot = snapshot or Snapshot.take(settings.root)
        change, tip = self._change(snapshot)
        scope = settings.scope.model_copy(update={"base": tip})
        self._moment = Moment(number, snapshot, change, scope, Texts(snapshot))
        return self._moment

    def _change(self, snapshot: Snapshot) -> tuple[Change, str | None]:
        """Return the change and the commit that the base names now; the change starts where the two parted."""
        repository, head = snapshot.repository, snapshot.state.commit
        if repository is None or self.settings.base is None or head is None:
            return whole(snapshot), None
        tip = repository.git.resolve(self.settings.base)
        with repository.reader() as git:
            try:
                start = git.run("merge-base", tip, head).decode().split()[0]
            except SourceError:
                start = tip  # no common history
        return read_change(snapshot, start), tip

    def _here(self, state: State) -> Moment:
        """Return the source as this pass has read it; read anew when another process goes on with the pass."""
        moment = self._moment
        if moment is None or moment.digest != _source(state).digest or moment.round != state["round"]:
            moment = self._read(state["round"])
        return moment

    def _fresh_scope(self, memory: Memory, moment: Moment) -> str | None:
        last = memory.attempts[-1] if memory.attempts else None
        if last is None:
            return None
        if last.base != moment.scope.base:
            return "the base has moved"
        if last.context != self._context(memory):
            return "the goal, the context, the scope or the checks have changed"
        before, head = last.source.commit, moment.snapshot.state.commit
        repository = moment.snapshot.repository
        if repository is None or before is None or head is None or before == head:
            return None
        with repository.reader() as git:
            try:
                git.run("merge-base", "--is-ancestor", before, head)
            except SourceError:
                return "the history was rewritten"
        return None

    def _told(self, memory: Memory) -> str:
        """The user's context, and what persons have said since."""
        return "\n\n".join(part for part in (self.settings.context, *memory.facts.get("guidance", ())) if part)

    def _context(self, memory: Memory) -> str:
        return context_hash(self._told(memory), self.settings.scope, self.settings.commands)

    # -- recheck: the agreed checks, on what has changed ------------------------------------------------------------

    def recheck(self, state: State) -> State:
        """Run each agreed check that has no evidence on the current source state."""
        moment = self._here(state)
        known = self._evidence(moment.snapshot.state)
        findings = _findings(state)
        gathered: list[Evidence] = []
        snapshot = moment.snapshot
        for check in self.settings.checks:
            evidence = known.get(check.name)
            if evidence is None or evidence.result == "unavailable":
                logger.info("check %r runs", check.name)
                evidence, snapshot = gather(check, snapshot)
                gathered.append(evidence)
            findings = take_evidence(findings, evidence, moment)
            if snapshot.state != moment.snapshot.state:
                break  # what the next one would say is about another source
        self.settings.store.save(findings, gathered)
        return {"findings": _dumped(findings), "open": [finding.id for finding in actionable(findings)]}

    def _evidence(self, source: SourceState) -> dict[str, Evidence]:
        """The latest evidence of each check, as it is agreed now, on a source state."""
        commands = {check.name: check.command for check in self.settings.checks}
        return {
            item.check: item
            for item in self.settings.store.load().evidence
            if item.source == source and commands.get(item.check) == item.command
        }

    # -- review: one attempt, unless the answer is known or nothing would come of it --------------------------------

    def review(self, state: State) -> State:
        """Ask the reviewer, or take the last answer to the same question."""
        moment = self._here(state)
        memory = self.settings.store.load()
        inputs = self._inputs(moment, memory)
        last = memory.last_with_result()
        if last is not None and last.inputs == inputs and not (last.status != "recorded" and self._retry(state)):
            logger.info("attempt %d was about the same: nobody is asked", last.n)
            failure = None if last.status == "recorded" else f"attempt {last.n} {_words(last)}"
            return {"reused": True, "failure": failure, "attempt": last.model_dump()}
        if stop := may_review(self._standing(state, moment.snapshot.state, memory)):
            logger.info("the reviewer is not started: %s", stop.message)
            return {"reused": True}
        return self._attempt(state, moment, memory, inputs)

    def _retry(self, state: State) -> bool:
        """Whether a person has ordered a failed attempt to be made again: once, in a run's first pass."""
        return self.settings.retry_failed and state.get("attempt") is None

    def _inputs(self, moment: Moment, memory: Memory) -> str:
        settings = self.settings
        return question_hash(
            source=moment.snapshot.state,
            base=moment.scope.base,
            context=self._told(memory),
            scope=settings.scope,
            commands=settings.commands,
            model=settings.reviewer.name,
        )

    def _attempt(self, state: State, moment: Moment, memory: Memory, inputs: str) -> State:
        settings = self.settings
        fresh: str | None = state["fresh_scope"]
        last = memory.last_with_result()
        question = review_question(
            scope=moment.scope,
            context=self._told(memory),
            source=moment.snapshot.state,
            change=moment.change,
            findings=_findings(state),
            evidence=list(self._evidence(moment.snapshot.state).values()),
            fresh_scope=fresh,
            changed_since=None if fresh is not None or last is None else self._changed_since(memory, moment),
        )
        attempt = settings.store.reserve(
            Attempt(
                n=0,
                inputs=inputs,
                status="reserved",
                reviewer=settings.reviewer.name,
                context=self._context(memory),
                source=moment.snapshot.state,
                base=moment.scope.base,
                fresh_scope=fresh,
                started_at=now(),
            )
        )
        logger.info("attempt %d begins", attempt.n)
        seconds = stopwatch()
        try:
            reply = ask(settings.reviewer, question, settings.root, settings.timeout)
            changed = self._differs(moment)
        except BaseException as error:
            stopped = interrupted(attempt, f"it was stopped by {type(error).__name__}")
            settings.store.finish(stopped.model_copy(update={"seconds": seconds()}))
            raise
        attempt = attempt.model_copy(
            update={"finished_at": now(), "seconds": seconds(), "text": reply.text or None, "error": reply.error}
        )
        answer: ReviewAnswer | None = None
        if reply.ending == "answered":
            try:
                answer = read_answer(reply.value)
            except ReportError as error:
                attempt = attempt.model_copy(update={"error": str(error)})
            if changed:
                why = "the reviewer changed the source that it was to review"
                answer, attempt = None, attempt.model_copy(update={"error": why})
        if answer is None:
            status = "timed_out" if reply.ending == "timed_out" else "failed"
            attempt = attempt.model_copy(update={"status": status})
            settings.store.finish(attempt)
            logger.warning("attempt %d %s", attempt.n, _words(attempt))
            return {"failure": f"attempt {attempt.n} {_words(attempt)}", "attempt": attempt.model_dump()}
        attempt = attempt.model_copy(update={"summary": answer.summary})
        return {"answer": answer.model_dump(), "attempt": attempt.model_dump()}

    def _differs(self, moment: Moment) -> bool:
        try:
            return Snapshot.take(self.settings.root).state != moment.snapshot.state
        except SourceError:
            return True

    def _changed_since(self, memory: Memory, moment: Moment) -> list[str]:
        before: dict[str, str] = memory.facts.get("reviewed_files") or {}
        current = _hashes(moment)
        return sorted(name for name in before.keys() | current.keys() if before.get(name) != current.get(name))

    # -- classify: the answer, taken into the findings --------------------------------------------------------------

    def classify(self, state: State) -> State:
        """Record the answer: what was repaired, what is new, what is in scope."""
        moment = self._here(state)
        answer = ReviewAnswer.model_validate(state["answer"])
        findings = take_answer(_findings(state), answer, moment)
        held = [finding.id for finding in actionable(findings)]
        attempt = Attempt.model_validate(state["attempt"]).model_copy(update={"status": "recorded", "open_after": held})
        facts: dict[str, Any] = {"questions": answer.questions, "reviewed_files": _hashes(moment)}
        if attempt.n == 1 or "original" not in self.settings.store.load().facts:
            facts["original"] = [finding.id for finding in findings]
        self.settings.store.save(findings, attempt=attempt, **facts)
        return {"findings": _dumped(findings), "attempt": attempt.model_dump(), "open": held}

    # -- judge: the stop rule ---------------------------------------------------------------------------------------

    def judge(self, state: State) -> State:
        """Apply the stop rule."""
        memory = self.settings.store.load()
        source = None if state["source"] is None else _source(state)
        ruling = judge(self._standing(state, source, memory))
        logger.info("%s: %s", ruling.outcome or "not finished", ruling.message)
        return {"ruling": ruling.model_dump()}

    def _standing(self, state: State, source: SourceState | None, memory: Memory) -> Standing:
        last = memory.last_with_result()
        settings = self.settings
        inputs = self._inputs(self._here(state), memory) if source is not None else None
        current = last is not None and last.inputs == inputs
        reviewed = current and last is not None and last.status == "recorded"
        commands = {check.name: check.command for check in settings.checks}
        return Standing(
            checks=settings.scope.checks,
            source=source,
            budget=current_budget(settings, memory, self._spent()),
            evidence=[item for item in memory.evidence if commands.get(item.check) == item.command],
            findings=_findings(state) if source is not None else memory.findings,
            reviewed=source.digest if reviewed and source is not None else None,
            questions=memory.facts.get("questions") or [] if reviewed else [],
            recurring=[] if _just_granted(memory) else memory.recurring(),
            problem=state.get("problem"),
            failure=state.get("failure"),
        )

    # -- fix: the fixer, whose work is read from the source ---------------------------------------------------------

    def fix(self, state: State) -> State:
        """Let the fixer work; a fix that changes nothing ends the review."""
        settings, moment = self.settings, self._here(state)
        assert settings.fixer is not None
        findings = _findings(state)
        question = fix_question(
            scope=moment.scope,
            context=self._told(settings.store.load()),
            change=moment.change,
            findings=actionable(findings),
            evidence=list(self._evidence(moment.snapshot.state).values()),
        )
        reply = ask(settings.fixer, question, settings.root, settings.timeout)
        disputes = read_fix(reply.value).disputes
        settings.store.save(dispute(findings, disputes))
        try:
            after = self._read(moment.round, Snapshot.take(settings.root))
        except SourceError as error:
            return {"source": None, "problem": str(error), "stuck": None}
        start = state.get("fixed_from") or moment.snapshot.state.commit
        update: State = {"patch": self._patch(after, start), "stuck": None, "fixed_from": start}
        if disputes:
            findings = dispute(findings, disputes)
            update |= {"findings": _dumped(findings), "open": [finding.id for finding in actionable(findings)]}
        if after.digest == moment.digest and not disputes:
            update["stuck"] = reply.error or "it changed nothing"
            update["ruling"] = _stuck(reply.error, state).model_dump()
        return update

    def _patch(self, moment: Moment, start: str | None) -> str:
        """What the fixer has changed, committed or not, in a form that can be applied to where it began."""
        if self.settings.head is not None and moment.snapshot.repository is not None:
            start = moment.snapshot.repository.git.resolve(self.settings.head)
        if start is None or (start == moment.snapshot.state.commit and moment.snapshot.state.clean):
            return ""
        return read_change(moment.snapshot, start, binary=True).patch

    # -- end: the record for whoever goes on ------------------------------------------------------------------------

    def end(self, state: State, thread: str | None = None) -> State:
        """Write the hand-off, and the escalation that holds it."""
        memory = self.settings.store.load()
        budget = current_budget(self.settings, memory, self._spent())
        if self.settings.head is not None and state.get("source") is not None:
            state = {**state, "patch": self._patch(self._here(state), None)}  # that of an earlier run, too
        update = build_handoff(self.settings, state, memory, budget, thread)
        facts = {key: update[key] for key in ("ruling", "handoff") if key in update}
        self.settings.store.note(**facts, seconds=budget.seconds, scope=self.settings.scope.model_dump())
        self._spent = stopwatch()
        return update


def _cleared(state: State) -> State:
    """What the last run of the thread came to does not stand in this one."""
    if state.get("fixed_from") is not None and state.get("outcome") is None:
        return {}  # a further round of the same run
    stale = ("outcome", "escalation", "handoff", "fixed_from", "patch")
    return {key: None for key in stale if state.get(key) is not None}


def _just_granted(memory: Memory) -> bool:
    """Whether a person has extended the budget since the last attempt: they want another one."""
    grant = memory.facts.get("grant")
    return grant is not None and grant["at"] == len(memory.attempts)


def _stuck(error: str | None, state: State) -> Ruling:
    ids = list(state.get("open") or [])
    if error is not None:
        why = f"the fixer cannot do its work: {error}"
        return Ruling(outcome="blocked", reason="fixer", message=why, needs=["a fixer that can run"], findings=ids)
    why = "the fixer changed nothing, and the same is open"
    ask_person = "How is it to be repaired, or does it not hold?"
    return Ruling(outcome="escalated", reason="unchanged", message=why, decision=ask_person, findings=ids)


def _words(attempt: Attempt) -> str:
    said = {"timed_out": "timed out", "failed": "failed"}.get(attempt.status, attempt.status)
    return f"{said}: {attempt.error}" if attempt.error else said


def _remembered(finding: Finding) -> Finding:
    """In a review of the whole scope, what the reviewer said before is to be rechecked."""
    if finding.provenance.source == "reviewer" and finding.status in ("open", "disputed"):
        return finding.model_copy(update={"status": "carried"})
    return finding


def _source(state: State) -> SourceState:
    return SourceState.model_validate(state["source"])


def _findings(state: State) -> list[Finding]:
    return [Finding.model_validate(item) for item in state.get("findings") or ()]


def _dumped(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [finding.model_dump() for finding in findings]


def _hashes(moment: Moment) -> dict[str, str]:
    return {name: moment.texts.hash_of(name) or "" for name in moment.change.files}

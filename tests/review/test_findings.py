"""Findings over edits of the code: each keeps its identity where it should, and has the right status."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard.review.answer import Dispute, NewFinding, Recheck, ReviewAnswer
from langgraph_loopguard.review.change import read_change, whole
from langgraph_loopguard.review.cited import Text, Texts, similar
from langgraph_loopguard.review.claims import likeness
from langgraph_loopguard.review.findings import Moment, carry, dispute, take_answer, take_evidence
from langgraph_loopguard.review.models import Evidence, Finding, Report, Scope
from langgraph_loopguard.review.source import Snapshot
from tests.review.repositories import Repo

BASE = "import os\n"

LOAD = """\
import os


def load(path):
    handle = open(path)
    return handle.read()


def save(path, text):
    handle = open(path, "w")
    handle.write(text)


class Store:
    def load(self, path):
        handle = open(path)
        return handle.read()
"""

RULE = "unclosed-file"
SAID = "The file handle opened here is never closed; use a with block."
REWORDED = "`open` leaks its descriptor on this path."


def found(line: int | None = 5, message: str = SAID, rule: str | None = RULE, file: str | None = "a.py") -> NewFinding:
    return NewFinding(file=file, line=line, rule=rule, message=message)


@dataclass
class Case:
    """One edit, what is said after it, and what must come of it."""

    edit: Mapping[str, str | None] = field(default_factory=dict)
    """Files after the edit; `None` deletes one."""
    again: Sequence[NewFinding] = ()
    """What is reported after the edit, by a check or as new by the reviewer."""
    repaired: str | None = None
    """The reviewer's answer about the finding."""
    carried: str = "carried"
    """Its status before anything is rechecked."""
    status: str = "carried"
    """Its status at the end."""
    place: str = "a.py:5"
    total: int = 1
    """Findings at the end."""
    baseline: str | None = None
    first: NewFinding = field(default_factory=found)
    start: Mapping[str, str] = field(default_factory=lambda: {"a.py": LOAD})
    """Files of the change at first."""


def edit(old: str, new: str, text: str = LOAD, times: int = 1) -> str:
    assert old in text
    return text.replace(old, new, times)


MOVED_DOWN = edit("import os\n", "import os\nimport sys\n\nX = 1\n")
SPLIT = edit("handle = open(path)\n    return", "handle = open(\n        path,\n    )\n    return")
FIXED = edit(
    "    handle = open(path)\n    return handle.read()",
    "    with open(path) as handle:\n        return handle.read()",
)
HALF = edit("handle = open(path)\n    return", "handle = open(path, encoding='utf-8')\n    return")
ELSEWHERE = "def other(path):\n    handle = open(path)\n    return handle\n"
JS = "function load(path) {\n  const handle = open(path);\n  return handle;\n}\n"

CASES: dict[str, Case] = {
    # moved
    "nothing is said about it": Case({"a.py": MOVED_DOWN}, place="a.py:8"),
    "lines above it": Case({"a.py": MOVED_DOWN}, repaired="no", status="open", place="a.py:8", baseline="unchanged"),
    "lines above it, reported as new": Case({"a.py": MOVED_DOWN}, [found(8)], status="open", place="a.py:8"),
    "lines removed above it": Case({"a.py": edit("import os\n\n\n", "")}, [found(2)], status="open", place="a.py:2"),
    "functions in another order": Case(
        {"a.py": LOAD[:12] + LOAD[79:155] + LOAD[12:79] + LOAD[155:]},
        place="a.py:10",
        repaired="no",
        status="open",
    ),
    "into a class, indented": Case(
        {
            "a.py": "import os\n\n\nclass A:\n    def load(path):\n        handle = open(path)\n        return handle.read()\n"
        },
        [found(6)],
        status="open",
        place="a.py:6",
    ),
    "another file changed": Case({"b.py": "x = 1\n"}, repaired="no", status="open"),
    "into another file of the change": Case(
        {"a.py": FIXED.replace("handle = open(path)\n        return", "pass\n        return"), "b.py": ELSEWHERE},
        place="b.py:2",
        repaired="no",
        status="open",
    ),
    # renamed
    "renamed file": Case({"a.py": None, "c.py": LOAD}, place="c.py:5", repaired="no", status="open"),
    "renamed file and moved lines": Case(
        {"a.py": None, "c.py": MOVED_DOWN}, [found(8, file="c.py")], place="c.py:8", status="open"
    ),
    "renamed into a folder": Case({"a.py": None, "pkg/a.py": LOAD}, place="pkg/a.py:5"),
    "renamed and fixed": Case({"a.py": None, "c.py": FIXED}, repaired="yes", status="resolved", place="a.py:5"),
    # reformatted
    "split over lines": Case({"a.py": SPLIT}, [found(5)], status="open", baseline="unchanged"),
    "split, cited at its second line": Case(
        {"a.py": SPLIT}, [found(6)], status="open", place="a.py:6", baseline="unchanged"
    ),
    "white space": Case(
        {"a.py": edit("handle = open(path)", "handle  =  open( path )")}, [found()], status="open", baseline="unchanged"
    ),
    "tabs for blanks": Case({"a.py": LOAD.replace("    ", "\t")}, [found()], status="open", baseline="unchanged"),
    "quotes": Case(
        {"a.py": edit('"w"', "'w'")},
        [found(10)],
        first=found(10),
        status="open",
        place="a.py:10",
        baseline="unchanged",
    ),
    "a comment at its end": Case(
        {"a.py": edit("open(path)\n", "open(path)  # TODO\n")}, [found()], status="open", baseline="unchanged"
    ),
    "another language, reindented": Case(
        {"a.js": JS.replace("  ", "\t")},
        [found(2, file="a.js")],
        first=found(2, file="a.js"),
        start={"a.js": JS},
        status="open",
        place="a.js:2",
        baseline="unchanged",
    ),
    # reworded
    "reworded, same rule": Case({"a.py": MOVED_DOWN}, [found(8, REWORDED)], status="open", place="a.py:8"),
    "reworded, no rule": Case(
        {},
        [found(5, "Use a with block: the file handle that is opened here never gets closed.", None)],
        first=found(rule=None),
        carried="open",
        status="open",
    ),
    "rule written otherwise": Case({}, [found(5, REWORDED, "Unclosed_File")], carried="open", status="open"),
    "same words, another rule name": Case({}, [found(5, SAID, "resource-leak")], carried="open", status="open"),
    "list in another order": Case({"a.py": MOVED_DOWN}, [found(13), found(8)], status="open", place="a.py:8", total=2),
    # fixed
    "fixed": Case({"a.py": FIXED}, repaired="yes", status="resolved", baseline="absent"),
    "fixed elsewhere in the file": Case(
        {"a.py": edit("return handle.read()", "text = handle.read()\n    handle.close()\n    return text")},
        repaired="yes",
        status="resolved",
    ),
    "said to be fixed, and nothing changed": Case({}, repaired="yes", carried="open", status="disputed"),
    "deleted code": Case({"a.py": LOAD[:12] + LOAD[79:]}, repaired="yes", status="resolved"),
    "deleted code, nothing said": Case({"a.py": LOAD[:12] + LOAD[79:]}, status="carried"),
    "cannot say": Case({"a.py": HALF}, repaired="unsure", status="open"),
    "says yes, and reports it again": Case({"a.py": HALF}, [found()], repaired="yes", status="open"),
    # half fixed
    "half fixed": Case({"a.py": HALF}, [found()], status="open", baseline="updated"),
    "half fixed, by answer": Case({"a.py": HALF}, repaired="no", status="open"),
    "one of two like it fixed": Case({"a.py": FIXED}, [found(16)], repaired="yes", status="resolved", total=2),
    # reintroduced: see below
    # deleted
    "deleted file": Case({"a.py": None}, carried="resolved", status="resolved"),
    "file became binary": Case({"a.py": "\0\1"}, status="carried"),
    "file emptied": Case({"a.py": ""}, status="carried"),
    # same text elsewhere
    "same text in another file": Case({"b.py": ELSEWHERE}, [found(2, file="b.py")], status="carried", total=2),
    "same text in another function": Case({}, [found(16)], carried="open", status="open", total=2),
    "fixed here, same text there before": Case(
        {"a.py": FIXED.replace("handle = open(path)\n        return", "pass\n        return")},
        start={"a.py": LOAD, "b.py": ELSEWHERE},
        status="carried",
        place="a.py:5",
    ),
    # a new problem at an old spot
    "another problem, same line": Case(
        {}, [found(5, "The path is not checked for None.", "unchecked-none")], carried="open", status="open", total=2
    ),
    "another problem, no rule": Case(
        {}, [found(5, "Reads the whole content into memory at once.", None)], carried="open", status="open", total=2
    ),
    "line replaced by other trouble": Case(
        {"a.py": edit("handle = open(path)", "subprocess.run(path, shell=True)")},
        [found(5, "A shell runs a path that anyone may choose.", "shell-injection")],
        repaired="yes",
        status="resolved",
        total=2,
    ),
    # without a line
    "about the file": Case({"a.py": MOVED_DOWN}, [found(None)], first=found(None), status="open", place="a.py"),
    "about nothing in particular": Case(
        {"a.py": MOVED_DOWN},
        [found(None, file=None)],
        first=found(None, file=None),
        carried="out_of_scope",
        status="out_of_scope",
        place="(no file)",
    ),
    "a line that is not there": Case({}, [found(900)], first=found(900), carried="open", status="open", place="a.py"),
    "out of scope and stays so": Case(
        {"a.py": MOVED_DOWN},
        first=found(1, file="old.py"),
        start={"a.py": LOAD},
        carried="out_of_scope",
        status="out_of_scope",
        place="old.py:1",
    ),
    "out of scope until its file is changed": Case(
        {"old.py": "x = 2\nimport os\n"},
        first=found(1, file="old.py"),
        status="carried",
        place="old.py:2",
    ),
}


class Bench:
    """A repository in which rounds are played."""

    def __init__(self, path: Path, files: Mapping[str, str]) -> None:
        self.repo = Repo(path)
        self.base = self.repo.commit(files={"old.py": BASE, "z": "z\n"})
        self.rounds = 0
        self.before: dict[str, str] = {}
        self.edit(files)

    def edit(self, files: Mapping[str, str | None]) -> None:
        for name, text in files.items():
            if text is None:
                (self.repo.path / name).unlink()
            else:
                self.repo.write({name: text})

    def moment(self, **scope: Any) -> Moment:
        self.rounds += 1
        snapshot = Snapshot.take(self.repo.path)
        return Moment(
            self.rounds,
            snapshot,
            read_change(snapshot, self.base),
            Scope(**{"checks": ["lint"], **scope}),
            Texts(snapshot),
        )

    def done(self, moment: Moment) -> None:
        self.before = {name: moment.texts.hash_of(name) or "" for name in moment.change.files}


def evidence(moment: Moment, reports: Sequence[NewFinding], result: str = "fail") -> Evidence:
    return Evidence(
        check="lint",
        subject="lint",
        command=["lint"],
        result=result,
        exit_status=1,
        why="exit status 1",
        output="",
        output_size=0,
        output_sha256="",
        source=moment.snapshot.state,
        started_at="",
        seconds=0,
        reports=[item.report() for item in reports],
    )


@pytest.mark.parametrize("name", CASES)
def test_edits(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    bench = Bench(tmp_path / "repo", case.start)
    moment = bench.moment()
    (first,) = take_answer([], ReviewAnswer(findings=[case.first]), moment)
    bench.done(moment)
    bench.edit(case.edit)
    moment = bench.moment()
    (carried,) = carry([first], moment, bench.before)
    assert carried.status == case.carried
    rechecks = [Recheck(id=first.id, repaired=case.repaired)] if case.repaired else []
    after = take_answer([carried], ReviewAnswer(rechecks=rechecks, findings=list(case.again)), moment)
    same = next(finding for finding in after if finding.id == first.id)
    assert (same.status, same.place, len(after)) == (case.status, case.place, case.total)
    if case.baseline:
        assert same.baseline == case.baseline
    assert len({finding.id for finding in after}) == len(after)
    assert same.provenance.first_seen == 1


def test_there_are_at_least_forty_edits() -> None:
    assert len(CASES) >= 40


# The same edits where a check reports: what it reports is verified, what it does not is resolved.
# (A tool has a rule for everything, and its rules keep their names.)
RULES = (RULE, "unchecked-none", "shell-injection")
CHECKED = {
    name: case
    for name, case in CASES.items()
    if case.repaired is None
    and case.first.file in case.start
    and all(item.rule in RULES for item in (case.first, *case.again))
}


@pytest.mark.parametrize("name", CHECKED)
def test_edits_with_a_check(name: str, tmp_path: Path) -> None:
    case = CHECKED[name]
    bench = Bench(tmp_path / "repo", case.start)
    moment = bench.moment()
    (first,) = take_evidence([], evidence(moment, [case.first]), moment)
    assert first.status == "verified"
    bench.done(moment)
    bench.edit(case.edit)
    moment = bench.moment()
    after = take_evidence(carry([first], moment, bench.before), evidence(moment, case.again), moment)
    same = next(finding for finding in after if finding.id == first.id)
    if case.again and case.status == "open" and case.total == len(case.again):
        assert same.status == "verified"
    elif not case.again:
        # a check that fails without a report is a finding of its own
        assert same.status == "resolved"
        assert [finding.rule for finding in after if finding.holds] == ["check:lint"]


def test_what_was_in_scope_is_not_forgotten_when_the_change_moves_away(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"old.py": "import os\nimport sys\n"})
    moment = bench.moment()
    known = take_answer([], ReviewAnswer(findings=[found(2, file="old.py")]), moment)
    bench.edit({"old.py": BASE, "b.py": "x = 1\n"})
    moment = bench.moment()
    assert "old.py" not in moment.change.files
    (carried,) = carry(known, moment, {})
    assert (carried.status, carried.scope) == (
        "carried",
        "in scope when it was reported: 'old.py' is a file of the change",
    )
    assert carry([carried], bench.moment(), {})[0].scope == carried.scope
    assert carry(known, bench.moment(files=["docs"]), {})[0].status == "out_of_scope"


# -- what happens over several rounds ---------------------------------------------------------------------------------


def test_a_finding_that_comes_back_is_the_same_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    (first,) = take_answer([], ReviewAnswer(findings=[found()]), moment)
    bench.edit({"a.py": FIXED})
    moment = bench.moment()
    fixed = take_answer(
        carry([first], moment, {}), ReviewAnswer(rechecks=[Recheck(id=first.id, repaired="yes")]), moment
    )
    assert fixed[0].closed is not None
    assert fixed[0].closed.round == 2
    bench.edit({"a.py": MOVED_DOWN})
    moment = bench.moment()
    (again,) = take_answer(carry(fixed, moment, {}), ReviewAnswer(findings=[found(8, REWORDED)]), moment)
    assert (again.id, again.status, again.reopened, again.baseline, again.closed) == (first.id, "open", 1, "new", None)


def test_a_checks_finding_that_comes_back_is_the_same_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    (first,) = take_evidence([], evidence(moment, [found()]), moment)
    bench.edit({"a.py": FIXED})
    moment = bench.moment()
    (fixed,) = take_evidence(carry([first], moment, {}), evidence(moment, [], "pass"), moment)
    assert (fixed.status, fixed.baseline) == ("resolved", "absent")
    bench.edit({"a.py": LOAD})
    moment = bench.moment()
    (again,) = take_evidence(carry([fixed], moment, {}), evidence(moment, [found()]), moment)
    assert (again.id, again.status, again.reopened) == (first.id, "verified", 1)


def test_a_verified_finding_is_never_carried_as_verified(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    known = take_evidence([], evidence(moment, [found()]), moment)
    bench.edit({"b.py": "x = 1\n"})
    moment = bench.moment()
    carried = carry(known, moment, {})
    assert [finding.status for finding in carried] == ["carried"]
    unavailable = evidence(moment, [], "unavailable")
    assert take_evidence(carried, unavailable, moment) == carried
    stale = evidence(moment, [], "pass").model_copy(update={"changed_source": True})
    assert take_evidence(carried, stale, moment) == carried


def test_a_reviewer_neither_closes_nor_repeats_what_a_check_shows(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    known = take_evidence([], evidence(moment, [found()]), moment)
    answer = ReviewAnswer(rechecks=[Recheck(id=known[0].id, repaired="yes")], findings=[found()])
    assert take_answer(known, answer, moment) == known


def test_two_equal_statements_are_two_findings_and_fixing_one_leaves_the_other(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    both = take_evidence([], evidence(moment, [found(5), found(16)]), moment)
    assert len({finding.id for finding in both}) == 2
    bench.edit({"a.py": FIXED})
    moment = bench.moment()
    after = {f.id: f for f in take_evidence(carry(both, moment, {}), evidence(moment, [found(16)]), moment)}
    assert [after[finding.id].status for finding in both] == ["resolved", "verified"]


def test_two_reports_of_one_rule_on_one_line_keep_apart(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": "import os, sys\n"})
    moment = bench.moment()
    reports = [found(1, "`os` imported but unused", "F401"), found(1, "`sys` imported but unused", "F401")]
    both = take_evidence([], evidence(moment, reports), moment)
    bench.edit({"a.py": "\n\nimport os, sys\n"})
    moment = bench.moment()
    moved = [found(3, "`sys` imported but unused", "F401"), found(3, "`os` imported but unused", "F401")]
    after = {f.id: f.message for f in take_evidence(carry(both, moment, {}), evidence(moment, moved), moment)}
    assert after == {finding.id: finding.message for finding in both}


def test_a_model_cannot_talk_a_finding_in_or_out_of_scope(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    talk = [
        NewFinding(file="a.py", line=5, message="one thing here", in_scope=False),
        NewFinding(file="old.py", line=1, message="another thing there", in_scope=True),
        NewFinding(file="../outside.py", line=1, message="a third thing", in_scope=True),
    ]
    after = take_answer([], ReviewAnswer(findings=talk), moment)
    assert [finding.status for finding in after] == ["open", "out_of_scope", "out_of_scope"]
    assert "not a file of the change" in after[1].scope


def test_a_file_that_never_was_is_out_of_scope_however_often_it_is_named(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    known: list[Finding] = []
    for n in range(3):
        bench.edit({"a.py": LOAD + f"# {n}\n"})
        moment = bench.moment()
        known = take_answer(carry(known, moment, bench.before), ReviewAnswer(findings=[found(1, file="no.py")]), moment)
        bench.done(moment)
        assert [finding.status for finding in known] == ["out_of_scope"]


def test_scope_by_lines_and_by_files(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"old.py": "import os\nimport sys\n", "docs/x.md": "x\n"})
    moment = bench.moment(lines="changed")
    talk = [NewFinding(file="old.py", line=n, message=f"thing number {n}") for n in (1, 2)]
    talk.append(NewFinding(file="old.py", message="about the file"))
    after = take_answer([], ReviewAnswer(findings=talk), moment)
    assert [finding.status for finding in after] == ["out_of_scope", "open", "out_of_scope"]
    moment = bench.moment(files=["docs"])
    talk = [NewFinding(file=name, line=1, message=f"thing in {name}") for name in ("old.py", "docs/x.md")]
    after = take_answer([], ReviewAnswer(findings=talk), moment)
    assert [finding.status for finding in after] == ["out_of_scope", "open"]


def test_a_check_is_in_scope_wherever_it_points(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment(files=["docs"])
    (known,) = take_evidence([], evidence(moment, [found(1, file="old.py")]), moment)
    assert known.status == "verified"
    assert "agreed check 'lint'" in known.scope


def test_a_check_that_is_not_agreed_any_more_holds_nothing_up(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    known = take_evidence([], evidence(moment, [found()]), moment)
    bench.edit({"a.py": MOVED_DOWN})
    (dropped,) = carry(known, bench.moment(checks=["other"]), {})
    assert dropped.status == "out_of_scope"
    assert "not agreed any more" in dropped.scope
    assert carry([dropped], bench.moment(), {})[0].status == "carried"


def test_the_fixer_may_dispute(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    known = take_answer([], ReviewAnswer(findings=[found()]), moment)
    (disputed,) = dispute(known, [Dispute(id=known[0].id, reason="the caller closes it"), Dispute(id="unknown")])
    assert disputed.status == "disputed"
    assert "the caller closes it" in (disputed.note or "")
    bench.edit({"a.py": MOVED_DOWN})
    assert carry([disputed], bench.moment(), {})[0].status == "carried"


def test_a_quote_counts_for_more_than_a_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    wrong = NewFinding(file="a.py", line=1, quote="handle.write(text)", message="not flushed")
    right = NewFinding(file="a.py", line=16, quote="handle = open(path)", message="not closed")
    nowhere = NewFinding(file="a.py", line=4, quote="no such text", message="odd")
    after = take_answer([], ReviewAnswer(findings=[wrong, right, nowhere]), moment)
    assert [finding.line for finding in after] == [11, 16, 4]


def test_a_recheck_may_say_where_it_stands_now(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": LOAD})
    moment = bench.moment()
    known = take_answer([], ReviewAnswer(findings=[found()]), moment)
    bench.edit({"a.py": HALF})
    moment = bench.moment()
    recheck = Recheck(id=known[0].id, repaired="no", line=16)
    (after,) = take_answer(carry(known, moment, {}), ReviewAnswer(rechecks=[recheck]), moment)
    assert (after.id, after.status, after.line) == (known[0].id, "open", 16)


def test_many_findings_are_matched_in_reasonable_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "repo", {"a.py": "".join(f"x{i} = {i}\n" for i in range(3000))})
    moment = bench.moment()
    reports = [found(i, f"`x{i}` is a poor name", "N1") for i in range(1, 3001)]
    known = take_evidence([], evidence(moment, reports), moment)
    bench.edit({"a.py": "\n" + "".join(f"x{i} = {i}\n" for i in range(3000))})
    moment = bench.moment()
    moved = [found(i + 1, f"`x{i}` is a poor name", "N1") for i in range(1, 3001)]
    after = take_evidence(carry(known, moment, {}), evidence(moment, moved), moment)
    assert [finding.id for finding in after] == [finding.id for finding in known]


TOP = [number for number, line in enumerate(LOAD.split("\n")) if line.startswith(("def ", "class ", "import "))]


@given(st.lists(st.tuples(st.sampled_from(TOP), st.sampled_from(["x = 1", "# a comment", "", "def g():\n    pass"]))))
def test_whatever_comes_in_between_a_finding_is_followed(insertions: list[tuple[int, str]]) -> None:
    """Lines put in anywhere between the definitions move a finding, and nothing else."""
    lines = LOAD.split("\n")
    for number, text in sorted(insertions, reverse=True):
        lines[number:number] = text.split("\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.py")
        moments = []
        for n, text in enumerate((LOAD, "\n".join(lines))):
            path.write_text(text)
            snapshot = Snapshot.take(folder)
            moments.append(Moment(n + 1, snapshot, whole(snapshot), Scope(), Texts(snapshot)))
            moments[-1].texts.get("a.py")
    known = take_answer([], ReviewAnswer(findings=[found(5), found(10), found(16)]), moments[0])
    assert len(known) == 3
    carried = carry(known, moments[1], {})
    expected = [old + sum(text.count("\n") + 1 for number, text in insertions if number < old) for old in (5, 10, 16)]
    assert [finding.line for finding in carried] == expected
    again = take_answer(carried, ReviewAnswer(findings=[found(line) for line in reversed(expected)]), moments[1])
    assert [finding.id for finding in again] == [finding.id for finding in known]


# -- texts ------------------------------------------------------------------------------------------------------------


@given(st.text(alphabet="ab()[]{}'\"\\#:,=\n \t", max_size=60), st.integers(1, 30), st.integers(1, 30))
def test_any_text_can_be_cited(text: str, line: int, span: int) -> None:
    for name in ("x.py", "x.c"):
        read = Text(name, text)
        spot = read.cite(line, line + span)
        if spot.code and spot.line:
            assert any(other.code == spot.code for other in read.find(spot.code))
        read.find_quote(text)


@given(st.text(), st.text())
def test_likeness_is_a_share(a: str, b: str) -> None:
    for measure in (likeness, similar):
        assert 0 <= measure(a, b) <= 1
        assert measure(a, b) == measure(b, a)
    assert similar(a, a) == 1.0


def test_reports_can_be_shown() -> None:
    assert Report(message="x", file="a").file == "a"
    assert isinstance(Finding.model_json_schema(), dict)

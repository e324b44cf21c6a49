"""The forms of a report: what people and machines read, whatever the names in it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

import langgraph_loopguard
from langgraph_loopguard import AuditReport, audit, guard_loop
from langgraph_loopguard.graph.audit.sarif import RULES, uri

HOSTILE = ['a"b', "<b>x</b>", "e\x1b[31m", "é[n]d", "end", 'x"]; click y "javascript:z"', "-->", "ü|ö", "\n", "#35;"]


def graph(*names: str, guarded: bool = False) -> StateGraph:
    builder = StateGraph(MessagesState)
    for name in names:
        builder.nodes[name] = StateGraph(MessagesState).add_node("x", lambda state: {}).nodes["x"]
    builder.add_edge(START, names[0])
    for source, target in zip(names, [*names[1:], names[0]], strict=True):
        builder.edges.add((source, target))
    if guarded:
        guard_loop(builder, *names[:2])
    return builder


def test_the_text_names_cycle_verdict_reason_and_place() -> None:
    """One look says what is open and where it is written."""
    text = str(audit(graph("a", "b"), name="team"))
    assert re.search(r"missing +a -> b -> a\n +nothing bounds it \(.*test_report.py:\d+\)", text)
    assert text.startswith("team")
    assert text.endswith("1 cycle in 1 graph: 1 open\n")
    assert str(audit(graph("a", "b", guarded=True))).endswith("1 cycle in 1 graph: none open\n")


def test_a_cut_list_says_so() -> None:
    """The sums are "at least" when not all cycles are listed."""
    builder = graph(*"abcdef")
    builder.edges |= {(a, b) for a in "abcdef" for b in "abcdef"}
    text = str(audit(builder, limit=3))
    assert "and more cycles, not listed" in text
    assert "at least" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_only_text(name: str) -> None:
    """Whatever a node is called, it is not obeyed: not by a terminal, a browser, Mermaid or JSON."""
    report = audit(graph(name, "b"), name=name)
    text = str(report)
    assert "\x1b" not in text
    html = report._repr_html_()
    assert "<b>" not in html
    labels = re.findall(r'\["(.*?)"\]', report.to_mermaid())
    assert 3 == len(labels)
    assert [] == [label for label in labels if re.search(r'["\[\]<>|\n\x1b]', label)]
    assert name in [node for found in json.loads(report.to_json())["graphs"] for node in found["nodes"]]
    assert json.loads(json.dumps(report.to_sarif()))


def test_mermaid_draws_open_cycles_in_red_and_guarded_edges_in_green() -> None:
    """By colour and by label, so that it can be told without colours too."""
    builder = graph("a", "b", guarded=True)
    builder.add_node("c", lambda state: {})
    builder.add_edge("b", "c")
    builder.add_edge("c", "b")
    lines = audit(builder, name="team").to_mermaid().splitlines()
    assert "flowchart TD" == lines[0]
    links = [line.strip() for line in lines if "-->" in line or "==>" in line]
    assert {
        'g0n1 -->|"open"| g0n2',
        'g0n2 -->|"open"| g0n1',
        'g0n0 ==>|"a-b"| g0n1',
        'g0n1 ==>|"a-b"| g0n0',
    } == set(links)
    red = next(line for line in lines if "#d1242f,stroke-width:3px" in line)
    numbers = [int(number) for number in re.findall(r"\d+", red.split(" stroke")[0])]
    assert ["open"] * 2 == [re.findall(r'\|"(\w+)', links[number])[0] for number in numbers]
    assert [False, True, True] == [":::open" in line for line in lines if '["' in line and "subgraph" not in line]


def test_an_unknown_way_is_drawn() -> None:
    """As a dotted loop at the node that may go anywhere."""
    builder = StateGraph(MessagesState)
    builder.add_node("a", lambda state: {})
    builder.add_conditional_edges("a", lambda state: state["messages"][-1].text)
    assert 'g0n0 -.->|"unknown"| g0n0' in audit(builder).to_mermaid()


def test_sarif_has_a_result_for_each_open_cycle(monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    """With rule, level, place relative to the working directory, and a fingerprint that holds over runs."""
    monkeypatch.chdir(request.config.rootpath)
    log = audit(graph("a", "b"), name="team").to_sarif()
    (run,) = log["runs"]
    (result,) = run["results"]
    assert ("2.1.0", "loopguard/missing", "error") == (log["version"], result["ruleId"], result["level"])
    assert result["ruleId"] == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
    place = result["locations"][0]["physicalLocation"]
    assert "tests/graph/audit/test_report.py" == place["artifactLocation"]["uri"]
    assert place["region"]["startLine"] > 1
    assert {"loopguardCycle/v1": "team/a -> b -> a"} == result["partialFingerprints"]
    assert [] == audit(graph("a", "b", guarded=True)).to_sarif()["runs"][0]["results"]
    assert set(RULES) | {"guarded"} == set(langgraph_loopguard.graph.audit.report.Verdict.__args__)
    assert "folder%20a/b.py" == uri("folder a/b.py")
    assert uri("/elsewhere/b.py").startswith("file:///")


def test_json_can_be_read_back() -> None:
    """A report survives its JSON."""
    report = audit(graph("a", "b", guarded=True), name="team")
    data = json.loads(report.to_json())
    assert data.pop("ok") is True
    assert report == AuditReport.model_validate(data)


def test_html_lists_open_cycles_first() -> None:
    """For a notebook, with the drawing's text to copy."""
    builder = graph("a", "b", guarded=True)
    builder.add_edge("b", "b")
    html = audit(builder)._repr_html_()
    assert html.index("missing") < html.index("guarded")
    assert "1 of 2 cycles open" in html
    assert "flowchart TD" in html
    assert "no cycles" in AuditReport(graphs=())._repr_html_()


def test_names_come_late() -> None:
    """The package does not import the audit before it is asked for, and knows no other names."""
    import subprocess
    import sys

    code = "import langgraph_loopguard, sys; assert not any('graph.audit' in name for name in sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}; langgraph_loopguard.audit; langgraph_loopguard.audit"], check=True)
    assert {"audit", "assert_guarded", "AuditReport"} <= set(dir(langgraph_loopguard))
    with pytest.raises(AttributeError, match="nonsense"):
        langgraph_loopguard.nonsense

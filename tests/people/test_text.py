"""Texts of agents are shown as text, whatever they hold."""

from __future__ import annotations

import html
import io
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from rich.console import Console

from langgraph_loopguard.people import EscalationView, to_html, to_markdown, visible
from langgraph_loopguard.people.terminal import to_rich
from langgraph_loopguard.people.text import fenced, inline, one_line
from langgraph_loopguard.people.text import to_html as html_text
from tests.people.hostile import HOSTILE, record, texts


def acts(character: str) -> bool:
    """Whether a character may do something, or hide, on a terminal or a page."""
    return character not in "\n\t" and (unicodedata.category(character)[0] == "C" or character in "\u2028\u2029")


class Elements(HTMLParser):
    """Which elements and attributes a page has, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str, str | None]] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name, value) for name, value in attrs} or {(tag, "", None)}

    def handle_data(self, data: str) -> None:
        self.text += data


@given(texts)
def test_nothing_acts_in_what_is_visible(text: str) -> None:
    """No control, bidi or zero-width character is left, and all else is as it was."""
    shown = visible(text)
    assert not any(map(acts, shown))
    assert [c for c in text if not acts(c) and c.isascii()] == [c for c in text if c.isascii() and c in visible(c)]
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[2K\r", r"\u001b[2K\u000d"),
        ("\u202eab\u2066", r"\u202eab\u2066"),
        ("a\u200bb\u00adc\ufeff", r"a\u200bb\u00adc\ufeff"),
        ("\U000e0041", r"\U000e0041"),
        ("é 漢字 ☃", "é 漢字 ☃"),
        ("a\u00a0b\u3000c", r"a\u00a0b\u3000c"),
        ("\u3164\ufe0f\u2800", r"\u3164\ufe0f\u2800"),
    ],
)
def test_hidden_characters_are_spelt_out(text: str, expected: str) -> None:
    """Each by its code point; letters of all scripts stay."""
    assert expected == visible(text)


@given(texts)
def test_html_holds_nothing_but_the_text(text: str) -> None:
    """No element but the mark of what is hidden; a reader of the page sees the visible text."""
    page = Elements(html_text(text))
    assert page.found <= {("span", "class", "hidden-character")}
    assert visible(text) == page.text


@given(texts)
def test_a_fence_holds_its_text(text: str) -> None:
    """Markdown sees one block of code with all of the text in it, and nothing after it."""
    tokens = MarkdownIt().parse(fenced(text))
    (block,) = tokens
    assert "fence" == block.type
    assert visible(text).removesuffix("\n") == block.content.removesuffix("\n")


@given(texts)
def test_inline_code_holds_its_text(text: str) -> None:
    """One line, one span of code."""
    tokens = MarkdownIt().parse(f"- {inline(text)} end")
    (children,) = [token.children for token in tokens if token.type == "inline"]
    assert ["code_inline", "text"] == [child.type for child in children or ()]
    assert "\n" not in one_line(text)


@given(texts)
def test_no_view_lets_a_text_act(text: str) -> None:
    """A record that is hostile everywhere: page, Markdown and terminal show it as text."""
    view = EscalationView.of(record(text))
    page = Elements(to_html(view))
    assert {tag for tag, *_ in page.found} <= {
        *("section", "h3", "h4", "h5", "p", "dl", "dt", "dd", "ul", "li", "code"),
        *("pre", "span", "details", "summary", "strong"),
    }
    assert {name for _, name, _ in page.found} <= {"", "class", "style"}
    tokens = MarkdownIt().parse(to_markdown(view))
    assert not any(token.type.startswith(("html", "blockquote", "hr")) for token in tokens)
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert "Question" in headings
    assert all(
        heading.split()[0] in ("Escalation", "Question", "Open", "Diff", "Cycle", "Evidence", "Options")
        for heading in headings
    )
    out = io.StringIO()
    console = Console(file=out, force_terminal=False, width=120)
    for part in to_rich(view):
        console.print(part)
    assert not any(map(acts, out.getvalue()))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_that_claims_a_decision_is_no_decision(text: str) -> None:
    """Only the record's own decision is shown as one."""
    assert EscalationView.of(record(text, decision=None)).decision is None


def test_html_marks_what_spelling_cannot_fake() -> None:
    """A text that spells an escape out has no mark; html of plain text is what the standard library makes."""
    assert r"\u202e" == html_text(r"\u202e")
    assert r'<span class="hidden-character">\u202e</span>' == html_text("\u202e")
    assert html.escape("<&\">'") == html_text("<&\">'")

"""What a reviewer and a fixer are asked, and what they answer: the published schema."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraph_loopguard.review.errors import ReportError
from langgraph_loopguard.review.models import MAX_LINE, Kind, Report, Severity
from langgraph_loopguard.review.text import storable

PROTOCOL = 1
"""Version of the question and the answer; a new one makes every earlier attempt a different input."""

QUESTION = "Was this particular concern repaired?"


class Recheck(BaseModel):
    """The answer about one retained finding."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="The retained finding's id.")
    repaired: Literal["yes", "no", "unsure"] = Field(
        description="Whether this particular concern was repaired in the current source. `unsure` asks a person."
    )
    reason: str = Field(default="", description="What in the source shows it.")
    file: str | None = Field(default=None, description="Where it stands now, if it moved.")
    line: int | None = Field(default=None, ge=1, le=MAX_LINE)


class NewFinding(BaseModel):
    """One new problem."""

    model_config = ConfigDict(extra="ignore")

    file: str | None = Field(default=None, description="The file, as the scope names it.")
    line: int | None = Field(default=None, ge=1, le=MAX_LINE, description="The first line that it is about, from 1.")
    end_line: int | None = Field(default=None, ge=1, le=MAX_LINE)
    quote: str | None = Field(default=None, description="The code that it is about, copied from the file.")
    rule: str | None = Field(
        default=None, description="A short stable name for this kind of problem, such as `unchecked-none`."
    )
    message: str = Field(min_length=1, description="The problem, and what would repair it.")
    severity: Severity = "warning"
    kind: Kind = Field(
        default="actionable", description="`judgement` for a trade-off or an unclear intent: a person decides."
    )
    in_scope: bool | None = Field(
        default=None, description="Your view; kept, but the change's files, lines and checks decide."
    )

    def report(self) -> Report:
        """Return it as a report."""
        return Report(**self.model_dump(exclude={"in_scope"}))


class ReviewAnswer(BaseModel):
    """What a reviewer answers."""

    model_config = ConfigDict(extra="ignore")

    schema_version: Literal[1] = 1
    rechecks: list[Recheck] = Field(default=[], description="One answer for each retained finding.")
    findings: list[NewFinding] = Field(default=[], description="New problems only.")
    questions: list[str] = Field(
        default=[], description="What only a person can say: the review then ends as `escalated`."
    )
    summary: str = Field(default="", description="For a reader. It decides nothing.")


class Dispute(BaseModel):
    """A finding that the fixer will not act on."""

    id: str
    reason: str = ""


class FixAnswer(BaseModel):
    """What a fixer may answer; what it did is read from the source itself."""

    model_config = ConfigDict(extra="ignore")

    summary: str = ""
    disputes: list[Dispute] = Field(default=[], description="Findings that it holds to be wrong: a person decides.")


def answer_schema() -> dict[str, Any]:
    """Return the JSON schema of a reviewer's answer."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **ReviewAnswer.model_json_schema(),
        "title": "Answer of a reviewer to loopguard review",
    }


def read_answer(value: Any) -> ReviewAnswer:
    """Return a reviewer's answer, given as JSON text (perhaps in a code fence), as a mapping, or as itself.

    Raises:
        ReportError: It does not fit the schema.
    """
    if isinstance(value, ReviewAnswer):
        return value
    try:
        data = json.loads(_unfenced(value)) if isinstance(value, (str, bytes)) else value
        return ReviewAnswer.model_validate(storable(data))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        msg = f"the answer does not fit the schema: {where}: {first['msg']}"
        raise ReportError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"the answer is no JSON: {error}"
        raise ReportError(msg) from error


def read_fix(value: Any) -> FixAnswer:
    """Return a fixer's answer; what is none counts as an empty one, for the source says what was done."""
    if isinstance(value, FixAnswer):
        return value
    try:
        data = json.loads(_unfenced(value)) if isinstance(value, (str, bytes)) else value
        return FixAnswer.model_validate(storable(data))
    except (ValueError, RecursionError):
        return FixAnswer()


def _unfenced(text: str | bytes) -> str:
    """Return a text without the code fence that chat models put around JSON."""
    plain = (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).strip()
    if plain.startswith("```") and plain.endswith("```") and "\n" in plain:
        plain = plain[plain.index("\n") + 1 : -3]
    return plain

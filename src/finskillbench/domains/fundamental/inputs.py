"""What the episodes of fundamental analysis give an agent, one type per subtask.

Published episodes name a store of facts instead of holding them, and state no definitions.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class FactRow(TypedDict):
    """One figure of one period, as the latest filing by the task's date gives it; USD, USD per share or shares."""

    metric: str
    start: str | None
    end: str
    duration: str
    value: float
    unit: str
    form: str
    filed: str
    accession: str
    tag: str
    derived: bool


class SegmentRow(TypedDict):
    """Revenue of one segment of one axis over one period, USD."""

    axis: str
    segment: str
    start: str
    end: str
    duration: str
    value: float
    form: str
    filed: str
    accession: str
    derived: bool


class FilingFacts(TypedDict, total=False):
    """What the company had filed by the task's date.

    An edition holds it by reference: `ref` names the panel, the other three the rows. Scripts are given the rows,
    agents the facts as filed that they come from.
    """

    facts: list[FactRow]
    segments: list[SegmentRow]
    ref: str
    symbol: str
    as_of: str
    since: str


class FundamentalInput(TypedDict):
    """What the inputs of all subtasks share."""

    symbol: str
    filing_facts: NotRequired[FilingFacts]
    conventions: NotRequired[dict[str, str]]
    xbrl_ref: NotRequired[str]
    tools_available: NotRequired[list[str]]


class FilingInput(FundamentalInput):
    """Input of normalization and of earnings quality: the period of one filing."""

    period_end: str
    form_type: str
    filing_dir: NotRequired[str | None]


class QuartersInput(FundamentalInput):
    """Input of driver decomposition: two quarters."""

    current_period_end: str
    prior_period_end: str
    form_type: NotRequired[str]
    current_filing_dir: NotRequired[str | None]
    prior_filing_dir: NotRequired[str | None]


def filing_facts(task_input: FundamentalInput) -> tuple[list[FactRow], list[SegmentRow]]:
    """The rows of facts and of segments of an input; KeyError where it has none, as a published one."""
    if "filing_facts" not in task_input:
        raise KeyError("filing_facts")
    given = task_input["filing_facts"]
    return given.get("facts", []), given.get("segments", [])

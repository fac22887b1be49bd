"""What analysts answer who take another period than the one that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from finskillbench.domains.base import Misreading
from finskillbench.domains.fundamental.inputs import FilingInput, QuartersInput, filing_facts
from finskillbench.domains.fundamental.second.answers import decomposed, normalised, quality
from finskillbench.domains.fundamental.second.definitions import (
    LENGTHS,
    QUARTER_APART,
    YEAR_APART,
    Kind,
    a_year_apart,
    compared,
    period_of,
)
from finskillbench.domains.fundamental.second.visible import VisibleFacts, segment_changes
from finskillbench.episode import JsonObject

CAUSE = "wrong_period"


def normalization(task_input: FilingInput) -> Iterator[Misreading]:
    """The metrics of another length of period, such as the year to date, and of every other period on file."""
    facts = VisibleFacts(filing_facts(task_input)[0])
    asked = date.fromisoformat(task_input["period_end"]), period_of(task_input["form_type"])
    for end in _ends(task_input):
        for kind in LENGTHS:
            figures = facts.figures(end, kind)
            if (end, kind) != asked and any(value is not None for value in figures.values()):
                yield _taken(f"the {_words(kind)} to {end}", {"metrics": normalised(figures)})


def earnings_quality(task_input: FilingInput) -> Iterator[Misreading]:
    """Every other quarter on file; the quarter before for the same one a year before; years for quarters."""
    facts = VisibleFacts(filing_facts(task_input)[0])
    asked = date.fromisoformat(task_input["period_end"])
    for end in _ends(task_input):
        if end != asked:
            now, before, _ = a_year_apart(facts, end)
            yield _taken(f"the quarter to {end}", quality(now, before).answer)
    previous, year_before = facts.preceding(asked, QUARTER_APART), facts.preceding(asked, YEAR_APART)
    yield _taken("the quarter before for a year before", quality(*compared(facts, asked, previous)).answer)
    if year_before is not None:
        for kind in _longer():
            now, before = facts.figures(asked, kind), facts.figures(year_before, kind)
            yield _taken(f"the {_words(kind)} to {asked}", quality(now, before).answer)


def driver_decomposition(task_input: QuartersInput) -> Iterator[Misreading]:
    """A year before for the quarter before, the pair before, the pair turned round, and longer periods."""
    rows, segments = filing_facts(task_input)
    facts = VisibleFacts(rows)
    end, prior_end = (date.fromisoformat(task_input[f]) for f in ("current_period_end", "prior_period_end"))
    ends = _ends(task_input)
    pairs = {(end, other) for other in ends if other < end} | {
        (other, before) for other in ends if (before := facts.preceding(other, QUARTER_APART)) is not None
    }
    for now, before in sorted((pairs | {(prior_end, end)}) - {(end, prior_end)}, reverse=True):
        changes = segment_changes(segments, facts, now, before)
        answer = decomposed(*compared(facts, now, before), changes)
        yield _taken(f"the quarter to {now} against the one to {before}", answer)
    for kind in _longer():
        figures = facts.figures(end, kind), facts.figures(prior_end, kind)
        yield _taken(f"the {_words(kind)} to {end}", decomposed(*figures, []))


def _taken(words: str, answer: JsonObject) -> Misreading:
    return Misreading(CAUSE, words, answer)


def _ends(task_input: FilingInput | QuartersInput) -> list[date]:
    """The last days of the periods on file, the latest first."""
    rows = filing_facts(task_input)[0]
    return sorted({date.fromisoformat(row["end"]) for row in rows if row["start"] is not None}, reverse=True)


def _longer() -> list[Kind]:
    return [kind for kind in LENGTHS if kind != "quarterly"]


def _words(kind: Kind) -> str:
    return {"quarterly": "quarter", "half": "half", "nine_months": "nine months", "annual": "year"}[kind]

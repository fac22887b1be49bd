"""Common shortcuts and mistakes on the fundamental subtasks, by name; periods equal to the right one are omitted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date
from typing import Any

from finskillbench.domains.fundamental.inputs import FactRow, FilingInput, QuartersInput, filing_facts
from finskillbench.domains.fundamental.rederive.answers import Figures, SegmentChange, decomposed, normalised, quality
from finskillbench.domains.fundamental.rederive.definitions import (
    LENGTHS,
    QUARTER_APART,
    YEAR_APART,
    Kind,
    VisibleFacts,
    a_year_apart,
    comparable_quarters,
    period_of,
    segment_changes,
)
from finskillbench.engines.accounting.quality import COMPONENTS
from finskillbench.engines.accounting.statements import NORMALISED
from finskillbench.episode import JsonObject
from finskillbench.sources.edgar.numerals import METRICS

_MILLION = 1e6
_PER_SHARE = ("eps_diluted", "operating_margin")
"""Metrics that are not amounts."""
_BALANCES = ("total_assets", "total_liabilities", "stockholders_equity")
_LISTS = ("top_revenue_drivers", "margin_drivers")
_OTHER = {"increase": "decrease", "decrease": "increase"}


def _filed(facts: VisibleFacts, end: date, kind: Kind) -> bool:
    """Return True if any flow of a period is on file."""
    return any(METRICS[metric].kind != "instant" for metric in facts.figures(end, kind))


def _to_date(facts: VisibleFacts, end: date) -> Kind | None:
    """Return the longest period on file ending on a day, if longer than a quarter."""
    return next((kind for kind in reversed(LENGTHS) if kind != "quarterly" and _filed(facts, end, kind)), None)


def _longer(facts: VisibleFacts, rows: Sequence[FactRow], end: date) -> tuple[Figures, Figures] | None:
    """Return year-to-date figures of now and a year before; for a first quarter, the last fiscal year's."""
    kind = _to_date(facts, end)
    if kind is None:
        ends = {date.fromisoformat(row["end"]) for row in rows if row["start"] is not None and row["end"] < str(end)}
        years = [day for day in ends if _filed(facts, day, "annual")]
        if not years:
            return None
        kind, end = "annual", max(years)
    before = facts.preceding(end, YEAR_APART)
    return None if before is None else (facts.figures(end, kind), facts.figures(before, kind))


def normalization_shortcuts(task_input: FilingInput) -> dict[str, JsonObject]:
    """Return the metrics of other periods, in other units, and constants."""
    facts = VisibleFacts(filing_facts(task_input)[0])
    end, kind = date.fromisoformat(task_input["period_end"]), period_of(task_input["form_type"])
    before, year_before = facts.preceding(end, QUARTER_APART), facts.preceding(end, YEAR_APART)
    right = normalised(facts.figures(end, kind))
    periods: dict[str, tuple[date | None, Kind | None]] = {
        "the year to date for the quarter, the fourth quarter for the year": (
            end,
            "quarterly" if kind == "annual" else _to_date(facts, end),
        ),
        "the quarter before": (before, "quarterly"),
        "the same period a year before": (year_before, kind),
    }
    found: dict[str, JsonObject] = {
        name: {"metrics": normalised(facts.figures(day, length))}
        for name, (day, length) in periods.items()
        if day is not None and length is not None and _filed(facts, day, length)
    }
    scaled = {name: value if value is None or name in _PER_SHARE else value / _MILLION for name, value in right.items()}
    return found | {
        "amounts in millions": {"metrics": scaled},
        "the balance sheet alone": {"metrics": {name: right[name] if name in _BALANCES else None for name in right}},
        "nulls": {"metrics": dict.fromkeys(NORMALISED)},
        "zeros": {"metrics": dict.fromkeys(NORMALISED, 0.0)},
        "total assets for every amount": {"metrics": dict.fromkeys(NORMALISED, right["total_assets"])},
    }


def earnings_quality_shortcuts(task_input: FilingInput) -> dict[str, JsonObject]:
    """Return scores of other quarters, comparisons and period lengths, and constant verdicts."""
    rows = filing_facts(task_input)[0]
    facts, end = VisibleFacts(rows), date.fromisoformat(task_input["period_end"])
    now, before, year_before = a_year_apart(facts, end)
    prior = facts.preceding(end, QUARTER_APART)
    levels = quality(now, {}).answer
    unknown: JsonObject = {**dict.fromkeys(levels), "piotroski_components": dict.fromkeys(COMPONENTS), "flags": []}
    found: dict[str, JsonObject] = {"the two quarters the wrong way round": quality(before, now).answer}
    if prior is not None:
        found["the quarter before for the one a year before"] = quality(*comparable_quarters(facts, end, prior)).answer
        found["the quarter before's scores"] = quality(*a_year_apart(facts, prior)[:2]).answer
    if year_before is not None:
        found["the scores of a year before"] = quality(*a_year_apart(facts, year_before)[:2]).answer
        if (two_years := facts.preceding(year_before, YEAR_APART)) is not None:
            found["two years before for one"] = quality(*comparable_quarters(facts, end, two_years)).answer
    if (longer := _longer(facts, rows, end)) is not None:
        found["figures of a longer period for the quarter's"] = quality(*longer).answer
    return found | {
        "levels, nothing compared": levels,
        "every signal favourable": _constant(COMPONENTS),
        "no signal favourable": _constant(()),
        "an ordinary company": _constant(("roa_positive", "cfo_positive", "accruals_negative", "no_dilution")),
        "the ratios alone": {**unknown, **{name: levels[name] for name in ("accruals_ratio", "income_quality_ratio")}},
        "nulls": unknown,
    }


def _constant(favourable: Collection[str]) -> JsonObject:
    return {
        "piotroski_score": len(favourable),
        "piotroski_components": {name: int(name in favourable) for name in COMPONENTS},
        "beneish_m_score": -2.5,
        "beneish_flag": False,
        "accruals_ratio": -0.01,
        "income_quality_ratio": 1.3,
        "flags": [] if favourable else ["low_piotroski"],
    }


def driver_decomposition_shortcuts(task_input: QuartersInput) -> dict[str, JsonObject]:
    """Return drivers of other pairs of periods, in other units, and partial answers."""
    rows, segments = filing_facts(task_input)
    facts = VisibleFacts(rows)
    end, prior_end = (date.fromisoformat(task_input[f]) for f in ("current_period_end", "prior_period_end"))

    def changes(now: date, before: date) -> list[SegmentChange]:
        return segment_changes(segments, facts, now, before)

    figures, moved = comparable_quarters(facts, end, prior_end), changes(end, prior_end)
    right = decomposed(*figures, moved)
    found: dict[str, JsonObject] = {
        "the two quarters the wrong way round": decomposed(
            *comparable_quarters(facts, prior_end, end), changes(prior_end, end)
        ),
        "directions swapped": _listed(right, lambda entry: {**entry, "direction": _OTHER[entry["direction"]]}),
        "amounts in millions, percentages as decimals": _scaled(right),
        "the largest segment as the only driver": {
            **right,
            "top_revenue_drivers": right["top_revenue_drivers"][:1],
            "margin_drivers": [],
        },
        "nothing moved": {"revenue_delta": 0.0, **{key: [] for key in _LISTS}},
    }
    year_before, before = facts.preceding(end, YEAR_APART), facts.preceding(prior_end, QUARTER_APART)
    if year_before is not None:
        pair = comparable_quarters(facts, end, year_before)
        found["the quarter a year before for the one before"] = decomposed(*pair, changes(end, year_before))
    if before is not None:
        found["the pair of quarters before"] = decomposed(
            *comparable_quarters(facts, prior_end, before), changes(prior_end, before)
        )
    if kind := _to_date(facts, end):
        found["figures to date for the quarter's"] = decomposed(facts.figures(end, kind), figures[1], [])
    return found


def _listed(answer: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    return {**answer, **{key: [change(entry) for entry in answer[key]] for key in _LISTS}}


def _scaled(answer: dict[str, Any]) -> dict[str, Any]:
    sizes = {"magnitude_usd": 1 / _MILLION, "contribution_pct": 0.01, "delta_pp": 0.01}

    def scaled(entry: dict[str, Any]) -> dict[str, Any]:
        return {name: value * sizes[name] if name in sizes else value for name, value in entry.items()}

    return {**_listed(answer, scaled), "revenue_delta": answer["revenue_delta"] / _MILLION}

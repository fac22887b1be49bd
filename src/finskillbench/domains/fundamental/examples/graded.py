"""Graded examples of the fundamental subtasks: answers from right to wrong with expected score ranges."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.fundamental.inputs import FilingInput, QuartersInput, filing_facts
from finskillbench.domains.fundamental.rederive.answers import decomposed, normalised, quality
from finskillbench.domains.fundamental.rederive.definitions import QUARTER_APART, YEAR_APART, Kind, VisibleFacts
from finskillbench.scoring.values import is_array, is_object

_INVENTED = {"beneish_m_score": -2.5, "beneish_flag": False}
_THIRD = 3
"""Minimum signals that another base quarter must change to count as wrong: a third of the nine."""


def normalization_examples(label: Label[FilingInput]) -> Iterator[GradedExample]:
    """Yield rounded, slightly wrong, invented, year-to-date, misscaled and inverted answers."""
    expected = dict(label.truth.expected_output)
    metrics: Mapping[str, float | None] = expected["metrics"]
    yield from _rounded(expected)
    off = dict(metrics) | {"net_income": _times(metrics["net_income"], 1.025)}
    yield GradedExample("net income 2.5 % off", {"metrics": off}, 0.9, 0.96)
    unknown = next((name for name, value in metrics.items() if value is None), None)
    if unknown is not None:
        yield GradedExample("a figure invented", {"metrics": {**metrics, unknown: 1e9}}, 0.8, 0.9)
    yield GradedExample(
        "net income doubled", {"metrics": {**metrics, "net_income": _times(metrics["net_income"], 2)}}, 0.8, 0.9
    )
    to_date = _year_to_date(label.task_input, metrics)
    if to_date is not None:
        yield GradedExample("year to date for the quarter", {"metrics": to_date}, 0.15, 0.5)
    ratios = ("operating_margin", "eps_diluted")
    millions = {name: value if name in ratios else _times(value, 1e-6) for name, value in metrics.items()}
    yield GradedExample("in millions", {"metrics": millions}, 0.0, 0.15)
    yield GradedExample(
        "every sign inverted", {"metrics": {name: _times(value, -1) for name, value in metrics.items()}}, 0, 0.15
    )
    yield GradedExample("nothing known", {"metrics": dict.fromkeys(metrics)}, 0, 0)


def earnings_quality_examples(label: Label[FilingInput]) -> Iterator[GradedExample]:
    """Yield rounded answers, a wrong or invented M-score, missing ratios, wrong signals and a wrong base quarter."""
    expected = dict(label.truth.expected_output)
    signals: dict[str, int | None] = expected["piotroski_components"]
    score, known = expected["beneish_m_score"], expected["beneish_m_score"] is not None
    yield from _rounded(expected)
    if known and abs(score) > 1:
        yield GradedExample("M-score 1 % off", expected | {"beneish_m_score": 1.01 * score}, 0.9, 0.99)
    without_flags = {name: value for name, value in expected.items() if name != "flags"}
    yield GradedExample("flags left out", without_flags, 0.85, 0.92)
    unrated = GradedExample(
        "ratios left null", expected | {"accruals_ratio": None, "income_quality_ratio": None}, 0.7, 0.92
    )
    if known:
        if not expected["flags"]:
            yield unrated
        yield GradedExample("M-score wrong", expected | {"beneish_m_score": score + 1.0}, 0.65, 0.83)
    else:
        yield GradedExample("M-score and its flag invented", expected | _INVENTED, 0.7, 0.83)
        if not expected["flags"]:
            yield unrated
    known_signals = [value for value in signals.values() if value is not None]
    usual = int(2 * sum(known_signals) >= len(known_signals))
    one = next(name for name, value in signals.items() if value == usual)
    yield GradedExample("a signal wrong", _with_signals(expected, signals | {one: 1 - usual}), 0.3, 0.75)
    turned = {name: None if value is None else 1 - value for name, value in signals.items()}
    yield GradedExample("every signal inverted", expected | {"piotroski_components": turned}, 0, 0.4)
    other = _another_base(label.task_input)
    if other is not None and _differing(other["piotroski_components"], signals) >= _THIRD:
        yield GradedExample("against the quarter before", other, 0, 0.4)
    yield GradedExample(
        "nothing known", dict.fromkeys(expected) | {"piotroski_components": dict.fromkeys(signals)}, 0, 0
    )


def driver_decomposition_examples(label: Label[QuartersInput]) -> Iterator[GradedExample]:
    """Yield rounded answers, missing drivers, invented segments, inverted signs and a wrong base quarter."""
    expected = dict(label.truth.expected_output)
    segments, ratios = expected["top_revenue_drivers"], expected["margin_drivers"]
    yield from _rounded(expected)
    if len(ratios) > 1:
        yield GradedExample("the last ratio left out", expected | {"margin_drivers": ratios[:-1]}, 0.6, 0.96)
    yield GradedExample("the change of revenue left out", expected | {"revenue_delta": None}, 0.6, 0.8)
    if not segments:
        whole: dict[str, Any] = {"driver": "Products", "type": "product_segment", "contribution_pct": 100.0}
        delta = expected["revenue_delta"]
        whole |= {"direction": "increase" if delta > 0 else "decrease", "magnitude_usd": delta}
        yield GradedExample("segments invented", expected | {"top_revenue_drivers": [whole]}, 0.5, 0.65)
    turned = {name: [_turned(row) for row in expected[name]] for name in ("top_revenue_drivers", "margin_drivers")}
    yield GradedExample("every direction inverted", expected | turned, 0.0, 0.4)
    facts = VisibleFacts(filing_facts(label.task_input)[0])
    end = date.fromisoformat(label.task_input["current_period_end"])
    before = facts.preceding(end, YEAR_APART)
    if before is not None:
        other = decomposed(facts.figures(end, "quarterly"), facts.figures(before, "quarterly"), [])
        if not _alike(other["margin_drivers"], ratios):
            yield GradedExample("against a year before", other, 0.0, 0.35)
    nothing: dict[str, Any] = {"revenue_delta": 0.0, "top_revenue_drivers": [], "margin_drivers": []}
    yield GradedExample("nothing moved", nothing, 0.0, 0.02)


def _rounded(expected: dict[str, Any]) -> Iterator[GradedExample]:
    """Yield the label exactly, with six decimals, and with three significant digits."""
    yield GradedExample("the truth", copy.deepcopy(expected), 1.0, 1.0)
    yield GradedExample("six decimals", _mapped(expected, lambda value: round(value, 6)), 1.0, 1.0)
    yield GradedExample("three significant digits", _mapped(expected, lambda value: float(f"{value:.3g}")), 0.9, 1.0)


def _mapped(value: Any, change: Callable[[float], float]) -> Any:
    """Apply a change to every float in a JSON value."""
    if is_object(value):
        return {key: _mapped(item, change) for key, item in value.items()}
    if is_array(value):
        return [_mapped(item, change) for item in value]
    return change(value) if isinstance(value, float) else value


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else factor * value


def _year_to_date(task_input: FilingInput, metrics: Mapping[str, float | None]) -> dict[str, float | None] | None:
    """Return the metrics with half-year or nine-month flows; None if these are not on file."""
    facts, end = VisibleFacts(filing_facts(task_input)[0]), date.fromisoformat(task_input["period_end"])
    longer: tuple[Kind, Kind] = ("half", "nine_months")
    for kind in longer if task_input["form_type"] == "10-Q" else ():
        found = normalised(facts.figures(end, kind))
        if found["revenue"] is not None and found["net_income"] is not None:
            return {name: None if metrics[name] is None else found[name] for name in metrics}
    return None


def _another_base(task_input: FilingInput) -> dict[str, Any] | None:
    """Return earnings quality against the quarter before instead of the year before."""
    facts, end = VisibleFacts(filing_facts(task_input)[0]), date.fromisoformat(task_input["period_end"])
    before = facts.preceding(end, QUARTER_APART)
    if before is None:
        return None
    return quality(facts.figures(end, "quarterly"), facts.figures(before, "quarterly")).answer


def _with_signals(expected: dict[str, Any], signals: Mapping[str, int | None]) -> dict[str, Any]:
    """Return the answer with other signals and their sum."""
    known = [value for value in signals.values() if value is not None]
    total = None if expected["piotroski_score"] is None else sum(known)
    return {**expected, "piotroski_components": dict(signals), "piotroski_score": total}


def _differing(left: Mapping[str, int | None], right: Mapping[str, int | None]) -> int:
    return sum(left[name] != value for name, value in right.items() if value is not None)


def _alike(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if two comparisons nearly agree on a ratio, as when one quarter is an outlier."""
    sizes = {row["driver"]: row["delta_pp"] for row in left}
    return any(
        row["driver"] in sizes and abs(sizes[row["driver"]] - row["delta_pp"]) < 0.05 * max(1.0, abs(row["delta_pp"]))
        for row in right
    )


def _turned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Invert the direction and sizes of a driver."""
    opposite = {"increase": "decrease", "decrease": "increase"}
    sizes = {name: -value for name, value in row.items() if isinstance(value, int | float)}
    return {**row, **sizes, "direction": opposite[row["direction"]]}

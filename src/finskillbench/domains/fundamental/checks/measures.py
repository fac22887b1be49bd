"""What the labels of fundamental analysis say, computed a second time from the facts that an episode may see.

Nothing is taken from the engines that made the labels: lengths of periods, coefficients and thresholds are written here
once more. What is not known is NaN while it is computed, so that it spreads by itself, and None in what is returned.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

LENGTHS = {"quarterly": (70, 125), "half": (150, 200), "nine_months": (235, 290), "annual": (340, 380)}
"""Days of a period, first and last day counted."""
APART = {"quarter": (70, 125, 91), "year": (350, 380, 365)}
"""Least, greatest and usual days from the end of a quarter to the end of the next, or of the same one a year later."""
FORMS = ("10-Q", "10-K", "20-F", "40-F")
"""Forms that an episode may be about; a 10-Q is of a quarter, the others of a year."""

INTERCEPT = -4.84
COEFFICIENTS = (0.92, 0.528, 0.404, 0.892, 0.115, -0.172, 4.679, -0.327)
"""Of DSRI, GMI, AQI, SGI, DEPI, SGAI, TATA, LVGI: Beneish (1999), eight variables."""
MANIPULATION = -1.78
LOW_SCORE = 3
HIGH_ACCRUALS = 0.05

AXES = ("product_segment", "geographic_segment")
MOST_SEGMENTS = 5
SEGMENT_GAP = 0.01
LEAST_CHANGE = 0.005
"""Percentage points: a ratio that moves by less is not listed."""
RATIOS = {
    "operating_margin": "operating_income",
    "gross_margin": "gross_profit",
    "cogs_ratio": "cost_of_revenue",
    "sga_ratio": "sga",
    "rnd_ratio": "rnd",
    "da_ratio": "depreciation_amortization",
    "interest_ratio": "interest_expense",
    "tax_ratio": "income_tax",
}
STATED = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
)
"""Metrics of a normalised filing that are looked up; the margin and EBITDA are computed."""

_UNKNOWN = math.nan


def kind_of(start: date | None, end: date) -> str:
    """Class of a period by its length; "instant" without a first day."""
    if start is None:
        return "instant"
    days = (end - start).days + 1
    return next((kind for kind, (least, most) in LENGTHS.items() if least <= days <= most), "other")


def period_of(form: str) -> str:
    """What a form reports on; ValueError for a form that no episode may be about."""
    if form not in FORMS:
        raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return "quarterly" if form == "10-Q" else "annual"


class Facts:
    """The figures that an episode may see, by metric and last day.

    Parameters
    ----------
    rows : facts as `filing_facts` holds them, dates as ISO texts.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._figures: dict[tuple[str, date, str], list[tuple[Any, ...]]] = defaultdict(list)
        self._quarters: set[date] = set()
        for row in rows:
            start = None if row["start"] is None else date.fromisoformat(row["start"])
            end = date.fromisoformat(row["end"])
            kind = kind_of(start, end)
            # Reported before derived, then the last filed; the same period may be given two first days.
            rank = (not row["derived"], row["filed"], row["accession"], str(row["start"]))
            self._figures[row["metric"], end, kind].append((*rank, float(row["value"])))
            if kind == "quarterly":
                self._quarters.add(end)

    def before(self, end: date, apart: str) -> date | None:
        """Last day of the quarter before, or of the same quarter a year before, where anything is known of one."""
        least, most, usual = APART[apart]
        fitting = [day for day in self._quarters if least <= (end - day).days <= most]
        return min(fitting, key=lambda day: (abs((end - day).days - usual), -day.toordinal()), default=None)

    def statement(self, end: date | None, kind: str) -> Statement:
        """All figures of the period of a kind that ends on a day, with the balance sheet of that day."""
        found: dict[str, float] = {}
        for (metric, day, its), figures in self._figures.items():
            if day == end and its in (kind, "instant"):
                found[metric] = max(figures)[-1]
        return Statement(found)


class Statement:
    """Figures of one period; what is not known is NaN."""

    def __init__(self, figures: Mapping[str, float]) -> None:
        self._figures = figures

    def __getitem__(self, metric: str) -> float:
        return self._figures.get(metric, _UNKNOWN)

    def over(self, top: str, bottom: str) -> float:
        """Quotient of two figures."""
        return _quotient(self[top], self[bottom])


def _quotient(top: float, bottom: float) -> float:
    return top / bottom if bottom else _UNKNOWN


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def normalised(statement: Statement) -> dict[str, float | None]:
    """The ten metrics."""
    found = {name: statement[name] for name in STATED}
    found["operating_margin"] = statement.over("operating_income", "revenue")
    found["ebitda"] = statement["operating_income"] + statement["depreciation_amortization"]
    return {name: _known(value) for name, value in found.items()}


def quality(now: Statement, then: Statement, years: tuple[Statement, Statement]) -> dict[str, Any]:
    """Signals, scores, ratios and flags of a quarter against the same quarter a year before.

    years : those that end with the two quarters; their diluted shares count where one of the quarters has none.
    """
    gained = {
        "roa_positive": now.over("net_income", "total_assets"),
        "cfo_positive": now["operating_cash_flow"],
        "delta_roa_positive": now.over("net_income", "total_assets") - then.over("net_income", "total_assets"),
        "accruals_negative": now["operating_cash_flow"] - now["net_income"],
        "delta_leverage_negative": then.over("long_term_debt", "total_assets")
        - now.over("long_term_debt", "total_assets"),
        "delta_current_ratio_positive": now.over("current_assets", "current_liabilities")
        - then.over("current_assets", "current_liabilities"),
        "delta_gross_margin_positive": now.over("gross_profit", "revenue") - then.over("gross_profit", "revenue"),
        "delta_asset_turnover_positive": now.over("revenue", "total_assets") - then.over("revenue", "total_assets"),
    }
    signals = {name: int(gain > 0) if math.isfinite(gain) else None for name, gain in gained.items()}
    bought_back = then["diluted_shares"] - now["diluted_shares"]
    if not math.isfinite(bought_back):
        bought_back = years[1]["diluted_shares"] - years[0]["diluted_shares"]
    signals["no_dilution"] = int(bought_back >= 0) if math.isfinite(bought_back) else None
    known = [signal for signal in signals.values() if signal is not None]
    score = sum(known) if len(known) == len(signals) else None
    model = _known(_m_score(now, then))
    accruals = _known(_quotient(now["net_income"] - now["operating_cash_flow"], now["total_assets"]))
    cash = _known(now.over("operating_cash_flow", "net_income"))
    raised = {
        "low_piotroski": score is not None and score <= LOW_SCORE,
        "beneish_manipulation_flag": model is not None and model > MANIPULATION,
        "high_accruals": accruals is not None and accruals > HIGH_ACCRUALS,
        "negative_income_quality": cash is not None and cash < 0,
    }
    return {
        "piotroski_score": score,
        "piotroski_components": signals,
        "beneish_m_score": model,
        "beneish_flag": None if model is None else model > MANIPULATION,
        "accruals_ratio": accruals,
        "income_quality_ratio": cash,
        "flags": sorted(name for name, up in raised.items() if up),
    }


def _m_score(now: Statement, then: Statement) -> float:
    def soft(statement: Statement) -> float:
        return 1.0 - _quotient(statement["current_assets"] + statement["ppe_net"], statement["total_assets"])

    def worn(statement: Statement) -> float:
        spent = statement["depreciation_amortization"]
        return _quotient(spent, spent + statement["ppe_net"])

    def owed(statement: Statement) -> float:
        return _quotient(statement["long_term_debt"] + statement["current_liabilities"], statement["total_assets"])

    indices = (
        _quotient(now.over("receivables", "revenue"), then.over("receivables", "revenue")),
        _quotient(then.over("gross_profit", "revenue"), now.over("gross_profit", "revenue")),
        _quotient(soft(now), soft(then)),
        _quotient(now["revenue"], then["revenue"]),
        _quotient(worn(then), worn(now)),
        _quotient(now.over("sga", "revenue"), then.over("sga", "revenue")),
        _quotient(now["net_income"] - now["operating_cash_flow"], now["total_assets"]),
        _quotient(owed(now), owed(then)),
    )
    return INTERCEPT + sum(weight * index for weight, index in zip(COEFFICIENTS, indices, strict=True))


def breakdowns(rows: Iterable[Mapping[str, Any]], end: date) -> dict[str, dict[str, float]]:
    """Revenue of the quarter that ends on a day by axis and segment, as the last filing breaks it down."""
    found: dict[str, dict[tuple[str, ...], dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        day = date.fromisoformat(row["end"])
        if day == end and kind_of(date.fromisoformat(row["start"]), day) == "quarterly":
            source = row["filed"], row["accession"], row["start"]
            found[row["axis"]][source][row["segment"]] = float(row["value"])
    return {axis: sets[max(sets)] for axis, sets in found.items()}


def explaining(
    now: Statement,
    then: Statement,
    parts_now: Mapping[str, Mapping[str, float]],
    parts_then: Mapping[str, Mapping[str, float]],
) -> str | None:
    """The first axis with the same segments in both quarters that adds up to revenue in both."""

    def whole(parts: Mapping[str, float], revenue: float) -> bool:
        return abs(math.fsum(parts.values()) - revenue) <= SEGMENT_GAP * abs(revenue)

    for axis in AXES:
        late, early = parts_now.get(axis, {}), parts_then.get(axis, {})
        if late and set(late) == set(early) and whole(late, now["revenue"]) and whole(early, then["revenue"]):
            return axis
    return None


def revenue_drivers(late: Mapping[str, float], early: Mapping[str, float]) -> dict[str, float]:
    """Change of each listed segment: the largest by size, at most five, none that stood still."""
    changes = {name: late[name] - early[name] for name in late if late[name] != early[name]}
    return dict(sorted(changes.items(), key=lambda item: (-abs(item[1]), item[0]))[:MOST_SEGMENTS])


def margin_drivers(now: Statement, then: Statement) -> dict[str, float]:
    """Change of each listed ratio over revenue, in percentage points."""
    changes = {
        name: 100.0 * (now.over(metric, "revenue") - then.over(metric, "revenue")) for name, metric in RATIOS.items()
    }
    return {name: change for name, change in changes.items() if abs(change) >= LEAST_CHANGE}

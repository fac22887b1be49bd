"""Independent computation of the three answers; a result with an unknown part is None.

Sources: Piotroski (2000), Journal of Accounting Research 38; Beneish (1999), Financial Analysts Journal 55(5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Value = float | None
Figures = Mapping[str, Value]
"""Metric -> value; an unknown metric is absent or None."""

MANIPULATION = -1.78
LOW_SCORE = 3
HIGH_ACCRUALS = 0.05
LEAST_CHANGE = 0.005
"""Percentage points below which the change of a ratio is not listed."""
_CLEAR = 1e-9
"""Distance from a threshold, other than zero, within which rounding decides."""
_STATED = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
)
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


def _minus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left - right


def _plus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left + right


def _ratio(left: Value, right: Value) -> Value:
    return None if left is None or right is None or right == 0 else left / right


def normalised(figures: Figures) -> dict[str, Value]:
    income = figures.get("operating_income")
    return {name: figures.get(name) for name in _STATED} | {
        "operating_margin": _ratio(income, figures.get("revenue")),
        "ebitda": _plus(income, figures.get("depreciation_amortization")),
    }


@dataclass(frozen=True, slots=True)
class Quality:
    """Answer of earnings quality, and `doubtful` if rounding decides a verdict."""

    answer: dict[str, Any]
    doubtful: bool


def quality(now: Figures, before: Figures) -> Quality:
    """Compute signals from differences, and Beneish's model term by term."""

    def over(figures: Figures, top: str, bottom: str) -> Value:
        return _ratio(figures.get(top), figures.get(bottom))

    def rise(top: str, bottom: str) -> Value:
        return _minus(over(now, top, bottom), over(before, top, bottom))

    def fall(change: Value) -> Value:
        return None if change is None else -change

    income, cash, assets = (now.get(name) for name in ("net_income", "operating_cash_flow", "total_assets"))
    left = {
        "roa_positive": _ratio(income, assets),
        "cfo_positive": cash,
        "delta_roa_positive": rise("net_income", "total_assets"),
        "accruals_negative": _minus(cash, income),
        "delta_leverage_negative": fall(rise("long_term_debt", "total_assets")),
        "delta_current_ratio_positive": rise("current_assets", "current_liabilities"),
        "no_dilution": _minus(_split_adjusted(now, before), now.get("diluted_shares")),
        "delta_gross_margin_positive": rise("gross_profit", "revenue"),
        "delta_asset_turnover_positive": rise("revenue", "total_assets"),
    }
    signals = {
        name: None if value is None else int(value >= 0 if name == "no_dilution" else value > 0)
        for name, value in left.items()
    }
    score = None if None in signals.values() else sum(value for value in signals.values() if value is not None)
    model = _m_score(now, before)
    flag = None if model is None else model > MANIPULATION
    accruals, ratio = _ratio(_minus(income, cash), assets), _ratio(cash, income)
    raised = {
        "low_piotroski": score is not None and score <= LOW_SCORE,
        "beneish_manipulation_flag": bool(flag),
        "high_accruals": accruals is not None and accruals > HIGH_ACCRUALS,
        "negative_income_quality": ratio is not None and ratio < 0,
    }
    answer = {
        "piotroski_score": score,
        "piotroski_components": signals,
        "beneish_m_score": model,
        "beneish_flag": flag,
        "accruals_ratio": accruals,
        "income_quality_ratio": ratio,
        "flags": [name for name, up in raised.items() if up],
    }
    edges = [value for value in left.values() if value is not None and value != 0]
    edges += [] if model is None else [model - MANIPULATION]
    edges += [] if accruals is None else [accruals - HIGH_ACCRUALS]
    return Quality(answer, any(abs(edge) < _CLEAR for edge in edges))


def _split_adjusted(now: Figures, before: Figures) -> Value:
    """Return the shares of the year before, adjusted for splits of 2 to 10,000 for one, or the reverse."""
    shares, earlier = now.get("diluted_shares"), before.get("diluted_shares")
    equity, prior = now.get("stockholders_equity"), before.get("stockholders_equity")
    if shares and earlier and equity is not None and prior and 0 < equity / prior < 1.25 and prior > 0:
        for split in (shares / earlier, earlier / shares):
            whole = float(round(split))
            if 2 <= whole <= 10_000 and 0.95 <= split / whole <= 1.05:
                return earlier * whole if shares > earlier else earlier / whole
    return earlier


def _m_score(now: Figures, before: Figures) -> Value:
    """-4.84 + 0.92 DSRI + 0.528 GMI + 0.404 AQI + 0.892 SGI + 0.115 DEPI - 0.172 SGAI + 4.679 TATA - 0.327 LVGI."""

    def soft_assets(figures: Figures) -> Value:
        hard = _plus(figures.get("current_assets"), figures.get("ppe_net"))
        return _minus(1.0, _ratio(hard, figures.get("total_assets")))

    def depreciation_rate(figures: Figures) -> Value:
        used = figures.get("depreciation_amortization")
        return _ratio(used, _plus(used, figures.get("ppe_net")))

    def leverage(figures: Figures) -> Value:
        return _ratio(
            _plus(figures.get("long_term_debt"), figures.get("current_liabilities")), figures.get("total_assets")
        )

    def over_revenue(figures: Figures, top: str) -> Value:
        return _ratio(figures.get(top), figures.get("revenue"))

    weighted_indices = (
        (0.92, _ratio(over_revenue(now, "receivables"), over_revenue(before, "receivables"))),
        (0.528, _ratio(over_revenue(before, "gross_profit"), over_revenue(now, "gross_profit"))),
        (0.404, _ratio(soft_assets(now), soft_assets(before))),
        (0.892, _ratio(now.get("revenue"), before.get("revenue"))),
        (0.115, _ratio(depreciation_rate(before), depreciation_rate(now))),
        (-0.172, _ratio(over_revenue(now, "sga"), over_revenue(before, "sga"))),
        (4.679, _ratio(_minus(now.get("net_income"), now.get("operating_cash_flow")), now.get("total_assets"))),
        (-0.327, _ratio(leverage(now), leverage(before))),
    )
    total = -4.84
    for weight, term in weighted_indices:
        if term is None:
            return None
        total += weight * term
    return total


def margins(now: Figures, before: Figures) -> dict[str, float]:
    """Return the change of each ratio over revenue known in both quarters, in percentage points."""
    found: dict[str, float] = {}
    for name, metric in RATIOS.items():
        change = _minus(_ratio(now.get(metric), now.get("revenue")), _ratio(before.get(metric), before.get("revenue")))
        if change is not None:
            found[name] = 100.0 * change
    return found


def _mirrored(changes: Mapping[str, float]) -> bool:
    """Return True if the changes of gross margin and cost ratio cancel within the limit."""
    both = changes.get("gross_margin"), changes.get("cogs_ratio")
    listed = [change for change in both if change is not None and abs(change) >= LEAST_CHANGE]
    return len(listed) == len(both) and -LEAST_CHANGE < math.fsum(listed) < LEAST_CHANGE


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """Change of a segment's revenue between quarters, USD; None if unknown."""

    name: str
    axis: str
    change: Value


def decomposed(now: Figures, before: Figures, segments: Iterable[SegmentChange]) -> dict[str, Any]:
    """Return the drivers of revenue and of the ratios; ratios in the order of `RATIOS`."""
    moved = margins(now, before)
    if _mirrored(moved):
        del moved["cogs_ratio"]
    delta = _minus(now.get("revenue"), before.get("revenue"))
    return {
        "revenue_delta": delta,
        "top_revenue_drivers": [
            {
                "driver": each.name,
                "type": each.axis,
                "direction": _direction(each.change),
                "magnitude_usd": each.change,
                "contribution_pct": None if each.change is None else _ratio(100.0 * each.change, delta),
            }
            for each in segments
        ],
        "margin_drivers": [
            {
                "driver": name,
                "type": "margin" if name.endswith("margin") else "expense_ratio",
                "direction": _direction(change),
                "delta_pp": change,
            }
            for name, change in moved.items()
            if abs(change) >= LEAST_CHANGE
        ],
    }


def _direction(change: Value) -> str:
    return "increase" if change is not None and change > 0 else "decrease"

"""The three answers computed a second time, from figures of one or two periods.

What is not known is None; a result is None where one of its parts is. Sources: Piotroski (2000), Journal of Accounting
Research 38; Beneish (1999), Financial Analysts Journal 55(5), eight-variable model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Value = float | None
Figures = Mapping[str, Value]
"""Metric to its value; a metric that is not known is absent or None."""

MANIPULATION = -1.78
"""An M-score above it raises the flag."""
LOW_SCORE = 3
HIGH_ACCRUALS = 0.05
LEAST_CHANGE = 0.005
"""Percentage points: a ratio that moves by less is not listed."""
_CLEAR = 1e-9
"""A verdict hangs on rounding where its figure is nearer than this to the threshold, but not on it."""
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
"""Metrics of a normalised filing that are looked up; the margin and EBITDA are computed."""
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
"""Ratio to the metric that it measures over revenue."""


def _minus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left - right


def _plus(left: Value, right: Value) -> Value:
    return None if left is None or right is None else left + right


def _by(left: Value, right: Value) -> Value:
    return None if left is None or right is None or right == 0 else left / right


def normalised(figures: Figures) -> dict[str, Value]:
    """The ten metrics."""
    income = figures.get("operating_income")
    return {name: figures.get(name) for name in _STATED} | {
        "operating_margin": _by(income, figures.get("revenue")),
        "ebitda": _plus(income, figures.get("depreciation_amortization")),
    }


@dataclass(frozen=True, slots=True)
class Quality:
    """Earnings quality: the answer, and whether rounding decides one of its verdicts."""

    answer: dict[str, Any]
    doubtful: bool


def quality(now: Figures, before: Figures) -> Quality:
    """Signals by what is left over when one side is taken from the other; Beneish's model term by term."""

    def over(figures: Figures, top: str, bottom: str) -> Value:
        return _by(figures.get(top), figures.get(bottom))

    def rise(top: str, bottom: str) -> Value:
        return _minus(over(now, top, bottom), over(before, top, bottom))

    def fall(change: Value) -> Value:
        return None if change is None else -change

    income, cash, assets = (now.get(name) for name in ("net_income", "operating_cash_flow", "total_assets"))
    left = {
        "roa_positive": _by(income, assets),
        "cfo_positive": cash,
        "delta_roa_positive": rise("net_income", "total_assets"),
        "accruals_negative": _minus(cash, income),
        "delta_leverage_negative": fall(rise("long_term_debt", "total_assets")),
        "delta_current_ratio_positive": rise("current_assets", "current_liabilities"),
        "no_dilution": _minus(_today(now, before), now.get("diluted_shares")),
        "delta_gross_margin_positive": rise("gross_profit", "revenue"),
        "delta_asset_turnover_positive": rise("revenue", "total_assets"),
    }
    signals = {
        name: None if value is None else int(value >= 0 if name == "no_dilution" else value > 0)
        for name, value in left.items()
    }
    score = None if None in signals.values() else sum(value for value in signals.values() if value is not None)
    model = _model(now, before)
    flag = None if model is None else model > MANIPULATION
    accruals, ratio = _by(_minus(income, cash), assets), _by(cash, income)
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


def _today(now: Figures, before: Figures) -> Value:
    """Shares of the year before times the split since: two to ten thousand for one, or one for so many."""
    shares, earlier = now.get("diluted_shares"), before.get("diluted_shares")
    equity, prior = now.get("stockholders_equity"), before.get("stockholders_equity")
    if shares and earlier and equity is not None and prior and 0 < equity / prior < 1.25 and prior > 0:
        for split in (shares / earlier, earlier / shares):
            whole = float(round(split))
            if 2 <= whole <= 10_000 and 0.95 <= split / whole <= 1.05:
                return earlier * whole if shares > earlier else earlier / whole
    return earlier


def _model(now: Figures, before: Figures) -> Value:
    """-4.84 + 0.92 DSRI + 0.528 GMI + 0.404 AQI + 0.892 SGI + 0.115 DEPI - 0.172 SGAI + 4.679 TATA - 0.327 LVGI."""

    def soft(figures: Figures) -> Value:
        hard = _plus(figures.get("current_assets"), figures.get("ppe_net"))
        return _minus(1.0, _by(hard, figures.get("total_assets")))

    def worn(figures: Figures) -> Value:
        used = figures.get("depreciation_amortization")
        return _by(used, _plus(used, figures.get("ppe_net")))

    def owed(figures: Figures) -> Value:
        return _by(
            _plus(figures.get("long_term_debt"), figures.get("current_liabilities")), figures.get("total_assets")
        )

    def sales(figures: Figures, top: str) -> Value:
        return _by(figures.get(top), figures.get("revenue"))

    terms = (
        (0.92, _by(sales(now, "receivables"), sales(before, "receivables"))),
        (0.528, _by(sales(before, "gross_profit"), sales(now, "gross_profit"))),
        (0.404, _by(soft(now), soft(before))),
        (0.892, _by(now.get("revenue"), before.get("revenue"))),
        (0.115, _by(worn(before), worn(now))),
        (-0.172, _by(sales(now, "sga"), sales(before, "sga"))),
        (4.679, _by(_minus(now.get("net_income"), now.get("operating_cash_flow")), now.get("total_assets"))),
        (-0.327, _by(owed(now), owed(before))),
    )
    total = -4.84
    for weight, term in terms:
        if term is None:
            return None
        total += weight * term
    return total


def margins(now: Figures, before: Figures) -> dict[str, float]:
    """Change of each ratio over revenue, in percentage points, of every ratio that both quarters have."""
    found: dict[str, float] = {}
    for name, metric in RATIOS.items():
        change = _minus(_by(now.get(metric), now.get("revenue")), _by(before.get(metric), before.get("revenue")))
        if change is not None:
            found[name] = 100.0 * change
    return found


def _mirrored(changes: Mapping[str, float]) -> bool:
    """Whether the cost of revenue rose over revenue by just what the gross margin lost, or the other way round."""
    both = changes.get("gross_margin"), changes.get("cogs_ratio")
    listed = [change for change in both if change is not None and abs(change) >= LEAST_CHANGE]
    return len(listed) == len(both) and -LEAST_CHANGE < math.fsum(listed) < LEAST_CHANGE


@dataclass(frozen=True, slots=True)
class SegmentChange:
    """The change of one segment's revenue from a quarter to the next, USD; None where it is not known."""

    name: str
    axis: str
    change: Value


def decomposed(now: Figures, before: Figures, segments: Iterable[SegmentChange]) -> dict[str, Any]:
    """What moved revenue and the ratios over it; the ratios in the order of `RATIOS`, not of their size."""
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
                "contribution_pct": None if each.change is None else _by(100.0 * each.change, delta),
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

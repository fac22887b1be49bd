"""Earnings quality of a quarter against the same quarter one year earlier.

Sources: Piotroski, J. (2000), Value Investing, Journal of Accounting Research 38; Beneish, M. (1999), The Detection of
Earnings Manipulation, Financial Analysts Journal 55(5), eight-variable model; Sloan, R. (1996), Do Stock Prices Fully
Reflect Information in Accruals and Cash Flows, The Accounting Review 71.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from finskillbench.engines.accounting.statements import Statement, difference_or_none, ratio, sum_or_none
from finskillbench.sums import exact_sum

BENEISH_CONSTANT = -4.84
BENEISH_COEFFICIENTS: Mapping[str, float] = MappingProxyType(
    {
        "DSRI": 0.92,
        "GMI": 0.528,
        "AQI": 0.404,
        "SGI": 0.892,
        "DEPI": 0.115,
        "SGAI": -0.172,
        "TATA": 4.679,
        "LVGI": -0.327,
    }
)
MANIPULATION_ABOVE = -1.78
"""Higher M-scores raise the Beneish flag."""
LOW_PIOTROSKI = 3
HIGH_ACCRUALS = 0.05

COMPONENTS = (
    "roa_positive",
    "cfo_positive",
    "delta_roa_positive",
    "accruals_negative",
    "delta_leverage_negative",
    "delta_current_ratio_positive",
    "no_dilution",
    "delta_gross_margin_positive",
    "delta_asset_turnover_positive",
)
METRICS = (
    "net_income",
    "total_assets",
    "operating_cash_flow",
    "long_term_debt",
    "current_assets",
    "current_liabilities",
    "diluted_shares",
    "gross_profit",
    "revenue",
    "receivables",
    "ppe_net",
    "sga",
    "depreciation_amortization",
    "stockholders_equity",
)
WHOLE = 0.05
"""Tolerance around a whole multiple of shares that counts as a split."""
ISSUE = 1.25
"""Equity growth that indicates an issue of shares."""
FLAGS = ("low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality")


@dataclass(frozen=True, slots=True)
class Piotroski:
    """Nine signals (1 favourable, 0 not, None unknown) and their sum, None if one is unknown."""

    components: Mapping[str, int | None]
    score: int | None


@dataclass(frozen=True, slots=True)
class Beneish:
    """Eight ratios, the M-score, and the flag; None if unknown."""

    ratios: Mapping[str, float | None]
    m_score: float | None
    flag: bool | None


def piotroski(current: Statement, prior: Statement) -> Piotroski:
    """Compute F-score signals, in the order of `COMPONENTS`, of two quarters from `CompanyFacts.compared`."""

    def change(numerator: str, denominator: str) -> float | None:
        return difference_or_none(current.over(numerator, denominator), prior.over(numerator, denominator))

    income, cash = current.get("net_income"), current.get("operating_cash_flow")
    dilution = difference_or_none(current.get("diluted_shares"), _split_adjusted(current, prior))
    components = {
        "roa_positive": _positive(current.over("net_income", "total_assets")),
        "cfo_positive": _positive(cash),
        "delta_roa_positive": _positive(change("net_income", "total_assets")),
        "accruals_negative": _positive(difference_or_none(cash, income)),
        "delta_leverage_negative": _positive(_negated(change("long_term_debt", "total_assets"))),
        "delta_current_ratio_positive": _positive(change("current_assets", "current_liabilities")),
        "no_dilution": None if dilution is None else int(dilution <= 0),
        "delta_gross_margin_positive": _positive(change("gross_profit", "revenue")),
        "delta_asset_turnover_positive": _positive(change("revenue", "total_assets")),
    }
    known = [signal for signal in components.values() if signal is not None]
    return Piotroski(MappingProxyType(components), sum(known) if len(known) == len(COMPONENTS) else None)


def _split_adjusted(current: Statement, prior: Statement) -> float | None:
    """Return prior diluted shares, adjusted for splits: a whole multiple without the equity rise of an issue."""
    now, before = current.get("diluted_shares"), prior.get("diluted_shares")
    equity, earlier = current.get("stockholders_equity"), prior.get("stockholders_equity")
    if not now or not before or not equity or not earlier or not 0 < equity < ISSUE * earlier:
        return before
    multiple = max(now, before) / min(now, before)
    factor = round(multiple)
    if factor < 2 or abs(multiple / factor - 1) > WHOLE:
        return before
    return before * factor if now > before else before / factor


def _positive(value: float | None) -> int | None:
    return None if value is None else int(value > 0)


def _negated(value: float | None) -> float | None:
    return None if value is None else -value


def beneish(current: Statement, prior: Statement) -> Beneish:
    """Compute the M-score against the same quarter of the prior year.

    Indices are this year's figure over the prior year's, inverted for GMI and DEPI; TATA is a level:

    DSRI receivables / revenue. GMI gross profit / revenue. AQI 1 - (current assets + net PPE) / total assets.
    SGI revenue. DEPI depreciation / (depreciation + net PPE), with amortisation as filed. SGAI SG&A / revenue.
    LVGI (long-term debt + current liabilities) / total assets. TATA (net income - operating cash flow) / total assets.
    """
    ratios = {
        "DSRI": ratio(current.over("receivables", "revenue"), prior.over("receivables", "revenue")),
        "GMI": ratio(prior.over("gross_profit", "revenue"), current.over("gross_profit", "revenue")),
        "AQI": ratio(_soft_assets(current), _soft_assets(prior)),
        "SGI": ratio(current.get("revenue"), prior.get("revenue")),
        "DEPI": ratio(_depreciation_rate(prior), _depreciation_rate(current)),
        "SGAI": ratio(current.over("sga", "revenue"), prior.over("sga", "revenue")),
        "TATA": accruals_ratio(current),
        "LVGI": ratio(_leverage(current), _leverage(prior)),
    }
    score = m_score(ratios)
    return Beneish(MappingProxyType(ratios), score, None if score is None else score > MANIPULATION_ABOVE)


def m_score(ratios: Mapping[str, float | None]) -> float | None:
    """Return Beneish's eight-variable score, None if a ratio is."""
    weighted = [(coefficient, ratios[name]) for name, coefficient in BENEISH_COEFFICIENTS.items()]
    known = [coefficient * value for coefficient, value in weighted if value is not None]
    score = BENEISH_CONSTANT + exact_sum(known)
    return score if len(known) == len(weighted) and math.isfinite(score) else None


def _soft_assets(statement: Statement) -> float | None:
    """Share of assets that are neither current nor property, plant and equipment."""
    hard = sum_or_none(statement.get("current_assets"), statement.get("ppe_net"))
    return difference_or_none(1.0, ratio(hard, statement.get("total_assets")))


def _depreciation_rate(statement: Statement) -> float | None:
    depreciation = statement.get("depreciation_amortization")
    return ratio(depreciation, sum_or_none(depreciation, statement.get("ppe_net")))


def _leverage(statement: Statement) -> float | None:
    debt = sum_or_none(statement.get("long_term_debt"), statement.get("current_liabilities"))
    return ratio(debt, statement.get("total_assets"))


def accruals_ratio(current: Statement) -> float | None:
    """Return (net income - operating cash flow) / total assets."""
    accruals = difference_or_none(current.get("net_income"), current.get("operating_cash_flow"))
    return ratio(accruals, current.get("total_assets"))


def income_quality(current: Statement) -> float | None:
    """Return operating cash flow / net income."""
    return current.over("operating_cash_flow", "net_income")


def flags(score: int | None, manipulation: bool | None, accruals: float | None, quality: float | None) -> list[str]:
    """Return the raised flags in the order of `FLAGS`; unknown figures raise none."""
    raised = (
        score is not None and score <= LOW_PIOTROSKI,
        manipulation is True,
        accruals is not None and accruals > HIGH_ACCRUALS,
        quality is not None and quality < 0,
    )
    return [name for name, is_raised in zip(FLAGS, raised, strict=True) if is_raised]


def quality_answer(current: Statement, prior: Statement) -> dict[str, Any]:
    """Return the complete answer in the task's key order; unknown figures are None."""
    signals, manipulation = piotroski(current, prior), beneish(current, prior)
    accruals, quality = accruals_ratio(current), income_quality(current)
    return {
        "piotroski_score": signals.score,
        "piotroski_components": dict(signals.components),
        "beneish_m_score": manipulation.m_score,
        "beneish_flag": manipulation.flag,
        "accruals_ratio": accruals,
        "income_quality_ratio": quality,
        "flags": flags(signals.score, manipulation.flag, accruals, quality),
    }

"""Earnings quality of one quarter against the same quarter a year before: Piotroski, Beneish, accruals, flags.

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

from finskillbench.engines.accounting.statements import Statement, added, less, ratio
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
"""An M-score above it raises the Beneish flag."""
LOW_PIOTROSKI = 3
"""A score of it or less is low."""
HIGH_ACCRUALS = 0.05
"""An accruals ratio above it is high."""

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
"""What the signals and the M-score are made of."""
WHOLE = 0.05
"""Share by which a count of shares may miss a whole multiple of another, and be a split of it."""
ISSUE = 1.25
"""Equity that grew by as much was paid in for new shares."""
FLAGS = ("low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality")


@dataclass(frozen=True, slots=True)
class Piotroski:
    """Nine signals, 1 favourable, 0 not, None where it cannot be computed; the score is None if one of them is."""

    components: Mapping[str, int | None]
    score: int | None


@dataclass(frozen=True, slots=True)
class Beneish:
    """Eight ratios (None where one cannot be computed), the M-score and whether it is above the threshold."""

    ratios: Mapping[str, float | None]
    m_score: float | None
    flag: bool | None


def piotroski(current: Statement, prior: Statement) -> Piotroski:
    """F-score signals of a quarter against the same quarter of the prior year, in the order of `COMPONENTS`.

    The statements are those of `Ledger.compared`, whose diluted shares are of one length of period.
    """

    def change(numerator: str, denominator: str) -> float | None:
        return less(current.over(numerator, denominator), prior.over(numerator, denominator))

    income, cash = current.get("net_income"), current.get("operating_cash_flow")
    dilution = less(current.get("diluted_shares"), _split_adjusted(current, prior))
    components = {
        "roa_positive": _positive(current.over("net_income", "total_assets")),
        "cfo_positive": _positive(cash),
        "delta_roa_positive": _positive(change("net_income", "total_assets")),
        "accruals_negative": _positive(less(cash, income)),
        "delta_leverage_negative": _positive(_negated(change("long_term_debt", "total_assets"))),
        "delta_current_ratio_positive": _positive(change("current_assets", "current_liabilities")),
        "no_dilution": None if dilution is None else int(dilution <= 0),
        "delta_gross_margin_positive": _positive(change("gross_profit", "revenue")),
        "delta_asset_turnover_positive": _positive(change("revenue", "total_assets")),
    }
    known = [signal for signal in components.values() if signal is not None]
    return Piotroski(MappingProxyType(components), sum(known) if len(known) == len(COMPONENTS) else None)


def _split_adjusted(current: Statement, prior: Statement) -> float | None:
    """Diluted shares of the prior year, in today's shares where they were split or consolidated since.

    A split shows where one count is a whole multiple of the other and equity did not rise as by an issue of shares.
    """
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
    """M-score of a quarter against the same quarter of the prior year.

    Each index is this year's figure over the prior year's, but GMI and DEPI the other way round; TATA is a level:

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
    """Beneish's eight-variable score of the ratios named in `BENEISH_COEFFICIENTS`; None where one is None."""
    terms = [(coefficient, ratios[name]) for name, coefficient in BENEISH_COEFFICIENTS.items()]
    known = [coefficient * value for coefficient, value in terms if value is not None]
    score = BENEISH_CONSTANT + exact_sum(known)
    return score if len(known) == len(terms) and math.isfinite(score) else None


def _soft_assets(statement: Statement) -> float | None:
    """Share of the assets that are neither current nor property, plant and equipment."""
    hard = added(statement.get("current_assets"), statement.get("ppe_net"))
    return less(1.0, ratio(hard, statement.get("total_assets")))


def _depreciation_rate(statement: Statement) -> float | None:
    depreciation = statement.get("depreciation_amortization")
    return ratio(depreciation, added(depreciation, statement.get("ppe_net")))


def _leverage(statement: Statement) -> float | None:
    debt = added(statement.get("long_term_debt"), statement.get("current_liabilities"))
    return ratio(debt, statement.get("total_assets"))


def accruals_ratio(current: Statement) -> float | None:
    """(Net income - operating cash flow) / total assets, a decimal."""
    accruals = less(current.get("net_income"), current.get("operating_cash_flow"))
    return ratio(accruals, current.get("total_assets"))


def income_quality(current: Statement) -> float | None:
    """Operating cash flow / net income; None where net income is 0."""
    return current.over("operating_cash_flow", "net_income")


def flags(score: int | None, manipulation: bool | None, accruals: float | None, quality: float | None) -> list[str]:
    """The concerns raised, in the order of `FLAGS`; what is unknown raises none."""
    raised = (
        score is not None and score <= LOW_PIOTROSKI,
        manipulation is True,
        accruals is not None and accruals > HIGH_ACCRUALS,
        quality is not None and quality < 0,
    )
    return [name for name, is_raised in zip(FLAGS, raised, strict=True) if is_raised]


def earnings_quality(current: Statement, prior: Statement) -> dict[str, Any]:
    """The whole answer, with the keys and in the order of the task; no evidence, no verdict: unknowns are None."""
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

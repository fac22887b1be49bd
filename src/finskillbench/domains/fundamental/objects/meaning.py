"""Labels that an analyst would sign: no figure of them comes from a denominator near zero.

A gross margin of a thousandth makes of an index of Beneish's model, and so of the M-score, anything at all; a change of
revenue by a thousandth is explained a hundred times over by every segment. The arithmetic is right and the figure means
nothing: data terminals print "NM". Such a label is no episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from finskillbench.engines.accounting.quality import beneish
from finskillbench.engines.accounting.statements import Statement
from finskillbench.scoring.values import is_array, is_object, number

LARGEST: Mapping[str, float] = MappingProxyType(
    {
        "operating_margin": 1.0,
        "beneish_m_score": 10.0,
        "income_quality_ratio": 20.0,
        "accruals_ratio": 1.0,
        "contribution_pct": 1000.0,
        "delta_pp": 100.0,
    }
)
"""Figure of an answer -> the largest size that means something, in its own unit."""
_TENFOLD = 10.0
"""An index, or growth, beyond it in either direction compares with next to nothing."""


def beyond(answer: object) -> list[str]:
    """What is said of the figures of an answer that are too large to mean something."""
    if is_array(answer):
        return [found for item in answer for found in beyond(item)]
    if not is_object(answer):
        return []
    found = [one for value in answer.values() for one in beyond(value)]
    for name, most in LARGEST.items():
        size = number(answer.get(name))
        if size is not None and abs(size) > most:
            found.append(f"{name} {size:.6g} means nothing beyond {most:g}")
    return found


def meaningful(answer: Mapping[str, object], *statements: Statement) -> bool:
    """Whether every figure of a label means something, and revenue is there to measure by.

    statements : those that the label is made of; two of them are compared.
    """
    revenues = [revenue for one in statements if (revenue := one.get("revenue")) is not None]
    return (
        all(revenue > 0 for revenue in revenues)
        and max(revenues, default=0.0) <= _TENFOLD * min(revenues, default=0.0)
        and not beyond(answer)
    )


def indices_meaningful(now: Statement, before: Statement) -> bool:
    """Whether every index of a known M-score compares figures above zero, and none with next to nothing."""
    found = beneish(now, before)
    if found.m_score is None:
        return True
    indices = [value for name, value in found.ratios.items() if name != "TATA"]
    return now.values["gross_profit"] > 0 and all(
        value is not None and 1 / _TENFOLD <= value <= _TENFOLD for value in indices
    )

"""Trading rules of a remediation: costs, minimum trade, and headroom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import mapping, number, table_of, values_from
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, RiskMandate
from finskillbench.errors import InputError

MOST_BPS = 1e4
"""A trade costs at most its amount."""


@dataclass(frozen=True)
class TradingRules:
    """Rules of trading.

    Attributes
    ----------
    costs : (n,) per cent of the traded amount, by name; cash is free.
    ticket : minimum trade, a fraction of NAV; 0 for none.
    headroom : required distance to a limit after trading, by kind, in the limit's unit.
    """

    costs: Floats
    ticket: float = 0.0
    headroom: Mapping[ConstraintKind, float] = field(default_factory=dict[ConstraintKind, float])

    @classmethod
    def free(cls, names: int) -> TradingRules:
        """Return uniform costs of one per cent, without ticket or headroom: least cost is least trading."""
        return cls(np.ones(names))

    def cost(self, trades: Floats) -> float:
        """Return the cost of (n,) signed weight changes, per cent of NAV."""
        return float(self.costs @ np.abs(trades))

    def target(self, mandate: RiskMandate) -> RiskMandate:
        """Tighten every limit by its headroom; raise `InputError` if nothing of a limit remains."""
        return replace(mandate, constraints=tuple(self._inside(limit) for limit in mandate.constraints))

    def _inside(self, limit: Constraint) -> Constraint:
        headroom = self.headroom.get(limit.kind, 0.0)
        low, high = limit.minimum, limit.maximum
        inside = replace(
            limit,
            value=None if limit.value is None else limit.value - headroom,
            minimum=None if low is None else low + headroom,
            maximum=None if high is None else high - headroom,
        )
        least, most = inside.bounds
        if least > most or (headroom > 0 and inside.value is not None and inside.value <= 0):
            raise InputError(f"trading_terms: a headroom of {headroom:g} uses up {limit.kind}; give a smaller one")
        return inside


def trading_rules_from(data: object, tickers: Sequence[str], mandate: RiskMandate) -> TradingRules:
    """Read `trading_terms`: cost_bps by ticker, minimum_trade, and headroom by kind; may raise `InputError`."""
    if (table := table_of(data)) is None:
        raise InputError("trading_terms must be an object with cost_bps, minimum_trade and headroom; inject it")
    costs = values_from(mapping(table, "cost_bps"), tuple(tickers), "cost_bps", largest=MOST_BPS) / 100
    if not (costs > 0).all():
        raise InputError("trading_terms: cost_bps must be positive; a trade without cost has no least amount")
    ticket = _size(table, "minimum_trade")
    headroom = mapping(table, "headroom")
    known = {limit.kind.value: limit.kind for limit in mandate.constraints}
    for name in headroom:
        if name not in known or known[name] not in HEADROOM_KINDS:
            raise InputError(
                f"trading_terms: headroom names {name!s:.40}; name only limits of the mandate whose values drift"
            )
    return TradingRules(costs, ticket, {known[name]: _size(headroom, name) for name in headroom})


def _size(table: Mapping[str, Any], name: str) -> float:
    value = number(table, name, "trading_terms")
    if not 0 <= value < 1:
        raise InputError(f"trading_terms: {name} must be at least 0 and below 1, not {value:g}")
    return value


HEADROOM_KINDS = frozenset(
    {
        ConstraintKind.POSITION_LIMIT_MAX,
        ConstraintKind.SECTOR_LIMIT_MAX,
        ConstraintKind.TRACKING_ERROR_MAX,
        ConstraintKind.BETA_RANGE,
        ConstraintKind.FACTOR_EXPOSURE_MAX,
        ConstraintKind.CASH_MAX,
        ConstraintKind.GROSS_EXPOSURE_MAX,
        ConstraintKind.HHI_MAX,
    }
)
"""Limits whose values drift with prices and estimates, and so need headroom."""

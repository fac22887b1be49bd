"""The terms on which a portfolio is traded back into its mandate: what a trade costs, and what it must leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.engines.fields import mapping, number, table_of, values_from
from finskillbench.engines.risk.mandate import Constraint, Kind, Mandate
from finskillbench.errors import InputError

MOST_BPS = 1e4
"""No trade costs more than what is traded."""


@dataclass(frozen=True)
class Terms:
    """Terms of trading.

    Attributes
    ----------
    costs : (n,) per cent of the amount traded, by name; cash costs nothing.
    ticket : least size of a trade, a fraction of NAV; 0 for none.
    headroom : by kind of limit, how far inside it the portfolio has to be afterwards, in the unit of the limit.
    """

    costs: Floats
    ticket: float = 0.0
    headroom: Mapping[Kind, float] = field(default_factory=dict[Kind, float])

    @classmethod
    def free(cls, names: int) -> Terms:
        """One per cent for each of `names` names, any size, no headroom: the least cost is the least traded."""
        return cls(np.ones(names))

    def cost(self, trades: Floats) -> float:
        """Per cent of NAV that (n,) signed changes of weight cost."""
        return float(self.costs @ np.abs(trades))

    def target(self, mandate: Mandate) -> Mandate:
        """The mandate with every limit moved inwards by its headroom.

        Raises
        ------
        InputError : a headroom that leaves nothing of its limit.
        """
        return replace(mandate, constraints=tuple(self._inside(limit) for limit in mandate.constraints))

    def _inside(self, limit: Constraint) -> Constraint:
        room = self.headroom.get(limit.kind, 0.0)
        low, high = limit.minimum, limit.maximum
        inside = replace(
            limit,
            value=None if limit.value is None else limit.value - room,
            minimum=None if low is None else low + room,
            maximum=None if high is None else high - room,
        )
        least, most = inside.bounds
        if least > most or (room > 0 and inside.value is not None and inside.value <= 0):
            raise InputError(
                f"trading_terms: a headroom of {room:g} leaves nothing of {limit.kind}; give a smaller one"
            )
        return inside


def terms_from(data: object, tickers: Sequence[str], mandate: Mandate) -> Terms:
    """Read `trading_terms`: cost_bps by ticker, minimum_trade, and headroom by type of limit.

    Raises
    ------
    InputError : one line naming the field and the remedy.
    """
    if (table := table_of(data)) is None:
        raise InputError("trading_terms must be an object with cost_bps, minimum_trade and headroom; inject it")
    costs = values_from(mapping(table, "cost_bps"), tuple(tickers), "cost_bps", largest=MOST_BPS) / 100
    if not (costs > 0).all():
        raise InputError("trading_terms: cost_bps must be positive; a trade without cost has no least amount")
    ticket = _size(table, "minimum_trade")
    rooms = mapping(table, "headroom")
    known = {limit.kind.value: limit.kind for limit in mandate.constraints}
    for name in rooms:
        if name not in known or known[name] not in HEADROOM_KINDS:
            raise InputError(
                f"trading_terms: headroom names {name!s:.40}; give limits of the mandate that values drift over"
            )
    return Terms(costs, ticket, {known[name]: _size(rooms, name) for name in rooms})


def _size(table: Mapping[str, Any], name: str) -> float:
    value = number(table, name, "trading_terms")
    if not 0 <= value < 1:
        raise InputError(f"trading_terms: {name} must be at least 0 and below 1, not {value:g}")
    return value


HEADROOM_KINDS = frozenset(
    {
        Kind.POSITION_LIMIT_MAX,
        Kind.SECTOR_LIMIT_MAX,
        Kind.TRACKING_ERROR_MAX,
        Kind.BETA_RANGE,
        Kind.FACTOR_EXPOSURE_MAX,
        Kind.CASH_MAX,
        Kind.GROSS_EXPOSURE_MAX,
        Kind.HHI_MAX,
    }
)
"""Limits whose values move with prices and estimates, so that a cure needs room to them."""

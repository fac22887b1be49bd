"""Scores of a remediation: published, strict and certified."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.shared import mandate_conventions
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, mandate_from
from finskillbench.engines.risk.monitor import HARD_KINDS, LEAST_SCALE, ConstraintCheck, check_constraints
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, turnover_of
from finskillbench.engines.risk.remediation import portfolio_after, total_excess
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import trading_rules_from
from finskillbench.episode import JsonObject, Score, Truth, lowest_raw
from finskillbench.scoring.values import (
    as_boolean,
    as_number,
    as_object,
    as_text,
    clip,
    closeness,
    multiset_f1,
    objects,
    parameter,
    set_f1,
)

ROUNDING = 1e-4
"""Excess or position that counts as rounding."""
BREACH = 5e-4
"""Excess that scores 0."""
WORTHLESS_COST_RATIO = 2.0
"""Ratio to the least cost from which trades score 0."""
LEAST_CLOSED = 0.6
"""Share of the removable excess below which trades score 0."""
FALSE_STATEMENT = 0.2
"""Factor for a false or missing statement on compliance."""
REPORTED, MISREPORTED = 5e-4, 5e-3
"""Errors of total_turnover for full credit and for none."""
TARGET_ROUNDING = 1e-3
"""Allowed inconsistency of the numbers of a trade: three decimals each."""
EXACT = 1e-3
"""Tolerance of a merit of 1, for rounding."""
_TINY = 1e-9
LARGEST_TRADE = 1e6
"""Largest plausible weight change."""
_TRADES = {
    "trades": "signed changes of weight t_i over any names of the universe; cash changes by minus their sum, costs "
    "nothing and never falls below 0. A trade is at least minimum_trade in size, or closes the position in full, "
    "at any size: target_weight is then 0",
    "headroom": "limits whose values drift must be kept with headroom: a maximum less its entry of headroom, a "
    "minimum plus it (both ends of a range); a limit that headroom does not name must be kept unchanged; violations "
    "lists limits that are broken as they are, without headroom",
    "objective": "least cost: the sum of cost_bps_i x |t_i|, in basis points of NAV, under every limit with its "
    "headroom, none of them exceeded by the tolerance",
    "post_trade_compliant": "true if every limit is kept, with its headroom, after the trades",
}
_TURNOVER = {
    "turnover": "one-way: (sum of |t_i| + |sum of t_i|) / 2; what is left is the value of turnover_max_monthly "
    "less the turnover of trades_this_month",
    "out_of_reach": "if the turnover that is left allows no trades that keep every limit with its headroom, "
    "post_trade_compliant is false, and the trades keep {hard}, minimum_trade and cash of 0 or more, and make the "
    "shortfall as small as possible: the sum over the other limits of excess / |limit|, both with headroom (for a "
    f"range the end that is exceeded; a limit counts as no smaller than {LEAST_SCALE}), plus a hundredth of the cost "
    "in basis points of NAV",
}
_NO_TURNOVER = {"turnover": "one-way: (sum of |t_i| + |sum of t_i|) / 2"}
_ROUNDING = {
    "rounding": f"rounding of the submitted trades costs nothing: an excess of up to {ROUNDING:.4f} in the "
    f"unit of its limit, or a trade or position too small by up to {ROUNDING:.4f}; more costs in proportion, and "
    f"{BREACH:.4f} or more loses all marks"
}


def definitions(task_input: RemediationInput) -> dict[str, str]:
    """Return the conventions for the limits of the mandate."""
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    hard = sorted(kind.value for kind in HARD_KINDS if kind in kinds)
    limited = ConstraintKind.TURNOVER_MAX_MONTHLY in kinds
    turnover = {name: wording.replace("{hard}", ", ".join(hard)) for name, wording in _TURNOVER.items()}
    return mandate_conventions(task_input, {**_TRADES, **(turnover if limited else _NO_TURNOVER), **_ROUNDING})


def merit_of_cost(cost: float, least: float) -> float:
    """Return 1 at the least cost, falling linearly to 0 at `WORTHLESS_COST_RATIO` times it and below beyond."""
    return (WORTHLESS_COST_RATIO - cost / max(least, _TINY)) / (WORTHLESS_COST_RATIO - 1.0)


def merit_of_excess(excess: float, least: float, before: float) -> float:
    """Return 1 at the least shortfall, 0 if at most `LEAST_CLOSED` of the removable part is removed."""
    return 1.0 - (excess - least) / max((1.0 - LEAST_CLOSED) * (before - least), _TINY)


def paper(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """constraint_satisfaction_plus_cost: 0.3 compliance + 0.3 turnover + 0.4 F1 on the multiset of trades.

    Compliance: equal `post_trade_compliant`. Turnover: |T̂-T| <= x max(T, 0.01) with x = `turnover_excess_pct`/100 of
    `tolerance`, default 0.5; absent counts as 0. Trades are (SYMBOL, action) pairs.
    """
    del task_input
    return _published(answer, truth, multiset_f1(_pairs(answer), _pairs(truth.expected_output)))


def strict(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """Variant of `paper` with F1 on the sets of (SYMBOL, action) pairs."""
    del task_input
    return _published(answer, truth, set_f1(set(_pairs(answer)), set(_pairs(truth.expected_output))))


def certified(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """Apply the trades, and score cost or shortfall, breaches, and reported figures.

    `merit_of_cost` applies to feasible cases, `merit_of_excess` to infeasible ones. The worst breach scales it by
    `_kept`:
    of any limit with headroom, or of the hard limits if infeasible; negative cash and undersized trades also count. A
    false or missing statement leaves `FALSE_STATEMENT`. Wrong total_turnover and inconsistent trade fields cost a
    third each.
    """
    market = market_from(task_input)
    portfolio = portfolio_from(task_input, market)
    parsed = _applied(answer, portfolio, market)
    if parsed is None:
        return Score(0.0, {"trades": "absent, or outside the universe"}, -math.inf)
    trades, consistent = parsed
    turnover, done = turnover_of(trades), portfolio_after(portfolio, trades)
    stated, known = mandate_from(task_input["mandate"]), truth.verification
    rules = trading_rules_from(task_input["trading_terms"], market.tickers, stated)
    mandate = rules.target(stated)
    curable = truth.expected_output["post_trade_compliant"]
    checks = zip(mandate.constraints, check_constraints(done, mandate, market, ROUNDING), strict=True)
    kept = {limit.kind.value: _kept(limit, one, done) for limit, one in checks if curable or one.kind in HARD_KINDS}
    kept["cash below 0"] = _left_by(-done.cash)
    kept["minimum_trade"] = _left_by(ticket_shortfall(portfolio.weights, trades, rules.ticket))
    cost = rules.cost(trades)
    if curable:
        unlimited = merit_of_cost(cost, known["least_cost"])
    else:
        shortfall = total_excess(done, mandate, market) + cost
        unlimited = merit_of_excess(shortfall, known["least_shortfall"], known["shortfall_before"])
    merit = 1.0 if unlimited >= 1.0 - EXACT else clip(unlimited)
    agrees = as_boolean(answer.get("post_trade_compliant")) is curable
    reported = closeness(
        as_number(answer.get("total_turnover")),
        turnover,
        full=0.0,
        full_floor=REPORTED,
        zero=0.0,
        zero_floor=MISREPORTED,
    )
    worst = min(kept.values())
    value = merit * clip(worst) * (1.0 if agrees else FALSE_STATEMENT) * (1.0 + reported + consistent) / 3.0
    details = {
        "merit": merit,
        "cost_bps": 100 * cost,
        "turnover": turnover,
        "broken": {name: clip(left) for name, left in kept.items() if left < 1.0},
        "compliance_agrees": agrees,
        "turnover_agrees": reported,
        "trades_agree": consistent,
    }
    return Score(value, details, value or lowest_raw(unlimited, worst))


def _left_by(excess: float) -> float:
    """Return 1 at `ROUNDING`, falling linearly to 0 at `BREACH`, without limits beyond."""
    return (BREACH - excess) / (BREACH - ROUNDING)


def _kept(limit: Constraint, found: ConstraintCheck, done: Portfolio) -> float:
    """Return the credit that a limit leaves after `ROUNDING`; a residue below the minimum counts by its size."""
    if limit.kind is ConstraintKind.NAME_COUNT:
        return 1.0 if found.excess <= 0 else 0.0
    if limit.kind is ConstraintKind.POSITION_LIMIT_MIN:
        sizes = np.abs(done.weights)
        return _left_by(float(np.minimum(sizes, np.maximum((limit.value or 0.0) - sizes, 0.0)).max(initial=0.0)))
    return _left_by(found.excess)


def ticket_shortfall(held: Floats, trades: Floats, ticket: float) -> float:
    """Return the largest distance of (n,) trades from zero, the ticket, or a full sale."""
    size = np.abs(trades)
    return float(np.minimum.reduce([size, np.maximum(ticket - size, 0.0), np.abs(held + trades)]).max(initial=0.0))


class _Applied(NamedTuple):
    """Signed weight changes (n,), and consistency of the entries."""

    trades: Floats
    consistent: bool


def _applied(answer: JsonObject, portfolio: Portfolio, market: MarketSnapshot) -> _Applied | None:
    """Parse the trades; None if absent, unknown or absurd. A target of 0 closes the position up to rounding."""
    entries = objects(answer.get("trades"))
    rows = {ticker: row for row, ticker in enumerate(market.tickers)}
    trades = np.zeros(len(rows))
    consistent = True
    seen: set[str] = set()
    for entry in entries:
        symbol = (as_text(entry.get("symbol")) or "").strip().upper()
        change, target = as_number(entry.get("trade_pct")), as_number(entry.get("target_weight"))
        if symbol not in rows or (change is None and target is None):
            return None
        held = float(portfolio.weights[rows[symbol]])
        traded = change if change is not None else target - held if target is not None else 0.0
        if abs(traded) > LARGEST_TRADE:
            return None
        before = as_number(entry.get("current_weight"))
        near = target is not None and abs(held + traded - target) <= TARGET_ROUNDING
        if near and target == 0 and symbol not in seen:
            traded = -held
        consistent &= (
            symbol not in seen
            and near
            and (before is None or abs(before - held) <= TARGET_ROUNDING)
            and (abs(traded) <= ROUNDING or _action(entry) == ("buy" if traded > 0 else "sell"))
        )
        seen.add(symbol)
        trades[rows[symbol]] += traded
    return _Applied(trades, consistent) if entries else None


def _action(entry: JsonObject) -> str:
    return (as_text(entry.get("action")) or "").strip().lower()


def _published(answer: JsonObject, truth: Truth, f1: float) -> Score:
    expected = truth.expected_output
    compliant = as_boolean(answer.get("post_trade_compliant"))
    agrees = compliant is not None and compliant == as_boolean(expected.get("post_trade_compliant"))
    stated = as_number(answer.get("total_turnover")) or 0.0
    wanted = as_number(expected.get("total_turnover")) or 0.0
    tolerance = as_object(truth.verification.get("tolerance"))
    excess = parameter(tolerance, "turnover_excess_pct", 50.0, positive=False) / 100.0
    cheap = abs(stated - wanted) <= excess * max(wanted, 0.01)
    details = {"compliant": agrees, "turnover": cheap, "trades_f1": f1}
    return Score(0.3 * agrees + 0.3 * cheap + 0.4 * f1, details)


def _pairs(source: JsonObject) -> list[tuple[str, str]]:
    """Return (SYMBOL, action) per trade; missing parts are empty, so that they count but never match."""
    return [
        ((as_text(trade.get("symbol")) or "").upper(), (as_text(trade.get("action")) or "").lower())
        for trade in objects(source.get("trades"))
    ]

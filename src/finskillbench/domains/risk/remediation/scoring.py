"""How a remediation is judged: the published formula, its strict variant, and the certified one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.shared import mandate_conventions
from finskillbench.engines.risk.mandate import Constraint, Kind, mandate_from
from finskillbench.engines.risk.monitor import HARD_KINDS, LEAST_SCALE, Measure, measure
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.risk.remediation import after, total_excess
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import terms_from
from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.scoring.values import (
    boolean,
    clip,
    closeness,
    mapping,
    multiset_f1,
    number,
    objects,
    parameter,
    set_f1,
    text,
)

ROUNDING = 1e-4
"""One basis point: an excess over a limit, or a position, of this size is rounding."""
BREACH = 5e-4
"""An excess over a limit from which it is a breach and nothing else."""
DEAREST = 2.0
"""Times the least cost from which trades earn nothing."""
LEAST_CLOSED = 0.6
"""Share of the excess that can be shed, from which shedding it earns something."""
FALSE_STATEMENT = 0.2
"""What the best trades earn under a false statement on compliance, or under none."""
REPORTED, MISREPORTED = 5e-4, 5e-3
"""How far total_turnover may be off for nothing, and from where on the report is worth nothing."""
TARGET_ROUNDING = 1e-3
"""How far the numbers of one trade may disagree: each of them rounded to three decimals."""
EXACT = 1e-3
"""A merit short of 1 by no more is that of the optimum: what rounding costs of it."""
_TINY = 1e-9
LARGEST_TRADE = 1e6
"""A change of weight beyond this is a unit or a typing error."""
_TRADES = {
    "trades": "signed changes of weight t_i over any names of the universe; cash changes by minus their sum, costs "
    "nothing and never falls below 0. A trade is at least minimum_trade in size, or closes the position in full, "
    "whatever its size: target_weight is then 0",
    "headroom": "limits whose values drift have to be kept with room to spare: a maximum less its entry of headroom, a "
    "minimum plus it (both ends of a range); a limit that headroom does not name has to be kept as it stands",
    "objective": "least cost: the sum of cost_bps_i x |t_i|, in basis points of NAV, under every limit with its "
    "headroom, none of them exceeded by the tolerance",
    "post_trade_compliant": "true if every limit is kept, with its headroom, after the trades",
}
_TURNOVER = {
    "turnover": "one-way: (sum of |t_i| + |sum of t_i|) / 2; turnover_max_monthly leaves its value less the turnover "
    "of trades_this_month",
    "out_of_reach": "if the turnover that is left allows no trades that keep every limit with its headroom, "
    "post_trade_compliant is false, and the trades keep {hard} and make the shortfall as small as possible: the sum "
    "over the other limits of excess / |limit|, both with headroom (for a range the end that is exceeded; a limit "
    f"counts as no smaller than {LEAST_SCALE}), plus a hundredth of the cost in basis points of NAV",
}
_NO_TURNOVER = {"turnover": "one-way: (sum of |t_i| + |sum of t_i|) / 2"}
_ROUNDING = {
    "rounding": f"what rounding leaves of the submitted trades costs nothing: an excess of up to {ROUNDING:.4f} in the "
    f"unit of its limit, or a trade or position too small by up to {ROUNDING:.4f}; more costs in proportion, and "
    f"{BREACH:.4f} or more loses all marks",
}


def definitions(task_input: RemediationInput) -> dict[str, str]:
    """The conventions of an episode: only what the mandate of the case has."""
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    hard = sorted(kind.value for kind in HARD_KINDS if kind in kinds)
    limited = Kind.TURNOVER_MAX_MONTHLY in kinds
    turnover = {name: said.replace("{hard}", ", ".join(hard)) for name, said in _TURNOVER.items()}
    return mandate_conventions(task_input, {**_TRADES, **(turnover if limited else _NO_TURNOVER), **_ROUNDING})


def merit_of_cost(cost: float, least: float) -> float:
    """1 at the least cost, a half at half as much again, 0 from `DEAREST` times as much on."""
    return clip((DEAREST - cost / max(least, _TINY)) / (DEAREST - 1.0))


def merit_of_excess(excess: float, least: float, before: float) -> float:
    """1 at the least shortfall, 0 where no more than `LEAST_CLOSED` of what can be shed is shed."""
    return clip(1.0 - (excess - least) / max((1.0 - LEAST_CLOSED) * (before - least), _TINY))


def paper(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """constraint_satisfaction_plus_cost: 0.3 compliance + 0.3 turnover + 0.4 F1 on the multiset of trades.

    Compliance: `post_trade_compliant` equal. Turnover: |T̂-T| <= x max(T, 0.01), x = `turnover_excess_pct`/100 of
    the verification's `tolerance`, default 0.5, an absent turnover being 0. Trades are (SYMBOL, action) pairs.
    """
    del task_input
    return _published(answer, truth, multiset_f1(_pairs(answer), _pairs(truth.expected_output)))


def strict(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """As `paper`, with F1 on the sets of (SYMBOL, action) pairs."""
    del task_input
    return _published(answer, truth, set_f1(set(_pairs(answer)), set(_pairs(truth.expected_output))))


def certified(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """The trades are applied and judged by what they do: how dear they are, what they leave, and what is said of them.

    Where the mandate can be met with its headroom: `merit_of_cost` against the certified least. Where it cannot:
    `merit_of_excess` against the certified least shortfall. That times what the worst breach leaves (`_kept`): of any
    limit with its headroom, or, out of reach, of those that are kept at any price; cash below 0 and a trade below the
    minimum are others. A statement on compliance that is false or absent leaves `FALSE_STATEMENT` of it.
    total_turnover, and the trades' own action, target_weight and current_weight, cost up to a third each where they
    disagree with the trades.
    """
    market = market_from(task_input)
    portfolio = portfolio_from(task_input, market)
    parsed = _applied(answer, portfolio, market)
    if parsed is None:
        return Score(0.0, {"trades": "absent, or outside the universe"})
    trades, consistent = parsed
    turnover, done = turnover_of(trades), after(portfolio, trades)
    stated, known = mandate_from(task_input["mandate"]), truth.verification
    terms = terms_from(task_input["trading_terms"], market.tickers, stated)
    mandate = terms.target(stated)
    curable = truth.expected_output["post_trade_compliant"]
    checks = zip(mandate.constraints, measure(done, mandate, market, ROUNDING), strict=True)
    kept = {
        limit.kind.value: _kept(limit, found, done) for limit, found in checks if curable or found.kind in HARD_KINDS
    }
    kept["cash below 0"] = _left_by(-done.cash)
    kept["minimum_trade"] = _left_by(undersized(portfolio.weights, trades, terms.ticket))
    cost = terms.cost(trades)
    if curable:
        merit = merit_of_cost(cost, known["least_cost"])
    else:
        shortfall = total_excess(done, mandate, market) + cost
        merit = merit_of_excess(shortfall, known["least_shortfall"], known["shortfall_before"])
    merit = 1.0 if merit >= 1.0 - EXACT else merit
    said = boolean(answer.get("post_trade_compliant")) is curable
    reported = closeness(
        number(answer.get("total_turnover")),
        turnover,
        full=0.0,
        full_floor=REPORTED,
        zero=0.0,
        zero_floor=MISREPORTED,
    )
    value = merit * min(kept.values()) * (1.0 if said else FALSE_STATEMENT) * (1.0 + reported + consistent) / 3.0
    details = {
        "merit": merit,
        "cost_bps": 100 * cost,
        "turnover": turnover,
        "broken": {name: left for name, left in kept.items() if left < 1.0},
        "compliance_agrees": said,
        "turnover_agrees": reported,
        "trades_agree": consistent,
    }
    return Score(value, details)


def _left_by(excess: float) -> float:
    """What an excess over a limit leaves of the credit: all up to `ROUNDING`, nothing from `BREACH` on."""
    return clip((BREACH - excess) / (BREACH - ROUNDING))


def _kept(limit: Constraint, found: Measure, done: Portfolio) -> float:
    """What a limit leaves of the credit; `found` is measured with `ROUNDING`.

    A position below the least one is as far from an allowed one as from nothing, or from the least: what is left of a
    sale by rounding is a breach of that size only.
    """
    if limit.kind is Kind.NAME_COUNT:
        return 1.0 if found.excess <= 0 else 0.0
    if limit.kind is Kind.POSITION_LIMIT_MIN:
        sizes = np.abs(done.weights)
        return _left_by(float(np.minimum(sizes, np.maximum((limit.value or 0.0) - sizes, 0.0)).max(initial=0.0)))
    return _left_by(found.excess)


def undersized(held: Floats, trades: Floats, ticket: float) -> float:
    """How far the worst of (n,) trades is from one that is allowed: from none, the ticket, or a sale in full."""
    size = np.abs(trades)
    return float(np.minimum.reduce([size, np.maximum(ticket - size, 0.0), np.abs(held + trades)]).max(initial=0.0))


class _Applied(NamedTuple):
    """(n,) signed weight changes, and whether every entry agrees with itself and with the portfolio."""

    trades: Floats
    consistent: bool


def _applied(answer: JsonObject, portfolio: Portfolio, market: Market) -> _Applied | None:
    """The trades of an answer; None where there are none, one names no ticker of the universe, or a number is absurd.

    An entry trades its `trade_pct`, without one what its `target_weight` asks for. A target of 0 sells in full where
    the two differ by rounding only.
    """
    entries = objects(answer.get("trades"))
    rows = {ticker: row for row, ticker in enumerate(market.tickers)}
    trades = np.zeros(len(rows))
    consistent = True
    seen: set[str] = set()
    for entry in entries:
        symbol = (text(entry.get("symbol")) or "").strip().upper()
        change, target = number(entry.get("trade_pct")), number(entry.get("target_weight"))
        if symbol not in rows or (change is None and target is None):
            return None
        held = float(portfolio.weights[rows[symbol]])
        traded = change if change is not None else target - held if target is not None else 0.0
        if abs(traded) > LARGEST_TRADE:
            return None
        before = number(entry.get("current_weight"))
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
    return (text(entry.get("action")) or "").strip().lower()


def _published(answer: JsonObject, truth: Truth, f1: float) -> Score:
    expected = truth.expected_output
    compliant = boolean(answer.get("post_trade_compliant"))
    agrees = compliant is not None and compliant == boolean(expected.get("post_trade_compliant"))
    given = number(answer.get("total_turnover")) or 0.0
    wanted = number(expected.get("total_turnover")) or 0.0
    tolerance = mapping(truth.verification.get("tolerance"))
    excess = parameter(tolerance, "turnover_excess_pct", 50.0, positive=False) / 100.0
    cheap = abs(given - wanted) <= excess * max(wanted, 0.01)
    details = {"compliant": agrees, "turnover": cheap, "trades_f1": f1}
    return Score(0.3 * agrees + 0.3 * cheap + 0.4 * f1, details)


def _pairs(source: JsonObject) -> list[tuple[str, str]]:
    """(SYMBOL, action) of each trade object; a missing part is empty, so that it counts and matches nothing."""
    return [
        ((text(trade.get("symbol")) or "").upper(), (text(trade.get("action")) or "").lower())
        for trade in objects(source.get("trades"))
    ]

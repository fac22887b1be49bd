"""Risk remediation: the cheapest trades that bring a portfolio back within its mandate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import numpy as np
from pydantic import Field

from finskillbench.arrays import Floats
from finskillbench.domains.base import Answer, Naive, Subtask, by_input
from finskillbench.domains.building import BuildContext, Task, conventions
from finskillbench.domains.draws import drawn, shuffled
from finskillbench.domains.portfolio.merit import DEAD_ZONE
from finskillbench.domains.proofs import certificate_of, proof_of
from finskillbench.domains.risk import by_hand
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.placement import clipped
from finskillbench.domains.risk.objects.remediation import RemediationPair
from finskillbench.domains.risk.remediation_proof import examine
from finskillbench.domains.risk.second import monitored_after
from finskillbench.domains.risk.shared import (
    CONVENTIONS,
    PRECISION,
    mandate_episode,
    mandate_input,
    planted,
    resolved_covariance,
)
from finskillbench.engines.portfolio.measures import FEASIBILITY_TOLERANCE
from finskillbench.engines.risk.mandate import Constraint, Kind, mandate_from
from finskillbench.engines.risk.monitor import HARD_KINDS, LEAST_SCALE, Measure, limit_scales, measure
from finskillbench.engines.risk.portfolio import Market, Portfolio, turnover_of
from finskillbench.engines.risk.remediation import after, budget_left, reference_turnover, total_excess
from finskillbench.engines.risk.report import trade_list, traded
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InternalError
from finskillbench.scoring.measures import clip, multiset_f1, set_f1
from finskillbench.scoring.values import boolean, mapping, number, objects, parameter, text

NAME = "risk_remediation"
METHOD = "constraint_satisfaction_plus_cost"
BEYOND = 12
"""Episodes whose mandate cannot be met within the turnover that is left."""
GREY_BAND = 2e-3
"""Least distance between the certified least turnover and what is left: four times the tolerance of a submission."""
LEAST_TURNOVER = 0.01
"""A remedy of less is no test of trading."""
LEAST_SPREAD = 0.02
"""How much dearer the reference portfolio is at least: the width of the score, forty times the tolerance."""
NAIVE = 0.25
"""Where cutting at the limits and spreading the rest costs so little of the spread above the least, it is no test."""
LIMITED = 17
"""Mendable episodes with a limit on the month's turnover: having one does not tell that the mandate is out of reach."""
LEAST_EXCESS = 0.05
"""Total relative excess that the best attainable portfolio keeps, and that it sheds, at least."""
LIMIT_TOLERANCE = 0.005
"""How far beyond a limit, relative to it, a submission may be; never more than `FEASIBILITY_TOLERANCE`."""
WEIGHT_TOLERANCE = 1e-5
"""A tenth of a basis point of one weight: what rounding to five decimals, and a solver, leave of a name sold."""
OF_WEIGHTS = frozenset({Kind.LONG_ONLY, Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT})
"""The constraints that hold each weight against a threshold, within `WEIGHT_TOLERANCE`."""
REMEDIATION = {
    "trades": "signed changes of weight t_i over any names of the universe; cash changes by minus their sum and never "
    "falls below 0",
    "turnover": "one-way: (sum of |t_i| + |sum of t_i|) / 2; turnover_max_monthly leaves its value less the turnover "
    "of trades_this_month",
    "objective": "least turnover of the trades under the whole mandate; of several such lists that of the least sum of "
    "squared changes of all names and of cash",
    "out_of_reach": "if no trades within the turnover that is left keep the whole mandate, post_trade_compliant is "
    f"false and the trades keep {', '.join(sorted(HARD_KINDS))} and minimise the total relative excess over the other "
    "constraints, the sum of excess / |limit| (for a range the end that is exceeded; a limit counts as no smaller than "
    f"{LEAST_SCALE}); ties as above",
    "tolerance": "limits are checked on the portfolio after the submitted trades, each with a tolerance of "
    f"{LIMIT_TOLERANCE:.1%} of the limit (which counts as no smaller than {LEAST_SCALE}), but of at most "
    f"{FEASIBILITY_TOLERANCE}; for {', '.join(sorted(OF_WEIGHTS))} every single weight has a tolerance of "
    f"{WEIGHT_TOLERANCE:.5f}; cash may fall below 0, and total_turnover and each target_weight be off, by at most "
    f"{FEASIBILITY_TOLERANCE}",
}
"""What remediation adds to the definitions of the constraints."""

LARGEST_TRADE = 1e6
"""A change of weight beyond this is a unit or a typing error."""


class Trade(Answer):
    """One trade."""

    symbol: str = Field(description="Ticker, at most once in the list.")
    action: Literal["buy", "sell"] = Field(description="buy raises the signed weight, sell lowers it.")
    current_weight: float = Field(description="Signed weight before, as a fraction of NAV (0.05 is 5 %).")
    target_weight: float = Field(description="Signed weight after, as a fraction of NAV.")
    trade_pct: float = Field(description="Target minus current weight, a fraction of NAV; negative for a sale.")


class RiskRemediation(Answer):
    """Answer: the trades, their turnover and whether they cure the portfolio."""

    trades: list[Trade] = Field(description="One entry per ticker whose weight changes; cash takes the rest.")
    total_turnover: float = Field(
        description="One-way turnover of the trades, (sum of |trade_pct| + |sum of trade_pct|)/2; >= 0, a fraction of "
        "NAV, without what was traded earlier in the month."
    )
    post_trade_compliant: bool = Field(
        description="true if the portfolio meets its whole mandate after the trades, the turnover limit included."
    )


def paper(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """constraint_satisfaction_plus_cost: 0.3 compliance + 0.3 turnover + 0.4 F1 on the multiset of trades.

    Compliance: `post_trade_compliant` equal. Turnover: |T̂-T| <= x max(T, 0.01), x = `turnover_excess_pct`/100 of
    the verification's `tolerance`, default 0.5, an absent turnover being 0. Trades are (SYMBOL, action) pairs.
    """
    del task_input
    return _score(answer, truth, multiset_f1(_pairs(answer), _pairs(truth.expected_output)))


def strict(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """As `paper`, with F1 on the sets of (SYMBOL, action) pairs."""
    del task_input
    return _score(answer, truth, set_f1(set(_pairs(answer)), set(_pairs(truth.expected_output))))


def certified(answer: JsonObject, truth: Truth, task_input: RemediationInput) -> Score:
    """The trades are applied and judged by what they do; three reports that must agree multiply.

    Where the mandate can be met: every constraint kept within its tolerance (`_within`) gates
    clip(1 - (T - T*)/(T_reference - T*)), T the turnover of the trades, T* the certified least one and T_reference
    that of moving to the mandate's portfolio nearest to the benchmark. Where it cannot: the limits that are kept at
    any price (and cash not below 0) gate clip(1 - (V - V*)/(V_0 - V*)), V the total relative excess over the others.
    A gap of a thousandth is rounding. Each of total_turnover, post_trade_compliant and the trades' own action and
    target_weight that is absent or disagrees costs a third.
    """
    market = market_from(task_input)
    portfolio = portfolio_from(task_input, market)
    parsed = _applied(answer, portfolio, market)
    if parsed is None:
        return Score(0.0, {"trades": "absent, or outside the universe"})
    trades, consistent = parsed
    turnover = turnover_of(trades)
    done = after(portfolio, trades)
    mandate = mandate_from(task_input["mandate"])
    known = truth.verification
    curable = truth.expected_output["post_trade_compliant"]
    checks = list(zip(mandate.constraints, measure(done, mandate, market, WEIGHT_TOLERANCE), strict=True))
    binding = [check for check in checks if curable or check[0].kind in HARD_KINDS]
    broken = [limit.kind.value for limit, found in binding if not _within(limit, found)]
    if done.cash < -FEASIBILITY_TOLERANCE:
        broken.append("cash below 0")
    if curable:
        achieved, best, zero = turnover, known["least_turnover"], known["reference_turnover"]
    else:
        achieved, best, zero = total_excess(done, mandate, market), known["least_excess"], known["excess_before"]
    gap = (achieved - best) / (zero - best)
    merit = 0.0 if broken else 1.0 if gap <= DEAD_ZONE else clip(1.0 - gap)
    reported = number(answer.get("total_turnover"))
    agreements = {
        "turnover_agrees": reported is not None and abs(reported - turnover) <= FEASIBILITY_TOLERANCE,
        "compliance_agrees": boolean(answer.get("post_trade_compliant")) is curable,
        "trades_agree": consistent,
    }
    value = merit * sum(agreements.values()) / len(agreements)
    return Score(value, {"merit": merit, "gap": gap, "broken": broken, "turnover": turnover, **agreements})


def _within(limit: Constraint, found: Measure) -> bool:
    """Whether a constraint is kept within its tolerance; `found` is measured with `WEIGHT_TOLERANCE`."""
    if limit.kind in OF_WEIGHTS:
        return found.excess <= WEIGHT_TOLERANCE
    below, above = limit_scales(limit)
    scale = below if found.value < limit.bounds[0] else above
    return found.excess <= min(FEASIBILITY_TOLERANCE, LIMIT_TOLERANCE * scale)


def _applied(answer: JsonObject, portfolio: Portfolio, market: Market) -> tuple[Floats, bool] | None:
    """(n,) signed weight changes, and whether every entry agrees with itself and with the portfolio.

    An entry trades its `trade_pct`, without one what its `target_weight` asks for. None where there are no trades, one
    names no ticker of the universe, or a number is absurd.
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
        consistent &= (
            symbol not in seen
            and target is not None
            and abs(held + traded - target) <= FEASIBILITY_TOLERANCE
            and (before is None or abs(before - held) <= FEASIBILITY_TOLERANCE)
            and (abs(traded) <= WEIGHT_TOLERANCE or _action(entry) == ("buy" if traded > 0 else "sell"))
        )
        seen.add(symbol)
        trades[rows[symbol]] += traded
    return (trades, consistent) if entries else None


def _action(entry: JsonObject) -> str:
    return (text(entry.get("action")) or "").strip().lower()


def _score(answer: JsonObject, truth: Truth, f1: float) -> Score:
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


def build(context: BuildContext, objects: RiskObjects) -> list[Task]:
    """Certified pairs: `BEYOND` of the episodes cannot be mended within the month's turnover, the others can.

    Drawn by tier, portfolio type, regime and mandate; a portfolio that constraint monitoring asks about is left to it,
    since the violations listed here would tell its answer. Of the others `LIMITED` have a turnover limit.
    """
    monitored = {pair.case.portfolio_id for pair in objects.monitored}
    counts = {(False, True): BEYOND, (True, True): LIMITED, (True, False): EPISODES - BEYOND - LIMITED}
    tasks: list[Task] = []
    for group, count in counts.items():
        side = [p for p in objects.remediation if p.group == group and p.case.portfolio_id not in monitored]
        tasks += drawn(side, _traits, count, context.generator(NAME, "draw", *group), _task)
    return shuffled(tasks, context.generator(NAME, "order"))


def _traits(pair: RemediationPair) -> tuple[str, ...]:
    return pair.tier, pair.case.type, pair.case.regime, pair.mandate.mandate_id


def _task(pair: RemediationPair) -> Task | None:
    """The episode of a pair, or None where it does not discriminate or its verdict hangs on rounding."""
    known = _bounds(pair)
    if known is None:
        return None
    case, market, remedy = pair.case, pair.case.market, pair.remedy
    trades = traded(remedy)
    prompt = Prompt(
        f"The portfolio as of {case.as_of} breaks the constraints of its mandate that violations lists. Find the "
        "trades of least one-way turnover after which it keeps the whole mandate, using any names of the universe and "
        "cash. If the turnover left for the month allows no such trades, find those that come nearest to the mandate "
        "within it. conventions defines turnover, what comes nearest, and how ties are broken.",
        "Submit a JSON object with trades (symbol, action, current_weight, target_weight, trade_pct), total_turnover "
        f"and post_trade_compliant. {PRECISION}",
    )
    task_input = mandate_input(pair, REMEDIATION, violations=[kind.value for kind in pair.violations])
    episode = mandate_episode(NAME, SUBTASK.prefix, pair, prompt, task_input)
    label = {
        "trades": trade_list(case.portfolio, trades, market),
        "total_turnover": turnover_of(trades),
        "post_trade_compliant": remedy.compliant,
    }
    verification = {
        "method": METHOD,
        "metrics": ["post_trade_compliant", "turnover_vs_optimal"],
        "tolerance": {"turnover_excess_pct": 50},
        **known,
        **planted(case),
        "ground_truth_source": "certified optimiser, in stages",
    }
    return Task(
        episode,
        Truth(episode.task_id, NAME, label, verification, _proof(episode, pair, trades)),
        {f"least_{stage.aim.goal}": certificate_of(stage.certified) for stage in remedy.stages},
    )


def _bounds(pair: RemediationPair) -> dict[str, float] | None:
    """What the score of a pair runs between; None where it does not discriminate or the verdict hangs on rounding."""
    portfolio, mandate, market, remedy = pair.case.portfolio, pair.mandate, pair.case.market, pair.remedy
    if not remedy.stages:
        return None
    left, least = budget_left(portfolio, mandate), remedy.stages[0].certified.value
    if abs(left - least) < GREY_BAND:
        return None
    if remedy.compliant:
        known = {"least_turnover": least, "reference_turnover": reference_turnover(portfolio, mandate, market)}
        spread = known["reference_turnover"] - least
        clear = least >= LEAST_TURNOVER and spread >= LEAST_SPREAD and not _naive(pair, least + NAIVE * spread)
    else:
        before = total_excess(portfolio, mandate, market)
        known = {"least_turnover": least, "least_excess": remedy.value, "excess_before": before}
        clear = remedy.value >= LEAST_EXCESS and before - remedy.value >= LEAST_EXCESS
    return known if clear else None


def _naive(pair: RemediationPair, most: float) -> bool:
    """Whether cutting at the limits on positions and sectors keeps the mandate, for a turnover of `most`."""
    portfolio, market = pair.case.portfolio, pair.case.market
    trades = clipped(portfolio, pair.mandate, market) - portfolio.weights
    measures = measure(after(portfolio, trades), pair.mandate, market, FEASIBILITY_TOLERANCE)
    return turnover_of(trades) <= most and all(item.passed for item in measures)


def _proof(episode: Episode, pair: RemediationPair, trades: Floats) -> dict[str, Any]:
    """The proof of what is judged, T* or V*, and of every stage; the mandate after the trades is measured once more.

    Which of several optimal lists of trades the last stage picked is not judged, so its uniqueness decides nothing.

    Raises
    ------
    InternalError : the second arithmetic finds the mandate kept where the engine does not, or the other way round.
    """
    remedy, market = pair.remedy, pair.case.market
    task_input = cast("RemediationInput", {**episode.input, "covariance_matrix": resolved_covariance(market)})
    found = monitored_after(task_input, dict(zip(market.tickers, trades.tolist(), strict=True)))
    complies = all(one.status == "PASS" for one in found.values())
    if complies is not remedy.compliant:
        raise InternalError(
            f"{episode.task_id}: post_trade_compliant is {remedy.compliant} by the engine and {complies} derived a "
            "second time"
        )
    stages = {f"least_{stage.aim.goal}": proof_of(stage.certified) for stage in remedy.stages}
    decisive = stages["least_turnover" if remedy.compliant else "least_excess"]
    left = budget_left(pair.case.portfolio, pair.mandate)
    verdict = {"kind": "optimal"} if remedy.compliant else {"kind": "infeasible", "turnover_left": left}
    return decisive | verdict | {"stages": stages}


def _by_hand(data: Mapping[str, Any]) -> JsonObject:
    """Cut names and sectors to their caps and spread what is freed over the other holdings; the rest is hoped for."""
    weights, _ = by_hand.holdings(data)
    limits = {limit["type"]: limit.get("value") for limit in data["mandate"]["constraints"]}
    caps = limits.get("position_limit_max"), limits.get("sector_limit_max")
    after_cuts = by_hand.cut(weights, data["sector_mapping"], *caps)
    changes = {name: after_cuts[name] - weight for name, weight in weights.items()}
    changes = {name: change for name, change in changes.items() if abs(change) > by_hand.TRADED}
    return {
        "trades": [
            {
                "symbol": name,
                "action": "buy" if change > 0 else "sell",
                "current_weight": weights[name],
                "target_weight": after_cuts[name],
                "trade_pct": change,
            }
            for name, change in changes.items()
        ],
        "total_turnover": (sum(map(abs, changes.values())) + abs(sum(changes.values()))) / 2,
        "post_trade_compliant": True,
    }


def _no_trades(data: Mapping[str, Any]) -> JsonObject:
    del data
    return {"trades": [], "total_turnover": 0.0, "post_trade_compliant": True}


SUBTASK: Subtask[RemediationInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_rr",
    method=METHOD,
    answer=RiskRemediation,
    cluster=by_input("mandate", "mandate_id"),
    scorers={Profile.PAPER: paper, Profile.STRICT: strict, Profile.CERTIFIED: certified},
    build=build,
    proof=examine,
    by_hand=Naive(("portfolio", "mandate", "sector_mapping"), _by_hand),
    trivial=Naive((), _no_trades),
    input=RemediationInput,
    definitions=conventions(CONVENTIONS, REMEDIATION),
)

"""Shortcuts and graded examples of risk remediation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.domains.risk.examples.exploits import to_decimals
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.objects.placement import clipped
from finskillbench.domains.risk.objects.plain_cures import even_costs, without_models
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.risk.formulation import RemediationAim, RemediationGoal
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate, mandate_from
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, require_field, turnover_of
from finskillbench.engines.risk.remediation import Remedy, approximate_relaxed, remediate
from finskillbench.engines.risk.report import significant_trades, trade_list
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import TradingRules, trading_rules_from
from finskillbench.episode import JsonObject

_STEP = 0.3
_MOST_PROGRAMS = 120
_OF_CURES = frozenset({"headroom ignored", "costs ignored"})
"""Shortcuts that do not change an infeasible case."""


def shortcuts(task_input: RemediationInput) -> Mapping[str, JsonObject]:
    """Return answers by name of the shortcut, where it applies."""
    market = market_from(task_input)
    portfolio, mandate = portfolio_from(task_input, market), mandate_from(task_input["mandate"])
    rules = trading_rules_from(task_input["trading_terms"], market.tickers, mandate)
    case = _Case(portfolio, mandate, market, rules)
    found = {"no trades": case.stated(np.zeros(len(market.tickers)))} | case.without_optimiser()
    programs = {
        "headroom ignored": (mandate, replace(rules, headroom={})),
        "minimum trade ignored": (mandate, replace(rules, ticket=0.0)),
        "factor, risk and concentration limits ignored": (without_models(mandate), rules),
        "turnover budget ignored": (mandate.without(ConstraintKind.TURNOVER_MAX_MONTHLY), rules),
        "costs ignored": (mandate, replace(rules, costs=even_costs(len(rules.costs)))),
    }
    for name, (known, on) in programs.items():
        if name == "turnover budget ignored" and known == mandate:
            continue
        remedy = case.solved(known, on)
        if remedy is None or (name in _OF_CURES and not remedy.compliant):
            continue
        trades = significant_trades(remedy)
        found[name] = case.stated(trades, compliant=remedy.compliant)
        if name == "minimum trade ignored":
            large = np.where(np.abs(trades) < rules.ticket, 0.0, trades)
            found["trades below the minimum dropped"] = case.stated(large, compliant=remedy.compliant)
    return found


class _Case:
    """Problem of one episode, and answers derived from it."""

    def __init__(self, portfolio: Portfolio, mandate: RiskMandate, market: MarketSnapshot, rules: TradingRules) -> None:
        self.portfolio, self.mandate, self.market, self.terms = portfolio, mandate, market, rules

    def without_optimiser(self) -> dict[str, JsonObject]:
        """Return cuts to the caps, a step to the benchmark, and limits cured one at a time."""
        now, target = self.portfolio.weights, self.terms.target(self.mandate)
        spread = clipped(self.portfolio, target, self.market)
        away = require_field(self.market.benchmark, "benchmark weights") - now
        return {
            "cut to the caps, the rest in cash": self.stated(np.minimum(spread, now) - now),
            "cut to the caps and spread in proportion": self.stated(spread - now),
            f"{_STEP:.0%} of the way to the benchmark": self.stated(_STEP * away),
            "the benchmark": self.stated(away),
            "each limit cured by itself": self.stated(self._in_turn(target)),
        }

    def _in_turn(self, target: RiskMandate) -> Floats:
        """Cure each limit at least cost in turn, ignoring earlier ones."""
        book = self.portfolio
        for limit in target.constraints:
            alone = replace(target, constraints=(limit,))
            found = approximate_relaxed(
                book, alone, self.market, RemediationAim(RemediationGoal.COST, self.terms.costs)
            )
            if found is not None:
                done = np.where(np.abs(found - book.weights) < 1e-6, book.weights, found)
                book = replace(book, weights=done, cash=book.cash - float((done - book.weights).sum()))
        return book.weights - self.portfolio.weights

    def solved(self, mandate: RiskMandate, rules: TradingRules) -> Remedy | None:
        """Return the best trades of a changed problem; None if infeasible or undecided."""
        try:
            return remediate(self.portfolio, mandate, self.market, rules, most_programs=_MOST_PROGRAMS)
        except (InfeasibleError, UndecidedError):
            return None

    def stated(self, trades: Floats, *, compliant: bool = True) -> JsonObject:
        """Format (n,) trades as an answer."""
        return {
            "trades": trade_list(self.portfolio, trades, self.market),
            "total_turnover": turnover_of(trades),
            "post_trade_compliant": compliant,
        }


def graded_examples(label: Label[RemediationInput]) -> list[GradedExample]:
    """Return examples from the truth to no trades."""
    truth = label.truth.expected_output
    curable = truth["post_trade_compliant"]
    return [
        GradedExample("truth", truth, 1.0, 1.0),
        GradedExample("six decimals", to_decimals(truth, 6), 0.99, 1.0),
        GradedExample("four decimals", to_decimals(truth, 4), 0.85, 1.0),
        GradedExample("turnover not stated", {**truth, "total_turnover": None}, 0.6, 0.7),
        GradedExample("a false statement on compliance", {**truth, "post_trade_compliant": not curable}, 0.2, 0.2),
        GradedExample("no trades", {**truth, "trades": [], "total_turnover": 0.0}, 0.0, 0.0),
    ]

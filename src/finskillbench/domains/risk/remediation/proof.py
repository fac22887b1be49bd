"""The proof of a remediation: trades applied with plain arithmetic, and each stage repeated from its multipliers."""

from __future__ import annotations

import math

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.rederive import (
    NEVER_GIVEN_UP,
    after,
    cost_of,
    monitored,
    monitored_after,
    relative_excess,
    undersized,
    with_headroom,
)
from finskillbench.domains.risk.rederive import turnover as turnover_of
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.engines.optimisation.uniqueness import prove_unique
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.remediation import budget_left, solve_relaxed, solve_stage
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import terms_from
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

_EXACT = 1e-9
_SAME_TRADE = 1e-5
_DUST = 1e-6
"""What the trades leave of a name that is sold in full."""
_ACCURACY = 2e-7
"""What a solver leaves, and a tie may cost: an excess over a limit, or a difference between two proved values."""


def examine(label: Label[RemediationInput], findings: Findings) -> None:
    """The trades cost the certified least and keep the mandate, or the proof says why none can."""
    _Examination(label, findings).examine_trades()
    if label.certificate:
        _Recheck(label, findings).examine()


class _Examination:
    """One label and what is found of it."""

    def __init__(self, label: Label[RemediationInput], findings: Findings) -> None:
        self.task_input = label.task_input
        self.truth = label.truth
        self.findings = findings

    def expect(self, holds: object, message: str) -> None:
        """Add a defect of the label unless something holds."""
        self.findings.expect(holds, self.truth.task_id, message)

    def same(self, stated: float, derived: float, what: str, within: float = _EXACT) -> None:
        """Add a defect unless two numbers agree, and keep the widest difference as a figure."""
        difference = abs(stated - derived)
        self.findings.widest("greatest_difference", difference if math.isfinite(difference) else math.inf)
        message = f"{what} is {stated:.12g} in the label and {derived:.12g} derived again"
        self.expect(difference <= within, message)

    def examine_trades(self) -> None:
        """The trades are those of the portfolio, keep what they must, and cost and leave what the truth says."""
        task_input, output, known = self.task_input, self.truth.expected_output, self.truth.verification
        broken = [kind for kind, one in monitored(task_input).items() if one.status == "FAIL"]
        self.expect(sorted(task_input["violations"]) == sorted(broken), "its violations are not those of now")
        trades = self._trades()
        self.same(output["total_turnover"], turnover_of(trades.values()), "the turnover", _ACCURACY)
        inside = with_headroom(task_input)
        done = after(inside, trades, _DUST)
        cash = done["portfolio"]["cash_weight"]
        self.expect(cash >= -_ACCURACY, f"its cash becomes {cash:.1e}")
        curable = output["post_trade_compliant"]
        self.findings.add("mended" if curable else "beyond_mending")
        for kind, one in monitored_after(inside, trades, _DUST).items():
            if curable or kind in NEVER_GIVEN_UP:
                self.findings.widest("greatest_excess", one.excess)
                self.expect(one.excess <= _ACCURACY, f"after its trades {kind} is exceeded by {one.excess:.1e}")
        left, before = relative_excess(done), relative_excess(inside)
        self.expect(curable or _DUST < left < before, "is said to break the mandate, and its trades lower no excess")
        if "trading_terms" not in task_input:
            return  # of an imported release
        small, cost = undersized(task_input, trades, _DUST), cost_of(task_input, trades)
        self.expect(not small, f"trades less than the minimum of {', '.join(small)}")
        if curable:
            self.same(known["least_cost"], cost, "the least cost", _ACCURACY)
        else:
            left += cost
            self.same(known["least_shortfall"], left, "the least shortfall", 10 * _ACCURACY)
            self.same(known["shortfall_before"], before, "the shortfall before")

    def _trades(self) -> dict[str, float]:
        """Signed change of weight by ticker, each entry of the label held against itself and the portfolio."""
        owned = dict.fromkeys(self.task_input["sector_mapping"], 0.0)
        owned |= {item["symbol"]: item["weight"] for item in self.task_input["portfolio"]["holdings"]}
        trades: dict[str, float] = {}
        for trade in self.truth.expected_output["trades"]:
            symbol, change = trade["symbol"], trade["trade_pct"]
            before, target = trade["current_weight"], trade["target_weight"]
            self.expect(symbol not in trades and change != 0, f"{symbol} is traded twice or not at all")
            self.expect(trade["action"] == ("buy" if change > 0 else "sell"), f"{symbol}: {trade['action']}")
            self.same(before, owned[symbol], f"the weight of {symbol} before")
            self.same(target, before + change, f"the weight of {symbol} after")
            trades[symbol] = change
        return trades


class _Recheck(_Examination):
    """The certificate of one remediation beside the task it is about."""

    def __init__(self, label: Label[RemediationInput], findings: Findings) -> None:
        super().__init__(label, findings)
        self.stages = label.certificate
        self.market = market_from(label.task_input)
        self.portfolio = portfolio_from(label.task_input, self.market)
        self.stated = mandate_from(label.task_input["mandate"])
        self.terms = terms_from(label.task_input["trading_terms"], self.market.tickers, self.stated)
        self.target = self.terms.target(self.stated)

    def examine(self) -> None:
        """Repeat the stages: the least cost; or that the turnover is too much, and the least shortfall."""
        left, curable = budget_left(self.portfolio, self.stated), self.truth.expected_output["post_trade_compliant"]
        cap, known = (None if math.isinf(left) else left), self.truth.verification
        last = Aim(Goal.COST if curable else Goal.EXCESS, self.terms.costs, cap)
        if not curable:
            self._beyond(left, known["least_turnover"])
        name = stage_name(last)
        stored = self.stages[name]
        value, bound, unique = (
            self._solved(last, stored) if stored["programs_solved"] > 1 else self._proved(last, stored)
        )
        self.findings.widest("greatest_gap", value - bound)
        self.expect(value - bound <= ACCEPTED_GAP, f"{name}: leaves a gap of {value - bound:.1e}")
        self.expect(unique, f"{name}: other trades are as good, or may be")
        self.expect(stored["unique"] is unique, f"{name}: states unique {stored['unique']}, proved {unique}")
        self._agrees(f"value of {name}", stored["objective"], value)
        self._agrees(f"bound of {name}", stored["lower_bound"], bound)
        self._agrees("label", known["least_cost" if curable else "least_shortfall"], value)
        self._same_trades(np.array(stored["weights"], dtype=float) - self.portfolio.weights)
        proof, fields = self.truth.proof, ("objective", "lower_bound", "gap", "unique")
        summaries = [(proof, name), *((proof["stages"].get(stage, {}), stage) for stage in self.stages)]
        for summary, stage in summaries:
            different = [field for field in fields if summary.get(field) != self.stages[stage][field]]
            self.expect(not different, f"the truth's {', '.join(different)} of {stage} is not the certificate's")

    def _beyond(self, left: float, stated: float) -> None:
        """The least turnover, of trades of any size, does not fit in what is left; nor does it without headroom."""
        aim = Aim(Goal.TURNOVER)
        value, bound, _ = self._proved(aim, self.stages[stage_name(aim)])
        self._agrees("least_turnover", stated, value)
        self.expect(bound > left, f"the least turnover is proved to be {bound:.6f} only, {left:.6f} is left")
        bare = solve_relaxed(self.portfolio, self.stated, self.market, aim).certified.optimality.lower_bound
        self.expect(bare > left, f"without headroom {bare:.6f} would do, {left:.6f} is left")

    def _proved(self, aim: Aim, stored: JsonObject) -> tuple[float, float, bool]:
        """Value, proved bound and uniqueness of a program that needed no branching, from its multipliers."""
        formulation = formulate(self.portfolio, self.target, self.market, aim)
        point = formulation.point(np.array(stored["weights"], dtype=float))
        multipliers = np.array(stored["multipliers"], dtype=float)
        proof = prove_optimal(formulation.program, point, multipliers)
        self.findings.add("recomputed")
        self.findings.widest("greatest_violation", proof.violation)
        self.expect(proof.violation <= ACCEPTED_VIOLATION, f"{aim.goal}: breaks a limit by {proof.violation:.1e}")
        return proof.objective, proof.lower_bound, prove_unique(formulation, point, multipliers).outcome.proved

    def _solved(self, aim: Aim, stored: JsonObject) -> tuple[float, float, bool]:
        """Value, proved bound and uniqueness where names were branched on: the search is repeated."""
        again = solve_stage(self.portfolio, self.target, self.market, aim, self.terms.ticket).certified
        self.findings.add("branched")
        away = float(np.abs(again.weights - np.array(stored["weights"], dtype=float)).max())
        self.expect(away <= _SAME_TRADE, f"{aim.goal}: a weight is not the optimal one, by {away:.1e}")
        return again.value, again.optimality.lower_bound, again.uniqueness.outcome.proved

    def _same_trades(self, certified: Floats) -> None:
        stated = {trade["symbol"]: trade["trade_pct"] for trade in self.truth.expected_output["trades"]}
        trades = np.array([stated.get(ticker, 0.0) for ticker in self.market.tickers])
        difference = float(np.abs(trades - certified).max())
        self.findings.widest("trade_difference", difference)
        self.expect(difference <= _SAME_TRADE, f"a trade is not the certified one, by {difference:.1e}")

    def _agrees(self, name: str, stated: float, derived: float, within: float = _ACCURACY) -> None:
        self.expect(abs(stated - derived) <= within, f"its {name} is {stated:.9g}, proved {derived:.9g}")


def stage_name(aim: Aim) -> str:
    """The stage's name in a certificate."""
    return f"least_{aim.goal}"

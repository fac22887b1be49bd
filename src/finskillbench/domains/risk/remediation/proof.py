"""Proof of a remediation: trades in plain arithmetic, and stages recomputed from their multipliers."""

from __future__ import annotations

import math

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import Label
from finskillbench.domains.risk import rederive
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.rederive import turnover_of_trades as turnover_of
from finskillbench.engines.optimisation.certificate import prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.engines.optimisation.uniqueness import prove_unique
from finskillbench.engines.risk.formulation import RemediationAim, RemediationGoal, formulate_remediation
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.remediation import budget_left, solve_relaxed, solve_with_tickets
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.engines.risk.trading import trading_rules_from
from finskillbench.episode import JsonObject
from finskillbench.findings import Findings

_EXACT = 1e-9
_SAME_TRADE = 1e-5
_DUST = 1e-6
"""Residue of a full sale."""
_ACCURACY = 2e-7
"""Solver accuracy, and cost of a tie."""


def examine_remediation(label: Label[RemediationInput], findings: Findings) -> None:
    """Check that the trades attain the certified value and keep their limits."""
    _Examination(label, findings).examine_trades()
    if label.certificate:
        _Recheck(label, findings).examine()


class _Examination:
    def __init__(self, label: Label[RemediationInput], findings: Findings) -> None:
        self.task_input = label.task_input
        self.truth = label.truth
        self.findings = findings

    def expect(self, holds: object, message: str) -> None:
        self.findings.expect(holds, self.truth.task_id, message)

    def same(self, stated: float, derived: float, what: str, within: float = _EXACT) -> None:
        """Report a defect unless two numbers agree, and record the largest difference."""
        difference = abs(stated - derived)
        self.findings.widest("greatest_difference", difference if math.isfinite(difference) else math.inf)
        message = f"{what} is {stated:.12g} in the label and {derived:.12g} derived again"
        self.expect(difference <= within, message)

    def examine_trades(self) -> None:
        """Check trades, limits, cost and shortfall against the truth."""
        task_input, output, known = self.task_input, self.truth.expected_output, self.truth.verification
        broken = [kind for kind, one in rederive.measure_mandate(task_input).items() if one.status == "FAIL"]
        self.expect(sorted(task_input["violations"]) == sorted(broken), "violations differ from the broken constraints")
        trades = self._trades()
        self.same(output["total_turnover"], turnover_of(trades.values()), "the turnover", _ACCURACY)
        inside = rederive.with_headroom(task_input)
        done = rederive.input_after_trades(inside, trades, _DUST)
        cash = done["portfolio"]["cash_weight"]
        self.expect(cash >= -_ACCURACY, f"cash after the trades is {cash:.1e}")
        curable = output["post_trade_compliant"]
        self.findings.add("mended" if curable else "beyond_mending")
        for kind, one in rederive.measure_mandate_after(inside, trades, _DUST).items():
            if curable or kind in rederive.HARD_LIMITS:
                self.findings.widest("greatest_excess", one.excess)
                self.expect(one.excess <= _ACCURACY, f"after its trades {kind} is exceeded by {one.excess:.1e}")
        left, before = rederive.rederived_relative_excess(done), rederive.rederived_relative_excess(inside)
        self.expect(
            curable or _DUST < left < before, "post_trade_compliant is false, but the trades do not reduce the excess"
        )
        if "trading_terms" not in task_input:
            return  # imported release
        small, cost = rederive.undersized_names(task_input, trades, _DUST), rederive.cost_of(task_input, trades)
        self.expect(not small, f"trades below minimum_trade: {', '.join(small)}")
        if curable:
            self.same(known["least_cost"], cost, "the least cost", _ACCURACY)
        else:
            left += cost
            self.same(known["least_shortfall"], left, "the least shortfall", 10 * _ACCURACY)
            self.same(known["shortfall_before"], before, "the shortfall before")

    def _trades(self) -> dict[str, float]:
        """Return signed trades by ticker after consistency checks."""
        owned = dict.fromkeys(self.task_input["sector_mapping"], 0.0)
        owned |= {item["symbol"]: item["weight"] for item in self.task_input["portfolio"]["holdings"]}
        trades: dict[str, float] = {}
        for trade in self.truth.expected_output["trades"]:
            symbol, change = trade["symbol"], trade["trade_pct"]
            before, target = trade["current_weight"], trade["target_weight"]
            self.expect(symbol not in trades and change != 0, f"{symbol} is listed twice or with a trade of 0")
            self.expect(
                trade["action"] == ("buy" if change > 0 else "sell"),
                f"{symbol}: action {trade['action']} contradicts trade_pct {change}",
            )
            self.same(before, owned[symbol], f"the weight of {symbol} before")
            self.same(target, before + change, f"the weight of {symbol} after")
            trades[symbol] = change
        return trades


class _Recheck(_Examination):
    """Comparison of a certificate with its task."""

    def __init__(self, label: Label[RemediationInput], findings: Findings) -> None:
        super().__init__(label, findings)
        self.stages = label.certificate
        self.market = market_from(label.task_input)
        self.portfolio = portfolio_from(label.task_input, self.market)
        self.stated = mandate_from(label.task_input["mandate"])
        self.terms = trading_rules_from(label.task_input["trading_terms"], self.market.tickers, self.stated)
        self.target = self.terms.target(self.stated)

    def examine(self) -> None:
        """Recompute the stages of the certificate."""
        left, curable = budget_left(self.portfolio, self.stated), self.truth.expected_output["post_trade_compliant"]
        cap, known = (None if math.isinf(left) else left), self.truth.verification
        last = RemediationAim(RemediationGoal.COST if curable else RemediationGoal.EXCESS, self.terms.costs, cap)
        if not curable:
            self._beyond(left, known["least_turnover"])
        name = certificate_key(last)
        stored = self.stages[name]
        value, bound, unique = (
            self._solved(last, stored) if stored["programs_solved"] > 1 else self._proved(last, stored)
        )
        self.findings.widest("greatest_gap", value - bound)
        self.expect(value - bound <= ACCEPTED_GAP, f"{name}: leaves a gap of {value - bound:.1e}")
        self.expect(unique, f"{name}: the optimum is not proved unique")
        self.expect(stored["unique"] is unique, f"{name}: unique is {stored['unique']}, proved {unique}")
        self._agrees(f"value of {name}", stored["objective"], value)
        self._agrees(f"bound of {name}", stored["lower_bound"], bound)
        self._agrees("label", known["least_cost" if curable else "least_shortfall"], value)
        self._same_trades(np.array(stored["weights"], dtype=float) - self.portfolio.weights)
        proof, fields = self.truth.proof, ("objective", "lower_bound", "gap", "unique")
        summaries = [(proof, name), *((proof["stages"].get(key, {}), key) for key in self.stages)]
        for summary, key in summaries:
            different = [field for field in fields if summary.get(field) != self.stages[key][field]]
            self.expect(not different, f"the truth's {', '.join(different)} of {key} differs from the certificate")

    def _beyond(self, left: float, stated: float) -> None:
        """Check that the least turnover exceeds the turnover left, with and without headroom."""
        aim = RemediationAim(RemediationGoal.TURNOVER)
        value, bound, _ = self._proved(aim, self.stages[certificate_key(aim)])
        self._agrees("least_turnover", stated, value)
        self.expect(bound > left, f"the least turnover is proved to be {bound:.6f}, but {left:.6f} is left")
        bare = solve_relaxed(self.portfolio, self.stated, self.market, aim).certified.optimality.lower_bound
        self.expect(bare > left, f"without headroom {bare:.6f} suffices, and {left:.6f} is left")

    def _proved(self, aim: RemediationAim, stored: JsonObject) -> tuple[float, float, bool]:
        """Return value, bound and uniqueness from the stored multipliers."""
        formulation = formulate_remediation(self.portfolio, self.target, self.market, aim)
        point = formulation.point(np.array(stored["weights"], dtype=float))
        multipliers = np.array(stored["multipliers"], dtype=float)
        proof = prove_optimal(formulation.program, point, multipliers)
        self.findings.add("recomputed")
        self.findings.widest("greatest_violation", proof.violation)
        self.expect(proof.violation <= ACCEPTED_VIOLATION, f"{aim.goal}: breaks a limit by {proof.violation:.1e}")
        return proof.objective, proof.lower_bound, prove_unique(formulation, point, multipliers).outcome.proved

    def _solved(self, aim: RemediationAim, stored: JsonObject) -> tuple[float, float, bool]:
        """Return value, bound and uniqueness by repeating the branching search."""
        again = solve_with_tickets(self.portfolio, self.target, self.market, aim, self.terms.ticket).certified
        self.findings.add("branched")
        away = float(np.abs(again.weights - np.array(stored["weights"], dtype=float)).max())
        self.expect(away <= _SAME_TRADE, f"{aim.goal}: a weight differs from the optimum by {away:.1e}")
        return again.value, again.optimality.lower_bound, again.uniqueness.outcome.proved

    def _same_trades(self, certified: Floats) -> None:
        stated = {trade["symbol"]: trade["trade_pct"] for trade in self.truth.expected_output["trades"]}
        trades = np.array([stated.get(ticker, 0.0) for ticker in self.market.tickers])
        difference = float(np.abs(trades - certified).max())
        self.findings.widest("trade_difference", difference)
        self.expect(difference <= _SAME_TRADE, f"a trade differs from the certified one by {difference:.1e}")

    def _agrees(self, name: str, stated: float, derived: float, within: float = _ACCURACY) -> None:
        self.expect(abs(stated - derived) <= within, f"the {name} is {stated:.9g}, proved {derived:.9g}")


def certificate_key(aim: RemediationAim) -> str:
    """Return the key of a stage in a certificate."""
    return f"least_{aim.goal}"

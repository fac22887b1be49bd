"""The proof of a remediation: trades applied with plain arithmetic, and each stage repeated from its multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.base import Label
from finskillbench.domains.risk.inputs import RemediationInput
from finskillbench.domains.risk.objects.plain_cures import needs_a_model
from finskillbench.domains.risk.second import NEVER_GIVEN_UP, after, monitored, monitored_after, relative_excess
from finskillbench.domains.risk.second import turnover as turnover_of
from finskillbench.engines.optimisation.certificate import Optimality, prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.engines.optimisation.uniqueness import UniquenessProof, prove_unique
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import mandate_from
from finskillbench.engines.risk.remediation import SLACKS, budget_left, remediate, solve_stage
from finskillbench.engines.risk.semicontinuity import SLACK
from finskillbench.engines.risk.task import market_from, portfolio_from
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
        done = after(task_input, trades, _DUST)
        cash = done["portfolio"]["cash_weight"]
        self.expect(cash >= -_ACCURACY, f"its cash becomes {cash:.1e}")
        curable = output["post_trade_compliant"]
        self.findings.add("mended" if curable else "beyond_mending")
        for kind, one in monitored_after(task_input, trades, _DUST).items():
            if curable or kind in NEVER_GIVEN_UP:
                self.findings.widest("greatest_excess", one.excess)
                self.expect(one.excess <= _ACCURACY, f"after its trades {kind} is exceeded by {one.excess:.1e}")
        if curable:
            if "least_turnover" in known:
                self.same(known["least_turnover"], output["total_turnover"], "the least turnover", _ACCURACY)
            return
        left = relative_excess(done)
        self.expect(left > _ACCURACY, "is said to break the mandate, which its trades keep")
        if "least_excess" in known:
            self.same(known["least_excess"], left, "the least excess", 10 * _ACCURACY)
            before = relative_excess(task_input)
            self.same(known["excess_before"], before, "the excess before")
            self.expect(left < before, "its trades lower no excess")

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
        self.mandate = mandate_from(label.task_input["mandate"])

    def examine(self) -> None:
        """Repeat the stages in their order: least turnover, least excess where that is too much, least squares."""
        left, curable = budget_left(self.portfolio, self.mandate), self.truth.expected_output["post_trade_compliant"]
        least, bound = self._stage(Aim(Goal.TURNOVER))
        self._agrees("least_turnover", self.truth.verification["least_turnover"], least)
        ties = self._ties_of_least_turnover(least, left) if curable else self._ties_of_least_excess(bound, left)
        decisive = Aim(Goal.TURNOVER) if curable else Aim(Goal.EXCESS, turnover_cap=left)
        last = self._settled(decisive, ties)
        self._same_trades(np.array(last["weights"], dtype=float) - self.portfolio.weights)
        if curable:
            self.findings.add("needing_a_model", int(needs_a_model(self.portfolio, self.mandate, self.market)))
        proof, fields = self.truth.proof, ("objective", "lower_bound", "gap", "unique")
        summaries = [(proof, _name(decisive)), *((proof["stages"].get(stage, {}), stage) for stage in self.stages)]
        for summary, stage in summaries:
            different = [field for field in fields if summary.get(field) != self.stages[stage][field]]
            self.expect(not different, f"the truth's {', '.join(different)} of {stage} is not the certificate's")

    def _ties_of_least_turnover(self, least: float, left: float) -> list[Aim]:
        """The least turnover fits in what is left; the stages that may have broken its ties."""
        self.expect(least <= left + SLACK, f"the least turnover {least:.6f} exceeds what is left, {left:.6f}")
        start = self.stages["least_turnover"]["objective"]
        return [Aim(Goal.TRADES, turnover_cap=max(start, min(start + slack, left))) for slack in SLACKS]

    def _ties_of_least_excess(self, bound: float, left: float) -> list[Aim]:
        """The least turnover does not fit, by its proof; the stages that may have broken ties of the least excess."""
        self.expect(bound > left, f"the least turnover is proved to be {bound:.6f} only, {left:.6f} is left")
        excess, _ = self._stage(Aim(Goal.EXCESS, turnover_cap=left))
        self._agrees("least_excess", self.truth.verification["least_excess"], excess)
        # To the last digit what the stage states: the multiplier of the cap may be large.
        cap = self.stages["least_excess"]["objective"]
        return [Aim(Goal.TRADES, turnover_cap=left, excess_cap=cap + slack) for slack in SLACKS]

    def _settled(self, decisive: Aim, ties: Sequence[Aim]) -> JsonObject:
        """The stage whose portfolio is the label: alone in its value, or the least squares among equally good ones."""
        tied = _name(ties[0]) in self.stages
        name = _name(ties[0] if tied else decisive)
        last = self.stages[name]
        if last["programs_solved"] > 1:
            self.expect(tied, f"{name}: has branched, which leaves its ties open")
            again = remediate(self.portfolio, self.mandate, self.market).stages[-1].certified
            gap, unique = again.optimality.gap, again.uniqueness.outcome.proved
            self._agrees(f"value of {name}", last["objective"], again.value)
            self.findings.add("ties_left_open", int(not unique))  # among branches of equal squares
        else:
            # A cap on an earlier stage's value is one of those that the engine may have set; it is met with the trades
            # that the weights imply, not with the solver's own auxiliary variables.
            proofs = [self._proved(aim, last) for aim in (ties if tied else [decisive])]
            met = [(proof.gap, unique.outcome.proved) for proof, unique in proofs if proof.violation <= _DUST]
            gap, unique = min(met)
            self.expect(unique, f"{name}: other trades are as good, or may be")
        self.expect(gap <= ACCEPTED_GAP, f"{name}: its multipliers leave a gap of {gap:.1e}")
        self.expect(last["unique"] is unique, f"{name}: states unique {last['unique']}, proved {unique}")
        return last

    def _proved(self, aim: Aim, stored: JsonObject) -> tuple[Optimality, UniquenessProof]:
        formulation = formulate(self.portfolio, self.mandate, self.market, aim)
        point = formulation.point(np.array(stored["weights"], dtype=float))
        multipliers = np.array(stored["multipliers"], dtype=float)
        optimality = prove_optimal(formulation.program, point, multipliers)
        return optimality, prove_unique(formulation, point, multipliers)

    def _same_trades(self, certified: Floats) -> None:
        stated = {trade["symbol"]: trade["trade_pct"] for trade in self.truth.expected_output["trades"]}
        trades = np.array([stated.get(ticker, 0.0) for ticker in self.market.tickers])
        difference = float(np.abs(trades - certified).max())
        self.findings.widest("trade_difference", difference)
        self.expect(difference <= _SAME_TRADE, f"a trade is not the certified one, by {difference:.1e}")

    def _agrees(self, name: str, stated: float, derived: float, within: float = _ACCURACY) -> None:
        self.expect(abs(stated - derived) <= within, f"its {name} is {stated:.9g}, proved {derived:.9g}")

    def _stage(self, aim: Aim) -> tuple[float, float]:
        """Value and proved bound of one stage, from its multipliers or, where names were branched on, solved again."""
        name = _name(aim)
        stored = self.stages[name]
        if stored["programs_solved"] > 1:
            again = solve_stage(self.portfolio, self.mandate, self.market, aim).certified
            value, bound = again.value, again.optimality.lower_bound
            self.findings.add("branched")
        else:
            proof, _ = self._proved(aim, stored)
            self.findings.widest("greatest_violation", proof.violation)
            self.expect(proof.violation <= ACCEPTED_VIOLATION, f"{name}: breaks a limit by {proof.violation:.1e}")
            value, bound = proof.objective, proof.lower_bound
            self.findings.add("recomputed")
        self.findings.widest("greatest_gap", value - bound)
        self.expect(value - bound <= ACCEPTED_GAP, f"{name}: its multipliers leave a gap of {value - bound:.1e}")
        self._agrees(f"value of {name}", stored["objective"], value)
        self._agrees(f"bound of {name}", stored["lower_bound"], bound)
        return value, bound


def _name(aim: Aim) -> str:
    """The stage's name in a certificate."""
    return f"least_{aim.goal}"

"""The remediation check: trades applied with plain arithmetic, and each proof repeated from its stored multipliers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examination import Subject, examining
from finskillbench.domains.risk.checks import measures as risk_measures
from finskillbench.domains.risk.checks.measures import NEVER_GIVEN_UP, Position
from finskillbench.domains.risk.checks.truth import derive, same
from finskillbench.engines.optimisation.certificate import Optimality, prove_optimal
from finskillbench.engines.optimisation.certified import ACCEPTED_GAP, ACCEPTED_VIOLATION
from finskillbench.engines.optimisation.uniqueness import UniquenessProof, prove_unique
from finskillbench.engines.risk.formulation import Aim, Goal, formulate
from finskillbench.engines.risk.mandate import Mandate, mandate_from
from finskillbench.engines.risk.portfolio import Market, Portfolio
from finskillbench.engines.risk.remediation import SLACKS, budget_left, reference_turnover, remediate, solve_again
from finskillbench.engines.risk.semicontinuity import SLACK
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import JsonObject, Truth
from finskillbench.findings import Findings

_KEPT = 1e-9
_SAME_TRADE = 1e-5
_DUST = 1e-6
"""What the trades leave of a name that is sold in full."""
_ACCURACY = 2e-7
"""What a solver leaves, and a tie may cost: an excess over a limit, or a difference between two proved values."""


def remediation(subject: Subject, findings: Findings) -> None:
    """The trades cost the certified least and keep the mandate, or the proof says why none can."""
    derive(subject, findings, "risk_remediation", _trades)
    if not (subject.edition.path / "certificates").is_dir() or not subject.of("risk_remediation"):
        return
    stored: Mapping[str, JsonObject] = {}
    with examining("certificates/risk_remediation.jsonl", findings, fatal=subject.built):
        stored = subject.edition.certificates("risk_remediation")
    for episode in subject.of("risk_remediation"):
        with examining(episode.task_id, findings, fatal=subject.built):
            label = subject.edition.truth(episode.task_id)
            _Proof(subject.input_of(episode), label, stored[episode.task_id], findings).examine()


def _trades(task_input: Mapping[str, Any], held: Position, label: Truth, findings: Findings) -> None:
    where, output, known = label.task_id, label.expected_output, label.verification
    limits = task_input["mandate"]["constraints"]
    broken = [one["type"] for one in limits if risk_measures.measured(one, task_input, held).excess > _KEPT]
    findings.expect(sorted(task_input["violations"]) == sorted(broken), where, "its violations are not those of now")
    place = {ticker: row for row, ticker in enumerate(held.tickers)}
    trades = np.zeros(len(place))
    for trade in output["trades"]:
        symbol, change = trade["symbol"], trade["trade_pct"]
        before, target = trade["current_weight"], trade["target_weight"]
        findings.expect(trades[place[symbol]] == 0 and change != 0, where, f"{symbol} is traded twice or not at all")
        findings.expect(trade["action"] == ("buy" if change > 0 else "sell"), where, f"{symbol}: {trade['action']}")
        same(before, float(held.weights[place[symbol]]), where, f"the weight of {symbol} before", findings)
        same(target, before + change, where, f"the weight of {symbol} after", findings)
        trades[place[symbol]] = change
    after = held.after(trades)
    same(output["total_turnover"], after.traded - held.traded, where, "the turnover", findings, _ACCURACY)
    after = replace(after, weights=np.where(np.abs(after.weights) <= _DUST, 0.0, after.weights))
    findings.expect(after.cash >= -_ACCURACY, where, f"its cash becomes {after.cash:.1e}")
    curable = output["post_trade_compliant"]
    findings.add("mended" if curable else "beyond_mending")
    for one in limits:
        over = risk_measures.measured(one, task_input, after, _DUST).excess
        if curable or one["type"] in NEVER_GIVEN_UP:
            findings.widest("greatest_excess", over)
            findings.expect(over <= _ACCURACY, where, f"after its trades {one['type']} is exceeded by {over:.1e}")
    if curable:
        if "least_turnover" in known:
            same(known["least_turnover"], output["total_turnover"], where, "the least turnover", findings, _ACCURACY)
        return
    left = risk_measures.relative_excess(task_input, after)
    findings.expect(left > _ACCURACY, where, "is said to break the mandate, which its trades keep")
    if "least_excess" in known:
        same(known["least_excess"], left, where, "the least excess", findings, 10 * _ACCURACY)
        before = risk_measures.relative_excess(task_input, held)
        same(known["excess_before"], before, where, "the excess before", findings)
        findings.expect(left < before, where, "its trades lower no excess")


class _Proof:
    """The certificate of one remediation beside the task it is about."""

    def __init__(self, task_input: Mapping[str, Any], label: Truth, stored: JsonObject, findings: Findings) -> None:
        self.label, self.findings = label, findings
        self.stages = stored
        self.market: Market = market_from(task_input)
        self.book: Portfolio = portfolio_from(task_input, self.market)
        self.mandate: Mandate = mandate_from(task_input["mandate"])

    def examine(self) -> None:
        """Repeat the stages in their order: least turnover, least excess where that is too much, least squares."""
        known, curable = self.label.verification, self.label.expected_output["post_trade_compliant"]
        left = budget_left(self.book, self.mandate)
        least, bound = self._stage(Aim(Goal.TURNOVER))
        self._agrees("least_turnover", known["least_turnover"], least)
        if curable:
            self._expect(least <= left + SLACK, f"the least turnover {least:.6f} exceeds what is left, {left:.6f}")
            zero = reference_turnover(self.book, self.mandate, self.market)
            self._agrees("reference_turnover", known["reference_turnover"], zero, within=1e-5)
            self._expect(zero > least, "moving to the portfolio nearest to the benchmark costs no more than the least")
            figures = self.findings.figures
            figures["least_spread"] = min(figures.get("least_spread", np.inf), float(zero - least))
            start = self.stages["least_turnover"]["objective"]
            ties = [Aim(Goal.TRADES, turnover_cap=max(start, min(start + slack, left))) for slack in SLACKS]
        else:
            self._expect(bound > left, f"the least turnover is proved to be {bound:.6f} only, {left:.6f} is left")
            excess, _ = self._stage(Aim(Goal.EXCESS, turnover_cap=left))
            self._agrees("least_excess", known["least_excess"], excess)
            # To the last digit what the stage states: the multiplier of the cap may be large.
            cap = self.stages["least_excess"]["objective"]
            ties = [Aim(Goal.TRADES, turnover_cap=left, excess_cap=cap + slack) for slack in SLACKS]
        decisive = Aim(Goal.TURNOVER) if curable else Aim(Goal.EXCESS, turnover_cap=left)
        last = self._settled(decisive, ties)
        self._same_trades(np.array(last["weights"], dtype=float) - self.book.weights)
        proof, fields = self.label.proof, ("objective", "lower_bound", "gap", "unique")
        told_of = [(proof, _name(decisive)), *((proof["stages"].get(stage, {}), stage) for stage in self.stages)]
        for told, stage in told_of:
            apart = [field for field in fields if told.get(field) != self.stages[stage][field]]
            self._expect(not apart, f"the truth's {', '.join(apart)} of {stage} is not the certificate's")

    def _settled(self, decisive: Aim, ties: Sequence[Aim]) -> JsonObject:
        """The stage whose portfolio is the label: alone in its value, or the least squares among equally good ones."""
        tied = _name(ties[0]) in self.stages
        name = _name(ties[0] if tied else decisive)
        last = self.stages[name]
        if last["programs_solved"] > 1:
            self._expect(tied, f"{name}: has branched, which leaves its ties open")
            again = remediate(self.book, self.mandate, self.market).stages[-1].certified
            gap, unique = again.optimality.gap, again.uniqueness.outcome.proved
            self._agrees(f"value of {name}", last["objective"], again.value)
            self.findings.add("ties_left_open", int(not unique))  # among branches of equal squares
        else:
            # A cap on an earlier stage's value is one of those that the engine may have set; it is met with the trades
            # that the weights imply, not with the solver's own auxiliary variables.
            proofs = [self._proved(aim, last) for aim in (ties if tied else [decisive])]
            met = [(proof.gap, unique.outcome.proved) for proof, unique in proofs if proof.violation <= _DUST]
            gap, unique = min(met)
            self._expect(unique, f"{name}: other trades are as good, or may be")
        self._expect(gap <= ACCEPTED_GAP, f"{name}: its multipliers leave a gap of {gap:.1e}")
        self._expect(last["unique"] is unique, f"{name}: states unique {last['unique']}, proved {unique}")
        return last

    def _proved(self, aim: Aim, stored: JsonObject) -> tuple[Optimality, UniquenessProof]:
        formulation = formulate(self.book, self.mandate, self.market, aim)
        point = formulation.point(np.array(stored["weights"], dtype=float))
        multipliers = np.array(stored["multipliers"], dtype=float)
        optimality = prove_optimal(formulation.program, point, multipliers)
        return optimality, prove_unique(formulation, point, multipliers)

    def _same_trades(self, certified: Floats) -> None:
        stated = {trade["symbol"]: trade["trade_pct"] for trade in self.label.expected_output["trades"]}
        given = np.array([stated.get(ticker, 0.0) for ticker in self.market.tickers])
        apart = float(np.abs(given - certified).max())
        self.findings.widest("trade_difference", apart)
        self._expect(apart <= _SAME_TRADE, f"a trade is not the certified one, by {apart:.1e}")

    def _agrees(self, name: str, stated: float, derived: float, within: float = _ACCURACY) -> None:
        self._expect(abs(stated - derived) <= within, f"its {name} is {stated:.9g}, proved {derived:.9g}")

    def _expect(self, holds: object, message: str) -> None:
        self.findings.expect(holds, self.label.task_id, message)

    def _stage(self, aim: Aim) -> tuple[float, float]:
        """Value and proved bound of one stage, from its multipliers or, where names were branched on, solved again."""
        name = _name(aim)
        stored = self.stages[name]
        if stored["programs_solved"] > 1:
            again = solve_again(self.book, self.mandate, self.market, aim).certified
            value, bound = again.value, again.optimality.lower_bound
            self.findings.add("branched")
        else:
            proof, _ = self._proved(aim, stored)
            self.findings.widest("greatest_violation", proof.violation)
            self._expect(proof.violation <= ACCEPTED_VIOLATION, f"{name}: breaks a limit by {proof.violation:.1e}")
            value, bound = proof.objective, proof.lower_bound
            self.findings.add("recomputed")
        self.findings.widest("greatest_gap", value - bound)
        self._expect(value - bound <= ACCEPTED_GAP, f"{name}: its multipliers leave a gap of {value - bound:.1e}")
        self._agrees(f"value of {name}", stored["objective"], value)
        self._agrees(f"bound of {name}", stored["lower_bound"], bound)
        return value, bound


def _name(aim: Aim) -> str:
    """The stage's name in a certificate."""
    return f"least_{aim.goal}"

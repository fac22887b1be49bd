"""Labels of the portfolio and risk subtasks, derived again from what a task prints, against the hidden truth.

    python benchmarks/rederive.py [--seeds 1,2,3,5,8] [--real DIR] [--edition DIR ...] [--subtasks NAME,NAME]

The derivation shares no code with `finskillbench`: closed forms in `peers/risk_rules.py`, mixed-integer trades by HiGHS
and Clarabel in `peers/tickets.py`, convex optima by the oracle of the portfolio tests. Of an optimum it also tries to
find another answer: the objective tilted by a small multiple of a random direction, both ways, bounds how far any
answer whose objective is within a hundred-millionth can lie from the optimum along it. `unique` counts the labels for
which that is at most 0.005, or whose every verdict is decided by more than rounding. Mandates in words are read by
keywords (`peers/mandate_text.py`), unique where every sentence was read. Exit code 1 if a label differs.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.domains.portfolio import oracle

from finskillbench.edition import Edition, build, load_edition
from finskillbench.episode import PAPER_SUITE
from peers import comparison, mandate_text, risk_rules, tickets
from peers.comparison import Outcome

Json = dict[str, Any]
FEASIBLE = 1e-7


def dense(task_input: Json) -> Json:
    """The input with its covariance multiplied out, as the oracle reads it."""
    tickers, matrix = risk_rules.covariance(task_input)
    return {**task_input, "covariance_matrix": {"tickers": tickers, "matrix": matrix}}


def convex(task_input: Json, label: Json, key: str, task_id: str) -> Outcome:
    """Unconstrained and constrained optima."""
    outcome, given = Outcome(), dense(task_input)
    universe = oracle.Universe.of(given)
    w = cp.Variable(len(universe.tickers))
    goal, limits = oracle._objective(given, universe, w), oracle._limits(given, universe, w)
    status, value = oracle._solve(given, universe, w, goal, limits)
    outcome.same("status", status, "optimal")
    ours, theirs = np.array(w.value), universe.vector(label[key])
    w.value = theirs
    outcome.compare("objective", value, float(goal.value))
    outcome.same("flags", all(label.get("constraint_satisfaction", {"": True}).values()), True)

    def least(lean: np.ndarray) -> float:
        return oracle._solve(given, universe, w, goal + lean @ w, limits)[1]

    outcome.optimum(ours, theirs, value, least, task_id)
    return outcome


def optimised(task_input: Json, label: Json, task_id: str) -> Outcome:
    return convex(task_input, label, "weights", task_id)


def black_litterman(task_input: Json, label: Json, task_id: str) -> Outcome:
    """Posterior by the form with one inverse of a matrix of views, then the long-only optimum at half the aversion."""
    tickers, matrix = risk_rules.covariance(task_input)
    market = np.array([task_input["market_cap_weights"][ticker] for ticker in tickers])
    tau, riskless = task_input["tau"], task_input["risk_free_rate"]
    picks, quoted, doubt = [], [], []
    for view in task_input["analyst_views"]:
        pick = np.zeros(len(tickers))
        for leg, sign in ((view["symbols"], 1.0), (view.get("against") or [], -1.0)):
            share = np.isin(tickers, leg) * market
            pick += sign * share / (share.sum() or 1.0)
        picks.append(pick)
        quoted.append(view["return"] - (riskless if view["type"] == "absolute" else 0.0))
        doubt.append((1 - view["confidence"]) / view["confidence"] * tau * (pick @ matrix @ pick))
    views, prior = np.array(picks), task_input["risk_aversion"] * matrix @ market
    gain = tau * matrix @ views.T @ np.linalg.inv(tau * views @ matrix @ views.T + np.diag(doubt))
    posterior = prior + gain @ (np.array(quoted) - views @ prior)
    problem = {
        "covariance_matrix": task_input["covariance_matrix"],
        "objective": "max_sharpe",
        "risk_aversion": task_input["risk_aversion"] / 2,
        "expected_returns": dict(zip(tickers, posterior, strict=True)),
        "constraints": {"long_only": True},
    }
    outcome = convex(problem, label, "optimal_weights", task_id)
    for ticker, excess in zip(tickers, posterior, strict=True):
        outcome.fields(f"posterior of {ticker}", float(excess + riskless), label["posterior_returns"][ticker])
    return outcome


def rebalancing(task_input: Json, label: Json, task_id: str) -> Outcome:
    """Stage 1 by the oracle, stage 2 by HiGHS and Clarabel."""
    outcome, given = Outcome(), dense(task_input)
    universe = oracle.Universe.of(given)
    w = cp.Variable(len(universe.tickers))
    goal, held = oracle._objective(given, universe, w), universe.vector(task_input["current_portfolio"])
    _, best = oracle._solve(given, universe, w, goal, oracle._limits(given, universe, w))
    w.value = held
    start = float(goal.value)
    required = start - task_input["required_improvement"] * (start - best)
    search = tickets.Search(tickets.rebalancing(task_input, required))
    found, theirs = search.least(), universe.vector(label["new_weights"])
    if found.weights is None:
        outcome.same("stage 2", "infeasible", "optimal")
        return outcome
    outcome.compare("cost in basis points", found.value, float(search.problem.costs @ np.abs(theirs - held)))
    w.value = theirs
    outcome.same("improvement kept", float(goal.value) <= required + 1e-6 * (start - best), True)
    outcome.compare("turnover", float(np.abs(theirs - held).sum()) / 2, label["turnover"])
    trades = universe.vector(label["trade_list"])
    outcome.same("trades lead to the weights", bool(np.abs(held + trades - theirs).max() <= 2e-5), True)
    outcome.optimum(found.weights, theirs, found.value, lambda lean: search.least(lean).value, task_id)
    return outcome


def feasibility(task_input: Json, label: Json, task_id: str) -> Outcome:
    """Verdict, least value and the smallest set in conflict, by solving every set of waivable limits."""
    del task_id
    outcome, found = Outcome(), oracle.feasibility(dense(task_input))
    outcome.compare("least attainable", found["least_attainable"], label["least_attainable"])
    outcome.same("feasible", bool(found["feasible"]), label["feasible"])
    outcome.same("limits in conflict", found["conflicting_limits"], label["conflicting_limits"])
    outcome.unique = len(found["conflicts"]) == (not found["feasible"])
    return outcome


def remediation(task_input: Json, label: Json, task_id: str) -> Outcome:
    """The cure of least cost; where HiGHS proves that there is none, the trades of the smallest shortfall."""
    outcome, search = Outcome(), tickets.Search(tickets.remediation(task_input))
    found, cure = search.least(), True
    if found.weights is None:
        cure = False
        outcome.same("a cure without headroom", _curable(task_input), False)
        search = tickets.Search(tickets.remediation(task_input, cure=False))
        found = search.least()
    outcome.same("post_trade_compliant", cure, label["post_trade_compliant"])
    tickers, problem = risk_rules.covariance(task_input)[0], search.problem
    theirs = problem.held.copy()
    for row in label["trades"]:
        place, change = tickers.index(row["symbol"]), row["target_weight"] - row["current_weight"]
        outcome.compare(f"weight of {row['symbol']}", float(problem.held[place]), row["current_weight"])
        outcome.compare(f"trade of {row['symbol']}", change, row["trade_pct"])
        outcome.same(f"action of {row['symbol']}", "buy" if change > 0 else "sell", row["action"])
        theirs[place] = row["target_weight"]
    moved = theirs - problem.held
    outcome.compare("turnover", risk_rules.turnover(moved.tolist()), label["total_turnover"])
    allowed = [min(_outside(x, i) for i in problem.intervals if i.name == k) for k, x in enumerate(theirs)]
    outcome.same("trades of the minimum size", max(allowed) <= FEASIBLE, True)
    shortfall, kept = _shortfall(task_input, dict(zip(tickers, theirs.tolist(), strict=True)), moved.tolist())
    value = float(problem.costs @ np.abs(moved))
    if cure:
        outcome.same("limits kept", kept, True)
    else:
        value = shortfall + value / 100
    outcome.compare("cost in basis points" if cure else "shortfall", found.value, value)
    if found.weights is not None:
        outcome.optimum(found.weights, theirs, found.value, lambda lean: search.least(lean).value, task_id)
    return outcome


def _curable(task_input: Json) -> bool:
    return tickets.Search(tickets.remediation(task_input, headroom=False)).least().weights is not None


def _outside(weight: float, interval: tickets.Interval) -> float:
    return max(interval.low - weight, weight - interval.high, 0.0)


def _shortfall(task_input: Json, weights: dict[str, float], trades: list[float]) -> tuple[float, bool]:
    """Shortfall with headroom by the printed definitions, and whether every limit is kept."""
    total, kept, cash = 0.0, True, 1 - math.fsum(weights.values())
    done = (task_input["portfolio"].get("trades_this_month") or {}).values()
    for rule in task_input["mandate"]["constraints"]:
        room = task_input["trading_terms"]["headroom"].get(rule["type"], 0.0)
        moved = dict(rule)
        for end in ("value", "min", "max"):
            if room and rule.get(end) is not None:
                moved[end] = rule[end] + (room if end == "min" else -room)
        value = risk_rules.measure(rule, weights, cash, task_input, trades)
        if rule["type"] == "turnover_max_monthly":
            value += risk_rules.turnover(done)
        beyond = risk_rules.excess(moved, value)
        kept = kept and beyond <= FEASIBLE
        if rule["type"] not in ("long_only", "position_limit_min", "turnover_max_monthly") and beyond > 0:
            ends = [moved[end] for end in ("value", "min", "max") if moved.get(end) is not None]
            total += beyond / max(abs(min(ends, key=lambda end: abs(abs(value - end) - beyond))), 0.01)
    return total, kept and cash >= -FEASIBLE


def closed_form(derive: Callable[[Json], tuple[Json, float]]) -> Callable[[Json, Json, str], Outcome]:
    """Compare every field that the derivation has; further fields of a label explain it."""

    def compared(task_input: Json, label: Json, task_id: str) -> Outcome:
        del task_id
        outcome = Outcome()
        answer, nearest = derive(task_input)
        outcome.fields("", answer, label)
        outcome.unique = nearest > comparison.NEAR
        return outcome

    return compared


DERIVED: dict[str, Callable[[Json, Json, str], Outcome]] = {
    "unconstrained_optimization": optimised,
    "constrained_optimization": optimised,
    "rebalancing": rebalancing,
    "black_litterman": black_litterman,
    "infeasibility_detection": feasibility,
    "constraint_monitoring": closed_form(risk_rules.monitor),
    "risk_identification": closed_form(risk_rules.identify),
    "stress_testing": closed_form(risk_rules.stress),
    "risk_remediation": remediation,
    "tool_use_parameterization": closed_form(mandate_text.read),
}


@dataclass
class Row:
    """One line of the table."""

    labels: int = 0
    undecided: int = 0
    differ: int = 0
    value: float = 0.0
    weights: float = 0.0
    unique: int = 0
    seconds: float = 0.0

    def add(self, other: Row) -> None:
        for name in ("labels", "undecided", "differ", "unique", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.value, self.weights = max(self.value, other.value), max(self.weights, other.weights)

    def text(self, name: str, source: str) -> str:
        return (
            f"{name:<28}{source:<10}{self.labels:>7}{self.labels - self.undecided:>12}{self.undecided:>11}"
            f"{self.differ:>8}{self.value:>12.1e}{self.weights:>10.1e}{self.unique:>8}{self.seconds:>9.1f}"
        )


def examine(edition: Edition, source: str, chosen: list[str], total: Row) -> None:
    """Derive every label of an edition's subtasks again and print a row for each."""
    for name in [name for name in chosen if name in edition.sub_tasks]:
        row = Row()
        for episode in edition.episodes([name]):
            began, label = time.monotonic(), dict(edition.truth(episode.task_id).expected_output)
            row.labels += 1
            try:
                outcome = DERIVED[name](edition.full_input(episode), label, episode.task_id)
            except (tickets.Undecided, oracle.Undecided, mandate_text.UnreadError) as error:
                row.undecided += 1
                print(f"undecided {source} {episode.task_id}: {error}", flush=True)
                continue
            finally:
                row.seconds += time.monotonic() - began
            row.value, row.weights = max(row.value, outcome.value), max(row.weights, outcome.weights)
            row.unique += outcome.unique
            row.differ += bool(outcome.wrong)
            for line in outcome.wrong:
                print(f"DIFFERS {source} {episode.task_id}: {line}", flush=True)
            if not outcome.unique:
                print(f"not shown unique {source} {episode.task_id}", flush=True)
        print(row.text(name, source), flush=True)
        total.add(row)


def built(seed: int | None, raw: Path | None, chosen: list[str], out: Path) -> Edition:
    """Build the chosen subtasks alone."""
    every = build.domains()
    picked = [
        replace(domain, subtasks=tuple(each for each in domain.subtasks if each.name in chosen))
        for domain in every
        if domain.suite == PAPER_SUITE
    ]
    build.domains = lambda: tuple(domain for domain in picked if domain.subtasks)
    try:
        if raw is None:
            return build.build_edition(seed=build.DEFAULT_SEED if seed is None else seed, out=out, progress=_silent)
        return build.build_edition(source="raw-dir", raw_dir=raw, seed=11, out=out, progress=_silent)
    finally:
        build.domains = lambda: every


def _silent(step: str) -> None:
    del step


def editions(arguments: argparse.Namespace, chosen: list[str]) -> Iterator[tuple[str, Edition]]:
    """Each source and its edition, one at a time."""
    for path in arguments.edition or []:
        yield path.name, load_edition(path)
    seeds = [] if arguments.edition and arguments.seeds is None else (arguments.seeds or "1,2,3,5,8").split(",")
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            yield f"seed {seed}", built(int(seed), None, chosen, Path(folder) / seed)
        if arguments.real is not None:
            yield "real", built(None, arguments.real, chosen, Path(folder) / "real")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", help="seeds of synthetic editions, separated by commas; default 1,2,3,5,8")
    parser.add_argument("--real", type=Path, help="folder of raw files, from which a further edition is built")
    parser.add_argument("--edition", type=Path, nargs="+", help="editions to examine in place of the default seeds")
    parser.add_argument("--subtasks", help="subtasks, separated by commas; default all ten")
    arguments = parser.parse_args()
    chosen = arguments.subtasks.split(",") if arguments.subtasks else list(DERIVED)
    unknown = set(chosen) - set(DERIVED)
    if unknown:
        parser.error(f"--subtasks: {min(unknown)} is not among {', '.join(DERIVED)}")
    print(
        f"{'subtask':<28}{'source':<10}{'labels':>7}{'re-derived':>12}{'undecided':>11}{'differ':>8}"
        f"{'value':>12}{'weights':>10}{'unique':>8}{'seconds':>9}"
    )
    total = Row()
    for source, edition in editions(arguments, chosen):
        examine(edition, source, chosen, total)
    print(total.text("all", ""))
    return 1 if total.differ or math.isnan(total.value) else 0


if __name__ == "__main__":
    sys.exit(main())

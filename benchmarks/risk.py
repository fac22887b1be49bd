"""Risk truth: all 3,600 labels in seconds, and against item-by-item Python and CVXPY.

    python benchmarks/risk.py

The pools are those of a synthetic edition of seed 1: 200 identification, 600 monitoring, 2,400 stress and 400
remediation labels, by the functions that the build labels with, in this one process with one BLAS thread. Drawing the
portfolios and writing JSON are left out on every side; the arrays of a market and of a mandate stand ready as the
dictionaries do for the peers, while stacking the pairs into a batch is timed. CPU seconds, the median of rounds taken
in turn after an unmeasured one; a round repeats its side until it has taken 0.05 s. Peers: `peers/risk_items.py`
(plain Python, one pair at a time, from the task's dictionaries) for the batches of monitoring and stress,
`peers/risk_cvxpy.py` (CVXPY, default solvers) for a fixed tenth of the remediations that need no branching on names,
certificates included on our side. Exit code 1 if a requirement fails.
"""

import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.catalogs import risk_settings
from finskillbench.domains.risk.objects.construct import RiskObjects, construct
from finskillbench.domains.risk.objects.monitoring import MonitoringPair, measure_cases
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, batched
from finskillbench.domains.risk.objects.remediation import RemediationPair
from finskillbench.domains.risk.objects.stress import StressPair, stress_results
from finskillbench.domains.risk.shared import betas_by_ticker, resolved_covariance, sector_mapping, values_by_ticker
from finskillbench.engines.portfolio.problem import require_array
from finskillbench.engines.risk.exposures import ranked
from finskillbench.engines.risk.mandate import ConstraintKind, RiskMandate
from finskillbench.engines.risk.remediation import Remedy, remediate
from finskillbench.engines.risk.stress import BY_FACTOR
from finskillbench.panels import build_panels
from finskillbench.sources.market.collection import load_market
from finskillbench.sources.synthetic import write_collection
from peers import risk_cvxpy, risk_items

MOST_SECONDS = 5.0
LEAST_BATCH_RATIO = 20.0
LEAST_CVXPY_RATIO = 10.0
ROUNDS = 5
LEAST_ROUND = 0.05
BRANCHING = (ConstraintKind.POSITION_LIMIT_MIN, ConstraintKind.NAME_COUNT)
EVERY = 10
"""CVXPY labels each tenth remediation: whole pools would take it minutes."""
AGREE = 1e-9
Json = dict[str, Any]


def pools() -> RiskObjects:
    """The risk objects of the synthetic edition of seed 1."""
    with tempfile.TemporaryDirectory() as raw:
        write_collection(Path(raw), seed=1)
        return construct(BuildContext(build_panels(load_market(Path(raw))), 1), risk_settings())


def monitor_all(pairs: Sequence[MonitoringPair]) -> tuple[np.ndarray, np.ndarray]:
    """(values, excess), each (pairs, kinds), as the build labels the pool."""
    return measure_cases([pair.case for pair in pairs], [pair.mandate for pair in pairs])


def stress_all(pairs: Sequence[StressPair]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """P&L, its split by factor and by sector, as the build labels the pool."""
    return stress_results([pair.case for pair in pairs], [pair.scenario for pair in pairs])


def given(case: PortfolioCase, market: Json, mandate: RiskMandate | None = None, scenario: Any = None) -> Json:
    """The dictionaries of one task; `market` are the fields shared by a date."""
    more = ({} if mandate is None else {"mandate": mandate.to_json()}) | (
        {} if scenario is None else {"stress_scenario": scenario}
    )
    return {"portfolio": case.to_json(), **market, **more}


def shared_fields(case: PortfolioCase) -> Json:
    """What every task of a date shows."""
    market = case.market
    return {
        "sector_mapping": sector_mapping(market),
        "factor_exposures": betas_by_ticker(market),
        "benchmark_weights": values_by_ticker(market, require_array(market.benchmark, "benchmark")),
        "covariance_matrix": resolved_covariance(market),
    }


def seconds(label: Callable[[], Any]) -> float:
    """CPU seconds of one call, over the calls of a round of at least `LEAST_ROUND`."""
    start, calls, taken = time.process_time(), 0, 0.0
    while taken < LEAST_ROUND:
        label()
        calls += 1
        taken = time.process_time() - start
    return taken / calls


def in_turn(one: Callable[[], Any], other: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Median CPU seconds of both sides over rounds taken in turn: a shared machine changes its speed."""
    one()
    other()
    taken = [(seconds(one), seconds(other)) for _ in range(rounds)]
    fast, slow = (float(np.median(side)) for side in zip(*taken, strict=True))
    return fast, slow


def monitoring_apart(pairs: Sequence[MonitoringPair], ours: Any, theirs: list[Any]) -> float:
    """Largest difference of a value or an excess."""
    return max(
        float(np.abs(np.array(listed).T - [values[pair.mandate.columns], excess[pair.mandate.columns]]).max())
        for pair, values, excess, listed in zip(pairs, *ours, theirs, strict=True)
    )


def stress_apart(pairs: Sequence[StressPair], ours: Any, theirs: list[Any]) -> float:
    """Largest difference of a P&L or of an entry of either attribution."""
    names, apart = batched([pair.case for pair in pairs])[0].sector_names, 0.0
    for pnl, by_factor, by_sector, (total, sectors, factors) in zip(*ours, theirs, strict=True):
        split = np.concatenate([by_factor, by_sector])
        other = [*(factors[name] for name in BY_FACTOR), *(sectors.get(name, 0.0) for name in names)]
        apart = max(apart, abs(pnl - total), float(np.abs(split - other).max()))
    return apart


def compare(name: str, count: int, fast: float, slow: float, least: float, note: str) -> bool:
    """Print one ratio with its requirement; whether it holds."""
    ratio = slow / fast
    print(f"{name:<16}{count:>6}{slow:>10.3f}{fast:>10.4f}{ratio:>8.1f}x   required >= {least:.0f}x   {note}")
    return ratio >= least


def main() -> int:
    """Measure, print, and say by the exit code whether the requirements hold."""
    objects = pools()
    fields: dict[Any, Json] = {}
    for case in objects.portfolios:
        fields.setdefault(case.as_of, shared_fields(case))
    monitored = [given(p.case, fields[p.case.as_of], mandate=p.mandate) for p in objects.monitoring]
    stressed = [given(p.case, fields[p.case.as_of], scenario=p.scenario) for p in objects.stress]
    labels: dict[str, tuple[int, Callable[[], Any]]] = {
        "identification": (
            len(objects.portfolios),
            lambda: [ranked(case.portfolio, case.market) for case in objects.portfolios],
        ),
        "monitoring": (len(objects.monitoring), lambda: monitor_all(objects.monitoring)),
        "stress": (len(objects.stress), lambda: stress_all(objects.stress)),
        "remediation": (len(objects.remediation), lambda: [_remedied(pair) for pair in objects.remediation]),
    }
    with threadpool_limits(1):
        total = 0.0
        print(f"{'truths':<16}{'count':>6}{'seconds':>10}")
        for name, (count, label) in labels.items():
            label()
            taken = float(np.median([seconds(label) for _ in range(3)]))
            total += taken
            print(f"{name:<16}{count:>6}{taken:>10.3f}")
        counted = sum(count for count, _ in labels.values())
        print(f"{'all':<16}{counted:>6}{total:>10.3f}   required < {MOST_SECONDS:.0f} s")
        held = [total < MOST_SECONDS]

        print(f"\n{'against peers':<16}{'count':>6}{'peer':>10}{'ours':>10}{'ratio':>9}")
        ours, theirs = labels["monitoring"][1], lambda: [risk_items.monitor(one) for one in monitored]
        apart = monitoring_apart(objects.monitoring, ours(), theirs())
        note = f"values and excesses differ by {apart:.0e} at most"
        held.append(apart <= AGREE)
        held.append(compare("monitoring", len(monitored), *in_turn(ours, theirs, ROUNDS), LEAST_BATCH_RATIO, note))
        ours, theirs = labels["stress"][1], lambda: [risk_items.stress(one) for one in stressed]
        apart = stress_apart(objects.stress, ours(), theirs())
        note = f"P&L and attributions differ by {apart:.0e} at most"
        held.append(apart <= AGREE)
        held.append(compare("stress", len(stressed), *in_turn(ours, theirs, ROUNDS), LEAST_BATCH_RATIO, note))
        held.append(_against_cvxpy(objects, fields))
    return 0 if all(held) else 1


def _remedied(pair: RemediationPair) -> Remedy:
    return remediate(pair.case.portfolio, pair.mandate, pair.case.market, pair.rules)


def _terms(pair: RemediationPair) -> Json:
    """The terms of trading as a task states them."""
    costs = dict(zip(pair.case.market.tickers, (100 * pair.rules.costs).tolist(), strict=True))
    headroom = {kind.value: room for kind, room in pair.rules.headroom.items()}
    return {"trading_terms": {"cost_bps": costs, "minimum_trade": pair.rules.ticket, "headroom": headroom}}


def _against_cvxpy(objects: RiskObjects, fields: dict[Any, Json]) -> bool:
    """Like with like: pairs whose mandate needs no branching, which the peer has not."""
    convex = [pair for pair in objects.remediation if not any(pair.mandate.get(kind) for kind in BRANCHING)]
    pairs = [replace(pair, terms=replace(pair.rules, ticket=0.0)) for pair in convex[::EVERY]]
    tasks = [given(pair.case, fields[pair.case.as_of], mandate=pair.mandate) | _terms(pair) for pair in pairs]
    mine = [_remedied(pair) for pair in pairs]
    other = [risk_cvxpy.remediate(task) for task in tasks]
    verdicts = sum(m.compliant is not o[0] for m, o in zip(mine, other, strict=True))
    same = [(m.value, o[1]) for m, o in zip(mine, other, strict=True) if m.compliant is o[0] and math.isfinite(o[1])]
    apart = max((abs(value - theirs) for value, theirs in same), default=0.0)
    fast, slow = in_turn(
        lambda: [_remedied(pair) for pair in pairs], lambda: [risk_cvxpy.remediate(task) for task in tasks], ROUNDS
    )
    note = f"verdicts differ {verdicts}, objectives by {apart:.0e} at most"
    return compare("remediation", len(pairs), fast, slow, LEAST_CVXPY_RATIO, note)


if __name__ == "__main__":
    sys.exit(main())

"""Print figures of forensic screening: agents by tier, programs, traps, calibration, size and build time of a case.

    export PYTHONPATH=.:packages/finskillbench-desk/tests
    python packages/finskillbench-desk/benchmarks/forensic_screen.py --cases 40 --seed 1 --worlds 1000
    python packages/finskillbench-desk/benchmarks/forensic_screen.py --undisclosed 6 --seed 1

The last command prints, for each structure of undisclosed laws, seconds of a case, attainable gain and scores.

Agents have correct data and differ in weighing: thresholds, plug-in (one volatility and one size for all), half of that
evidence, or empirical Bayes as in the reference. Programs run through the skill scripts.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuiltTask
from finskillbench_desk.disclosure import PlannedCase
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.engines.posterior.signatures import Innovations, innovations, mixed_evidence, signature_evidence
from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.difficulty import (
    TIERS,
    ParsedAssessments,
    log_score,
    score_parts,
    stored_posterior,
)
from finskillbench_desk.forensic_screen.generator.world import ScreeningWorld, drawn_world
from finskillbench_desk.forensic_screen.laws import STRUCTURES
from finskillbench_desk.forensic_screen.reading import AdjustedRatios
from finskillbench_desk.forensic_screen.rederive import rederive_kinds
from finskillbench_desk.forensic_screen.subtask import (
    certified,
    exact_posterior,
    law_task,
    quarters_until,
    screening_task,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import itertools

from desk_tests.forensic_screen.playing import full_input, play

DAY = date(2023, 6, 30)
WEIGHTS = np.array([0.7, 0.3])


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--worlds", type=int, default=200, help="worlds for calibration and ladder")
    parser.add_argument("--undisclosed", type=int, help="cases of each structure of undisclosed laws")
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.undisclosed:
            undisclosed(options.undisclosed, options.seed)
            return
        programs(options.cases, options.seed)
        worlds(options.worlds, options.seed)


def programs(cases: int, seed: int) -> None:
    """Print the three programs' scores on built cases."""
    scores: dict[str, dict[str, list[float]]] = {}
    costs: dict[str, list[float]] = {}
    widest, tokens, bytes_, spent = 0.0, [], [], 0.0
    for place in range(cases):
        tier = list(TIERS)[place % len(TIERS)]
        began = time.process_time()
        task = screening_task(np.random.default_rng([seed, place]), place, tier, DAY)
        fields = full_input(task)
        again = np.array(list(rederive_kinds(fields).values()))
        spent += time.process_time() - began
        widest = max(widest, float(np.abs(again - stored_posterior(task.truth.verification)[1]).max()))
        tokens.append(sum(len(json.dumps(frame.to_dict(as_series=False))) for frame in task.tables.values()) / 3.3e6)
        bytes_.append(sum(_stored_bytes(frame) for frame in task.tables.values()) / 1e6)
        for name in ("reference", "textbook", "trapped"):
            earned = certified(play(task, getattr(procedures, name)), task.truth, fields).value
            scores.setdefault(name, {}).setdefault(tier, []).append(earned)
        for kind, cost in trap_costs(task).items():
            costs.setdefault(kind, []).append(cost)
    print(f"{cases} cases of seed {seed}: build and second derivation {spent / cases:.2f} s each on one core,")
    print(f"  {np.mean(tokens):.2f} million tokens (least {min(tokens):.2f}), {np.sum(bytes_):.0f} MB in all,")
    print(f"  widest difference of the two posteriors {widest:.1e}")
    for name, by_tier in scores.items():
        every = np.concatenate([np.array(found) for found in by_tier.values()])
        tiers = ", ".join(f"{tier} {np.mean(found):.3f}" for tier, found in by_tier.items())
        print(
            f"  {name:<10} {every.mean():.3f} (standard error {every.std(ddof=1) / np.sqrt(len(every)):.3f}; {tiers})"
        )
    print("  what each trap alone costs of the probabilities' part, mean and least:")
    for kind, found in sorted(costs.items()):
        print(f"    {kind:<15} {np.mean(found):.2f}  {min(found):.2f}  in {len(found)} cases")


def undisclosed(cases: int, seed: int) -> None:
    """Print figures of cases whose law is not disclosed, by structure."""
    print(f"{'structure':26}{'seconds':>8}{'gain':>7}{'managed':>9}{'traps':>7}{'fallen':>8}" + _PROGRAMS_HEAD)
    total: list[list[float]] = []
    for structure in STRUCTURES:
        rows = [_undisclosed_row(structure, place, seed) for place in range(cases)]
        total += [row[5:] for row in rows]
        mean = np.mean(rows, axis=0)
        figures = f"{mean[0]:8.1f}{mean[1]:7.1f}{mean[2]:9.1f}{mean[3]:7.1f}{mean[4]:8.1f}"
        print(f"{structure:26}{figures}" + "".join(f"{each:11.3f}" for each in mean[5:]), flush=True)
    print(f"{'all':65}" + "".join(f"{each:11.3f}" for each in np.mean(total, axis=0)))


_PROGRAMS = ("reference", "textbook", "trapped")
_PROGRAMS_HEAD = "".join(f"{name:>11}" for name in _PROGRAMS)


def _undisclosed_row(structure: str, place: int, seed: int) -> list[float]:
    """Return seconds, gain, expected managed, traps, traps fallen for without corrections, and programs' scores."""
    rng = np.random.default_rng([seed, place, list(STRUCTURES).index(structure)])
    case = PlannedCase(place, ("described", "data")[place % 2], structure, list(TIERS)[place % len(TIERS)])
    began = time.process_time()
    made = law_task(rng, case, structure, DAY)
    seconds = time.process_time() - began
    p = stored_posterior(made.truth.verification)[1].sum(axis=1)
    fields = full_input(made)
    scores = [certified(play(made, getattr(procedures, name)), made.truth, fields) for name in _PROGRAMS]
    verdicts = list(scores[-1].details["traps"].values())
    gain = log_score(p, p) - log_score(np.full_like(p, p.mean()), p)
    return [seconds, gain, p.sum(), len(verdicts), verdicts.count("fallen"), *(score.value for score in scores)]


def trap_costs(task: BuiltTask) -> dict[str, float]:
    """Return the loss of the best answer by kind of trap."""
    stated = task.truth.verification
    companies, posterior = stored_posterior(stated)
    by_kind: dict[str, dict[str, float]] = {}
    for trap in stated["traps"]:
        by_kind.setdefault(trap["kind"], {}).update(trap["probabilities"])
    found: dict[str, float] = {}
    for kind, fallen in by_kind.items():
        q = posterior.sum(axis=1)
        q[[companies.index(name) for name in fallen]] = list(fallen.values())
        parsed = ParsedAssessments(q, posterior.argmax(axis=1))
        found[kind] = 1.0 - score_parts(parsed, posterior, stated["base_rate"])["probabilities"]
    return found


def _stored_bytes(frame: Any) -> int:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=False)
    return len(buffer.getvalue())


def worlds(count: int, seed: int) -> None:
    """Print the agents' scores by tier, and the calibration of the optimum's probabilities."""
    scores: dict[str, dict[str, list[float]]] = {}
    gains: dict[str, list[float]] = {}
    probabilities: list[Floats] = []
    happened: list[np.ndarray] = []
    named: list[tuple[float, float]] = []
    for place in range(count):
        tier = list(TIERS)[place % len(TIERS)]
        world = drawn_world(np.random.default_rng([seed, 7, place]), tier, quarters_until(DAY))
        posterior, panel = exact_posterior(world)
        probabilities.append(posterior.sum(axis=1))
        happened.append(world.paths.kind >= 0)
        right = posterior[np.arange(len(posterior)), posterior.argmax(axis=1)]
        hit = (world.paths.kind == posterior.argmax(axis=1)).sum()
        named.append((float(right.sum()), float(hit)))
        rate = world.model.base_rate
        entropy = -(rate * np.log(rate) + (1 - rate) * np.log1p(-rate)) * len(posterior)
        p = np.clip(probabilities[-1], 1e-12, 1 - 1e-12)
        gains.setdefault(tier, []).append(1.0 + float((p * np.log(p) + (1 - p) * np.log1p(-p)).sum()) / entropy)
        if place < 60:
            for name, agent in AGENTS.items():
                earned = score_parts(agent(world, panel), posterior, rate)
                scores.setdefault(tier, {}).setdefault(name, []).append(float(WEIGHTS @ list(earned.values())))
    for tier, by_name in scores.items():
        shown = "  ".join(f"{name} {np.mean(found):.3f}" for name, found in by_name.items())
        print(f"{tier}: the optimum takes away {np.mean(gains[tier]):.2f} of the base rate's entropy; {shown}")
    print(f"calibration over {count} worlds, {200 * count} companies: probability, share managed, z, number")
    p, truth = np.concatenate(probabilities), np.concatenate(happened)
    edges = np.array([0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0 + 1e-9])
    for low, high in itertools.pairwise(edges):
        which = (p >= low) & (p < high)
        if which.any():
            z = (truth[which].sum() - p[which].sum()) / np.sqrt((p[which] * (1 - p[which])).sum())
            print(f"  {p[which].mean():.4f}  {truth[which].mean():.4f}  {z:+.1f}  {which.sum()}")
    expected, hits = np.array(named).T
    print(f"kinds named right: expected {expected.sum():.0f}, found {hits.sum():.0f}")


def _measured(world: ScreeningWorld) -> list[tuple[Floats, float]]:
    """Return mean shift and spread of sizes by kind, from usable cases as in `case_effects.py`."""
    prediction, model = world.prediction, world.model
    found: list[tuple[Floats, float]] = []
    for kind in range(len(model.shares)):
        shift = prediction.mean[kind] / model.deviation
        found.append((shift, model.spread / float(np.linalg.norm(shift))))
    return found


def _seen(model: RatioModel, panel: AdjustedRatios) -> Innovations:
    return innovations(panel.y, model.persistence, model.starts, panel.acquired, model.freedom, model.deviation)


def _weighed(world: ScreeningWorld, found: Innovations, trust: float, spread: bool) -> ParsedAssessments:
    model = world.model
    evidence = np.stack(
        [
            signature_evidence(found, shift, profile, 1.0, width if spread else 0.0, model.starts)
            for (shift, width), profile in zip(_measured(world), model.profiles, strict=True)
        ],
        axis=1,
    )
    odds = np.log(model.base_rate) - np.log1p(-model.base_rate) + trust * mixed_evidence(evidence, model.shares)
    by_kind = np.log(model.shares) + np.logaddexp.reduce(evidence, axis=2)
    return ParsedAssessments(1.0 / (1.0 + np.exp(-odds)), by_kind.argmax(axis=1))


def _nothing(world: ScreeningWorld, panel: AdjustedRatios) -> ParsedAssessments:
    n = len(panel.y)
    return ParsedAssessments(np.full(n, world.model.base_rate), np.full(n, world.model.shares.argmax()))


def _thresholds(world: ScreeningWorld, panel: AdjustedRatios) -> ParsedAssessments:
    restless = (_seen(world.model, panel).standardised[:, -world.model.starts :] ** 2).mean(axis=(1, 2)) > 1.5
    return ParsedAssessments(np.where(restless, 0.4, 0.06), np.full(len(restless), world.model.shares.argmax()))


def _plug_in(
    world: ScreeningWorld, panel: AdjustedRatios, trust: float = 1.0, pooling: float = 1.0
) -> ParsedAssessments:
    """Plug in volatilities shrunk to one by the power `1 - pooling`, with one size for every kind."""
    found = _seen(world.model, panel)
    kept = found.volatility ** (1.0 - pooling)
    scale = (found.volatility / kept)[:, None, None]
    return _weighed(world, replace(found, standardised=found.standardised * scale, volatility=kept), trust, False)


def _half_shrunk(world: ScreeningWorld, panel: AdjustedRatios) -> ParsedAssessments:
    return _plug_in(world, panel, 0.5, 0.5)


def _empirical_bayes(world: ScreeningWorld, panel: AdjustedRatios) -> ParsedAssessments:
    return _weighed(world, _seen(world.model, panel), 0.8, True)


def _optimum(world: ScreeningWorld, panel: AdjustedRatios) -> ParsedAssessments:
    del panel
    posterior, _ = exact_posterior(world)
    return ParsedAssessments(posterior.sum(axis=1), posterior.argmax(axis=1))


AGENTS: dict[str, Callable[[ScreeningWorld, AdjustedRatios], ParsedAssessments]] = {
    "base rate": _nothing,
    "thresholds": _thresholds,
    "plug-in": _plug_in,
    "half-shrunk": _half_shrunk,
    "empirical Bayes": _empirical_bayes,
    "optimum": _optimum,
}


if __name__ == "__main__":
    main()

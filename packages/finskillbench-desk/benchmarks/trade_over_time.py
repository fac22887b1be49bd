"""Print figures of trading over time: agents and baselines by tier, cost of traps, rederivation, size and speed.

With `--laws N` it prints instead, for N cases of each structure whose law is not disclosed: gain, seconds, shares of
programs and fixed recipes, and the widest difference of the rederivation.

    export PYTHONPATH=.:packages/finskillbench-desk/tests
    python packages/finskillbench-desk/benchmarks/trade_over_time.py [--seed 0] [--cases 40] [--attempts 2000]

Cases use an invented market of 120 names. Agents see the visible data; baselines run their procedures on scripts.
`--attempts` random and optimised records are tried on the first case.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from desk_tests.trade_over_time.cases import DAYS, MARKET, full_input, play
from desk_tests.trade_over_time.ladder import agents, score
from threadpoolctl import threadpool_limits

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.examples import Label
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.episode import Disclosure
from finskillbench.findings import Findings
from finskillbench_desk.disclosure import PlannedCase
from finskillbench_desk.trade_over_time import subtask
from finskillbench_desk.trade_over_time.examples import exploits
from finskillbench_desk.trade_over_time.interactive import certified
from finskillbench_desk.trade_over_time.laws import STRUCTURES
from finskillbench_desk.trade_over_time.optimum import Optimum, TradingSetup, from_json, losses
from finskillbench_desk.trade_over_time.world import DECISIONS, TIERS, TradingWorld

CHARACTERS_PER_TOKEN = 3.3


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--attempts", type=int, default=2000)
    parser.add_argument("--laws", type=int, default=0)
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.laws:
            laws(options.laws, options.seed)
            return
        worlds: list[tuple[TradingWorld, Optimum]] = []
        original = subtask.solved
        subtask.solved = lambda world, known: worlds.append((world, original(world, known))) or worlds[-1][1]
        started = time.process_time()
        tasks: list[BuiltTask] = []
        for number in range(options.cases):
            tier = list(TIERS)[number % len(TIERS)]
            rng = np.random.default_rng([options.seed, number])
            tasks.append(subtask.trading_task(rng, MARKET, tier, number, DAYS))
        seconds = time.process_time() - started
        subtask.solved = original
        size(tasks, seconds)
        agent_scores(worlds)
        baselines(tasks)
        traps(tasks)
        proofs(tasks)
        attempts(tasks[0], options.attempts)


def laws(count: int, seed: int) -> None:
    """Print figures of cases whose law is not disclosed, by structure and by level."""
    by_level: dict[str, list[dict[str, float]]] = {"described": [], "data": []}
    for structure in STRUCTURES:
        rows: list[dict[str, float]] = []
        for number in range(count):
            level: Disclosure = ("described", "data")[number % 2]
            planned = PlannedCase(number, level, structure, list(TIERS)[number % len(TIERS)])
            row, task = measured_law_case(np.random.default_rng([seed, number]), planned)
            rows.append(row)
            by_level[task.episode.metadata["disclosure"]].append(row)
        print_means(structure, rows)
    for level, rows in by_level.items():
        print_means(level, rows)


def measured_law_case(rng: np.random.Generator, planned: PlannedCase) -> tuple[dict[str, float], BuiltTask]:
    """Return the figures of one case, and the case."""
    started, findings = time.process_time(), Findings()
    task = subtask.law_task(rng, MARKET, planned, DAYS)
    built = time.process_time()
    label = Label(task.episode, full_input(task), task.truth, task.certificate, True, task.hidden or {})
    subtask.proof(label, findings)
    row = {"gain": task.truth.proof["textbook_loss"], "build": built - started, "proof": time.process_time() - built}
    row |= {"defects": len(findings.found), "difference": findings.figures["book_difference"]}
    row |= {name: play(task, name)[0].value for name in subtask.SUBTASK.interactive.procedures}
    recipes = exploits(full_input(task))
    return row | {name: certified(recipe, task.truth, {}).value for name, recipe in recipes.items()}, task


def print_means(name: str, rows: list[dict[str, float]]) -> None:
    """Print the means of figures, and the largest of seconds, defects and differences."""
    if rows:
        means = ", ".join(f"{key} {np.mean([row[key] for row in rows]):.3g}" for key in rows[0])
        most = ", ".join(f"{key} {max(row[key] for row in rows):.3g}" for key in ("build", "proof", "difference"))
        print(f"{name} ({len(rows)}): {means}; at most {most}", flush=True)


def size(tasks: list[BuiltTask], seconds: float) -> None:
    """Print build time and size of the cases."""
    stored, printed = 0, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        for task in tasks:
            for frame in task.tables.values():
                frame.write_parquet(path, compression="zstd", statistics=False)
                stored += path.stat().st_size
            printed.append(sum(len(dump(EpisodeTable(frame))) for frame in task.tables.values()) / CHARACTERS_PER_TOKEN)
    print(f"{len(tasks)} cases in {seconds:.1f} s CPU; tables {stored / 1e6:.0f} MB;", end=" ")
    print(f"tokens per case {min(printed) / 1e6:.2f} million and more")


def agent_scores(worlds: list[tuple[TradingWorld, Optimum]]) -> None:
    """Print agents' scores by tier, with and without the floor at 0."""
    found: dict[str, dict[str, list[float]]] = {}
    for place, (world, optimum) in enumerate(worlds):
        setup = TradingSetup.of(world)
        for name, agent in agents(world, setup, optimum).items():
            scores = found.setdefault(name, {}).setdefault(list(TIERS)[place % len(TIERS)], [])
            scores.append(score(setup, optimum, agent))
    print(f"\n{'agent':22}" + "".join(f"{tier:>20}" for tier in TIERS) + "   (floored mean, mean as it is)")
    for name, by_tier in found.items():
        cells = (f"{np.clip(each, 0, 1).mean():8.3f} ({np.mean(each):+8.3f})" for each in by_tier.values())
        print(f"{name:22}" + "".join(f"{cell:>20}" for cell in cells))


def baselines(tasks: list[BuiltTask]) -> None:
    """Print the programs' mean scores and standard errors, by tier and overall."""
    print()
    for name in subtask.SUBTASK.interactive.procedures:
        played = [play(task, name) for task in tasks]
        scores = np.array([result.value for result, _ in played])
        fallen = [verdict for result, _ in played for verdict in result.details["traps"].values()]
        by_tier = ", ".join(f"{tier} {scores[place :: len(TIERS)].mean():.3f}" for place, tier in enumerate(TIERS))
        error = scores.std(ddof=1) / np.sqrt(len(scores))
        shares = {verdict: round(fallen.count(verdict) / len(fallen), 2) for verdict in sorted(set(fallen))}
        print(
            f"{name:10} {scores.mean():.3f} (standard error {error:.3f}; {by_tier}; least {scores.min():.3f}),", end=" "
        )
        print(f"turns at most {max(turns for _, turns in played)}, traps {shares}")


def traps(tasks: list[BuiltTask]) -> None:
    """Print the number of cases with each trap, and its cost at its decision."""
    costs: dict[str, list[float]] = {}
    for task in tasks:
        for trap in task.truth.verification["traps"]:
            costs.setdefault(trap["kind"], []).append(trap["cost"])
    print()
    for kind, each in costs.items():
        spread = f"{min(each):.2f} to {max(each):.2f}, median {np.median(each):.2f}"
        print(f"trap {kind:12} in {len(each):2} cases, costs {spread}")


def proofs(tasks: list[BuiltTask]) -> None:
    """Print the widest differences of the rederivation, and its time."""
    findings, started = Findings(), time.process_time()
    for task in tasks:
        subtask.proof(Label(task.episode, full_input(task), task.truth, task.certificate), findings)
    figures = ", ".join(f"{name} {value:.1e}" for name, value in findings.figures.items())
    print(f"\nderived again: {figures}; {len(findings.found)} defects; {time.process_time() - started:.1f} s CPU")


def attempts(task: BuiltTask, count: int) -> None:
    """Print the best score of random steps from the optimum; none may exceed 1."""
    known = task.truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    textbook, rng, best = float(sum(known["textbook_losses"])), np.random.default_rng(0), -np.inf
    for _ in range(count):
        books, size = [setup.book.holdings], 10.0 ** rng.uniform(-6, 3)
        for place in range(DECISIONS):
            wanted = setup.policy(place).best(place, aims[place], books[-1]) + rng.normal(0, size, len(setup.tickers))
            books.append(setup.settled(place, wanted))
        best = max(best, 1 - float(losses(setup, aims, books[1:]).sum()) / textbook)
    print(f"best of {count} attempts around the optimum: 1 - {1 - best:.1e}")


if __name__ == "__main__":
    main()

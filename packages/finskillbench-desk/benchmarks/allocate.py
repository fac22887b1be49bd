"""Shares of the attainable gain by agent and tier, and build time and size of allocation cases.

    python packages/finskillbench-desk/benchmarks/allocate.py [--seeds 1 2] [--cases 12] [--disclosure described]

With `described` or `data` it prints, for each structure of laws that are not disclosed, what the recipe of
`allocate.examples` and the programs earn.

For cases that disclose everything, agents range from the unchanged book through largest t-values and partial Bayesian
methods to the exact posterior. `picks` takes the best source in the best of seven windows that end now; `skilled` cuts
the record and averages the five best sources over possible starts. Two more agents suspect traps everywhere. It also
prints what `baseline/reference`, `textbook` and `trapped` earn through the skill scripts, and the cost of each kind of
mistake.
"""

from __future__ import annotations

import argparse
import re
import runpy
import time
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import orjson

import finskillbench_desk
from finskillbench.domains.building import Disclosure
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.episode import Profile, Truth
from finskillbench_desk.allocate import SUBTASK, allocation_tables, input_of, label_of
from finskillbench_desk.allocate.law_cases import draw_allocation_law_case
from finskillbench_desk.allocate.laws import STRUCTURES
from finskillbench_desk.allocate.posterior import STRETCHES, Hypotheses, forecast
from finskillbench_desk.allocate.procedures import run_procedure
from finskillbench_desk.allocate.prompts import source_log
from finskillbench_desk.allocate.sources import (
    GROUP_SIZE,
    GROUPS,
    HALVES,
    NAMES,
    SOURCE_NAMES,
    SOURCES,
    TIERS,
    vendor_of,
)
from finskillbench_desk.allocate.traps import AllocationCase, Study, draw_allocation_case, scored_columns
from finskillbench_desk.engines.sources import evidence, sums_by_group
from finskillbench_desk.engines.trading.net_of_costs import optimum
from finskillbench_desk.market import INDUSTRIES

SKILLS = Path(finskillbench_desk.__file__).parent / "skills"
UNIVERSE = [(f"N{place:03d}", INDUSTRIES[place // GROUP_SIZE]) for place in range(NAMES)]
CHARACTERS_PER_TOKEN = 3.3


def agent_shares(case: AllocationCase, log: str) -> dict[str, float]:
    """Return shares of the attainable gain by agent, negative for losses."""
    world, everything = case.world, np.arange(SOURCES)
    study = Study.of(world, case.pitfalls)
    in_order = frozenset(place.name for place in case.pitfalls if place.control)
    right = scored_columns(world.sources, case.pitfalls, everything)
    raw = world.sources.values / world.sources.scale

    def earns(effects: Any) -> float:
        return case.share(optimum(world.book.problem(effects), unique=False).weights)

    def largest(scores: Any, start: Any) -> tuple[Any, Any]:
        counted = scores[:-1] * (np.arange(len(scores) - 1)[:, None, None] >= start)
        sums = sums_by_group(counted, world.residuals, world.book.specific, GROUPS)
        x, y = (part.sum(axis=0) for part in sums)
        now = np.nan_to_num(scores[-1]).reshape(GROUPS, GROUP_SIZE, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.nan_to_num(np.abs(y) / np.sqrt(x)).argmax(axis=1)
        effects = [now[group][:, b] * y[group, b] / x[group, b] for group, b in enumerate(best)]
        found = evidence(x, y, world.family.mean, world.family.deviation)
        weights = np.exp(found.log_odds) * world.family.prior * (1 - world.family.nothing)
        shares = weights / (weights.sum(axis=1, keepdims=True) + world.family.nothing)
        return np.concatenate(effects), np.einsum("gic,gc->gi", now, shares * found.mean).ravel()

    plain, _ = largest(raw, np.zeros(SOURCES))
    careful, bayes = largest(right.scores, right.start)
    return {
        "the book as it is": case.share(world.book.current),
        "equal weights": case.share(np.full(NAMES, 1 / NAMES)),
        "largest t, as it comes": earns(plain),
        "largest t, read rightly": earns(careful),
        "half of that": earns(careful / 2),
        "posterior without regimes": earns(bayes),
        "picks, and shrinks": earns(picks(study)),
        "a skilled player": earns(skilled(study)),
        "exact posterior": earns(case.belief.alpha),
        "repairs what is in order": earns(study.misread_belief(in_order).alpha),
        "suspects everything": earns(without(study, suspicious(case, log))),
    }


def suspicious(case: AllocationCase, log: str) -> Any:
    """Return (C,) True for sources that are in the log, late, copied, or inconsistent in their units."""
    sources = case.world.sources
    spread = sources.values.std(axis=1)
    odd = (spread[1:] > 3 * spread[:-1]).any(axis=0) | (sources.values[-1] == sources.values[-2]).all(axis=0)
    alike = np.bincount(sources.parent, minlength=SOURCES)[sources.parent] > 1
    named = [bool(re.search(rf"\b({SOURCE_NAMES[c]}|{vendor_of(c)})\b", log)) for c in range(SOURCES)]
    return odd | alike | (sources.since > 0) | np.array(named)


def without(study: Study, left_out: Any) -> Any:
    """Return effects on the names after omitting some sources from the right reading."""
    hypotheses = study.hypotheses
    return forecast(replace(hypotheses, odds=hypotheses.odds * ~left_out), study.world.family).alpha


def picks(study: Study) -> Any:
    """Return effects from the best source in the best of a few windows, if it is likely enough."""
    odds, hypotheses, effects = _to_now(study.hypotheses), study.hypotheses, np.zeros((GROUPS, GROUP_SIZE))
    for group in range(GROUPS):
        window, source = np.unravel_index(odds[list(_SCANNED), group].argmax(), (len(_SCANNED), SOURCES))
        found = odds[_SCANNED[window], group, source]
        if found > 1:
            effect = hypotheses.means[_SCANNED[window], group, source] * found / (1 + found)
            effects[group] = effect * _scores(hypotheses, group)[:, source]
    return effects.ravel()


def skilled(study: Study) -> Any:
    """Return effects after cutting the record optimally and averaging over starts since the last cut.

    Cuts maximise single-source evidence less the price of a change. If the stretch before the last cut had an effect,
    the present regime began at its end or later, otherwise in any year.
    """
    hypotheses, change = study.hypotheses, study.world.family.change
    effects = np.zeros((GROUPS, GROUP_SIZE))
    stretches = {pair: place for place, pair in enumerate(zip(*(part.tolist() for part in STRETCHES), strict=True))}
    length = STRETCHES[1] - STRETCHES[0]
    single = np.log(np.maximum(hypotheses.odds.max(axis=2), 1)) + ((length - 1) * np.log(1 - change))[:, None]
    for group in range(GROUPS):
        best, cut = [0.0], [0]
        for end in range(1, HALVES + 1):
            ways = [best[a] + single[stretches[a, end], group] + (a > 0) * np.log(change) for a in range(end)]
            cut.append(int(np.argmax(ways)))
            best.append(ways[cut[-1]])
        last = cut[HALVES]
        ended = last > 0 and hypotheses.odds[stretches[cut[last], last], group].max() > 1
        begins = list(range(last - 1, HALVES - 1, 2)) if ended else [0, *range(2, HALVES - 1, 2)]
        chances = np.array([(1 - change) ** (HALVES - 1 - begin) * (change if begin else 1) for begin in begins])
        weights = _to_now(hypotheses)[begins, group] * (chances / chances.sum())[:, None]
        sources = np.argsort(-weights.max(axis=0))[:5]
        shares = weights[:, sources] / (1 + weights[:, sources].sum())
        sizes = (shares * hypotheses.means[begins, group][:, sources]).sum(axis=0)
        effects[group] = _scores(hypotheses, group)[:, sources] @ sizes
    return effects.ravel()


_SCANNED = (0, 4, 8, 12, 14, 16, 18)
"""First half-years of the windows of `picks`."""


def _to_now(hypotheses: Hypotheses) -> Any:
    """Return (K, G, C) prior times evidence over the stretch from each half-year to now."""
    return hypotheses.odds[STRETCHES[1] == HALVES]


def _scores(hypotheses: Hypotheses, group: int) -> Any:
    return hypotheses.now[group * GROUP_SIZE : (group + 1) * GROUP_SIZE]


def baselines(
    case: AllocationCase, log: str, disclosure: Disclosure = "full"
) -> tuple[dict[str, float], dict[str, dict[str, str]], int]:
    """Return the programs' scores and trap verdicts, and the printed size of the tables in characters."""
    frames = allocation_tables(case)
    data: dict[str, Any] = {
        **input_of("case", case, frames, log, disclosure),
        **{n: EpisodeTable(frame) for n, frame in frames.items()},
    }
    label = label_of("case", case)
    truth = Truth("case", SUBTASK.name, label.expected_output, SUBTASK.verification.for_label(label.verification))

    def serve(ask: Any) -> Any:
        arguments = ask.arguments
        if ask.tool == "read_table":
            return data[arguments["table"]].page()
        if ask.tool == "get_task_data":
            first, _, rest = arguments["field"].partition(".")
            return {"value": data[first][rest] if rest else data[first]}
        if ask.tool == "load_skill":
            return {}
        main = runpy.run_path(str(SKILLS / arguments["script_path"]))["main"]
        payload = dump({**arguments["input_data"], **{name: data[name] for name in arguments["inject_task_fields"]}})
        return {"output": orjson.loads(orjson.dumps(main(orjson.loads(payload))))}

    scorer = SUBTASK.scorers[Profile.CERTIFIED]
    recipes = SUBTASK.examples.exploits(data) if disclosure != "full" else {}
    recipe_shares = {name: scorer(answer, truth, data).value for name, answer in recipes.items()}
    scores = {
        name: scorer(run_procedure(each, serve), truth, data) for name, each in SUBTASK.interactive.procedures.items()
    }
    printed = sum(len(dump(EpisodeTable(frame))) for frame in frames.values())
    return (
        recipe_shares | {f"baseline/{name}": score.value for name, score in scores.items()},
        {name: dict(score.details["traps"]) for name, score in scores.items()},
        printed,
    )


def undisclosed(seeds: list[int], cases: int, disclosure: Disclosure) -> None:
    """Print gain, seconds, number and cost of mistakes, and shares by structure, for `cases` cases of each."""
    rows, verdicts, names = list[list[float]](), list[str](), list[str]()
    for place, structure in enumerate(STRUCTURES):
        for seed, number in product(seeds, range(cases)):
            rng, begun = np.random.default_rng([seed, number, place]), time.process_time()
            case = draw_allocation_law_case(rng, UNIVERSE, structure, list(TIERS)[number % len(TIERS)])
            seconds = time.process_time() - begun
            shares, verdicts_by_program, _ = baselines(case, source_log(rng, case), disclosure)
            costs = [1 - case.share(weights) for weights in case.misread.values()]
            rows.append([case.gain, seconds, len(costs), fmean(costs), *shares.values()])
            names = ["gain", "seconds", "mistakes", "cost", *shares]
            verdicts += [
                f"{name}: {verdict}" for name, found in verdicts_by_program.items() for verdict in found.values()
            ]
        found = np.mean(rows[-cases * len(seeds) :], axis=0)
        print(f"{structure:28}" + "  ".join(f"{n} {v:.4g}" for n, v in zip(names, found, strict=True)), flush=True)
    print(f"{'all':28}" + "  ".join(f"{n} {v:.4g}" for n, v in zip(names, np.mean(rows, axis=0), strict=True)))
    print({each: verdicts.count(each) for each in sorted(set(verdicts))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--cases", type=int, default=12)
    parser.add_argument("--disclosure", choices=("full", "described", "data"), default="full")
    arguments = parser.parse_args()
    if arguments.disclosure != "full":
        undisclosed(arguments.seeds, arguments.cases, arguments.disclosure)
        return
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    costs: dict[str, list[float]] = defaultdict(list)
    seconds, printed, gains, fell = [], [], [], defaultdict[str, list[str]](list)
    for seed in arguments.seeds:
        for number in range(arguments.cases):
            tier = list(TIERS)[number % len(TIERS)]
            rng, begun = np.random.default_rng([seed, number]), time.process_time()
            case = draw_allocation_case(rng, UNIVERSE, tier)
            seconds.append(time.process_time() - begun)
            gains.append(case.gain)
            log = source_log(rng, case)
            scores, verdicts_by_program, characters = baselines(case, log)
            printed.append(characters)
            for name, share in {**agent_shares(case, log), **scores}.items():
                for where in (tier, "all"):
                    shares[name][where].append(share)
            for name, weights in case.misread.items():
                costs[name.partition("@")[0]].append(1 - case.share(weights))
            for name, verdicts in verdicts_by_program.items():
                fell[name] += verdicts.values()
    print(f"{'share of the attainable gain':28}" + "".join(f"{where:>16}" for where in (*TIERS, "all")))
    for name, by_tier in shares.items():
        cells = [by_tier[where] for where in (*TIERS, "all")]
        shown = "".join(
            f"{fmean(c):9.3f} ±{stdev(c) / len(c) ** 0.5:5.3f}" if len(c) > 1 else f"{'':16}" for c in cells
        )
        print(f"{name:28}{shown}")
    print("\nwhat a mistake costs by itself")
    for kind, found in sorted(costs.items()):
        print(f"  {kind:22} {len(found):4} places, mean {fmean(found):5.2f}, least {min(found):5.2f}")
    for name, verdicts in fell.items():
        counts = {verdict: verdicts.count(verdict) for verdict in ("avoided", "fallen", "untested")}
        print(f"  {name:22} {counts}")
    tokens = fmean(printed) / CHARACTERS_PER_TOKEN / 1e6
    print(f"\nattainable gain {fmean(gains):.2%} a quarter (least {min(gains):.2%}); {fmean(seconds):.2f} s a case")
    print(f"{tokens:.2f} million tokens a case if printed, {fmean(printed) / 1e6:.1f} million characters")


if __name__ == "__main__":
    main()

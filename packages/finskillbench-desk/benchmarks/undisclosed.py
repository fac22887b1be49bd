"""Shares of programs on cases whose law is not disclosed, by structure, and the power of paired runs.

    python packages/finskillbench-desk/benchmarks/undisclosed.py [--kinds allocate ...] [--seeds 1 2] [--cases 20]

Cases are those of the suite's build. Programs see what an agent sees. `agnostic` programs use published methods with
settings that were chosen on seeds 11 and 12; the programs from "less search" to "shorter memory" or "trusting labels"
change one setting each. `textbook` plugs in estimates, `recipe` is the registered mechanical recipe, `trivial` the
answer without reasoning. The power is that of two methods whose true difference is .05, in runs of 40 cases.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.special import stdtrit
from undisclosed_programs import KINDS, PROGRAMS, Case, Program, build_cases, trivial

from finskillbench.arrays import Floats

DIFFERENCE, RUN, RUNS = 0.05, 40, 10_000
"""True difference of two methods, cases of a run, and simulated runs."""
CLOSE = 0.15
"""Largest mean difference of two programs that count as similar."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cases", type=int, default=20, help="Cases of each seed.")
    parser.add_argument("--programs", nargs="+", help="Programs to run; default: all.")
    parser.add_argument("--save", type=Path, help="File for the score of each case.")
    parser.add_argument("--power", type=Path, nargs="+", help="Saved files; only their power is printed.")
    options = parser.parse_args()
    kinds: list[str] = [] if options.power else options.kinds
    files: list[Path] = options.power or []
    scores: dict[str, dict[str, Floats]] = {}
    for saved in files:
        for kind, by_program in json.loads(saved.read_text()).items():
            joined = scores.setdefault(kind, {})
            for name, values in by_program.items():
                joined[name] = np.append(joined.get(name, np.empty(0)), values)
    for kind in kinds:
        cases = (case for seed in options.seeds for case in build_cases(kind, seed, options.cases))
        programs = {"trivial": trivial, **PROGRAMS[kind]}
        chosen = {name: each for name, each in programs.items() if name in (options.programs or programs)}
        scores[kind] = shares(kind, cases, chosen)
    if options.save:
        found = {kind: {name: each.tolist() for name, each in values.items()} for kind, values in scores.items()}
        options.save.write_text(json.dumps(found))
    power(scores)


def shares(kind: str, cases: Iterator[Case], programs: Mapping[str, Program]) -> dict[str, Floats]:
    """Print mean shares by structure and disclosure; return those of each case by program."""
    scores, seconds = defaultdict[str, list[float]](list), dict.fromkeys(programs, 0.0)
    labels: list[tuple[str, str]] = []
    for case in cases:
        labels.append((case.structure, case.disclosure))
        for name, program in programs.items():
            begun = time.perf_counter()
            scores[name].append(case.score(program(case)))
            seconds[name] += time.perf_counter() - begun
    found = {name: np.array(values) for name, values in scores.items()}
    print(f"\n{kind:32}" + "".join(f"{name:>20}" for name in programs))
    groups = {label: [label in pair for pair in labels] for label in dict.fromkeys(x for pair in labels for x in pair)}
    for label, inside in {**groups, "all": [True] * len(labels)}.items():
        print(f"{label:27}{sum(inside):5}" + "".join(f"{each[inside].mean():20.3f}" for each in found.values()))
    print(f"{'seconds a case':32}" + "".join(f"{each / len(labels):20.1f}" for each in seconds.values()), flush=True)
    return found


def power(scores: Mapping[str, Mapping[str, Floats]]) -> None:
    """Print for pairs of programs how many runs of 40 cases detect a difference of .05, and the cases needed for 80 %.

    Two or more kinds are also pooled: 40 cases of each, with equal weights and an interval stratified by kind.
    """
    print(f"\n{'pair':62}{'difference':>11}{'deviation':>10}{'power':>7}{'cases for 80 %':>15}")
    rng = np.random.default_rng(0)
    names = [[name for name in each if name not in ("trivial", "recipe")] for each in scores.values()]
    tested = {kind: ([scores[kind]], programs) for kind, programs in zip(scores, names, strict=True)}
    if len(scores) > 1:
        tested["pooled"] = (list(scores.values()), [name for name in names[0] if all(name in each for each in names)])
    for kind, (strata, programs) in tested.items():
        rows: list[tuple[float, float, float]] = []
        for a, b in combinations(programs, 2):
            differences = [each[a] - each[b] for each in strata]
            mean = float(np.mean([each.mean() for each in differences]))
            deviation = float(np.sqrt(np.mean([each.var(ddof=1) for each in differences])))
            rows.append((abs(mean), power_of(differences, rng), cases_needed(deviation)))
            figures = f"{mean:11.3f}{deviation:10.3f}{rows[-1][1]:7.2f}{rows[-1][2]:15.0f}"
            print(f"{kind + ': ' + a + ' less ' + b:62}{figures}")
        for label, largest in (("all pairs", 1.0), (f"pairs that differ by at most {CLOSE:g}", CLOSE)):
            chosen = np.array([row[1:] for row in rows if row[0] <= largest]).reshape(-1, 2)
            if len(chosen):
                share, needed = np.median(chosen, axis=0)
                print(f"{kind}, median of {len(chosen)} ({label}): power {share:.2f}, {needed:.0f} cases for 80 %")


def power_of(differences: list[Floats], rng: np.random.Generator) -> float:
    """Return the share of runs whose paired 95 % t-interval is above 0 if the true mean is `DIFFERENCE`.

    Each array holds the differences of one kind, of which a run draws 40 cases with replacement.
    """
    drawn = [(d - d.mean() + DIFFERENCE)[rng.integers(0, len(d), (RUNS, RUN))] for d in differences]
    means = np.mean([each.mean(axis=1) for each in drawn], axis=0)
    errors = np.sqrt(np.sum([each.var(axis=1, ddof=1) for each in drawn], axis=0) / RUN) / len(drawn)
    return float((means > float(stdtrit(len(drawn) * (RUN - 1), 0.975)) * errors).mean())


def cases_needed(deviation: float) -> float:
    """Return the number of cases for a power of 80 %, in the normal approximation."""
    return float(np.ceil(((1.960 + 0.842) * deviation / DIFFERENCE) ** 2))


if __name__ == "__main__":
    main()

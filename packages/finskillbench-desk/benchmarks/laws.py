"""Attainable gain, and shares of the posterior of another law, for cases whose law is not disclosed.

    python packages/finskillbench-desk/benchmarks/laws.py [--cases 4] [--seed 1] [--matrix NAME ...]

For each structure it prints the median attainable gain, the share of drawn worlds with enough of it, and the seconds of
a posterior. `--matrix` prints the mean share of the posterior of the row's law on cases of the column's. Shares are
clipped at 0. Shares of programs are in `undisclosed.py`.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats
from finskillbench_desk.allocate.laws import STRUCTURES, Law, draw_effects, draw_law, draw_residuals, features
from finskillbench_desk.allocate.posterior import law_effects
from finskillbench_desk.allocate.sources import (
    GROUP_SIZE,
    LEAST_GAIN,
    NAMES,
    AllocationBook,
    Sources,
    draw_book,
    draw_sources,
)
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem, optimum
from finskillbench_desk.market import INDUSTRIES

UNIVERSE = [(f"N{place:03d}", INDUSTRIES[place // GROUP_SIZE]) for place in range(NAMES)]


class LawCase(NamedTuple):
    """A drawn case with the utilities that bound its score."""

    law: Law
    book: AllocationBook
    sources: Sources
    residuals: Floats
    problem: TradingProblem
    textbook: float
    attainable: float
    seconds: float

    @property
    def scores(self) -> Floats:
        return self.sources.values / self.sources.scale

    def share(self, alpha: Floats, doubt: Floats) -> float:
        """Return the share of the attainable gain that the optimum under a belief earns, at least 0."""
        weights = optimum(self.book.problem(alpha, doubt), unique=False).weights
        return max((self.problem.utility(weights) - self.textbook) / (self.attainable - self.textbook), 0.0)


def draw_case(rng: np.random.Generator, structure: str) -> LawCase:
    law, book, sources = draw_law(rng, structure), draw_book(rng, UNIVERSE), draw_sources(rng, 50)
    scores = sources.values / sources.scale
    effects = draw_effects(rng, law, book, features(law, scores, sources.start))
    residuals = draw_residuals(rng, law, book.specific) + effects[:-1]
    begun = time.perf_counter()
    belief = law_effects(law, scores, sources.start, residuals, book)
    seconds = time.perf_counter() - begun
    problem = book.problem(belief.alpha, belief.doubt)
    ignoring = optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    textbook = max(problem.utility(book.current), problem.utility(ignoring))
    return LawCase(law, book, sources, residuals, problem, textbook, -optimum(problem).value, seconds)


def cases_of(structure: str, count: int, seed: int) -> tuple[list[LawCase], int]:
    """Return cases with enough gain, and the number of worlds drawn for them."""
    kept, number = list[LawCase](), 0
    while len(kept) < count:
        case = draw_case(np.random.default_rng([seed, list(STRUCTURES).index(structure), number]), structure)
        number += 1
        if case.attainable - case.textbook >= LEAST_GAIN:
            kept.append(case)
    return kept, number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--matrix", nargs="*", metavar="NAME", choices=STRUCTURES)
    options = parser.parse_args()
    if options.matrix is not None:
        matrix(options.matrix or list(STRUCTURES), options.cases, options.seed)
        return
    print(f"{'structure':28}{'gain':>8}{'kept':>6}{'seconds':>9}")
    for structure in STRUCTURES:
        kept, number = cases_of(structure, options.cases, options.seed)
        gain = np.median([case.attainable - case.textbook for case in kept])
        seconds = np.median([case.seconds for case in kept])
        print(f"{structure:28}{gain:8.4f}{len(kept) / number:6.2f}{seconds:9.2f}", flush=True)


def matrix(names: list[str], count: int, seed: int) -> None:
    """Print the mean share of each law's posterior on cases of each other law."""
    drawn = {name: cases_of(name, count, seed)[0] for name in names}
    print("row: law of the posterior; column: law of the cases, in the same order")
    for name in names:
        row: list[float] = []
        for other in names:
            shares: list[float] = []
            for number, case in enumerate(drawn[other]):
                law = case.law if name == other else draw_law(np.random.default_rng([seed, 9, number]), name)
                belief = law_effects(law, case.scores, case.sources.start, case.residuals, case.book)
                shares.append(case.share(belief.alpha, belief.doubt))
            row.append(float(np.mean(shares)))
        print(f"{name:28}" + "".join(f"{each:6.2f}" for each in row), flush=True)


if __name__ == "__main__":
    main()

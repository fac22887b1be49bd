"""Attainable gain, shares of programs, and the posterior of another law, for cases whose law is not disclosed.

    python packages/finskillbench-desk/benchmarks/laws.py [--cases 4] [--seed 1] [--matrix NAME ...]

For each structure it prints the median attainable gain, the share of drawn worlds with enough of it, the seconds of a
posterior, and the mean share of the attainable gain that programs earn: `levels` takes in each industry the source with
the largest t-value of its level; `library` searches forms, places and windows by forward selection with a Bonferroni
limit and shrinks what it finds. `--matrix` prints the mean share of the posterior of the row's law on cases of the
column's. Shares are clipped at 0.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from finskillbench.arrays import Floats
from finskillbench_desk.allocate.law_posterior import law_effects
from finskillbench_desk.allocate.laws import (
    STRUCTURES,
    Form,
    Law,
    Place,
    draw_effects,
    draw_law,
    draw_residuals,
    features,
    places,
)
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
FORMS: tuple[Form, ...] = ("level", "change", "sign", "extreme", "gate", "product")
PLACES: tuple[Place, ...] = ("industry", "block", "size", "market")
WINDOWS = (44, 24, 12)
MOST = 30
"""Greatest number of effects that `library` selects."""


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


def sums(case: LawCase, law: Law, found: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """Return sums of squares and products (T, G, C) by place."""
    place_of = places(law, case.book)
    member = (np.arange(place_of.max() + 1)[:, None] == place_of).astype(float)
    scaled = found[:-1] / case.book.specific[:, None]
    target = (residuals / case.book.specific)[:, :, None]
    return np.matmul(member, scaled**2), np.matmul(member, scaled * target)


def levels(case: LawCase) -> float:
    """Return the share of the source with the largest t-value of its level in each industry, over all quarters."""
    law = replace(case.law, place="industry", form="level")
    found = features(law, case.scores, case.sources.start)
    squares, products = (part.sum(axis=0) for part in sums(case, law, found, case.residuals))
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.nan_to_num(np.abs(products) / np.sqrt(squares)).argmax(axis=1)
    alpha = np.zeros(NAMES)
    for group, source in enumerate(best.tolist()):
        names = slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)
        alpha[names] = found[-1, names, source] * products[group, source] / squares[group, source]
    return case.share(alpha, np.zeros((NAMES, NAMES)))


def library(case: LawCase) -> float:
    """Return the share of forward selection over forms, places and windows, with shrunk estimates."""
    residuals, alpha, doubt = case.residuals.copy(), np.zeros(NAMES), np.zeros((NAMES, NAMES))
    settings: list[Law] = [replace(case.law, form=form, place=place) for form in FORMS for place in PLACES]
    found = {law.form: features(law, case.scores, case.sources.start) for law in settings}
    for _ in range(MOST):
        best: tuple[float, Any] = (0.0, None)
        tried = 0
        for law in settings:
            squares, products = sums(case, law, found[law.form], residuals)
            for window in WINDOWS:
                x, y = squares[-window:].sum(axis=0), products[-window:].sum(axis=0)
                t = np.divide(y, np.sqrt(x), out=np.zeros_like(y), where=x > 0)
                tried += t.size
                place, candidate = np.unravel_index(np.abs(t).argmax(), t.shape)
                if abs(t[place, candidate]) > best[0]:
                    estimate, variance = y[place, candidate] / x[place, candidate], 1 / x[place, candidate]
                    best = (abs(t[place, candidate]), (law, window, int(place), int(candidate), estimate, variance))
        limit = norm.isf(0.05 / tried)
        if best[0] < limit:
            break
        law, window, place, candidate, estimate, variance = best[1]
        names, shrunk = places(law, case.book) == place, estimate * max(0.0, 1.0 - np.log(tried) / best[0] ** 2)
        column = found[law.form][:, :, candidate] * names
        residuals[-window:] -= shrunk * column[:-1][-window:]
        alpha += shrunk * column[-1]
        doubt += variance * np.outer(column[-1], column[-1])
    return case.share(alpha, doubt)


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
    print(f"{'structure':28}{'gain':>8}{'kept':>6}{'seconds':>9}{'levels':>8}{'library':>9}")
    for structure in STRUCTURES:
        kept, number = cases_of(structure, options.cases, options.seed)
        gain = np.median([case.attainable - case.textbook for case in kept])
        seconds = np.median([case.seconds for case in kept])
        shares = [np.mean([program(case) for case in kept]) for program in (levels, library)]
        figures = f"{gain:8.4f}{len(kept) / number:6.2f}{seconds:9.2f}{shares[0]:8.2f}{shares[1]:9.2f}"
        print(f"{structure:28}{figures}", flush=True)


def matrix(names: list[str], count: int, seed: int) -> None:
    """Print the mean share of each law's posterior on cases of each other law."""
    drawn = {name: cases_of(name, count, seed)[0] for name in names}
    print("row: law of the posterior; column: law of the cases, in the same order")
    for name in names:
        row = []
        for other in names:
            shares = []
            for number, case in enumerate(drawn[other]):
                law = case.law if name == other else draw_law(np.random.default_rng([seed, 9, number]), name)
                belief = law_effects(law, case.scores, case.sources.start, case.residuals, case.book)
                shares.append(case.share(belief.alpha, belief.doubt))
            row.append(np.mean(shares))
        print(f"{name:28}" + "".join(f"{each:6.2f}" for each in row), flush=True)


if __name__ == "__main__":
    main()

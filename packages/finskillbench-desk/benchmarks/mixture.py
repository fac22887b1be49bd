"""Shares of the optimum under a mixture of all laws: the structures are known, which one holds and its numbers are not.

    python packages/finskillbench-desk/benchmarks/mixture.py [--kind allocate] [--seeds 1] [--cases 10] [--draws 3]

`allocate`: for each structure, laws with parameters drawn from its ranges (tails in turn), weighed by their exact
evidence; the answer is the optimum under the mean and covariance of the mixture. `forensic_screen`: parameters are
estimated from statements and archive, because draws of so many would fit nothing; structures are weighed by the
cross-validated likelihood of the labels of the archive. A case takes less than a minute.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import agnostic_accounts
import numpy as np
import undisclosed_programs
from scipy.special import gammaln

from finskillbench.arrays import Floats
from finskillbench.episode import JsonObject
from finskillbench_desk.allocate import posterior
from finskillbench_desk.allocate.laws import EARLIEST, STRUCTURES, Law, chances, draw_law, features, places
from finskillbench_desk.allocate.sources import HALVES, AllocationBook
from finskillbench_desk.allocate.visible import Visible, read_visible, visible_book
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.forensic_screen.laws import STRUCTURES as MANAGEMENT

NEGLIGIBLE = 1e-3
"""Weight below which a law is left out."""
_parts: Any = posterior
"""The module with its private parts, which compute the evidence of a stretch of half-years."""


def log_evidence(law: Law, found: Floats, seen: Visible, book: AllocationBook) -> float:
    """Return the log density of all residuals under a law."""
    place_of, stay, turn = places(law, book), np.log1p(-law.change), np.log(law.change)
    known = (law, found, seen.residuals, book, place_of)
    if law.course == "intermittent":
        size, weight = _parts._quadrature(law)
        on = off = np.full((int(place_of.max()) + 1, *size.shape), -np.log(2.0))
        for half in _parts._by_half(*known):
            lit = on + half
            on, off = np.logaddexp(lit + stay, off + turn), np.logaddexp(off + stay, lit + turn)
        effect = np.log((1.0 - law.nothing) * chances(law))[:, None] + weight + np.logaddexp(on, off)
        by_place = np.logaddexp(np.log(law.nothing), np.logaddexp.reduce(effect, axis=(1, 2)))
        return float(by_place.sum()) + _noise(law, seen)
    evidence = (_parts._double if law.both else _parts._single)(*known)
    if law.course == "break":
        dates = range(EARLIEST, HALVES)
        broken = [evidence(0, date).log.sum() + evidence(date, HALVES).log.sum() for date in dates]
        logs = np.append(stay + evidence(0, HALVES).log.sum(), turn - np.log(len(dates)) + np.array(broken))
        return float(np.logaddexp.reduce(logs)) + _noise(law, seen)
    before = [np.zeros(int(place_of.max()) + 1)]
    for last in range(1, HALVES + 1):
        ended = [before[first] + evidence(first, last).log + (last - first - 1) * stay for first in range(last)]
        before.append(np.logaddexp.reduce(np.array(ended), axis=0) + (turn if last < HALVES else 0.0))
    return float(before[HALVES].sum()) + _noise(law, seen)


def _noise(law: Law, seen: Visible) -> float:
    """Return the log density of the residuals without effects, up to a term that is the same for all laws."""
    squares = (seen.residuals / seen.specific) ** 2
    if np.isinf(law.tail):
        return -float((squares + np.log(2.0 * np.pi)).sum()) / 2.0
    half = (law.tail + 1.0) / 2.0
    constant = gammaln(half) - gammaln(law.tail / 2.0) - np.log(np.pi * (law.tail - 2.0)) / 2.0
    return float((constant - half * np.log1p(squares / (law.tail - 2.0))).sum())


def allocate(
    case: undisclosed_programs.Case, draws: int, rng: np.random.Generator
) -> tuple[JsonObject, dict[str, float]]:
    """Return the answer under the mixture, and the weights of structures."""
    seen, book = read_visible(case.fields), visible_book(case.fields)
    laws = [
        (name, replace(draw_law(rng, name), tail=ranges.tails[number % len(ranges.tails)]))
        for name, ranges in STRUCTURES.items()
        for number in range(draws)
    ]
    logs = np.array([log_evidence(law, features(law, seen.scores, seen.start), seen, book) for _, law in laws])
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    mean, square = np.zeros(len(seen.specific)), np.zeros((len(seen.specific), len(seen.specific)))
    by_structure = dict.fromkeys(STRUCTURES, 0.0)
    for (name, law), weight in zip(laws, weights.tolist(), strict=True):
        by_structure[name] += weight
        if weight > NEGLIGIBLE:
            alpha, doubt = posterior.law_effects(law, seen.scores, seen.start, seen.residuals, book)
            mean += weight * alpha
            square += weight * (doubt + np.outer(alpha, alpha))
    return undisclosed_programs.weights_answer(book, mean, square - np.outer(mean, mean)), by_structure


def forensic_screen(
    case: undisclosed_programs.Case, draws: int, rng: np.random.Generator
) -> tuple[JsonObject, dict[str, float]]:
    """Return the answer under the mixture, and the weights of structures."""
    del draws, rng
    accounts, cases = agnostic_accounts.read_accounts(case.fields), agnostic_accounts.read_archive(case.fields)
    settings, model = agnostic_accounts.USUAL, agnostic_accounts.estimate(accounts)
    laws = [
        (name, _template(ranges, half, model, settings))
        for name, ranges in MANAGEMENT.items()
        for half in ((2, 3, 4) if ranges.form == "reversing" else (4,))
    ]
    logs = np.array([agnostic_accounts.validated(law, cases, settings) for _, law in laws])
    weights = np.exp(logs - np.logaddexp.reduce(logs))
    p, by_structure = np.zeros((len(accounts.y), agnostic_accounts.KIND_COUNT)), dict.fromkeys(MANAGEMENT, 0.0)
    for (name, law), weight in zip(laws, weights.tolist(), strict=True):
        by_structure[name] += weight
        if weight > NEGLIGIBLE:
            fitted = agnostic_accounts.fit_signatures(law, cases, settings)
            p += weight * agnostic_accounts.probabilities(case.fields, accounts, fitted)
    return agnostic_accounts.answer(case.fields, p), by_structure


def _template(ranges: Any, half: int, model: RatioModel, settings: agnostic_accounts.Settings) -> Any:
    """Return the law of a structure at the middle of its ranges, with estimated parameters of unmanaged ratios."""
    law = agnostic_accounts.course_law((ranges.form, ranges.either_sign), model, settings)
    if ranges.separate_volatility:
        law = replace(law, model=replace(law.model, correlation=np.eye(len(model.deviation))))
    return replace(
        law,
        half=half,
        together=ranges.together,
        separate_volatility=ranges.separate_volatility,
        shock=sum(ranges.shock) / 2.0,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=("allocate", "forensic_screen"), default="allocate")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--cases", type=int, default=10, help="Cases of each seed.")
    parser.add_argument("--draws", type=int, default=3, help="Laws of each structure.")
    options = parser.parse_args()
    program = {"allocate": allocate, "forensic_screen": forensic_screen}[options.kind]
    agnostic = undisclosed_programs.PROGRAMS[options.kind]["agnostic"]
    rows: list[tuple[float, float, float, float]] = []
    print(f"{'structure':30}{'mixture':>9}{'agnostic':>10}{'weight of structure':>21}{'seconds':>9}")
    for seed in options.seeds:
        for number, case in enumerate(undisclosed_programs.build_cases(options.kind, seed, options.cases)):
            begun = time.perf_counter()
            answer, weights = program(case, options.draws, np.random.default_rng([seed, number]))
            seconds = time.perf_counter() - begun
            rows.append((case.score(answer), case.score(agnostic(case)), weights[case.structure], seconds))
            print(
                f"{case.structure:30}{rows[-1][0]:9.3f}{rows[-1][1]:10.3f}{rows[-1][2]:21.3f}{seconds:9.1f}", flush=True
            )
    means = np.array(rows).mean(axis=0)
    print(f"{'mean':30}{means[0]:9.3f}{means[1]:10.3f}{means[2]:21.3f}{means[3]:9.1f}")


if __name__ == "__main__":
    main()

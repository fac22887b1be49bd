"""How an answer is judged: expected utility net of costs and of a price on broken limits, as a share of the gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.episode import JsonObject, Score, Truth
from finskillbench.scoring.values import mapping, number
from finskillbench.sums import summed
from finskillbench_desk.allocate.book import Book
from finskillbench_desk.allocate.dials import GROUP_SIZE, GROUPS, NAMES, PENALTY
from finskillbench_desk.engines.trading.net_of_costs import TradingProblem
from finskillbench_desk.share import share

_LARGEST = 1e3
"""A weight beyond this is no weight; squares of such numbers would leave the finite ones."""
_FALLEN, _AVOIDED = 0.6, 0.4
"""How far on the way from the optimum to the misreading an answer lies that fell for it, or saw it."""
_CONCENTRATED = 0.9
"""A mistake is looked for among the names that make up this much of its squared change of weights."""


def stated_book(book: Book) -> dict[str, Any]:
    """The book as the truth keeps it: lists of numbers."""
    values = {field.name: getattr(book, field.name) for field in fields(book)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else list(value) for name, value in values.items()}


def book_of(stated: Mapping[str, Any]) -> Book:
    """A book from the truth."""
    texts = ("tickers", "groups")
    values: dict[str, Any] = {
        name: tuple(value) if name in texts else np.array(value, dtype=float) for name, value in stated.items()
    }
    return Book(**values)


def stated_doubt(doubt: Floats) -> list[list[list[float]]]:
    """The covariance of effects by its blocks: different industries are independent."""
    return [doubt[_block(group), _block(group)].tolist() for group in range(GROUPS)]


def doubt_of(stated: list[list[list[float]]]) -> Floats:
    """(n, n) from its blocks."""
    doubt = np.zeros((NAMES, NAMES))
    for group, block in enumerate(stated):
        doubt[_block(group), _block(group)] = block
    return doubt


def _block(group: int) -> slice:
    return slice(group * GROUP_SIZE, (group + 1) * GROUP_SIZE)


def problem_of(verification: JsonObject) -> TradingProblem:
    """The decision under the exact posterior, from the truth alone."""
    book = book_of(verification["book"])
    return book.problem(np.array(verification["effects"]), doubt_of(verification["effect_covariance"]))


def weights_of(answer: JsonObject, tickers: tuple[str, ...]) -> Floats | None:
    """(n,) weights of an answer; None where a name or a number is none."""
    given = mapping(answer.get("weights"))
    values = {name: number(value) for name, value in given.items()}
    known = set(tickers)
    if not values or any(name not in known or value is None or abs(value) > _LARGEST for name, value in values.items()):
        return None
    return np.array([values.get(ticker) or 0.0 for ticker in tickers])


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """The share of the attainable gain; `traps` says of each place whether the weights show a mistake there."""
    del task_input
    known = truth.verification
    problem = problem_of(known)
    weights = weights_of(answer, tuple(known["book"]["tickers"]))
    if weights is None:
        unknown = dict.fromkeys(known["misread"], "unknown")
        return Score(0.0, {"weights": "absent, or not numbers by ticker of the universe", "traps": unknown})
    utility, broken = problem.utility(weights), problem.excesses(weights)
    merit = utility - PENALTY * summed(broken.values())
    value = share(merit, known["textbook_utility"], known["attainable_utility"])
    best = np.array([truth.expected_output["weights"].get(ticker, 0.0) for ticker in known["book"]["tickers"]])
    traps = {name: verdict(weights, best, np.array(wrong)) for name, wrong in known["misread"].items()}
    details = {
        "utility": utility,
        "charged": utility - merit,
        "broken": {name: excess for name, excess in broken.items() if excess > 0},
        "turnover": float(np.abs(weights - problem.held).sum()) / 2,
        "traps": traps,
    }
    return Score(value, details)


def verdict(weights: Floats, best: Floats, wrong: Floats) -> str:
    """Whether weights lie near the optimum or near those of a mistake, among the names that the mistake moves."""
    moved = wrong - best
    order = np.argsort(-np.abs(moved))
    heavy = np.cumsum(moved[order] ** 2) <= _CONCENTRATED * float(moved @ moved)
    names = order[: int(heavy.sum()) + 1]
    away, along = (weights - best)[names], moved[names]
    length = float(along @ along)
    part = float(away @ along) / length
    beside = away - part * along
    if float(beside @ beside) > length or _AVOIDED < part < _FALLEN:
        return "unknown"
    return "fallen" if part >= _FALLEN else "avoided"

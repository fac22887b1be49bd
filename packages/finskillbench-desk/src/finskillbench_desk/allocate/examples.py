"""Answers of known quality: portfolios between the optimum and the zero of the scale, and recipes without judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.episode import JsonObject
from finskillbench_desk.allocate.prompts import problem_of
from finskillbench_desk.allocate.sources import GROUP_SIZE, GROUPS, NAMES, AllocationBook, book_from_json
from finskillbench_desk.allocate.visible import read_visible, visible_book
from finskillbench_desk.engines.trading.net_of_costs import optimum

_PARTS = (0.75, 0.5, 0.25)
_RECENT, _TRUST = 16, 0.6
"""Quarters that the recipe uses, and its factor for estimates."""


def _answer(book: AllocationBook, weights: Floats) -> JsonObject:
    return {"weights": dict(zip(book.tickers, weights.tolist(), strict=True))}


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Grade portfolios from the optimum through parts of the way, which earn at least that part, to the zero."""
    known = label.truth.verification
    book, problem = book_from_json(known["book"]), problem_of(known)
    best = np.array([label.truth.expected_output["weights"].get(ticker, 0.0) for ticker in book.tickers])
    ignoring = optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    zero = max((book.current, ignoring), key=problem.utility)
    return [
        GradedExample("the optimum", _answer(book, best), 1.0 - 1e-6, 1.0),
        *(
            GradedExample(f"{part:.0%} of the way", _answer(book, zero + part * (best - zero)), part - 1e-6, 1.0)
            for part in _PARTS
        ),
        GradedExample("the better book without sources", _answer(book, zero), 0.0, 1e-6),
        GradedExample("the opposite trades", _answer(book, 2.0 * zero - best), 0.0, 0.0),
    ]


def exploits(task_input: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Return answers without judgement: fixed portfolios and, if no family is disclosed, the best known recipe."""
    book = visible_book(task_input)
    ignoring = optimum(book.problem(np.zeros(NAMES)), unique=False).weights
    found = {
        "the benchmark": book.benchmark,
        "equal weights": np.full(NAMES, 1 / NAMES),
        "the optimum without sources": ignoring,
    }
    if "family" not in task_input:
        effects = weighed_by_evidence(task_input)
        found["weights of evidence"] = optimum(book.problem(effects), unique=False).weights
    return {name: _answer(book, weights) for name, weights in found.items()}


def weighed_by_evidence(task_input: Mapping[str, Any]) -> Floats:
    """Return effects from all sources of an industry, weighed by exp(t^2 / 2), over recent quarters as delivered."""
    seen = read_visible(task_input, repaired=False)
    recent = slice(-1 - _RECENT, -1)
    scaled = (seen.scores[recent] / seen.specific[:, None]).reshape(_RECENT, GROUPS, GROUP_SIZE, -1)
    target = (seen.residuals[-_RECENT:] / seen.specific).reshape(*scaled.shape[:3], 1)
    squares, products = (scaled**2).sum(axis=(0, 2)), (scaled * target).sum(axis=(0, 2))
    evidence = products**2 / squares / 2.0
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    now = seen.scores[-1].reshape(GROUPS, -1, weights.shape[1])
    return _TRUST * np.einsum("gic,gc->gi", now, weights * products / squares).ravel()

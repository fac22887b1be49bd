"""Answers of known quality: shares of the evidence, from all to none, and records written without solving the case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.examples import GradedExample, Label
from finskillbench.episode import JsonObject
from finskillbench_desk.trade_over_time import rederive
from finskillbench_desk.trade_over_time.interactive import as_orders
from finskillbench_desk.trade_over_time.law_optimum import ignoring_aims
from finskillbench_desk.trade_over_time.optimum import TradingSetup, from_json, optimal_path
from finskillbench_desk.trade_over_time.world import DECISIONS, SIGNALS

_RECENT, _TRUST = 150, 0.6
"""Weeks and shrinkage of the recipe `weights of evidence`."""


def graded_examples(label: Label[Any]) -> list[GradedExample]:
    """Grade policies that use all, half, a quarter or none of the evidence in the optimal forecasts.

    With a share w of the forecasts a decision loses (1 - w)^2 of what it loses without them in every book.
    """
    known = label.truth.verification
    setup, aims = from_json(known["desk"]), np.array(known["aims"])
    nothing = ignoring_aims(setup)

    def answer(share: float) -> JsonObject:
        return _answer(setup, optimal_path(setup, nothing + share * (aims - nothing)))

    rounded = [
        {"trades": {name: round(amount, 1) for name, amount in order["trades"].items()}}
        for order in label.truth.expected_output["record"]["decisions"]
    ]
    return [
        GradedExample("the optimal policy", label.truth.expected_output, 1.0 - 1e-9, 1.0),
        GradedExample("to tenths of a million", {"decisions": DECISIONS, "record": {"decisions": rounded}}, 0.97, 1.0),
        GradedExample("half of the evidence", answer(0.5), 0.6, 0.82),
        GradedExample("a quarter of the evidence", answer(0.25), 0.2, 0.6),
        GradedExample("none of the evidence", answer(0.0), 0.0, 0.35),
        GradedExample("holding still", {"decisions": 0}, 0.0, 0.0),
    ]


def _answer(setup: TradingSetup, books: list[Floats]) -> JsonObject:
    return {"decisions": DECISIONS, "record": as_orders(setup, books)}


def exploits(task_input: Mapping[str, Any]) -> dict[str, JsonObject]:
    """Return records planned on the first day: the benchmark at once, and coefficients by a fixed recipe.

    The recipe weighs each signal by exp(t^2 / 2) over recent weeks and trusts its regression by six tenths, without
    regard to ends, copies, places and values that were supplied later.
    """
    nothing = np.zeros((0, task_input["names"].rows, len(SIGNALS)), dtype=np.int16)
    seen = rederive.read_case(task_input, nothing, nothing[:, :, 0])
    tickers = task_input["names"].frame["ticker"].to_list()
    return {
        "the benchmark at once": _planned(seen, tickers, None),
        "weights of evidence": _planned(seen, tickers, _weights_of_evidence(seen)),
    }


def _weights_of_evidence(seen: rederive.Seen) -> Floats:
    root = np.linalg.cholesky(seen.covariance / np.outer(seen.specific, seen.specific))
    weeks = slice(seen.weeks - _RECENT, seen.weeks)
    white = np.linalg.solve(root, seen.signals[weeks]).reshape(-1, seen.signals.shape[2])
    target = np.linalg.solve(root, (seen.returns[weeks] / seen.specific)[:, :, None]).ravel()
    squares, products = (white**2).sum(axis=0), white.T @ target
    weights = np.exp(np.minimum(products**2 / squares / 2.0, 300.0))
    return _TRUST * weights / (len(weights) + weights.sum()) * products / squares


def _planned(seen: rederive.Seen, tickers: list[str], coefficients: Floats | None) -> JsonObject:
    """Return the record of best trades under coefficients and the first day's signals; of the benchmark if None."""
    book, orders = seen.holdings, list[JsonObject]()
    for day in range(1, DECISIONS + 1):
        target = seen.memo.capital_at(day) * seen.benchmark
        after = target if coefficients is None else rederive.best(seen, day, 1, coefficients, book)
        orders.append({"trades": dict(zip(tickers, (after - book).tolist(), strict=True))})
        book = after
    return {"decisions": DECISIONS, "record": {"decisions": orders}}

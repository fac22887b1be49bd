"""The best book among sources of unknown worth against sums over every source and start of a regime, and CVXPY."""

from __future__ import annotations

import zlib
from datetime import date
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from desk_tests.oracles.allocation import Desk
from desk_tests.oracles.inputs import as_seen
from tests.sampling import sampled, thorough

from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench_desk import allocate
from finskillbench_desk.market import ListedName


def _generator(*labels: object) -> np.random.Generator:
    return np.random.default_rng([20263, zlib.crc32("/".join(map(str, labels)).encode())])


@pytest.fixture(scope="module")
def tasks() -> list[BuiltTask]:
    """One of each tier."""
    panels = SimpleNamespace(month_ends=[date(2021, 6, 30)])
    context: Any = SimpleNamespace(
        panels=panels, synthetic=True, disclosure="full", generator=_generator, notes=[], most=lambda _: 3
    )
    market = tuple(ListedName(f"N{i:03}", "any", f"Industry {i % 12}", core=False) for i in range(120))
    return list(allocate.build(cast(BuildContext, context), market))


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("number", sampled(range(3), 3))
def test_posterior_and_best_book_are_the_stored_ones(tasks: list[BuiltTask], number: int) -> None:
    task = tasks[number]
    desk, stored = Desk(as_seen(task)), task.truth.verification
    mean, _ = desk.coming
    np.testing.assert_allclose(mean - desk.names["equilibrium_return"].to_numpy(), stored["effects"], atol=1e-10)
    column = desk.names["industry"].to_numpy()
    for industry, block in zip(stored["book"]["groups"], stored["effect_covariance"], strict=True):
        _, spread = desk.industry(np.flatnonzero(column == industry))
        np.testing.assert_allclose(spread, block, atol=1e-12)
    best = desk.best()
    wanted = task.truth.expected_output["weights"]
    np.testing.assert_allclose(best, [wanted.get(ticker, 0.0) for ticker in desk.names["ticker"]], atol=1e-6)
    assert desk.utility(best) == pytest.approx(stored["attainable_utility"], abs=1e-9)

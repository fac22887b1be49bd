"""Holdings: what is dust, and portfolios without it."""

import numpy as np
import pytest

from finskillbench.engines.holdings import has_dust, without_dust


@pytest.mark.parametrize(("weight", "dust"), [(0.0, False), (9e-4, True), (-9e-4, True), (1e-3, False), (-0.5, False)])
def test_dust_is_a_weight_below_a_holding(weight: float, dust: bool) -> None:
    assert has_dust(np.array([weight, 0.5])) is dust


def test_dust_is_dropped_and_the_rest_scaled() -> None:
    found = without_dust(np.array([0.0009, 0.4, 0.0, 0.5991]))
    assert found.tolist() == pytest.approx([0.0, 0.4 / 0.9991, 0.0, 0.5991 / 0.9991])


def test_of_thousands_of_thin_weights_as_many_are_kept_as_are_holdings() -> None:
    found = without_dust(np.full(3000, 1 / 3000))
    assert (found > 0).sum() == 999
    assert not has_dust(found)

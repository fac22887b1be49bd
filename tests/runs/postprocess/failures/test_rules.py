"""The rules find what scripted models did wrong in real episodes, and nothing else."""

from __future__ import annotations

import pytest
from tests.runs.postprocess.failures.table import Confusion, confusion
from tests.sampling import THOROUGH, thorough

from finskillbench.edition import Edition
from finskillbench.runs.postprocess.failures import FailureCause

pytestmark = pytest.mark.slow  # hundreds of episodes are played
GOOD_ENOUGH = 0.95


@pytest.fixture(scope="module")
def found(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Confusion:
    return confusion(
        synthetic_edition, tmp_path_factory.mktemp("failures"), of_each=1, seed=3, one_in=1 if THOROUGH else 4
    )


@thorough
def test_hundreds_of_episodes_fail_in_every_way(found: Confusion) -> None:
    assert found.failed >= (500 if THOROUGH else 150)
    assert {*FailureCause} - found.hits.keys() == {FailureCause.UNEXPLAINED}


@thorough
@pytest.mark.parametrize("cause", [cause for cause in FailureCause if cause is not FailureCause.UNEXPLAINED])
def test_each_rule_is_right_and_misses_little(found: Confusion, cause: FailureCause) -> None:
    cases = [case for case in found.cases if f" {cause}:" in case]
    # One case weighs more than 5 % where a cause was put into fewer than twenty episodes.
    few = found.hits[cause] < 20
    assert found.false[cause] <= (1 if few else (1 / GOOD_ENOUGH - 1) * found.hits[cause]), cases
    assert found.missed[cause] <= (1 if few else (1 / GOOD_ENOUGH - 1) * found.hits[cause]), cases


@thorough
def test_what_is_right_has_no_line(found: Confusion) -> None:
    assert {"scripted/right", "scripted/after-all"} <= set(found.all_right)

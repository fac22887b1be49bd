"""Errors: what they say survives the way from one process to another."""

from __future__ import annotations

import pickle

import pytest

from finskillbench import errors
from finskillbench.errors import Cause, FinSkillBenchError

RAISED = [
    errors.SourceError("prices.csv", "no close", line=3, remedy="add one"),
    errors.InputError("--seed must not be negative"),
    errors.DownloadError("refused", permanent=True),
    errors.CatalogError(["mandates.json: no name", "scenarios.json: no date"]),
    errors.ProviderError("overloaded", Cause.SERVER, retry_after=2.5),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_of_another_process_is_the_same(error: FinSkillBenchError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))

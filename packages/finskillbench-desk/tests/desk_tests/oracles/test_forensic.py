"""The posterior of forensic screening against dense normal distributions written from the memo and the tables alone."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from desk_tests.oracles.forensic import Case
from desk_tests.oracles.inputs import as_seen
from tests.sampling import sampled, thorough

from finskillbench_desk.forensic_screen.subtask import screening_task


@thorough
@pytest.mark.parametrize("tier", sampled(["medium", "easy", "hard"], 3))
def test_every_company_and_kind_has_the_stored_probability(tier: str) -> None:
    task = screening_task(np.random.default_rng(20261), 1, tier, date(2021, 6, 30))
    found = Case(as_seen(task)).probabilities()
    stored = task.truth.verification["posterior"]
    assert found.companies == list(stored)
    np.testing.assert_allclose(found.by_kind, list(stored.values()), atol=1e-9)
    answers = task.truth.expected_output["assessments"]
    np.testing.assert_allclose(found.managed, [each["probability"] for each in answers], atol=1e-9)
    assert [found.kinds[k] for k in found.by_kind.argmax(axis=1)] == [each["kind"] for each in answers]

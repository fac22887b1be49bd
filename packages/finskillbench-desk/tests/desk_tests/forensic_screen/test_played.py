"""Programs that play cases through the scripts, and what each trap costs."""

from __future__ import annotations

import numpy as np
import pytest
from desk_tests.forensic_screen.playing import full_input, play, task
from tests.sampling import THOROUGH, sampled

from finskillbench_desk.forensic_screen import procedures
from finskillbench_desk.forensic_screen.difficulty import TIERS, ParsedAssessments, score_parts, stored_posterior
from finskillbench_desk.forensic_screen.generator.lines import LOCAL
from finskillbench_desk.forensic_screen.subtask import certified

CASES = [("easy", 60), ("medium", 1), ("medium", 4), ("hard", 62)]
"""The second has a planted acquisition, the third one that is too small to count."""


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "seed"), sampled(CASES, 2))
def test_programs_earn_what_they_should(tier: str, seed: int) -> None:
    made = task(tier, seed)
    fields = full_input(made)
    earned = {
        name: certified(play(made, procedure), made.truth, fields)
        for name, procedure in (
            ("reference", procedures.reference),
            ("textbook", procedures.textbook),
            ("trapped", procedures.trapped),
        )
    }
    assert 0.6 < earned["reference"].value < 0.95
    assert earned["textbook"].value <= 0.2
    assert earned["trapped"].value <= 0.3
    told = {name: list(score.details["traps"].values()) for name, score in earned.items()}
    assert set(told["reference"]) == {"avoided"}
    assert told["trapped"].count("fallen") >= 2
    assert earned["trapped"].details["traps"]["base_rate@memo"] == "fallen"


@pytest.mark.slow
def test_each_trap_costs_a_tenth_of_its_part_on_average() -> None:
    costs: dict[str, list[float]] = {}
    for place in range(12 if THOROUGH else 6):
        made = task(list(TIERS)[place % 3], 200 + place)
        stated = made.truth.verification
        companies, posterior = stored_posterior(stated)
        by_kind: dict[str, dict[str, float]] = {}
        for trap in stated["traps"]:
            by_kind.setdefault(trap["kind"], {}).update(trap["probabilities"])
        for kind, fallen in by_kind.items():
            q = posterior.sum(axis=1)
            q[[companies.index(name) for name in fallen]] = list(fallen.values())
            said = ParsedAssessments(q, posterior.argmax(axis=1))
            earned = score_parts(said, posterior, stated["base_rate"])
            costs.setdefault(kind, []).append(1.0 - earned["probabilities"])
    assert set(costs) == {*LOCAL, "archive", "base_rate"}
    assert all(np.mean(found) >= 0.1 for found in costs.values()), {k: np.mean(v) for k, v in costs.items()}

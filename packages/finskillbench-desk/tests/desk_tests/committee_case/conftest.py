"""Cases of each tier on the market of the synthetic edition, with their inputs as an agent reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.sampling import THOROUGH

from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.tables import EpisodeTable
from finskillbench.edition import Edition
from finskillbench.episode import Score
from finskillbench.panels import Panels, read_panels
from finskillbench_desk.committee_case.build import TIERS, committee_task
from finskillbench_desk.committee_case.draw import draw_committee_case
from finskillbench_desk.committee_case.judging.scorer import score_committee_case
from finskillbench_desk.market import ListedName, market

CASES = range(6) if THOROUGH else (3, 4, 2)
"""Numbers of cases, two of each tier or one; the first two take longer to draw than all others."""


@dataclass(frozen=True)
class Played:
    """A task with its input at full precision."""

    task: BuiltTask
    task_input: dict[str, Any]

    @property
    def truth(self) -> dict[str, Any]:
        return dict(self.task.truth.expected_output)

    def scored(self, answer: Any) -> Score:
        return score_committee_case(answer, self.task.truth, self.task_input)


@pytest.fixture(scope="session")
def market_panels(synthetic_edition: Edition) -> Panels:
    """The panels of the synthetic edition."""
    return read_panels(synthetic_edition.path / "panels")


@pytest.fixture(scope="session")
def members(market_panels: Panels) -> tuple[ListedName, ...]:
    """The desk's market of the panels."""
    return market(BuildContext(market_panels, seed=5, synthetic=True))


@pytest.fixture(scope="session")
def cases(market_panels: Panels, members: tuple[ListedName, ...]) -> list[Played]:
    context = BuildContext(market_panels, seed=5, synthetic=True)
    days = market_panels.month_ends
    return [
        played(
            committee_task(
                draw_committee_case(
                    market_panels, members, days[number], TIERS[number % 3], number, context.generator("test", number)
                ),
                number,
            )
        )
        for number in CASES
    ]


def played(task: BuiltTask) -> Played:
    """The task with its input as an agent reads it."""
    tables = {name: EpisodeTable(frame) for name, frame in task.tables.items()}
    return Played(task, {**task.episode.input, **tables})

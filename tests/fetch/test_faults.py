"""Whatever befalls a fetch, it leaves no half file and nothing to build, and the same command completes it."""

from __future__ import annotations

from datetime import date

import pytest
import pytest_socket
from tests.fetch.trials import KINDS, Course
from tests.fetch.world import World
from tests.sampling import THOROUGH, thorough

from finskillbench.fetch.configuration import Window

pytestmark = pytest.mark.enable_socket
NUMBERS = range(len(KINDS)) if THOROUGH else [KINDS.index(kind) for kind in ("cut", "page", "killed", "disk full")]


@pytest.fixture(scope="module")
def course(world: World, tmp_path_factory: pytest.TempPathFactory) -> Course:
    pytest_socket.enable_socket()
    folder = tmp_path_factory.mktemp("course")
    return Course(world, folder / "trials", sorted(world.ciks)[:1], Window(date(2025, 12, 1), date(2025, 12, 31)))


@thorough
@pytest.mark.parametrize("number", NUMBERS)
def test_a_fetch_survives(number: int, course: Course) -> None:
    trial = course.run(number, seed=17)
    assert trial.broken == (), trial

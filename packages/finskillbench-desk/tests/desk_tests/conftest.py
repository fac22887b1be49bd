"""The editions of the core's fixtures hold the desk suite here, and so do the fixtures that build on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.fixtures import built_once, validated_once
from tests.sampling import THOROUGH

from finskillbench.domains import Subtask
from finskillbench.edition import Edition
from finskillbench.edition.checks.agent_view import AuditSources, CheckContext
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench_desk.domain import DOMAIN

CASES = 10 if THOROUGH else 3
"""Cases of each subtask, two seconds each; 10 have every structure."""


@pytest.fixture(scope="session")
def synthetic_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The desk suite of the synthetic edition of seed 1."""
    return built_once(tmp_path_factory, "desk", seed=1, suite=DOMAIN.suite, episodes=CASES)


@pytest.fixture(scope="session")
def synthetic_report(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """The validation of the edition, run once."""
    return validated_once(tmp_path_factory, "desk", synthetic_edition)


@pytest.fixture(scope="session")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> CheckReport:
    """The validation of an edition whose cases state the law that they follow."""
    edition = built_once(tmp_path_factory, "full", seed=1, suite=DOMAIN.suite, disclosure="full", episodes=2)
    return validated_once(tmp_path_factory, "full", edition)


@pytest.fixture(scope="session")
def slim(synthetic_edition: Edition) -> Edition:
    """The edition itself, which is small."""
    return synthetic_edition


@pytest.fixture(params=DOMAIN.subtasks, ids=lambda subtask: subtask.name)
def subtask(request: pytest.FixtureRequest) -> Subtask:
    """Each subtask that the edition holds."""
    return request.param


@pytest.fixture(scope="module")
def bench(synthetic_edition: Edition) -> Iterator[CheckContext]:
    """An audit's view of the edition."""
    found = CheckContext(synthetic_edition, AuditSources())
    yield found
    found.close()

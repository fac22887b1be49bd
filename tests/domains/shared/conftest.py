"""Every test of the subtasks looks at both editions: the synthetic one, and one from real files where they are.

What an edition was built from is not built again: panels are read from it.
"""

from __future__ import annotations

import pytest

from finskillbench.edition import Edition
from finskillbench.panels import Panels, read_panels


@pytest.fixture(scope="session", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.getfixturevalue(f"{request.param}_edition")


@pytest.fixture(scope="session")
def panels(edition: Edition) -> Panels:
    """The panels of the edition, as it keeps them."""
    return read_panels(edition.path / "panels")

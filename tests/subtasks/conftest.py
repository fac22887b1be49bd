"""Every test of the subtasks looks at both editions: the synthetic one, and one from real files where they are."""

from __future__ import annotations

import pytest

from finskillbench.edition import Edition


@pytest.fixture(scope="session", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.getfixturevalue(f"{request.param}_edition")

"""Tests of portfolio construction look at both editions: the synthetic one, and one from real files where they are."""

from __future__ import annotations

import pytest
from tests.edition.conftest import slim, whole, workshop

from finskillbench.edition import Edition

__all__ = ["slim", "whole", "workshop"]


@pytest.fixture(scope="session", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.getfixturevalue(f"{request.param}_edition")

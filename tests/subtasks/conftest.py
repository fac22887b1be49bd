"""Editions for the tests of the portfolio subtasks: the synthetic one, and one from real prices where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from finskillbench.edition import Edition, build_edition


@pytest.fixture(scope="session")
def synthetic_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    return build_edition(source="synthetic", seed=1, out=tmp_path_factory.mktemp("synthetic") / "edition")


@pytest.fixture(scope="session")
def real_edition(tmp_path_factory: pytest.TempPathFactory, realdata: Path) -> Edition:
    return build_edition(source="raw-dir", raw_dir=realdata, seed=1, out=tmp_path_factory.mktemp("real") / "edition")


@pytest.fixture(scope="session", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.getfixturevalue(f"{request.param}_edition")

"""Small editions that every test here starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.edition.hostile.small import shrink

from finskillbench.edition import Edition


@pytest.fixture(scope="session")
def sound(edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two small editions: `weights`, which refers to a covariance, and `facts`."""
    folder = tmp_path_factory.mktemp("sound")
    shrink(edition.path, folder / "weights", ("rebalancing", "stress_testing"))
    shrink(edition.path, folder / "facts", ("normalization",))
    return folder

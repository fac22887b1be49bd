"""One written synthetic collection for the whole directory."""

from pathlib import Path

import pytest

from finskillbench.sources.synthetic import SyntheticMarket, simulate, write_collection

SEED = 7


@pytest.fixture(scope="session")
def truth() -> SyntheticMarket:
    return simulate(SEED)


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written collection; tests that spoil files copy it first."""
    folder = tmp_path_factory.mktemp("synthetic") / "raw"
    write_collection(folder, seed=SEED)
    return folder

"""Fixtures shared by every test: one synthetic edition, and where the real inputs lie, if they are there at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

# Before NumPy is imported: two test processes on two cores, and BLAS threads would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest

if TYPE_CHECKING:
    from finskillbench.edition import Edition

SHARED = Path(__file__).resolve().parents[1].parent / "shared"


def _folder(name: str) -> Path:
    folder = SHARED / name
    if not folder.is_dir():
        pytest.skip(f"real inputs are absent: no folder shared/{name} beside the checkout")
    return folder


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The collection of real EDGAR, Fama-French, FRED and price files."""
    return _folder("realdata")


@pytest.fixture(scope="session")
def release_sample() -> Path:
    """The sample of the published release."""
    return _folder("release_sample")


@pytest.fixture(scope="session")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The synthetic edition of seed 1, built once; copy its folder before altering anything."""
    from finskillbench.edition import build_edition  # not all tests should pay for the engines

    return build_edition(seed=1, out=tmp_path_factory.mktemp("editions") / "synthetic")

"""Fixtures shared by every test: one synthetic edition, and where the real inputs lie, if they are there at all."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
def synthetic_edition(tmp_path_factory: pytest.TempPathFactory) -> Edition:
    """The synthetic edition of seed 1, built once; copy its folder before altering anything."""
    return _built_once(tmp_path_factory, "synthetic", seed=1)


@pytest.fixture(scope="session")
def synthetic_raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw collection behind the synthetic edition, written once; copy it before altering anything."""
    from finskillbench.sources.synthetic import write_collection

    with _alone(tmp_path_factory, "synthetic-raw") as shared:
        folder = shared / "raw" / "synthetic"
        if not folder.exists():
            write_collection(folder, seed=1, names=30)
        return folder


@pytest.fixture(scope="session")
def real_edition(tmp_path_factory: pytest.TempPathFactory, realdata: Path) -> Edition:
    """The edition of the real collection, built once; copy its folder before altering anything."""
    return _built_once(tmp_path_factory, "real", source="raw-dir", raw_dir=realdata, seed=1)


@pytest.fixture(scope="session")
def edition(synthetic_edition: Edition) -> Edition:
    """The edition that most tests look at."""
    return synthetic_edition


def _built_once(factory: pytest.TempPathFactory, name: str, **arguments: Any) -> Edition:
    """One edition for all processes of a test run: the first that needs it builds it, the others wait."""
    from finskillbench.edition import build_edition, load_edition  # not all tests should pay for the engines

    with _alone(factory, name) as shared:
        folder = shared / "editions" / name
        return load_edition(folder) if folder.exists() else build_edition(out=folder, **arguments)


@contextmanager
def _alone(factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """The folder that all processes of a test run share, while no other process is at the same thing in it."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield shared

"""Fixtures shared by every test: where the real inputs lie, if they are there at all."""

from pathlib import Path

import pytest

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

"""Most tests of risk management look at both editions: the synthetic one, and one from real files where they are.

What an edition was built from is not built again: panels are read from it, and risk objects are those of its build.
"""

from __future__ import annotations

import pytest
from tests.edition.conftest import slim, whole, workshop

from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.edition import Edition
from finskillbench.panels import Panels, read_panels

__all__ = ["slim", "whole", "workshop"]


@pytest.fixture(scope="session", params=["synthetic", pytest.param("real", marks=pytest.mark.slow)])
def edition(request: pytest.FixtureRequest) -> Edition:
    return request.getfixturevalue(f"{request.param}_edition")


@pytest.fixture(scope="session")
def panels(edition: Edition) -> Panels:
    """The panels of the edition, as it keeps them."""
    return read_panels(edition.path / "panels")


@pytest.fixture(scope="session")
def objects(edition: Edition, request: pytest.FixtureRequest) -> RiskObjects:
    """The risk objects of the edition's build."""
    synthetic = edition.manifest["source"]["kind"] == "synthetic"
    return request.getfixturevalue("synthetic_risk_objects" if synthetic else "real_risk_objects")

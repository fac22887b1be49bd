"""Copies of an edition that a test may alter, as the tests of editions use them, and a runner of scripts."""

from collections.abc import Iterator

import pytest
from tests.edition.conftest import slim, whole, workshop

from finskillbench.harness.skills.runner import script_runner
from finskillbench.sandbox.runner import ScriptRunner

__all__ = ["slim", "warm", "whole", "workshop"]


@pytest.fixture(scope="module")
def warm() -> Iterator[ScriptRunner]:
    """A runner as the harness starts it."""
    with script_runner() as runner:
        yield runner

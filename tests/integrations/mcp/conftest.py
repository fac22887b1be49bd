"""Runs of the small agent beside this file; where the extra `mcp` is absent, the tests skip themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integrations.mcp.small import NAME, over_stdio

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.runs.execute.run import RunResult


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that fails at once is started again at once."""
    monkeypatch.setattr("finskillbench.integrations.mcp.drive._WAITS", (0.0, 0.0, 0.0))


@pytest.fixture
def driven(small_edition: Edition, tmp_path: Path) -> Callable[..., RunResult]:
    """A run of a behaviour on one episode, or on so many of each subtask."""
    from finskillbench.integrations.mcp.drive import drive_agent

    def go(behaviour: str, **options: Any) -> RunResult:
        named = {"subtasks": ["rebalancing"], "limit": 1, "out": tmp_path / "run", **options}
        return drive_agent(small_edition, over_stdio(behaviour), NAME, conditions=["no_skill"], **named)

    return go

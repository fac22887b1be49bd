"""The toy domain of `toy.py`, registered, and editions of it that a test may spoil."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.audit import toy
from tests.editions import write_edition

import finskillbench.domains as registry
from finskillbench import extensions
from finskillbench.domains.base import Subtask
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.checks.agent_view import AuditSources, CheckContext
from finskillbench.edition.checks.catalog import CheckReport
from finskillbench.edition.checks.engine import audit_edition
from finskillbench.episode import Episode, Truth
from finskillbench.harness.skills import loader

Tasks = list[tuple[Episode, Truth]]


def _forget() -> None:
    for cached in (
        registry.domains,
        registry.subtasks,
        vars(registry)["_subtasks_by_name"],
        registry.domain_of,
        loader.curated,
    ):
        clear = getattr(cached, "cache_clear", None)
        if clear is not None:
            clear()


def _only(point: EntryPoint) -> Callable[[str], list[EntryPoint]]:
    def entry_points(group: str) -> list[EntryPoint]:
        del group
        return [point]

    return entry_points


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Registers the toy domain, with other parts where a test needs them."""

    def registered(subtask: Subtask | None = None, **changes: Any) -> None:
        handed_in = ModuleType("from_audit")
        handed_in.domain = toy.bookkeeping(tmp_path, subtask or toy.valuation(), **changes)  # pyright: ignore
        monkeypatch.setitem(sys.modules, "from_audit", handed_in)
        point = EntryPoint("toy", "from_audit:domain", extensions.DOMAINS)
        monkeypatch.setattr(extensions, "entry_points", _only(point))
        _forget()

    registered()
    yield registered
    monkeypatch.undo()
    _forget()


@pytest.fixture
def audited(tmp_path: Path, register: Callable[..., None]) -> Callable[..., CheckReport]:
    """Audits an edition of some tasks."""

    def audit(tasks: Tasks, *names: str, **changes: Any) -> CheckReport:
        folder = write_edition(tmp_path / "edition", tasks, {"kind": "rederived"}, **changes)
        return audit_edition(load_edition(folder), names or None)

    return audit


@pytest.fixture(scope="module")
def bench(edition: Edition) -> Iterator[CheckContext]:
    found = CheckContext(edition, AuditSources())
    yield found
    found.close()

"""The desk: decisions on more data than can be read, scored by the share of the attainable expected gain.

Its cases mount the skill packages of the three other domains together, so that choosing is part of the work.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.examination import Subject
from finskillbench.findings import Findings
from finskillbench_desk.domain.allocate import SUBTASK as ALLOCATE
from finskillbench_desk.domain.checks.primitives import primitives
from finskillbench_desk.domain.checks.tables import tables
from finskillbench_desk.domain.committee_case.subtask import SUBTASK as COMMITTEE_CASE
from finskillbench_desk.domain.forensic_screen import SUBTASK as FORENSIC_SCREEN
from finskillbench_desk.domain.market import Listed, market
from finskillbench_desk.domain.trade_over_time import SUBTASK as TRADE_OVER_TIME

_DOMAINS = Path(str(files("finskillbench.domains")))
SUBTASKS: tuple[Subtask[Any, tuple[Listed, ...]], ...] = (ALLOCATE, TRADE_OVER_TIME, FORENSIC_SCREEN, COMMITTEE_CASE)


_SKILLS = (
    _DOMAINS / "portfolio" / "skill" / "portfolio-construction",
    _DOMAINS / "risk" / "skill" / "risk-management",
    _DOMAINS / "fundamental" / "skill" / "fundamental-analysis",
)


def _primitives(subject: Subject, findings: Findings) -> None:
    """The scripts for desk cases are primitives: none writes an answer."""
    del subject
    primitives(_SKILLS, [subtask.answer for subtask in SUBTASKS], findings)


def _prepare(context: BuildContext) -> tuple[Listed, ...]:
    return market(context) if context.synthetic else ()


DOMAIN: Domain[tuple[Listed, ...]] = Domain(
    name="desk",
    skills=_SKILLS,
    subtasks=SUBTASKS,
    prepare=_prepare,
    checks={"tables": tables, "primitives": _primitives},
    tools=("read_table",),
    suite="desk",
    divisible=True,
)
"""One domain with a headline of its own, which no other table sums up with the paper's."""

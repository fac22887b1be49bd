"""The desk suite: decisions on more data than can be read, scored by the share of the attainable expected gain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.building import BuildContext
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.fundamental import DOMAIN as FUNDAMENTAL
from finskillbench.domains.portfolio import DOMAIN as PORTFOLIO
from finskillbench.domains.risk import DOMAIN as RISK
from finskillbench.findings import Findings
from finskillbench_desk.allocate import SUBTASK as ALLOCATE
from finskillbench_desk.checks import check_primitives, check_tables
from finskillbench_desk.committee_case.subtask import SUBTASK as COMMITTEE_CASE
from finskillbench_desk.forensic_screen import SUBTASK as FORENSIC_SCREEN
from finskillbench_desk.market import ListedName, market
from finskillbench_desk.trade_over_time import SUBTASK as TRADE_OVER_TIME

_PACKAGE = Path(__file__).parent
SUBTASKS: tuple[Subtask[Any, tuple[ListedName, ...]], ...] = (
    ALLOCATE,
    TRADE_OVER_TIME,
    FORENSIC_SCREEN,
    COMMITTEE_CASE,
)
SKILLS = tuple(
    _PACKAGE / "skills" / name for name in ("signal-trading", "mandate-review", "account-screening", "research-methods")
)
"""Skill packages of this suite; their scripts are single steps."""


def _primitives(subject: Subject, findings: Findings) -> None:
    del subject
    check_primitives(SKILLS, [subtask.answer for subtask in SUBTASKS], findings)


def _prepare(context: BuildContext) -> tuple[ListedName, ...]:
    return market(context) if context.synthetic else ()


DOMAIN: Domain[tuple[ListedName, ...]] = Domain(
    name="desk",
    skills=(*SKILLS, *PORTFOLIO.skills, *RISK.skills, *FUNDAMENTAL.skills),
    placebos=tuple(
        _PACKAGE / "placebo" / name for name in ("walling-seasons", "apiary-rounds", "boatyard-rounds", "mill-seasons")
    ),
    subtasks=SUBTASKS,
    prepare=_prepare,
    checks={"tables": check_tables, "primitives": _primitives},
    tools=("read_table",),
    suite="desk",
    withheld=tuple(_PACKAGE / name for name in ("allocate", "trade_over_time", "forensic_screen", "committee_case")),
    divisible=True,
)
"""A separate domain; no table averages its headline with those of the paper."""

"""The desk suite: decisions on more data than can be read, scored by the share of the attainable expected gain.

Its cases mount the skill packages of the desk and of the three domains of the paper, so that choosing is part of the
work.
"""

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
from finskillbench_desk.checks import primitives, tables
from finskillbench_desk.committee_case.subtask import SUBTASK as COMMITTEE_CASE
from finskillbench_desk.forensic_screen import SUBTASK as FORENSIC_SCREEN
from finskillbench_desk.market import Listed, market
from finskillbench_desk.trade_over_time import SUBTASK as TRADE_OVER_TIME

_HERE = Path(__file__).parent
SUBTASKS: tuple[Subtask[Any, tuple[Listed, ...]], ...] = (ALLOCATE, TRADE_OVER_TIME, FORENSIC_SCREEN, COMMITTEE_CASE)
SKILLS = tuple(_HERE / "skills" / name for name in ("signal-trading", "mandate-review", "account-screening"))
"""The packages of the desk itself; their scripts are single steps."""


def _primitives(subject: Subject, findings: Findings) -> None:
    """The scripts for desk cases are primitives: none writes an answer."""
    del subject
    primitives(SKILLS, [subtask.answer for subtask in SUBTASKS], findings)


def _prepare(context: BuildContext) -> tuple[Listed, ...]:
    return market(context) if context.synthetic else ()


DOMAIN: Domain[tuple[Listed, ...]] = Domain(
    name="desk",
    skills=(*SKILLS, *PORTFOLIO.skills, *RISK.skills, *FUNDAMENTAL.skills),
    placebos=tuple(_HERE / "placebo" / name for name in ("walling-seasons", "apiary-rounds", "boatyard-rounds")),
    subtasks=SUBTASKS,
    prepare=_prepare,
    checks={"tables": tables, "primitives": _primitives},
    tools=("read_table",),
    suite="desk",
    divisible=True,
)
"""One domain with a headline of its own, which no other table sums up with the paper's."""

"""Table of what agents did with skills that have a planted fault."""

from __future__ import annotations

from finskillbench.analysis.faults import concerned, fault_outcomes
from finskillbench.analysis.results import Results
from finskillbench.domains.faults import BASIS_POINTS, DOLLARS
from finskillbench.reports.tables import common
from finskillbench.reports.tables.base import Column, Kind, Table, columns_of

_OUTCOMES = (
    "Episodes whose answer the planted fault changes. Faulty: the answer equals that of the faulty procedure where it "
    "differs from the right one, within six decimals. Right: full marks, after loading the skill or without. Change "
    "of score: against the same episodes under curated."
)
_MONEY = (
    "Money, next to the right answer: utility a year net of trading costs, in basis points (objectives of return, "
    "answers within the limits); error of the stated P&L, and trading cost in excess, in US dollars of the printed "
    "NAV. Other subtasks have no measure in money."
)

_INTERVALS = "95 % intervals, clustered by what episodes share; of shares by Wilson's method."


def faults_table(results: Results) -> Table | None:
    """Tabulate outcomes of planted faults and their losses by model and condition; None without such episodes."""
    chosen = common.without_baselines(results, common.every_subtask)
    if "scoring_details" not in chosen.rows.columns or concerned(chosen.rows).is_empty():
        return None
    columns = (
        *(common.MODEL, common.HARNESS, common.CONDITION),
        Column("episodes", "Episodes", Kind.COUNT),
        *columns_of(
            Kind.SHARE,
            interval=True,
            faulty="Faulty",
            right_loaded="Right, loaded",
            right_unloaded="Right, not loaded",
            no_answer="No answer",
            other="Other",
        ),
        Column("loss_score", "Change of score", Kind.DIFFERENCE, interval=True),
        Column("loss_bp", "Loss of utility", Kind.NUMBER, BASIS_POINTS, interval=True, digits=1),
        Column("loss_usd", "Loss", Kind.NUMBER, DOLLARS, interval=True, digits=0),
    )
    notes = (_OUTCOMES, _MONEY, _INTERVALS)
    return common.table_from_frame("faults", "Skills with a planted fault", fault_outcomes(chosen), columns, notes)

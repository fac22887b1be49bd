"""The checks that the audit asks of every domain, in the order of its table."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench.audit.base import AuditCheck
from finskillbench.audit.checks.difficulty import difficulty
from finskillbench.audit.checks.distinct import distinct
from finskillbench.audit.checks.labels import certified, spec_agrees, unique
from finskillbench.audit.checks.leak import leak
from finskillbench.audit.checks.point_in_time import point_in_time
from finskillbench.audit.checks.scores import best_cheat, exploits, floor_and_ceiling, floors, ladders, ordering
from finskillbench.audit.checks.shortcuts import SHORTCUTS, bounds, shortcuts
from finskillbench.audit.checks.signature import signature
from finskillbench.audit.checks.solvable import solvable

LABELS = "rederived"
"""The labels as `data validate` checks them."""

CHECKS: Mapping[str, AuditCheck] = {
    check.name: check
    for check in (
        AuditCheck("solvable", "does the truth follow from what an agent can see", look=solvable),
        AuditCheck("leak", "can the truth be read instead of computed", look=leak),
        AuditCheck(
            "point_in_time", "does any tool return what was not known yet", look=point_in_time, needs_truth=False
        ),
        AuditCheck("certified", "does every label carry a proof", look=certified),
        AuditCheck("unique", "is every optimum the only one", look=unique),
        AuditCheck("spec_agrees", "do the episodes state what the truth was made by", spec_agrees, needs_truth=False),
        AuditCheck("distinct", "are the episodes as many tasks as they count", survey=distinct),
        AuditCheck("difficulty", "are harder tasks more work", survey=difficulty),
        AuditCheck("signature", "is a label told by how its input looks", survey=signature),
        AuditCheck("exploits", "does cheating pay", look=exploits, conclude=best_cheat),
        AuditCheck(
            SHORTCUTS, "does leaving work out pay, and less so in harder tiers", look=shortcuts, conclude=bounds
        ),
        AuditCheck("floor_and_ceiling", "do right answers score 1 and idle ones 0", floor_and_ceiling, floors),
        AuditCheck("ordering", "do better answers score more", look=ordering, conclude=ladders),
    )
}

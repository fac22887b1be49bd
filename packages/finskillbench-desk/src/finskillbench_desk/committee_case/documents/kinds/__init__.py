"""Catalog of clause kinds."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench_desk.committee_case.documents.clauses import ClauseKind
from finskillbench_desk.committee_case.documents.kinds.instruments import INSTRUMENTS
from finskillbench_desk.committee_case.documents.kinds.issuers import ISSUERS
from finskillbench_desk.committee_case.documents.kinds.reporting import PLACES, REPORTING
from finskillbench_desk.committee_case.documents.kinds.restrictions import EXCLUSIONS, FUTURES_AND_BORROWING
from finskillbench_desk.committee_case.documents.kinds.sectors import SECTORS
from finskillbench_desk.committee_case.documents.kinds.trading import TRADING

KINDS: Mapping[str, ClauseKind] = {
    kind.name: kind
    for kinds in (ISSUERS, SECTORS, PLACES, INSTRUMENTS, EXCLUSIONS, FUTURES_AND_BORROWING, TRADING, REPORTING)
    for kind in kinds
}

"""Catalog of clause kinds."""

from __future__ import annotations

from collections.abc import Mapping

from finskillbench_desk.committee_case.documents.clauses import ClauseKind
from finskillbench_desk.committee_case.documents.kinds.instruments import INSTRUMENTS
from finskillbench_desk.committee_case.documents.kinds.issuers import ISSUERS
from finskillbench_desk.committee_case.documents.kinds.reporting import PLACES, REPORTING
from finskillbench_desk.committee_case.documents.kinds.restrictions import RESTRICTIONS
from finskillbench_desk.committee_case.documents.kinds.sectors import SECTORS_KINDS
from finskillbench_desk.committee_case.documents.kinds.trading import TRADING

KINDS: Mapping[str, ClauseKind] = {
    kind.name: kind for kind in (*ISSUERS, *SECTORS_KINDS, *PLACES, *INSTRUMENTS, *RESTRICTIONS, *TRADING, *REPORTING)
}

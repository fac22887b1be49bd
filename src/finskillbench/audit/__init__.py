"""`finskillbench audit`: what an outside examiner would ask of an edition, ours or imported.

`data validate` asks whether an edition is what its build says. The audit asks whether it deserves to be believed:
whether every truth can be reached from what an agent sees and in no shorter way, whether scores fall in the order in
which a professional ranks answers, whether cheating pays. A check is of single episodes, of a subtask, or of a domain
(`Domain.audits`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from finskillbench.audit.catalog import CHECKS, LABELS
from finskillbench.audit.report import ALL, AuditReport
from finskillbench.audit.seen import Beside
from finskillbench.audit.work import Part, add, brought_by, do, merged, pieces_of
from finskillbench.domains import domain, domains
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.findings import Check, Findings

__all__ = ["AuditReport", "audit_edition", "names_of_checks", "refuse_unknown_checks"]

Progress = Callable[[str, int, int | None], None]


def names_of_checks(names: Iterable[str] | None = None) -> tuple[str, ...]:
    """The checks that apply to editions with episodes of some domains, or of any, in the order of the table."""
    those = [one.name for one in domains()] if names is None else _registered(names)
    brought = (name for one in those for name in brought_by(domain(one)))
    return tuple(dict.fromkeys((LABELS, *CHECKS, *brought)))


def refuse_unknown_checks(checks: Collection[str], names: Iterable[str] | None = None) -> None:
    """Raise InputError for a check that does not exist for some domains, or for any."""
    known = names_of_checks(names)
    if unknown := sorted(set(checks) - set(known)):
        raise InputError(f"there is no check {', '.join(unknown)}; choose from: {', '.join(known)}")


def _registered(names: Iterable[str]) -> list[str]:
    known = {one.name for one in domains()}
    return [name for name in dict.fromkeys(names) if name in known]


def audit_edition(
    edition: Edition,
    only: Collection[str] | None = None,
    *,
    other: Edition | None = None,
    raw_dir: Path | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> AuditReport:
    """Audit an edition in as many processes as there are cores.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    only : names of checks; None for all.
    other : an edition of another seed, on which `signature` tries what it learned on this one.
    raw_dir : a collection of raw files; `rederived` holds published labels against the company facts in it.
    progress : called with what is being done, pieces done and pieces in all.

    Raises
    ------
    InputError : a check that there is not.
    """
    there = _registered(one.skill for one in edition.episodes())
    refuse_unknown_checks(only or (), there)
    names = names_of_checks(there)
    wanted = [name for name in names if only is None or name in only]
    started = time.perf_counter()
    pieces = pieces_of(edition, wanted, there)
    done = 0

    def tick(title: str) -> None:
        nonlocal done
        done += 1
        progress(f"auditing {title}".replace("_", " "), done, len(pieces))

    progress("starting", 0, len(pieces))
    parts = do(edition, Beside(other, raw_dir), pieces, tick)
    checks = tuple(_checks(wanted, merged(parts)))
    return AuditReport(edition.digest, len(edition.episodes()), time.perf_counter() - started, checks)


def _checks(wanted: Sequence[str], parts: Iterable[Part]) -> Iterator[Check]:
    """One check for each name over all domains; for what only domains bring, one for each of those that do."""
    found: dict[tuple[str, str], Findings] = {}
    for part in parts:
        check = CHECKS.get(part.name)
        if check is not None and check.conclude is not None:
            check.conclude(part.sub_task, part.findings)
        owner = ALL if part.sub_task else part.domain
        add(found.setdefault((part.name, owner), Findings()), part.findings)
    shared_first = sorted(found.items(), key=lambda one: one[0][1] != ALL)
    for name in wanted:
        for (of, owner), findings in shared_first:
            if of == name:
                yield findings.as_check(owner, name)

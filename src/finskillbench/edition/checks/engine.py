"""The engine of all checks: their work in pieces, done in as many processes as there are cores, and put together."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from finskillbench.domains.base import Domain
from finskillbench.domains.checks.examination import Shared, Subject, examining
from finskillbench.edition import Edition
from finskillbench.edition.checks.agent_view import Bench, Beside, Seen
from finskillbench.edition.checks.catalog import (
    ALL,
    AUDITS,
    LABELS,
    WHOLE,
    AuditCheck,
    CheckReport,
    Level,
    brought_by,
    checks_of,
    names_of_audits,
    refuse_unknown_audits,
    registered,
)
from finskillbench.edition.checks.labels import every_label_touched
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Check, Findings, State
from finskillbench.garbage import SELDOM, relaxed_gc
from finskillbench.scoring.values import is_array, is_object

Progress = Callable[[str, int, int | None], None]
"""`(stage, done, total)`: what is being done, pieces done and pieces in all."""

_CHUNK = 40
"""Episodes of one piece."""
_ALONE = 64
"""Episodes up to which starting other processes takes longer than the work."""


def _silent(stage: str, done: int, total: int | None) -> None:
    del stage, done, total


def validate_edition(
    edition: Edition, progress: Progress = _silent, only: Collection[str] | None = None
) -> CheckReport:
    """Run the checks of the levels integrity and labels: those of every domain, and every label derived again.

    A check is skipped, with the reason, where the edition has nothing for it: no episodes of the domain, no panels
    (an imported release), truth or certificates withheld. The last check is of the edition as a whole: that no label
    is left which no check has looked at.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    only : names of domains; None for all, and for the check of the edition as a whole.
    """
    chosen = [one for one in edition.domains if only is None or one.name in only]
    shared = Shared(edition)
    pieces: list[Piece] = []
    for one in chosen:
        there = bool(Subject(shared, one).episodes)
        for name in checks_of(one):
            title = f"checking {one.title}: {name}"
            episodes = edition.episodes([name]) if there and name in edition.sub_tasks else ()
            pieces += [
                Piece((name,), one.name, title, name, first, min(first + _CHUNK, len(episodes)), labels=True)
                for first in range(0, len(episodes), _CHUNK)
            ] or [Piece((name,), one.name, title, labels=True)]
    parts = _merged(_do(edition, Beside(), pieces, progress))
    checks = [part.findings.as_check(part.domain, part.name) for part in parts]
    if only is None:
        findings = Findings()
        touched = {task_id for part in parts for task_id in part.findings.touched}
        every_label_touched(edition, touched, shared.built, findings)
        checks.append(findings.as_check(WHOLE, "labels"))
    return CheckReport(edition.digest, (Level.INTEGRITY, Level.LABELS), len(edition.episodes()), tuple(checks))


def audit_edition(
    edition: Edition,
    only: Collection[str] | None = None,
    *,
    other: Edition | None = None,
    raw_dir: Path | None = None,
    progress: Progress = _silent,
) -> CheckReport:
    """Run the checks of all levels, or those that are named.

    Parameters
    ----------
    edition : loaded, so its files are those of its manifest.
    only : names of checks; None for all.
    other : an edition of another seed, on which `signature` tries what it learned on this one.
    raw_dir : a collection of raw files; `rederived` holds published labels against the company facts in it.

    Raises
    ------
    InputError : a check that there is not.
    """
    there = registered(one.skill for one in edition.episodes())
    refuse_unknown_audits(only or (), there)
    wanted = [name for name in names_of_audits(there) if only is None or name in only]
    parts = _merged(_do(edition, Beside(other, raw_dir), _pieces_of_audit(edition, wanted, there), progress))
    return CheckReport(edition.digest, tuple(Level), len(edition.episodes()), tuple(_concluded(wanted, parts)))


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: checks of the episodes of a subtask from `first` to before `stop`, or one check of a domain.

    `survey` takes the episodes together; otherwise each is looked at by itself. `labels` is for what `data validate`
    lists: a check of a domain, or the labels of a subtask under its name.
    """

    names: tuple[str, ...]
    domain: str
    title: str
    sub_task: str = ""
    first: int = 0
    stop: int = 0
    survey: bool = False
    labels: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """What one piece found under one check."""

    name: str
    domain: str
    sub_task: str
    findings: Findings


def _do(edition: Edition, beside: Beside, pieces: Sequence[Piece], progress: Progress) -> list[_Part]:
    """Do all pieces and return what was found, in the order of the pieces."""
    done: dict[Piece, list[_Part]] = {}
    progress("starting", 0, len(pieces))

    def finish(piece: Piece, parts: list[_Part]) -> None:
        done[piece] = parts
        progress(piece.title, len(done), len(pieces))

    workers = min(len(os.sched_getaffinity(0)), len(pieces))
    if workers < 2 or sum(piece.stop - piece.first for piece in pieces) <= _ALONE:
        bench = Bench(edition, beside)
        try:
            # Thousands of small dense systems: BLAS threads would only wait for each other.
            with threadpool_limits(1), relaxed_gc():
                for piece in pieces:
                    finish(piece, _done(bench, piece))
        finally:
            bench.close()
    else:
        paths = edition.path, None if beside.other is None else beside.other.path, beside.raw_dir
        context = multiprocessing.get_context("spawn")  # the numerical libraries hold threads, which a fork would break
        with ProcessPoolExecutor(workers, context, _open, paths) as pool:
            running: dict[Future[list[_Part]], Piece] = {pool.submit(_do_here, piece): piece for piece in pieces}
            try:
                for future in as_completed(running):
                    finish(running[future], future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [part for piece in pieces for part in done[piece]]


def _pieces_of_audit(edition: Edition, names: Collection[str], there: Sequence[str]) -> list[Piece]:
    """The pieces of the checks `names` of an audit, those that take long first."""
    looks = tuple(name for name in names if name in AUDITS and AUDITS[name].look) + tuple(
        name for name in names if name == LABELS
    )
    surveys = [name for name in names if name in AUDITS and AUDITS[name].survey]
    found: list[Piece] = []
    for one in edition.domains:
        if one.name in there:
            title = f"auditing {one.title}"
            found += [Piece((check,), one.name, f"{title}: {check}") for check in brought_by(one) if check in names]
    of_subtasks: list[Piece] = []
    for sub_task in edition.sub_tasks:
        episodes = edition.episodes([sub_task])
        if not episodes:
            continue
        skill, title = episodes[0].skill, f"auditing {sub_task}".replace("_", " ")
        if looks:
            of_subtasks += [
                Piece(looks, skill, title, sub_task, first, min(first + _CHUNK, len(episodes)))
                for first in range(0, len(episodes), _CHUNK)
            ]
        of_subtasks += [Piece((name,), skill, title, sub_task, 0, len(episodes), survey=True) for name in surveys]
    return [*found, *of_subtasks]


_bench: Bench | None = None


def _open(path: Path, other: Path | None, raw_dir: Path | None) -> None:
    global _bench
    gc.set_threshold(SELDOM)  # the rows that tools return are many, and hold no cycles
    bench = _bench = Bench.reopened(path, other, raw_dir)
    threadpool_limits(1)
    Finalize(None, bench.close, exitpriority=10)


def _do_here(piece: Piece) -> list[_Part]:
    assert _bench is not None
    return _done(_bench, piece)


def _done(bench: Bench, piece: Piece) -> list[_Part]:
    if piece.labels:
        return [_validation(bench, piece)]
    if not piece.sub_task:
        return [_domain_check(bench, piece)]
    episodes = bench.edition.episodes([piece.sub_task])[piece.first : piece.stop]
    if piece.survey:
        return [_survey(bench, piece, AUDITS[piece.names[0]], episodes)]
    return _looks(bench, piece, episodes)


def _domain(bench: Bench, name: str) -> Domain | None:
    return next((one for one in bench.edition.domains if one.name == name), None)


def _validation(bench: Bench, piece: Piece) -> _Part:
    """One check as `data validate` runs it; the labels of some of the episodes of a subtask."""
    own, name, findings = _domain(bench, piece.domain), piece.names[0], Findings()
    assert own is not None
    subject = Subject(bench.shared, own)
    if not subject.episodes:
        findings.skip(f"the edition has no episodes of {own.title}")
    else:
        if piece.sub_task:
            subject.episodes = subject.of(piece.sub_task)[piece.first : piece.stop]
        with examining(name, findings):
            checks_of(own)[name](subject, findings)
    return _Part(name, own.name, "", findings)


def _domain_check(bench: Bench, piece: Piece) -> _Part:
    own, name, findings = _domain(bench, piece.domain), piece.names[0], Findings()
    assert own is not None
    subject = Subject(bench.shared, own)
    for run in brought_by(own)[name]:
        with examining(name, findings):
            run(subject, findings)
    findings.figures["episodes"] = len(subject.episodes)
    return _Part(name, piece.domain, "", findings)


def _survey(bench: Bench, piece: Piece, check: AuditCheck, episodes: Sequence[Episode]) -> _Part:
    findings = Findings()
    assert check.survey is not None
    if check.needs_truth and not bench.edition.has_truth:
        findings.skip("the edition was handed out without truth")
    else:
        with examining(piece.sub_task, findings):
            check.survey(bench, episodes, findings)
        findings.figures["episodes"] = len(episodes)
    return _Part(check.name, piece.domain, piece.sub_task, findings)


def _looks(bench: Bench, piece: Piece, episodes: Sequence[Episode]) -> list[_Part]:
    found = {name: Findings() for name in piece.names}
    if LABELS in found:
        _derive_again(bench, piece, episodes, found[LABELS])
    certificates: Mapping[str, JsonObject] = {}
    if bench.edition.has_certificates:
        with examining(f"certificates/{piece.sub_task}.jsonl", next(iter(found.values()))):
            certificates = bench.edition.certificates(piece.sub_task)
    for episode in episodes:
        seen = Seen(bench, episode, certificates.get(episode.task_id, {}))
        for name in piece.names:
            check = AUDITS.get(name)
            if check is None or check.look is None:
                continue
            if check.needs_truth and not bench.edition.has_truth:
                found[name].skip("the edition was handed out without truth")
                continue
            with examining(episode.task_id, found[name]):
                check.look(seen, found[name])
            found[name].add("episodes")
    return [_Part(name, piece.domain, piece.sub_task, findings) for name, findings in found.items()]


def _derive_again(bench: Bench, piece: Piece, episodes: Sequence[Episode], findings: Findings) -> None:
    """The labels as `data validate` checks them, of some of the episodes."""
    findings.figures["episodes"] = len(episodes)
    own = _domain(bench, piece.domain)
    if own is None or piece.sub_task not in {one.name for one in own.subtasks}:
        findings.fail(piece.sub_task, "is not a registered subtask, so that nothing derives its labels again")
        return
    subject = Subject(bench.shared, own)
    subject.episodes = tuple(episodes)
    checks_of(own)[piece.sub_task](subject, findings)
    # An imported release promises no proofs, and validation only warns of it; the audit says what cannot be believed.
    findings.found[:] = [replace(finding, state=State.FAIL) for finding in findings.found]
    if bench.edition.has_truth:
        for episode in episodes:
            if episode.task_id not in findings.touched:
                findings.fail(episode.task_id, f"no check has looked at this label of {piece.sub_task}")


def _concluded(wanted: Sequence[str], parts: Iterable[_Part]) -> Iterator[Check]:
    """One check for each name over all domains; for what only domains bring, one for each of those that do."""
    found: dict[tuple[str, str], Findings] = {}
    for part in parts:
        check = AUDITS.get(part.name)
        if check is not None and check.conclude is not None:
            check.conclude(part.sub_task, part.findings)
        owner = ALL if part.sub_task else part.domain
        add(found.setdefault((part.name, owner), Findings()), part.findings)
    order = {name: place for place, name in enumerate(wanted)}
    shared = sorted((key for key in found if key[1] == ALL), key=lambda key: order[key[0]])
    own = [key for key in found if key[1] != ALL]
    for name, owner in [*shared, *own]:
        yield found[name, owner].as_check(owner, name)


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    """The parts of one check, domain and subtask put together, in the order in which they first come."""
    together: dict[tuple[str, str, str], _Part] = {}
    for part in parts:
        key = part.name, part.domain, part.sub_task
        add(together.setdefault(key, replace(part, findings=Findings())).findings, part.findings)
    return list(together.values())


def add(into: Findings, more: Findings) -> None:
    """Put what one part found to what others found."""
    into.found += more.found
    into.expectations += more.expectations
    into.reason = into.reason or more.reason
    into.touched |= more.touched
    into.figures = add_up(into.figures, more.figures)


def add_up(left: object, right: object, name: str = "") -> Any:
    """Figures of two parts: counts add up, measures keep the larger, tables and lists go into each other."""
    if is_object(left) and is_object(right):
        both = dict(left)
        for key, value in right.items():
            both[key] = add_up(both[key], value, key) if key in both else value
        return both
    if is_array(left) and is_array(right):
        return [*left, *right]
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return (min if name.startswith("least_") else max)(left, right)
    return right

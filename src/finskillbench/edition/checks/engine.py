"""Run checks: split their work into pieces, process these in parallel, and merge the findings."""

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
from finskillbench.edition.checks.agent_view import AuditSources, CheckContext, EpisodeView
from finskillbench.edition.checks.catalog import (
    ALL,
    AUDITS,
    LABELS,
    WHOLE,
    AuditCheck,
    CheckReport,
    Level,
    checks_of,
    domain_checks,
    names_of_audits,
    refuse_unknown_audits,
    registered_names,
)
from finskillbench.edition.checks.labels import every_label_touched
from finskillbench.episode import Episode, JsonObject
from finskillbench.findings import Check, CheckState, Findings
from finskillbench.garbage import GC_THRESHOLD, relaxed_gc
from finskillbench.scoring.values import is_array, is_object

Progress = Callable[[str, int, int | None], None]
"""`(step, done, total)`: current step, pieces done, number of pieces."""

_CHUNK = 40
"""Episodes per piece."""
_ALONE = 64
"""Up to this number of episodes, starting processes takes longer than the work."""


def _silent(step: str, done: int, total: int | None) -> None:
    del step, done, total


def validate_edition(
    edition: Edition, progress: Progress = _silent, only: Collection[str] | None = None
) -> CheckReport:
    """Run the checks of the levels integrity and labels.

    A check is skipped, with the reason, if the edition has nothing for it: no episodes of the domain, no panels (an
    imported release), no truth or certificates. The last check fails if a label was not examined by any check.

    Parameters
    ----------
    edition : loaded by `load_edition`.
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
    parts = _merged(_run_pieces(edition, AuditSources(), pieces, progress))
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
    """Run the checks of all levels, or the named ones.

    Parameters
    ----------
    edition : loaded by `load_edition`.
    only : names of checks; None for all.
    other : an edition of another seed, on which `signature` tests what it learned on this one.
    raw_dir : a collection of raw files; `rederived` compares published labels with its company facts.

    Raises
    ------
    InputError : an unknown check.
    """
    there = registered_names(one.skill for one in edition.episodes())
    refuse_unknown_audits(only or (), there)
    wanted = [name for name in names_of_audits(there) if only is None or name in only]
    parts = _merged(
        _run_pieces(edition, AuditSources(other, raw_dir), _pieces_of_audit(edition, wanted, there), progress)
    )
    return CheckReport(edition.digest, tuple(Level), len(edition.episodes()), tuple(_conclude(wanted, parts)))


@dataclass(frozen=True, slots=True)
class Piece:
    """One unit of work: checks of the episodes of a subtask from `first` to before `stop`, or one check of a domain.

    `survey` examines the episodes together instead of one by one. `labels` marks checks of `data validate`: a check of
    a domain, or the labels of a subtask under its name.
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
    name: str
    domain: str
    sub_task: str
    findings: Findings


def _run_pieces(edition: Edition, sources: AuditSources, pieces: Sequence[Piece], progress: Progress) -> list[_Part]:
    """Run all pieces and return their findings, in the order of the pieces."""
    done: dict[Piece, list[_Part]] = {}
    progress("starting", 0, len(pieces))

    def finish(piece: Piece, parts: list[_Part]) -> None:
        done[piece] = parts
        progress(piece.title, len(done), len(pieces))

    workers = min(len(os.sched_getaffinity(0)), len(pieces))
    if workers < 2 or sum(piece.stop - piece.first for piece in pieces) <= _ALONE:
        spawn = CheckContext(edition, sources)
        try:
            # Thousands of small dense systems: BLAS threads would only wait for each other.
            with threadpool_limits(1), relaxed_gc():
                for piece in pieces:
                    finish(piece, _run_piece(spawn, piece))
        finally:
            spawn.close()
    else:
        paths = edition.path, None if sources.other is None else sources.other.path, sources.raw_dir
        spawn = multiprocessing.get_context("spawn")  # the numerical libraries hold threads, which a fork would break
        with ProcessPoolExecutor(workers, spawn, _open, paths) as pool:
            running: dict[Future[list[_Part]], Piece] = {pool.submit(_run_in_process, piece): piece for piece in pieces}
            try:
                for future in as_completed(running):
                    finish(running[future], future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [part for piece in pieces for part in done[piece]]


def _pieces_of_audit(edition: Edition, names: Collection[str], there: Sequence[str]) -> list[Piece]:
    looks = tuple(name for name in names if name in AUDITS and AUDITS[name].look) + tuple(
        name for name in names if name == LABELS
    )
    surveys = [name for name in names if name in AUDITS and AUDITS[name].survey]
    found: list[Piece] = []
    for one in edition.domains:
        if one.name in there:
            title = f"auditing {one.title}"
            found += [Piece((check,), one.name, f"{title}: {check}") for check in domain_checks(one) if check in names]
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


_context: CheckContext | None = None


def _open(path: Path, other: Path | None, raw_dir: Path | None) -> None:
    global _context
    gc.set_threshold(GC_THRESHOLD)  # tools return many rows without cycles
    context = _context = CheckContext.reopened(path, other, raw_dir)
    threadpool_limits(1)
    Finalize(None, context.close, exitpriority=10)


def _run_in_process(piece: Piece) -> list[_Part]:
    assert _context is not None
    return _run_piece(_context, piece)


def _run_piece(context: CheckContext, piece: Piece) -> list[_Part]:
    if piece.labels:
        return [_validation(context, piece)]
    if not piece.sub_task:
        return [_domain_check(context, piece)]
    episodes = context.edition.episodes([piece.sub_task])[piece.first : piece.stop]
    if piece.survey:
        return [_survey(context, piece, AUDITS[piece.names[0]], episodes)]
    return _looks(context, piece, episodes)


def _domain(context: CheckContext, name: str) -> Domain | None:
    return next((one for one in context.edition.domains if one.name == name), None)


def _validation(context: CheckContext, piece: Piece) -> _Part:
    """Run one check of `data validate`, or the label checks of some episodes of a subtask."""
    domain, name, findings = _domain(context, piece.domain), piece.names[0], Findings()
    assert domain is not None
    subject = Subject(context.shared, domain)
    if not subject.episodes:
        findings.skip(f"the edition has no episodes of {domain.title}")
    else:
        if piece.sub_task:
            subject.episodes = subject.of(piece.sub_task)[piece.first : piece.stop]
        with examining(name, findings):
            checks_of(domain)[name](subject, findings)
    return _Part(name, domain.name, "", findings)


def _domain_check(context: CheckContext, piece: Piece) -> _Part:
    domain, name, findings = _domain(context, piece.domain), piece.names[0], Findings()
    assert domain is not None
    subject = Subject(context.shared, domain)
    for run in domain_checks(domain)[name]:
        with examining(name, findings):
            run(subject, findings)
    findings.figures["episodes"] = len(subject.episodes)
    return _Part(name, piece.domain, "", findings)


def _survey(context: CheckContext, piece: Piece, check: AuditCheck, episodes: Sequence[Episode]) -> _Part:
    findings = Findings()
    assert check.survey is not None
    if check.needs_truth and not context.edition.has_truth:
        findings.skip("the edition has no truth")
    else:
        with examining(piece.sub_task, findings):
            check.survey(context, episodes, findings)
        findings.figures["episodes"] = len(episodes)
    return _Part(check.name, piece.domain, piece.sub_task, findings)


def _looks(context: CheckContext, piece: Piece, episodes: Sequence[Episode]) -> list[_Part]:
    found = {name: Findings() for name in piece.names}
    if LABELS in found:
        _check_labels(context, piece, episodes, found[LABELS])
    certificates: Mapping[str, JsonObject] = {}
    if context.edition.has_certificates:
        with examining(f"certificates/{piece.sub_task}.jsonl", next(iter(found.values()))):
            certificates = context.edition.certificates(piece.sub_task)
    for episode in episodes:
        view = EpisodeView(context, episode, certificates.get(episode.task_id, {}))
        for name in piece.names:
            check = AUDITS.get(name)
            if check is None or check.look is None:
                continue
            if check.needs_truth and not context.edition.has_truth:
                found[name].skip("the edition has no truth")
                continue
            with examining(episode.task_id, found[name]):
                check.look(view, found[name])
            found[name].add("episodes")
    return [_Part(name, piece.domain, piece.sub_task, findings) for name, findings in found.items()]


def _check_labels(context: CheckContext, piece: Piece, episodes: Sequence[Episode], findings: Findings) -> None:
    findings.figures["episodes"] = len(episodes)
    domain = _domain(context, piece.domain)
    if domain is None or piece.sub_task not in {one.name for one in domain.subtasks}:
        findings.fail(piece.sub_task, "is not a registered subtask; its labels cannot be rederived")
        return
    subject = Subject(context.shared, domain)
    subject.episodes = tuple(episodes)
    checks_of(domain)[piece.sub_task](subject, findings)
    # Validation only warns of missing proofs in an imported release; the audit fails.
    findings.found[:] = [replace(finding, state=CheckState.FAIL) for finding in findings.found]
    if context.edition.has_truth:
        for episode in episodes:
            if episode.task_id not in findings.touched:
                findings.fail(episode.task_id, f"no check examined this label of {piece.sub_task}")


def _conclude(wanted: Sequence[str], parts: Iterable[_Part]) -> Iterator[Check]:
    """Merge findings into one check per name, or per domain for checks of single domains."""
    found: dict[tuple[str, str], Findings] = {}
    for part in parts:
        check = AUDITS.get(part.name)
        if check is not None and check.conclude is not None:
            check.conclude(part.sub_task, part.findings)
        owner = ALL if part.sub_task else part.domain
        add(found.setdefault((part.name, owner), Findings()), part.findings)
    order = {name: place for place, name in enumerate(wanted)}
    shared = sorted((key for key in found if key[1] == ALL), key=lambda key: order[key[0]])
    by_domain = [key for key in found if key[1] != ALL]
    for name, owner in [*shared, *by_domain]:
        yield found[name, owner].as_check(owner, name)


def _merged(parts: Sequence[_Part]) -> list[_Part]:
    together: dict[tuple[str, str, str], _Part] = {}
    for part in parts:
        key = part.name, part.domain, part.sub_task
        add(together.setdefault(key, replace(part, findings=Findings())).findings, part.findings)
    return list(together.values())


def add(into: Findings, more: Findings) -> None:
    into.found += more.found
    into.expectations += more.expectations
    into.reason = into.reason or more.reason
    into.touched |= more.touched
    into.figures = add_up(into.figures, more.figures)


def add_up(left: object, right: object, name: str = "") -> Any:
    """Merge figures of two parts: counts are summed, measures keep the maximum, tables and lists are merged."""
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

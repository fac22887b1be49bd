"""The audit's work in pieces, done in as many processes as there are cores, and put together again."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from finskillbench.audit.base import AuditCheck
from finskillbench.audit.catalog import CHECKS, LABELS
from finskillbench.audit.seen import Bench, Beside, Seen
from finskillbench.domains import by_name, domain
from finskillbench.domains.base import Domain, DomainCheck
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.edition import Edition
from finskillbench.edition.validation.labels import label_check
from finskillbench.episode import Episode, JsonObject
from finskillbench.errors import InputError
from finskillbench.findings import Findings, State
from finskillbench.garbage import SELDOM
from finskillbench.scoring.values import is_array, is_object

_CHUNK = 40
"""Episodes of one piece."""
_ALONE = 64
"""Episodes up to which starting other processes takes longer than the work."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of work: checks of the episodes of a subtask from `first` to before `stop`, or one check of a domain.

    `survey` takes the episodes together; otherwise each is looked at by itself.
    """

    names: tuple[str, ...]
    domain: str
    sub_task: str = ""
    first: int = 0
    stop: int = 0
    survey: bool = False

    @property
    def title(self) -> str:
        """What it is about, for progress."""
        return self.sub_task or f"{self.domain}: {', '.join(self.names)}"


@dataclass(frozen=True, slots=True)
class Part:
    """What one piece found under one check."""

    name: str
    domain: str
    sub_task: str
    findings: Findings


def do(edition: Edition, beside: Beside, pieces: Sequence[Piece], tick: Callable[[str], None]) -> list[Part]:
    """Do all pieces and return what was found, in the order of the pieces; `tick` is told of each that is done."""
    workers = min(len(os.sched_getaffinity(0)), len(pieces))
    if workers < 2 or sum(piece.stop - piece.first for piece in pieces) <= _ALONE:
        bench = Bench(edition, beside)
        try:
            with threadpool_limits(1):
                return [part for piece in pieces for part in _told(tick, piece, _do(bench, piece))]
        finally:
            bench.close()
    paths = edition.path, None if beside.other is None else beside.other.path, beside.raw_dir
    done: dict[Piece, list[Part]] = {}
    context = multiprocessing.get_context("spawn")  # the numerical libraries hold threads, which a fork would break
    with ProcessPoolExecutor(workers, context, _open, paths) as pool:
        running: dict[Future[list[Part]], Piece] = {pool.submit(_do_here, piece): piece for piece in pieces}
        try:
            for future in as_completed(running):
                done[running[future]] = _told(tick, running[future], future.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [part for piece in pieces for part in done[piece]]


def _told(tick: Callable[[str], None], piece: Piece, parts: list[Part]) -> list[Part]:
    tick(piece.title)
    return parts


def pieces_of(edition: Edition, names: Collection[str], domains_there: Sequence[str]) -> list[Piece]:
    """The pieces of the checks `names`, those that take long first."""
    looks = tuple(name for name in names if name in CHECKS and CHECKS[name].look) + tuple(
        name for name in names if name == LABELS
    )
    surveys = [name for name in names if name in CHECKS and CHECKS[name].survey]
    found: list[Piece] = []
    for sub_task in edition.sub_tasks:
        episodes = edition.episodes([sub_task])
        if not episodes:
            continue
        skill = episodes[0].skill
        if looks:
            found += [
                Piece(looks, skill, sub_task, first, min(first + _CHUNK, len(episodes)))
                for first in range(0, len(episodes), _CHUNK)
            ]
        found += [Piece((name,), skill, sub_task, 0, len(episodes), survey=True) for name in surveys]
    for name in domains_there:
        found += [Piece((check,), name) for check in brought_by(domain(name)) if check in names]
    return sorted(found, key=lambda piece: bool(piece.sub_task))


def brought_by(own: Domain) -> dict[str, list[DomainCheck]]:
    """What a domain brings by itself: what `data validate` checks of it, and its audits, by names of one form."""
    found: dict[str, list[DomainCheck]] = {}
    for name, check in (*own.checks.items(), *own.audits.items()):
        found.setdefault(name.replace(" ", "_"), []).append(check)
    return found


_bench: Bench | None = None


def _open(path: Path, other: Path | None, raw_dir: Path | None) -> None:
    global _bench
    gc.set_threshold(SELDOM)  # the rows that tools return are many, and hold no cycles
    bench = _bench = Bench.reopened(path, other, raw_dir)
    threadpool_limits(1)
    Finalize(None, bench.close, exitpriority=10)


def _do_here(piece: Piece) -> list[Part]:
    assert _bench is not None
    return _do(_bench, piece)


def _do(bench: Bench, piece: Piece) -> list[Part]:
    if not piece.sub_task:
        return [_domain_check(bench, piece)]
    episodes = bench.edition.episodes([piece.sub_task])[piece.first : piece.stop]
    if piece.survey:
        return [_survey(bench, piece, CHECKS[piece.names[0]], episodes)]
    return _looks(bench, piece, episodes)


def _domain_check(bench: Bench, piece: Piece) -> Part:
    own, name = domain(piece.domain), piece.names[0]
    findings = Findings()
    subject = Subject(bench.shared, own)
    for run in brought_by(own)[name]:
        with examining(name, findings):
            run(subject, findings)
    findings.figures["episodes"] = len(subject.episodes)
    return Part(name, piece.domain, "", findings)


def _survey(bench: Bench, piece: Piece, check: AuditCheck, episodes: Sequence[Episode]) -> Part:
    findings = Findings()
    assert check.survey is not None
    if check.needs_truth and not bench.edition.has_truth:
        findings.skip("the edition was handed out without truth")
    else:
        with examining(piece.sub_task, findings):
            check.survey(bench, episodes, findings)
        findings.figures["episodes"] = len(episodes)
    return Part(check.name, piece.domain, piece.sub_task, findings)


def _looks(bench: Bench, piece: Piece, episodes: Sequence[Episode]) -> list[Part]:
    found = {name: Findings() for name in piece.names}
    if LABELS in found:
        _derive_again(bench, piece.sub_task, episodes, found[LABELS])
    certificates: Mapping[str, JsonObject] = {}
    if bench.edition.has_certificates:
        with examining(f"certificates/{piece.sub_task}.jsonl", next(iter(found.values()))):
            certificates = bench.edition.certificates(piece.sub_task)
    for episode in episodes:
        seen = Seen(bench, episode, certificates.get(episode.task_id, {}))
        for name in piece.names:
            check = CHECKS.get(name)
            if check is None or check.look is None:
                continue
            if check.needs_truth and not bench.edition.has_truth:
                found[name].skip("the edition was handed out without truth")
                continue
            with examining(episode.task_id, found[name]):
                check.look(seen, found[name])
            found[name].add("episodes")
    return [Part(name, piece.domain, piece.sub_task, findings) for name, findings in found.items()]


def _derive_again(bench: Bench, sub_task: str, episodes: Sequence[Episode], findings: Findings) -> None:
    """The labels as `data validate` checks them, of some of the episodes."""
    findings.figures["episodes"] = len(episodes)
    try:
        subtask = by_name(sub_task)
        subject = Subject(bench.shared, domain(episodes[0].skill))
    except InputError as error:
        findings.fail(sub_task, str(error))
        return
    subject.episodes = tuple(episodes)
    label_check(subtask)(subject, findings)
    # An imported release promises no proofs, and validation only warns of it; the audit says what cannot be believed.
    findings.found[:] = [replace(finding, state=State.FAIL) for finding in findings.found]
    if bench.edition.has_truth:
        for episode in episodes:
            if episode.task_id not in findings.touched:
                findings.fail(episode.task_id, f"no check has looked at this label of {sub_task}")


def merged(parts: Sequence[Part]) -> Iterable[Part]:
    """The parts of one check, domain and subtask put together, in the order in which they first come."""
    together: dict[tuple[str, str, str], Part] = {}
    for part in parts:
        key = part.name, part.domain, part.sub_task
        add(together.setdefault(key, replace(part, findings=Findings())).findings, part.findings)
    return together.values()


def add(into: Findings, more: Findings) -> None:
    """Put what one part found to what others found."""
    into.found += more.found
    into.expectations += more.expectations
    into.reason = into.reason or more.reason
    into.figures = add_up(into.figures, more.figures)


def add_up(left: object, right: object) -> Any:
    """Figures of two parts: counts add up, measures keep the larger, tables and lists go into each other."""
    if is_object(left) and is_object(right):
        both = dict(left)
        for key, value in right.items():
            both[key] = add_up(both[key], value) if key in both else value
        return both
    if is_array(left) and is_array(right):
        return [*left, *right]
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return max(left, right)
    return right

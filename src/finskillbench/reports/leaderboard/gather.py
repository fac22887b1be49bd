"""Taking bundles in: each is read and judged by itself, then held against the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.entries import Entry
from finskillbench.runs.bundle.judge import Judged, judge_bundle
from finskillbench.runs.bundle.plain import folded
from finskillbench.runs.bundle.read import Bundle, read_bundle

Progress = Callable[[str, int, int], None]
"""`(bundle, done, total)` while it is judged."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A bundle that is not on the board, by the name of its file, and why not."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is on the board, what is not, and the programs beside."""

    taken: tuple[Judged, ...]
    refused: tuple[Refusal, ...]
    programs: Judged | None = None


def gather(
    paths: Sequence[Path],
    edition: Edition,
    *,
    programs: Path | None = None,
    signers: Path | None = None,
    unsigned: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> Gathered:
    """Read and judge bundles.

    Parameters
    ----------
    paths : of the bundles; of two that claim the same name, the one that comes first is taken, signed ones first.
    edition : with its truth.
    programs : a bundle of the baseline programs, made by whoever makes the board; it need not be signed.
    signers : a file of allowed signers; None takes every key.
    unsigned : whether bundles without a signature are taken.
    keep_going : whether a bundle that does not fit is left out and listed.

    Raises
    ------
    InputError : no bundle, or the first that does not fit, unless `keep_going`; none fits.
    EditionError : the edition was handed out without its truth.
    """
    if not paths:
        raise InputError("no bundle was named; name what finskillbench submit wrote")
    edition.truth(edition.episodes()[0].task_id)  # without truth nothing can be judged: said before anything is read
    beside = None
    if programs is not None:
        ours = read_bundle(programs, unsigned=True)
        beside = judge_bundle(ours, edition, programs=True, progress=_named(progress, programs))
    refused: list[Refusal] = []

    def refuse(path: Path, error: InputError) -> None:
        if not keep_going:
            raise error
        refused.append(Refusal(path.name, str(error).removeprefix(f"{path}: ")))

    read: list[Bundle] = []
    for path in paths:
        try:
            read.append(read_bundle(path, signers=signers, unsigned=unsigned))
        except InputError as error:
            refuse(path, error)
    taken: list[Judged] = []
    for bundle in sorted(read, key=lambda each: each.signer is None):
        try:
            _refuse_beside([each.bundle for each in taken], bundle)
            taken.append(judge_bundle(bundle, edition, progress=_named(progress, bundle.path)))
        except InputError as error:
            refuse(bundle.path, error)
    if not taken:
        raise InputError(
            f"none of {len(paths)} bundles can be taken; the first: {refused[0].name}: {refused[0].reason}"
        )
    order = {path: place for place, path in enumerate(paths)}
    return Gathered(tuple(sorted(taken, key=lambda each: order[each.bundle.path])), tuple(refused), beside)


def entries_of(bundle: Bundle) -> set[tuple[Entry, str]]:
    """What a bundle plays: each model with its arguments under each condition."""
    return {(row.item.entry, row.condition) for row in bundle.rows}


def _refuse_beside(taken: Sequence[Bundle], bundle: Bundle) -> None:
    """A bundle that cannot stand beside those before it: sent twice, another's name, one key under two names."""
    name = folded(bundle.manifest.submitter.name)
    key = None if bundle.signer is None else bundle.signer.key
    for other in taken:
        theirs = folded(other.manifest.submitter.name)
        their_key = None if other.signer is None else other.signer.key
        if bundle.digest == other.digest:
            raise InputError(f"{bundle.path}: is the same as {other.path.name}; name it once")
        if name == theirs and key != their_key:
            raise InputError(
                f"{bundle.path}: calls itself {bundle.manifest.submitter.name!a}, as {other.path.name} does, which is "
                "of another key; choose another name"
            )
        if key is not None and key == their_key and name != theirs:
            raise InputError(
                f"{bundle.path}: is signed by the key of {other.manifest.submitter.name!a} ({other.path.name}), under "
                "another name; keep one name"
            )
        if name != theirs:
            continue
        if both := entries_of(bundle) & entries_of(other):
            entry, condition = min(both)
            raise InputError(
                f"{bundle.path}: has {entry.model!a} under {condition}, as {other.path.name} has; send one of the two"
            )
        again = {entry for entry, _ in entries_of(bundle)} & {entry for entry, _ in entries_of(other)}
        if again and (bundle.manifest.partial is None) != (other.manifest.partial is None):
            raise InputError(
                f"{bundle.path}: {min(again).model!a} is whole in one of this and {other.path.name} and has episodes "
                "missing in the other; send all of its conditions in one bundle"
            )


def _named(progress: Progress | None, path: Path) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(path.name, done, total)

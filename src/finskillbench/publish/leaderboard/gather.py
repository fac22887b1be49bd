"""Taking bundles in: each is read and judged by itself, then held against the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.models import Entry
from finskillbench.publish.bundle.judge import Judged, judge_bundle
from finskillbench.publish.bundle.read import Bundle, read_bundle
from finskillbench.publish.leaderboard.entrants import normalized

MOST_ENTRIES = 12
"""Of one submitter at most, each a model with its arguments: every further one makes the places of others wider."""
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
    paths : of the bundles; of several keys that claim the same name none is taken, unless one alone is signed, or is of
        an owner whom the signers call by that name.
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
            _refuse_disputed(read, bundle)
            _refuse_beside([each.bundle for each in taken], bundle)
            taken.append(judge_bundle(bundle, edition, progress=_named(progress, bundle.path)))
        except InputError as error:
            refuse(bundle.path, error)
    if not taken:
        first = refused[0]
        raise InputError(f"none of {len(paths)} bundles can be taken; the first: {first.name}: {first.reason}")
    ordered = sorted(taken, key=lambda each: paths.index(each.bundle.path))
    return Gathered(tuple(ordered), tuple(refused), beside)


def entries_of(bundle: Bundle) -> set[tuple[Entry, str]]:
    """What a bundle plays: each model with its arguments under each condition."""
    return {(row.item.entry, row.condition) for row in bundle.rows}


def _refuse_disputed(read: Sequence[Bundle], bundle: Bundle) -> None:
    """A bundle under a name that is also claimed by another key, unless it is known to be whose name it is."""
    name = normalized(bundle.manifest.submitter.name)
    claims = [each for each in read if normalized(each.manifest.submitter.name) == name]
    keys = {_key(each) for each in claims}
    called = _called(claims, name)
    known = called if len(called) == 1 else keys - {None}
    if len(keys) == 1 or known == {_key(bundle)}:
        return
    other = next(each for each in claims if _key(each) != _key(bundle))
    raise InputError(
        f"{bundle.path}: calls itself {bundle.manifest.submitter.name!a}, as {other.path.name} does "
        f"({other.manifest.submitter.name!a}), which is of another key; choose another name, or say whose it is in "
        "--signers"
    )


def _called(claims: Sequence[Bundle], name: str) -> set[str | None]:
    """The keys whose owner is called by a name in the file of signers, as `name` or `name@somewhere`."""
    owned = [(each.signer, each.signer.owner) for each in claims if each.signer is not None and each.signer.owner]
    return {signer.key for signer, owner in owned if name in (normalized(owner), normalized(owner.partition("@")[0]))}


def _key(bundle: Bundle) -> str | None:
    return None if bundle.signer is None else bundle.signer.key


def _refuse_beside(taken: Sequence[Bundle], bundle: Bundle) -> None:
    """A bundle that cannot stand beside those before it: sent twice, another's name, one key under two names."""
    name = normalized(bundle.manifest.submitter.name)
    key = _key(bundle)
    mine = {entry for entry, _ in entries_of(bundle)}
    for other in taken:
        theirs = normalized(other.manifest.submitter.name)
        if bundle.digest == other.digest:
            raise InputError(f"{bundle.path}: is the same as {other.path.name}; name it once")
        if key is not None and key == _key(other) and name != theirs:
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
        mine |= {entry for entry, _ in entries_of(other)}
        if again and (bundle.manifest.partial is None) != (other.manifest.partial is None):
            raise InputError(
                f"{bundle.path}: {min(again).model!a} is whole in one of this and {other.path.name} and has episodes "
                "missing in the other; send all of its conditions in one bundle"
            )
    if len(mine) > MOST_ENTRIES:
        raise InputError(
            f"{bundle.path}: makes {len(mine)} entries of {bundle.manifest.submitter.name!a}, and a board takes "
            f"{MOST_ENTRIES} of each submitter; choose some"
        )


def _named(progress: Progress | None, path: Path) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(path.name, done, total)

"""Taking bundles in: each is read and judged by itself, then held against the others and listed by entry.

An entry is a submitter's model with its arguments. A submitter is a key, or the name of an unsigned bundle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.models import NO_ARGUMENTS, ModelKey, labels
from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX
from finskillbench.publish.bundle.judge import Judged, judge_bundle
from finskillbench.publish.bundle.read import Bundle, read_bundle
from finskillbench.runs.store.rows import Row, to_frame

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


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a submitter as tables call it, with the bundles that it came in; `owner` is key or name."""

    label: str
    owner: str
    entry: ModelKey
    parts: tuple[Judged, ...]

    @property
    def partial(self) -> bool:
        """Whether episodes are missing in any bundle, which leaves the entry unranked."""
        return any(each.bundle.manifest.partial is not None for each in self.parts)

    @property
    def submitter(self) -> str:
        """Who submits it, by the name of the first bundle."""
        return self.parts[0].bundle.manifest.submitter.name

    def rows(self, part: Judged) -> list[Row]:
        """Its rows in a bundle."""
        return [row for row in part.rows if row.item.entry == self.entry]

    def under(self, condition: str) -> Judged:
        """The bundle in which it was played under a condition, by the name that tables have for it."""
        return next(part for part in self.parts if condition in {shown(row) for row in self.rows(part)})

    def frame(self) -> pl.DataFrame:
        """All of its rows under its label, with conditions as tables call them."""
        rows = [row for part in self.parts for row in self.rows(part)]
        conditions = pl.Series([shown(row) for row in rows], dtype=pl.String)
        return to_frame(rows).with_columns(
            model=pl.lit(self.label), arguments=pl.lit(NO_ARGUMENTS), condition=conditions
        )


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
    paths : of the bundles; a name that several keys claim is refused to all of them.
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
    for bundle in read:
        try:
            _refuse_claimed(read, bundle)
            _refuse_again([each.bundle for each in taken], bundle)
            taken.append(judge_bundle(bundle, edition, progress=_named(progress, bundle.path)))
        except InputError as error:
            refuse(bundle.path, error)
    if not taken:
        first = refused[0]
        raise InputError(f"none of {len(paths)} bundles can be taken; the first: {first.name}: {first.reason}")
    return Gathered(tuple(taken), tuple(refused), beside)


def shown(row: Row) -> str:
    """What a board calls the condition of a row: skills of somebody's own by name and digest, since names are free."""
    return f"{row.condition} {row.mount[:12]}" if row.condition.startswith(USER_SKILLS_PREFIX) else row.condition


def entrants_of(taken: Sequence[Judged]) -> tuple[Listed, ...]:
    """Every entry of every submitter, under labels that are told apart."""
    parts: dict[tuple[str, ModelKey], list[Judged]] = {}
    for judged in taken:
        for entry in dict.fromkeys(row.item.entry for row in judged.rows):
            parts.setdefault((_owner(judged.bundle), entry), []).append(judged)
    named = zip(_labels(parts), parts.items(), strict=True)
    return tuple(Listed(label, owner, entry, tuple(each)) for label, ((owner, entry), each) in named)


def _labels(parts: dict[tuple[str, ModelKey], list[Judged]]) -> list[str]:
    """The name of each entry; with its submitter where two have the same, with its number where that is not enough."""
    own = {
        who: labels(entry for other, entry in parts if other == who) for who in dict.fromkeys(who for who, _ in parts)
    }
    owners = [each[0].bundle.manifest.submitter.name for each in parts.values()]
    names = _apart([own[who][entry] for who, entry in parts], lambda place: f"({owners[place]})")
    while len(set(names)) < len(names):
        names = _apart(names, lambda place: f"#{place + 1}")
    return names


def _apart(names: Sequence[str], mark: Callable[[int], str]) -> list[str]:
    count = Counter(names)
    return [name if count[name] == 1 else f"{name} {mark(place)}" for place, name in enumerate(names)]


def _owner(bundle: Bundle) -> str:
    return f"unsigned {bundle.manifest.submitter.name}" if bundle.signer is None else bundle.signer.key


def _refuse_claimed(read: Sequence[Bundle], bundle: Bundle) -> None:
    """Refuse a name that another key claims; an unsigned bundle does not take a name from a signed one."""
    name = bundle.manifest.submitter.name
    for other in read:
        signed = other.signer is not None and other.manifest.submitter.name == name
        if signed and _owner(other) != _owner(bundle):
            raise InputError(
                f"{bundle.path}: calls itself {name!a}, as {other.path.name} does, which is signed by another key; "
                "choose another name, or leave one of the two out"
            )


def _refuse_again(taken: Sequence[Bundle], bundle: Bundle) -> None:
    """Refuse what the same submitter has sent before, and more entries than a board takes."""
    before = [other for other in taken if _owner(other) == _owner(bundle)]
    for other in before:
        if both := _played(bundle) & _played(other):
            entry, condition = min(both)
            raise InputError(
                f"{bundle.path}: has {entry.model!a} under {condition}, as {other.path.name} has; send one of the two"
            )
    entries = {entry for each in (bundle, *before) for entry, _ in _played(each)}
    if len(entries) > MOST_ENTRIES:
        raise InputError(
            f"{bundle.path}: makes {len(entries)} entries of {bundle.manifest.submitter.name!a}, and a board takes "
            f"{MOST_ENTRIES} of each submitter; choose some"
        )


def _played(bundle: Bundle) -> set[tuple[ModelKey, str]]:
    """What a bundle plays: each model with its arguments under each condition."""
    return {(row.item.entry, row.condition) for row in bundle.rows}


def _named(progress: Progress | None, path: Path) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(path.name, done, total)

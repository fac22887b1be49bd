"""Read and judge bundles, check them against each other, and list their entries.

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
from finskillbench.publish.bundle.judge import JudgedBundle, judge_bundle
from finskillbench.publish.bundle.read import Bundle, read_bundle
from finskillbench.runs.store.rows import Row, to_frame
from finskillbench.splits import FIRST_TRAINING_SEED, is_for_training

MOST_ENTRIES = 12
"""Maximum entries of one submitter; each widens the rank intervals of others."""
Progress = Callable[[str, int, int], None]
"""`(bundle, done, total)` while it is judged."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused bundle, by file name, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class JudgedSubmissions:
    """Accepted and refused bundles, and the baseline programs."""

    taken: tuple[JudgedBundle, ...]
    refused: tuple[Refusal, ...]
    programs: JudgedBundle | None = None


@dataclass(frozen=True, slots=True)
class LeaderboardEntry:
    """An entry of a submitter with its label in tables and its bundles; `owner` is key or name."""

    label: str
    owner: str
    entry: ModelKey
    parts: tuple[JudgedBundle, ...]

    @property
    def partial(self) -> bool:
        """True if episodes are missing in any bundle, which leaves the entry unranked."""
        return any(each.bundle.manifest.partial is not None for each in self.parts)

    @property
    def submitter(self) -> str:
        """Return the submitter's name in the first bundle."""
        return self.parts[0].bundle.manifest.submitter.name

    def rows(self, part: JudgedBundle) -> list[Row]:
        return [row for row in part.rows if row.item.model_key == self.entry]

    def under(self, condition: str) -> JudgedBundle:
        """Return the bundle in which it was run under a condition, by its label in tables."""
        return next(part for part in self.parts if condition in {condition_label(row) for row in self.rows(part)})

    def frame(self) -> pl.DataFrame:
        """Return all rows under the entry's label and the conditions' labels."""
        rows = [row for part in self.parts for row in self.rows(part)]
        conditions = pl.Series([condition_label(row) for row in rows], dtype=pl.String)
        return to_frame(rows).with_columns(
            model=pl.lit(self.label), arguments=pl.lit(NO_ARGUMENTS), condition=conditions
        )


def gather_bundles(
    paths: Sequence[Path],
    edition: Edition,
    *,
    programs: Path | None = None,
    signers: Path | None = None,
    unsigned: bool = False,
    keep_going: bool = False,
    progress: Progress | None = None,
) -> JudgedSubmissions:
    """Read and judge bundles with an edition that has its truth.

    Parameters
    ----------
    programs : a bundle of the baseline programs by the leaderboard's maintainer, signed or not.
    signers : a file of allowed signers; None accepts every key. unsigned : accept bundles without a signature.
    keep_going : omit and list invalid bundles.

    Raises
    ------
    InputError : no bundle, the first invalid one unless `keep_going`, none that is valid, or an edition for training.
    EditionError : the edition has no truth.
    """
    if not paths:
        raise InputError("no bundle was given; name files written by finskillbench submit")
    if is_for_training(edition.manifest["seed"]):
        limit = f"a leaderboard needs one below {FIRST_TRAINING_SEED:,}"
        raise InputError(f"{edition.path}: the seed {edition.manifest['seed']:,} is for training; {limit}")
    edition.truth(edition.episodes()[0].task_id)  # fail early if the edition has no truth
    baselines = None
    if programs is not None:
        ours = read_bundle(programs, unsigned=True)
        baselines = judge_bundle(ours, edition, programs=True, progress=_named(progress, programs))
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
    taken: list[JudgedBundle] = []
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
    return JudgedSubmissions(tuple(taken), tuple(refused), baselines)


def condition_label(row: Row) -> str:
    """Return the label of a row's condition; user skills have their digest, because names are free."""
    return f"{row.condition} {row.mount[:12]}" if row.condition.startswith(USER_SKILLS_PREFIX) else row.condition


def list_entries(taken: Sequence[JudgedBundle]) -> tuple[LeaderboardEntry, ...]:
    """List every entry of every submitter under unique labels."""
    parts: dict[tuple[str, ModelKey], list[JudgedBundle]] = {}
    for judged in taken:
        for entry in dict.fromkeys(row.item.model_key for row in judged.rows):
            parts.setdefault((_owner(judged.bundle), entry), []).append(judged)
    named = zip(_labels(parts), parts.items(), strict=True)
    return tuple(LeaderboardEntry(label, owner, entry, tuple(each)) for label, ((owner, entry), each) in named)


def _labels(parts: dict[tuple[str, ModelKey], list[JudgedBundle]]) -> list[str]:
    """Label each entry, with submitter and then number where labels are equal."""
    labels_by_owner = {
        who: labels(entry for other, entry in parts if other == who) for who in dict.fromkeys(who for who, _ in parts)
    }
    owners = [each[0].bundle.manifest.submitter.name for each in parts.values()]
    names = _apart([labels_by_owner[who][entry] for who, entry in parts], lambda place: f"({owners[place]})")
    while len(set(names)) < len(names):
        names = _apart(names, lambda place: f"#{place + 1}")
    return names


def _apart(names: Sequence[str], mark: Callable[[int], str]) -> list[str]:
    count = Counter(names)
    return [name if count[name] == 1 else f"{name} {mark(place)}" for place, name in enumerate(names)]


def _owner(bundle: Bundle) -> str:
    return f"unsigned {bundle.manifest.submitter.name}" if bundle.signer is None else bundle.signer.key


def _refuse_claimed(read: Sequence[Bundle], bundle: Bundle) -> None:
    """Refuse a name that another key claims; an unsigned bundle cannot take the name of a signed one."""
    name = bundle.manifest.submitter.name
    for other in read:
        signed = other.signer is not None and other.manifest.submitter.name == name
        if signed and _owner(other) != _owner(bundle):
            raise InputError(
                f"{bundle.path}: has the submitter {name!a} of {other.path.name}, which is signed by another key; "
                "choose another name, or remove one of the two"
            )


def _refuse_again(taken: Sequence[Bundle], bundle: Bundle) -> None:
    """Refuse repeated submissions of one submitter, and too many entries."""
    before = [other for other in taken if _owner(other) == _owner(bundle)]
    for other in before:
        if both := _played(bundle) & _played(other):
            entry, condition = min(both)
            raise InputError(
                f"{bundle.path}: has {entry.model!a} under {condition}, like {other.path.name}; submit only one of "
                "the two"
            )
    entries = {entry for each in (bundle, *before) for entry, _ in _played(each)}
    if len(entries) > MOST_ENTRIES:
        raise InputError(
            f"{bundle.path}: makes {len(entries)} entries of {bundle.manifest.submitter.name!a}, but a leaderboard "
            f"takes {MOST_ENTRIES} of each submitter; choose some"
        )


def _played(bundle: Bundle) -> set[tuple[ModelKey, str]]:
    return {(row.item.model_key, row.condition) for row in bundle.rows}


def _named(progress: Progress | None, path: Path) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(path.name, done, total)

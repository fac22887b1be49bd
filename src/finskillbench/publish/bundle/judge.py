"""Recompute every score of a bundle from its answers; claimed scores are only compared.

Judged are the headline episodes of a full run, except interactive ones. These cannot be played without the truth, and
their records would be unverified claims of the submitter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from finskillbench.domains import cluster_of, domain, subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Profile, Status, Submission
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, arm_of, mount_all
from finskillbench.harness.models import BASELINES
from finskillbench.harness.prompts.compose import wording_digest
from finskillbench.publish.bundle import interactive_record
from finskillbench.publish.bundle.read import Bundle
from finskillbench.runs.plan.items import Item, choose_episodes
from finskillbench.runs.store.rows import Row, with_verdict
from finskillbench.runs.store.version import code_version, scorer_version
from finskillbench.runs.verdicts import judge


def headline_tasks(episodes: Sequence[Episode]) -> dict[str, tuple[str, ...]]:
    """Return task ids by headline, in the order of the edition."""
    found: dict[str, list[str]] = defaultdict(list)
    for episode in choose_episodes(episodes):
        if _counts(episode):
            found[domain(episode.skill).suite].append(episode.task_id)
    return {suite: tuple(tasks) for suite, tasks in found.items()}


def first_missing(items: Iterable[Item], wanted: Mapping[str, Sequence[str]]) -> Item | None:
    """Return the first episode missing from a headline that an entry has begun under a condition, or None.

    An entry without any headline episode lacks the first of all.
    """
    played: dict[tuple[str, str, str, int], set[str]] = defaultdict(set)
    for item in items:
        played[item.model, item.arguments, item.condition, item.run_idx].add(item.task_id)
    for (model, arguments, condition, run_idx), tasks in played.items():
        begun = [suite for suite in wanted.values() if not tasks.isdisjoint(suite)] or list(wanted.values())
        for task_id in (task_id for suite in begun for task_id in suite):
            if task_id not in tasks:
                return Item(model, arguments, condition, task_id, run_idx)
    return None


def _counts(episode: Episode) -> bool:
    try:
        subtask = subtask_named(episode.sub_task)
        return subtask.headline and subtask.open_interactive_state is None
    except InputError:  # episodes of imported releases have other names
        return False


TOLERANCE = 1e-9
"""Tolerance between claimed and recomputed scores, for rounding differences between machines."""
Progress = Callable[[int, int], None]
"""`(done, total)` after each episode."""


@dataclass(frozen=True, slots=True)
class JudgedBundle:
    """A bundle with the rows recomputed from its answers; `remarks` are for readers."""

    bundle: Bundle
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]


def judge_bundle(
    bundle: Bundle, edition: Edition, *, programs: bool = False, progress: Progress | None = None
) -> JudgedBundle:
    """Judge a bundle with an edition that has its truth.

    `programs` : the rows are of baseline programs, which only the leaderboard's maintainer submits.

    Raises
    ------
    InputError : another edition, an unknown or missing episode, altered skills under an official name, a row that
        contradicts its episode, or a score that the answer does not earn.
    EditionError : the edition has no truth.
    """
    manifest, path = bundle.manifest, bundle.path
    if manifest.edition != edition.digest:
        raise InputError(
            f"{path}: is for edition {manifest.edition[:12]}, but this leaderboard has edition "
            f"{edition.digest[:12]}; run it on that edition"
        )
    _refuse_mounts(bundle)
    for participant in manifest.entrants:
        if participant.model.startswith("baseline/") != programs or (programs and participant.model not in BASELINES):
            problem = "is not a baseline program" if programs else "is the name of a program; rename the model"
            raise InputError(f"{path}: {participant.model!a} {problem}")
    episodes = {episode.task_id: episode for episode in edition.episodes()}
    _refuse_gaps(bundle, episodes, headline_tasks(tuple(episodes.values())))
    rows: dict[int, Row] = {}
    # Ordered by episode, so that an input at full precision is resolved once.
    order = sorted(range(len(bundle.rows)), key=lambda place: bundle.rows[place].task_id)
    for number, place in enumerate(order, 1):
        rows[place] = _judged(bundle, place, episodes, edition)
        if progress is not None:
            progress(number, len(order))
    return JudgedBundle(bundle, tuple(rows[place] for place in range(len(order))), _remarks(bundle))


def _refuse_mounts(bundle: Bundle) -> None:
    ours = mount_all([name for name in bundle.manifest.mounts if not arm_of(name).given])
    for name, mounted in bundle.manifest.mounts.items():
        if name in ours and any(
            ours[name].for_domain(domain).digest != digest for domain, digest in mounted.digest.items()
        ):
            expected = ours[name].package_digests()
            differs = [package for package, digest in mounted.packages.items() if expected.get(package) != digest]
            detail = f" ({', '.join(differs)})" if differs else ""
            remedy = "run it without --library" if arm_of(name).library else "name user skills with --skills NAME=DIR"
            raise InputError(
                f"{bundle.path}: the skills mounted under {name} differ from those of this version{detail}; run it "
                f"with this version, or {remedy}"
            )


def _refuse_gaps(bundle: Bundle, episodes: Mapping[str, Episode], wanted: Mapping[str, Sequence[str]]) -> None:
    for row in bundle.rows:
        if row.task_id not in episodes:
            raise InputError(f"{bundle.path}: {row.task_id[:80]!a} is not an episode of this edition")
    if bundle.manifest.partial is not None:
        return
    if failed := next((row for row in bundle.rows if row.status is Status.ERROR), None):
        raise InputError(
            f"{bundle.path}: {failed.task_id} of {failed.model!a} ended in an error, but no reason is given"
        )
    if lacking := first_missing((row.item for row in bundle.rows), wanted):
        raise InputError(
            f"{bundle.path}: {lacking.task_id} of {lacking.model!a} under {lacking.condition} is missing, but no "
            "reason is given"
        )


def _judged(bundle: Bundle, place: int, episodes: Mapping[str, Episode], edition: Edition) -> Row:
    row, answer = bundle.rows[place], bundle.answers[place]
    episode = episodes[row.task_id]
    where = f"{bundle.path}: {row.task_id} of {row.model!a} under {row.condition}, repeat {row.run_idx}"
    known = {
        "domain": episode.skill,
        "sub_task": episode.sub_task,
        "difficulty": episode.difficulty,
        "cluster": cluster_of(episode),
        "as_of_date": episode.as_of_date,
    }
    for name, value in known.items():
        if getattr(row, name) != value:
            raise InputError(f"{where}: {name} is {getattr(row, name)!a}, but {value!s} in the edition")
    try:
        submission = Submission(row.task_id, answer.answer, answer.ended, interactive_record(answer))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {error} in its record; submit the run again") from None
    verdict = judge(submission, edition.truth(row.task_id), edition.full_input(episode), row.condition)
    again = with_verdict(row, verdict, subtask_named(verdict.sub_task).verification.method)
    _refuse_claims(where, row, again)
    return again


def _refuse_claims(where: str, row: Row, again: Row) -> None:
    if row.status is Status.UNJUDGED and again.status is not Status.ERROR:
        return  # run without truth, so that no score is claimed
    if row.status != again.status or row.score_profile != again.score_profile:
        raise InputError(
            f"{where}: claims {row.status} under {row.score_profile or 'no profile'}, but is {again.status} under "
            f"{again.score_profile or 'none'}; judge the run again with finskillbench rescore"
        )
    for profile in Profile:
        claimed, earned = row.scores.get(profile), again.scores.get(profile)
        if claimed is None and earned is None:
            continue
        if claimed is None or earned is None or abs(claimed - earned) > TOLERANCE:
            raise InputError(
                f"{where}: claims {claimed} under {profile}, but its answer earns {earned}; judge the run again with "
                "finskillbench rescore"
            )


def _remarks(bundle: Bundle) -> tuple[str, ...]:
    """Return remarks for readers that are no reason for refusal."""
    remarks: list[str] = []
    versions = sorted({row.code_version for row in bundle.rows})
    if versions != [code_version()]:
        remarks.append(f"run with version {_some(versions)}, judged with {code_version()}")
    if bundle.manifest.prompts_digest != wording_digest():
        remarks.append("its prompts differ from those of this version")
    scorers = sorted({row.scorer_version for row in bundle.rows} - {scorer_version()})
    if scorers:
        remarks.append(f"judged earlier by other scorers ({_some(scorers)})")
    if any((row.commit or "").endswith("-dirty") for row in bundle.rows):
        remarks.append("run with uncommitted changes of the code")
    repeats = sorted({row.run_idx for row in bundle.rows})
    if repeats != list(range(len(repeats))):
        remarks.append(f"only repeats {_some([str(each) for each in repeats])}, counted from 0")
    if loaded := sum(1 for row in bundle.rows if row.condition == Condition.NO_SKILL and row.skills_loaded):
        remarks.append(f"skills were loaded in {loaded} no_skill episodes")
    if not bundle.trajectories:
        remarks.append("without trajectories")
    if bundle.signer is None:
        remarks.append("unsigned")
    return tuple(remarks)


def _some(versions: Sequence[str]) -> str:
    return ", ".join(versions[:3]) + (f" and {len(versions) - 3} more" if len(versions) > 3 else "")

"""What can be built from a raw collection: each domain with its subtasks, or the reason why not.

What changed between two editions, and in which subtasks scores can still be compared.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from finskillbench.domains import domains
from finskillbench.domains.base import Domain
from finskillbench.edition.build import Progress, build_sample
from finskillbench.edition.load import Edition
from finskillbench.edition.store import episode_row
from finskillbench.episode import Episode, Truth
from finskillbench.errors import InputError, SourceError
from finskillbench.panels import Panels, read_panels
from finskillbench.panels.filings.quarters import reports_with_figures
from finskillbench.panels.tables import Half
from finskillbench.scoring.values import is_object
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.doctor import Diagnosis, examine

PARTS = ("input", "prompt", "other fields", "expected output", "verification", "proof")
"""What of an episode can differ; the last three are of its truth."""
_UNSCORED = {"proof"}
"""Parts that change no score: what only says how a label was proved."""
_SHOWN_FIELDS = ("source", "seed", "catalog", "universe", "as_of_dates", "parameters", "versions")


@dataclass(frozen=True, slots=True)
class SubtaskDifference:
    """One subtask: task ids that only one side has, and those that both have but that differ, by part."""

    name: str
    common: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]

    @property
    def same_scores(self) -> bool:
        """Whether a score on one side is a score on the other: the same episodes, judged in the same way."""
        differing = any(tasks for part, tasks in self.changed.items() if part not in _UNSCORED)
        return not (self.only_first or self.only_second or differing)


@dataclass(frozen=True, slots=True)
class EditionDifference:
    """Two editions side by side: fields of the manifests that differ, and every subtask that either has."""

    fields: Mapping[str, tuple[Any, Any]]
    subtasks: tuple[SubtaskDifference, ...]
    compared_truth: bool

    @property
    def same_scores(self) -> bool:
        """Whether scores are comparable throughout; never said of editions whose truths could not be compared."""
        return self.compared_truth and all(each.same_scores for each in self.subtasks)


def compare_editions(
    first: Edition, second: Edition, progress: Callable[[str], None] = lambda step: None
) -> EditionDifference:
    """Compare two editions, episode by episode at full precision.

    What an input refers to (a covariance, returns, facts) is compared by its numbers. Truths are compared where both
    sides have them.

    Raises
    ------
    InputError : both are the same folder.
    EditionError : a file that cannot be read.
    """
    if first.path.resolve() == second.path.resolve():
        raise InputError(f"{first.path} and {second.path} are the same folder; name two editions")
    names = list(dict.fromkeys([*first.sub_tasks, *second.sub_tasks]))
    with_truth = first.has_truth and second.has_truth
    compared: list[SubtaskDifference] = []
    for name in names:
        progress(f"comparing {name}")
        compared.append(_compare_subtask(first, second, name, with_truth))
    fields = {
        field: (first.manifest.get(field), second.manifest.get(field))
        for field in _SHOWN_FIELDS
        if first.manifest.get(field) != second.manifest.get(field)
    }
    return EditionDifference(fields, tuple(compared), with_truth)


def _compare_subtask(first: Edition, second: Edition, name: str, with_truth: bool) -> SubtaskDifference:
    left, right = _episodes(first, name), _episodes(second, name)
    changed: dict[str, list[str]] = {part: [] for part in PARTS}
    for task_id in left.keys() & right.keys():
        before, after = _parts(first, left[task_id]), _parts(second, right[task_id])
        if with_truth:
            before |= _truth_parts(first.truth(task_id))
            after |= _truth_parts(second.truth(task_id))
        for part, value in before.items():
            if value != after[part] and not (part == "input" and _same_input(first, second, value, after[part])):
                changed[part].append(task_id)
    return SubtaskDifference(
        name,
        len(left.keys() & right.keys()),
        tuple(task for task in left if task not in right),
        tuple(task for task in right if task not in left),
        {part: tuple(sorted(tasks)) for part, tasks in changed.items()},
    )


def _episodes(edition: Edition, name: str) -> dict[str, Episode]:
    if name not in edition.sub_tasks:
        return {}
    return {episode.task_id: episode for episode in edition.episodes([name])}


def _parts(edition: Edition, episode: Episode) -> dict[str, Any]:
    row = dict(episode_row(episode))
    prompt, given = row.pop("prompt"), row.pop("input")
    named = {name: _with_digest(edition, value) for name, value in given.items()}
    return {"input": named, "prompt": prompt, "other fields": row}


def _with_digest(edition: Edition, value: Any) -> Any:
    """A reference together with the digest of the file it names, so that equal words about other numbers differ."""
    if is_object(value) and isinstance(value.get("ref"), str):
        return {**value, "digest": edition.manifest["files"].get(value["ref"])}
    return value


def _same_input(first: Edition, second: Edition, left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether inputs of other bytes are the same numbers: a file differs, but not in what is referred to."""
    return left.keys() == right.keys() and all(
        value == right[name] or first.resolved(value) == second.resolved(right[name]) for name, value in left.items()
    )


def _truth_parts(truth: Truth) -> dict[str, Any]:
    return {"expected output": truth.expected_output, "verification": truth.verification, "proof": truth.proof}


_KINDS: Mapping[Half, tuple[formats.Format, ...]] = {"prices": formats.MARKET, "company facts": formats.FILINGS}
_WHOLE: Mapping[Half, formats.Format] = {"prices": formats.PRICES, "company facts": formats.COMPANY_FACTS}
"""The kind of file that an error of a whole half is listed under."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """One domain: its subtasks that a build makes and from how much, or why it makes none."""

    domain: str
    subtasks: tuple[str, ...]
    reason: str
    size: str


@dataclass(slots=True)
class _Report:
    """All that is wrong with a collection, and what can be built of it.

    companies : symbol to form to the number of its reports that episodes can be about.
    unusable : which companies' facts cannot be used, with the reason and the remedy, one sentence each.
    notes : what a build notes of the files, such as a name that another stands in for.
    """

    diagnosis: Diagnosis
    prospects: tuple[Prospect, ...] = ()
    companies: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    unusable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong or missing."""
        return not self.diagnosis.findings

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "raw_dir": str(self.diagnosis.raw_dir),
            "clean": self.clean,
            "files": [
                {
                    "format": one.format.path,
                    "needed_for": one.format.needed,
                    "begins": one.format.header,
                    "count": one.files,
                    "findings": [asdict(finding) for finding in one.found],
                }
                for one in self.diagnosis.examined
            ],
            "notes": self.notes,
            "companies": self.companies,
            "unusable": self.unusable,
            "can_be_built": [asdict(one) for one in self.prospects],
        }


def diagnose(raw_dir: Path, progress: Progress = lambda step: None) -> _Report:
    """Read a collection as far as it can be read, and build one episode of each subtask from each half.

    Raises
    ------
    SourceError : no such folder.
    """
    report = _Report(examine(raw_dir, progress))
    by_needs: dict[tuple[Half, ...], list[Domain]] = {}
    for one in domains():
        by_needs.setdefault(one.needs, []).append(one)
    found = [each for needs, chosen in by_needs.items() for each in _prospects(report, needs, chosen, progress)]
    of_domain = {each.domain: each for each in found}
    report.prospects = tuple(of_domain[one.name] for one in domains())
    return report


def _prospects(
    report: _Report, needs: Collection[Half], chosen: Sequence[Domain], progress: Progress
) -> list[Prospect]:
    """What a build makes of domains that need the same halves; why it makes nothing becomes a finding."""
    diagnosis = report.diagnosis
    absent = next((kind for half in needs if (kind := _absent(diagnosis, half))), "")
    reason = f"there is no {absent}"
    if not absent:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                edition = build_sample(diagnosis.raw_dir, chosen, Path(scratch) / "edition", progress)
            except SourceError as error:
                found = diagnosis.add(error, _WHOLE[next(iter(needs))])
                reason = f"{found.where}: {found.message}"
            else:
                return _built(report, needs, chosen, edition)
    return [Prospect(one.name, (), reason, "") for one in chosen]


def _built(report: _Report, needs: Collection[Half], chosen: Sequence[Domain], edition: Edition) -> list[Prospect]:
    """The domains of which there is an edition, whose notes and companies go into the report."""
    panels = read_panels(edition.path / "panels")
    unusable = panels.report.unusable
    told = [note for note in edition.manifest["notes"] if note not in unusable]
    report.notes = tuple(dict.fromkeys((*report.notes, *told)))
    if "company facts" in needs:
        report.companies, report.unusable = _reports(panels), unusable
    sizes: Mapping[Half, str] = {
        "prices": f"{len(panels.symbols)} names, {len(panels.covariance)} dates",
        "company facts": f"{sum(sum(of.values()) for of in report.companies.values())} reports",
    }
    size = ", ".join(sizes[half] for half in needs)
    built = edition.manifest["counts"]
    return [
        Prospect(one.name, tuple(each.name for each in one.subtasks if each.name in built), "", size) for one in chosen
    ]


def _reports(panels: Panels) -> dict[str, dict[str, int]]:
    """Symbol to form to the number of reports that episodes can be about."""
    counts = reports_with_figures(panels.filings, panels.facts).group_by("symbol", "form").len()
    found: dict[str, dict[str, int]] = {}
    for symbol, form, count in counts.sort("symbol", "form").iter_rows():
        found.setdefault(symbol, {})[form] = count
    return found


def _absent(diagnosis: Diagnosis, half: Half) -> str:
    """The first kind of file that a half needs and of which there is none."""
    return next((one.path for one in _KINDS[half] if one.required and not diagnosis.of(one).files), "")

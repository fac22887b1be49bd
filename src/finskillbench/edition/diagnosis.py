"""Diagnosis of a raw collection (buildable subtasks, reasons for gaps) and comparison of two editions."""

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
from finskillbench.panels.tables import DataKind
from finskillbench.scoring.values import is_object
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.doctor import Diagnosis, diagnose_raw_files

PARTS = ("input", "prompt", "other fields", "expected output", "verification", "proof")
"""Parts of an episode that can differ; the last three belong to its truth."""
_UNSCORED = {"proof"}
_SHOWN_FIELDS = ("source", "seed", "catalog", "universe", "as_of_dates", "parameters", "versions")


@dataclass(frozen=True, slots=True)
class SubtaskDifference:
    """Differences in one subtask: task ids on one side only, and common task ids that differ, by part."""

    name: str
    common: int
    only_first: tuple[str, ...]
    only_other: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]

    @property
    def same_scores(self) -> bool:
        differing = any(tasks for part, tasks in self.changed.items() if part not in _UNSCORED)
        return not (self.only_first or self.only_other or differing)


@dataclass(frozen=True, slots=True)
class EditionDifference:
    """Differences of two editions: manifest fields and every subtask of either."""

    fields: Mapping[str, tuple[Any, Any]]
    subtasks: tuple[SubtaskDifference, ...]
    compared_truth: bool

    @property
    def same_scores(self) -> bool:
        """True if scores are comparable throughout; False if truths could not be compared."""
        return self.compared_truth and all(each.same_scores for each in self.subtasks)


def compare_editions(
    first: Edition, other: Edition, progress: Callable[[str], None] = lambda step: None
) -> EditionDifference:
    """Compare two editions, episode by episode at full precision.

    References in an input (covariance, returns, facts) are compared by their numbers. Truths are compared if both
    sides have them.

    Raises
    ------
    InputError : both are the same folder.
    EditionError : a file that cannot be read.
    """
    if first.path.resolve() == other.path.resolve():
        raise InputError(f"{first.path} and {other.path} are the same folder; name two editions")
    names = list(dict.fromkeys([*first.sub_tasks, *other.sub_tasks]))
    with_truth = first.has_truth and other.has_truth
    compared: list[SubtaskDifference] = []
    for name in names:
        progress(f"comparing {name}")
        compared.append(_compare_subtask(first, other, name, with_truth))
    fields = {
        field: (first.manifest.get(field), other.manifest.get(field))
        for field in _SHOWN_FIELDS
        if first.manifest.get(field) != other.manifest.get(field)
    }
    return EditionDifference(fields, tuple(compared), with_truth)


def _compare_subtask(first: Edition, other: Edition, name: str, with_truth: bool) -> SubtaskDifference:
    left, right = _episodes(first, name), _episodes(other, name)
    changed: dict[str, list[str]] = {part: [] for part in PARTS}
    for task_id in left.keys() & right.keys():
        before, after = _parts(first, left[task_id]), _parts(other, right[task_id])
        if with_truth:
            before |= _truth_parts(first.truth(task_id))
            after |= _truth_parts(other.truth(task_id))
        for part, value in before.items():
            if value != after[part] and not (part == "input" and _same_input(first, other, value, after[part])):
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
    prompt, task_input = row.pop("prompt"), row.pop("input")
    named = {name: _with_digest(edition, value) for name, value in task_input.items()}
    return {"input": named, "prompt": prompt, "other fields": row}


def _with_digest(edition: Edition, value: Any) -> Any:
    """Add the file's digest to a reference, so that equal references to different numbers differ."""
    if is_object(value) and isinstance(value.get("ref"), str):
        return {**value, "digest": edition.manifest["files"].get(value["ref"])}
    return value


def _same_input(first: Edition, other: Edition, left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Return True if two inputs resolve to the same numbers, even if the files around them differ."""
    return left.keys() == right.keys() and all(
        value == right[name] or first.resolved(value) == other.resolved(right[name]) for name, value in left.items()
    )


def _truth_parts(truth: Truth) -> dict[str, Any]:
    return {"expected output": truth.expected_output, "verification": truth.verification, "proof": truth.proof}


_KINDS: Mapping[DataKind, tuple[formats.RawFormat, ...]] = {"prices": formats.MARKET, "company facts": formats.FILINGS}
_WHOLE: Mapping[DataKind, formats.RawFormat] = {"prices": formats.PRICES, "company facts": formats.COMPANY_FACTS}
"""The kind of file under which an error of a whole half is listed."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """Build prospects of one domain: its buildable subtasks with their size, or the reason why there are none."""

    domain: str
    subtasks: tuple[str, ...]
    reason: str
    size: str


@dataclass(slots=True)
class _Report:
    """Problems of a collection and the subtasks that it supports.

    `companies` maps symbol to form to number of usable reports; `unusable` gives reason and remedy per company.
    """

    diagnosis: Diagnosis
    prospects: tuple[Prospect, ...] = ()
    companies: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    unusable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.diagnosis.findings

    def to_json(self) -> dict[str, Any]:
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
    """Examine a collection, and build one episode of each subtask from each half.

    Raises `SourceError` if there is no such folder.
    """
    report = _Report(diagnose_raw_files(raw_dir, progress))
    by_needs: dict[tuple[DataKind, ...], list[Domain]] = {}
    for one in domains():
        by_needs.setdefault(one.needs, []).append(one)
    found = [each for needs, chosen in by_needs.items() for each in _prospects(report, needs, chosen, progress)]
    of_domain = {each.domain: each for each in found}
    report.prospects = tuple(of_domain[one.name] for one in domains())
    return report


def _prospects(
    report: _Report, needs: Collection[DataKind], chosen: Sequence[Domain], progress: Progress
) -> list[Prospect]:
    """Try a build of domains with the same needs; a failure becomes a finding."""
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


def _built(report: _Report, needs: Collection[DataKind], chosen: Sequence[Domain], edition: Edition) -> list[Prospect]:
    panels = read_panels(edition.path / "panels")
    unusable = panels.report.unusable
    build_notes = [message for message in edition.manifest["notes"] if message not in unusable]
    report.notes = tuple(dict.fromkeys((*report.notes, *build_notes)))
    if "company facts" in needs:
        report.companies, report.unusable = _reports(panels), unusable
    sizes: Mapping[DataKind, str] = {
        "prices": f"{len(panels.symbols)} names, {len(panels.covariance)} dates",
        "company facts": f"{sum(sum(of.values()) for of in report.companies.values())} reports",
    }
    size = ", ".join(sizes[half] for half in needs)
    built = edition.manifest["counts"]
    return [
        Prospect(one.name, tuple(each.name for each in one.subtasks if each.name in built), "", size) for one in chosen
    ]


def _reports(panels: Panels) -> dict[str, dict[str, int]]:
    counts = reports_with_figures(panels.filings, panels.facts).group_by("symbol", "form").len()
    found: dict[str, dict[str, int]] = {}
    for symbol, form, count in counts.sort("symbol", "form").iter_rows():
        found.setdefault(symbol, {})[form] = count
    return found


def _absent(diagnosis: Diagnosis, half: DataKind) -> str:
    return next((one.path for one in _KINDS[half] if one.required and not diagnosis.of(one).files), "")

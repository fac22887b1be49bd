"""What can be built from a raw collection: each domain with its subtasks, or the reason why not."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from finskillbench.domains import domains
from finskillbench.domains.base import Domain
from finskillbench.edition.build import Progress, build_sample
from finskillbench.edition.load import Edition
from finskillbench.errors import SourceError
from finskillbench.panels import Panels, read_panels
from finskillbench.panels.filings.quarters import reports_with_figures
from finskillbench.panels.tables import Half
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.doctor import Diagnosis, examine

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
class Report:
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


def diagnose(raw_dir: Path, progress: Progress = lambda step: None) -> Report:
    """Read a collection as far as it can be read, and build one episode of each subtask from each half.

    Raises
    ------
    SourceError : no such folder.
    """
    report = Report(examine(raw_dir, progress))
    by_needs: dict[tuple[Half, ...], list[Domain]] = {}
    for one in domains():
        by_needs.setdefault(one.needs, []).append(one)
    found = [each for needs, chosen in by_needs.items() for each in _prospects(report, needs, chosen, progress)]
    of_domain = {each.domain: each for each in found}
    report.prospects = tuple(of_domain[one.name] for one in domains())
    return report


def _prospects(report: Report, needs: Collection[Half], chosen: Sequence[Domain], progress: Progress) -> list[Prospect]:
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


def _built(report: Report, needs: Collection[Half], chosen: Sequence[Domain], edition: Edition) -> list[Prospect]:
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

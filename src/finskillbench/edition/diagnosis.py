"""What can be built from a raw collection: each domain with its subtasks, or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from finskillbench.domains import domains
from finskillbench.edition.build import Progress, refuse_small
from finskillbench.errors import SourceError
from finskillbench.findings import Finding, State
from finskillbench.panels import Panels, build_panels
from finskillbench.panels.tables import Half
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.market.collection import MarketData
from finskillbench.sources.raw import formats
from finskillbench.sources.raw.doctor import Diagnosis, examine


@dataclass(frozen=True, slots=True)
class Prospect:
    """One domain: its subtasks that a build makes and from how much, or why it makes none."""

    domain: str
    subtasks: tuple[str, ...]
    reason: str
    size: str


@dataclass(frozen=True, slots=True)
class Report:
    """All that is wrong with a collection, and what can be built of it."""

    diagnosis: Diagnosis
    prospects: tuple[Prospect, ...]

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
            "notes": self.diagnosis.notes,
            "can_be_built": [asdict(one) for one in self.prospects],
        }


def diagnose(raw_dir: Path, progress: Progress = lambda step: None) -> Report:
    """Read a collection as far as it can be read and say what a build would make of it.

    Raises
    ------
    SourceError : no such folder.
    """
    diagnosis = examine(raw_dir, progress)
    progress("building panels")
    market = _panels(diagnosis, formats.PRICES, diagnosis.market, None)
    filings = _panels(diagnosis, formats.COMPANY_FACTS, None, diagnosis.filings)
    return Report(diagnosis, _prospects(diagnosis, market, filings))


def _panels(
    diagnosis: Diagnosis, kind: formats.Format, market: MarketData | None, filings: FilingsData | None
) -> Panels | None:
    """The panels of one half, None where it could not be read or carries none, which becomes a finding."""
    if market is None and filings is None:
        return None
    try:
        if market is not None:
            refuse_small(market, diagnosis.raw_dir)
        return build_panels(market, filings)
    except SourceError as error:
        where = str(error.file).removeprefix(f"{diagnosis.raw_dir}/")
        diagnosis.of(kind).found.append(Finding(State.FAIL, where, error.told))
        return None


def _prospects(diagnosis: Diagnosis, market: Panels | None, filings: Panels | None) -> tuple[Prospect, ...]:
    reports = 0 if filings is None else filings.filings.height
    lacking: Mapping[Half, str] = {
        "prices": "" if market is not None else _why(diagnosis, formats.MARKET),
        "company facts": "" if reports else _why(diagnosis, formats.FILINGS),
    }
    sizes: Mapping[Half, str] = {
        "prices": "" if market is None else f"{len(market.symbols)} names, {len(market.covariance)} dates",
        "company facts": f"{reports} reports",
    }
    found: list[Prospect] = []
    for domain in domains():
        reason = next((lacking[half] for half in domain.needs if lacking[half]), "")
        names = (
            ()
            if reason
            else tuple(one.name for one in domain.subtasks if one.build is not None and not one.synthetic_only)
        )
        found.append(
            Prospect(domain.name, names, reason, "" if reason else ", ".join(sizes[half] for half in domain.needs))
        )
    return tuple(found)


def _why(diagnosis: Diagnosis, half: tuple[formats.Format, ...]) -> str:
    """Why a half cannot be built from: files that are not there, else the first finding and how many there are."""
    absent = [one.path for one in half if one.required and not diagnosis.of(one).files]
    if absent:
        return f"there is no {absent[0]}"
    of_it = [diagnosis.of(one) for one in (formats.UNIVERSE, formats.CONSTITUENTS, *half)]
    found = [finding for one in of_it for finding in one.found if finding.state is State.FAIL]
    if not found:
        return "no list of the collection names the ticker of a company whose facts there are, or they are of no report"
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{first.where}: {first.message}{more}"

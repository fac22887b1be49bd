"""Where the numbers come from: runs, editions and what is proved of their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from finskillbench.analysis.results import distinct
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.checks.report import CheckReport, Level
from finskillbench.edition.store import MANIFEST
from finskillbench.errors import FinSkillBenchError
from finskillbench.findings import State
from finskillbench.reports.page.view import View
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table


@dataclass(frozen=True, slots=True)
class Lineage:
    """Facts by name, tables, and notes."""

    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]


def editions_of(runs: Sequence[RunRows]) -> dict[str, Edition | str]:
    """The editions behind some runs by digest, each read once, or why it cannot be had."""
    found: dict[str, Edition | str] = {}
    for run in runs:
        if run.record is not None and run.record.edition_digest not in found:
            found[run.record.edition_digest] = _opened(Path(run.record.edition_path), run.record.edition_digest)
    return found


def _opened(folder: Path, digest: str) -> Edition | str:
    if not (folder / MANIFEST).is_file():
        return "the edition of the run is no longer where it was"
    try:
        edition = load_edition(folder)
    except FinSkillBenchError as error:
        return f"the edition of the run cannot be read ({error})"
    return edition if edition.digest == digest else "the edition of the run was replaced by another"


def lineage_of(
    view: View,
    runs: Sequence[RunRows],
    editions: dict[str, Edition | str],
    validation: CheckReport | None = None,
    audit: CheckReport | None = None,
) -> Lineage:
    """What a reviewer asks first, as far as it is known."""
    rows = view.rows
    facts = [("Profile", view.results.profile.value), ("Rows", f"{rows.height:,}")]
    for column, name in {
        "code_version": "Version of the program",
        "commit": "Commit of the code",
        "scorer_version": "Scorers",
        "edition": "Edition (SHA-256)",
        "harness": "Harness",
    }.items():
        if column in rows.columns:
            values = [str(each) for each in distinct(rows, column) if each]
            facts.append((name, ", ".join(values) or "not known"))
    for run in runs:
        if run.record is not None:
            facts.append(("Prompts (SHA-256)", run.record.prompts_digest))
            for name, mount in run.record.mounts.items():
                facts.append((f"Mount of {name} (SHA-256)", ", ".join(dict.fromkeys(mount["digest"].values()))))
    tables, notes = list[Table](), list[str]()
    for digest, edition in editions.items():
        if isinstance(edition, str):
            notes.append(f"Edition {digest[:12]}: {edition}.")
            continue
        facts += _facts(edition)
        tables.append(_labels(edition))
        notes += edition.manifest["notes"]
    tables += [_checks(each) for each in (validation, audit) if each is not None]
    if validation is None:
        notes.append(
            "Whether every label derives again is not known here: finskillbench data validate EDITION says it."
        )
    if audit is None:
        notes.append("What an outside examiner would find is not known here: finskillbench audit EDITION says it.")
    return Lineage(tuple(dict.fromkeys(facts)), tuple(tables), tuple(notes))


def _facts(edition: Edition) -> list[tuple[str, str]]:
    manifest = edition.manifest
    days = sorted(manifest["as_of_dates"])
    seed = manifest["seed"]
    return [
        ("Source of the edition", manifest["source"]["kind"]),
        ("Seed", "none" if seed is None else str(seed)),
        ("Companies", str(len(manifest["universe"]))),
        ("Market dates", f"{len(days)}, {days[0]} to {days[-1]}" if days else "none"),
        ("Files under digests", f"{len(manifest['files'])}, each found as the manifest says"),
        ("Built with", ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())),
    ]


def _labels(edition: Edition) -> Table:
    """How many labels of each subtask are proved in which way; "stated" are those whose truth says no proof."""
    columns = (
        Column("sub_task", "Subtask"),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("proofs", "Proofs of its labels"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, count in edition.manifest["counts"].items():
        kinds = Counter[str]()
        if edition.has_truth:
            kinds.update(
                str(edition.truth(each.task_id).proof.get("kind", "stated")) for each in edition.episodes([name])
            )
        rows.append((name, count, ", ".join(f"{kind} {number:,}" for kind, number in kinds.most_common()) or None))
    notes = () if edition.has_truth else ("The edition was handed out without its truth: proofs are not known.",)
    return Table("labels", "Labels of the edition", columns, tuple(rows), notes)


def _checks(report: CheckReport) -> Table:
    columns = (
        Column("check", "Check"),
        Column("domain", "Domain"),
        Column("state", "State"),
        Column("findings", "Findings", Kind.COUNT),
        Column("warnings", "Warnings", Kind.COUNT),
    )
    rows = tuple(
        (
            check.name,
            check.domain,
            check.state.value,
            sum(each.state is State.FAIL for each in check.findings),
            sum(each.state is State.WARN for each in check.findings),
        )
        for check in report.checks
    )
    name = "audit" if Level.AUDIT in report.levels else "validation"
    return Table(name, f"What the {name} of edition {report.digest[:12]} found", columns, rows)

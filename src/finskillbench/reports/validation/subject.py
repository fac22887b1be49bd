"""What is validated: the models and how they were called, the episodes, and where all of it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import polars as pl

from finskillbench.analysis.results import Results, distinct
from finskillbench.audit.report import AuditReport
from finskillbench.edition import Edition
from finskillbench.edition.validation.report import ValidationReport
from finskillbench.findings import Check
from finskillbench.reports.page.lineage import editions_of, lineage_of
from finskillbench.reports.page.view import view_of
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.validation.chapters import Chapter, facts_table, present

_MOST_FINDINGS = 25


def reference_of(rows: pl.DataFrame) -> str:
    """What the evidence is known by: the first 16 digits of the SHA-256 over its rows, in whatever order they come."""
    known = "digest" if "digest" in rows.columns and not rows["digest"].has_nulls() else None
    lines = rows["digest"].to_list() if known else [str(row) for row in rows.iter_rows()]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16]


def scope_chapter(results: Results) -> Chapter:
    """Purpose, scope and the inventory of what was run."""
    return Chapter(
        "scope",
        "Purpose and scope",
        (
            "This pack gathers the evidence of a benchmark run for an independent validation of the models named "
            "below, in the words of SR 11-7 (Federal Reserve and OCC, 2011) and SS1/23 (PRA, 2023). It is "
            "evidence for a validation and not the validation: the opinion, the intended use and the materiality "
            "are the signatory's.",
            "A model here is an AI agent: a language model with its arguments, in a loop that gives it point-in-time "
            "data, tools and, under some conditions, skills (written procedures and tested scripts). It is asked to do "
            "an investment manager's work and submits one JSON answer, which is judged against a proved label. What is "
            "measured is analytical correctness, not investment performance and not advice.",
        ),
        tables=present(_inventory(results), _episodes(results)),
    )


def _inventory(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (model, harness), each in results.rows.group_by("model", "harness", maintain_order=True):
        repeats = each.group_by("condition", "episode").len()["len"]
        rows.append(
            (
                str(model),
                str(harness),
                _told(each, "provider"),
                _told(each, "arguments"),
                ", ".join(distinct(each, "condition")),
                each.height,
                repeats.sort()[-1],
                _days(each),
            )
        )
    columns = (
        Column("model", "Model"),
        Column("harness", "Harness"),
        Column("provider", "Provider"),
        Column("arguments", "Arguments"),
        Column("conditions", "Conditions"),
        Column("rows", "Rows", Kind.COUNT),
        Column("repeats", "Most repeats", Kind.COUNT),
        Column("days", "Run on"),
    )
    note = "Models called baseline/... are programs: floors and a ceiling, under no validation themselves."
    return Table("inventory", "Models and how they were called", columns, tuple(rows), (note,))


def _told(rows: pl.DataFrame, column: str) -> str | None:
    values = rows[column].drop_nulls().unique().sort().to_list() if column in rows.columns else []
    return ", ".join(map(str, values)) or None


def _days(rows: pl.DataFrame) -> str | None:
    days = rows["ended"].drop_nulls().dt.date().unique().sort() if "ended" in rows.columns else pl.Series()
    return None if not days.len() else " to ".join(dict.fromkeys((str(days[0]), str(days[-1]))))


def _episodes(results: Results) -> Table:
    rows = tuple(
        (
            each["domain"][0],
            str(name),
            each["episode"].n_unique(),
            each["cluster"].n_unique(),
            ", ".join(f"{level} {count}" for level, count in _levels(each)),
            "yes" if each["headline"][0] else "no",
        )
        for (name,), each in results.rows.group_by("sub_task", maintain_order=True)
    )
    columns = (
        Column("domain", "Domain"),
        Column("sub_task", "Subtask"),
        Column("episodes", "Episodes", Kind.COUNT),
        Column("clusters", "Clusters", Kind.COUNT),
        Column("difficulty", "By difficulty"),
        Column("headline", "In the headline"),
    )
    note = "A cluster is what episodes share: a market date, a mandate, a company. Intervals count it once."
    return Table("episodes", "What was asked", columns, rows, (note,))


def _levels(rows: pl.DataFrame) -> Iterator[tuple[str, int]]:
    for name in distinct(rows, "difficulty"):
        yield name, rows.filter(pl.col("difficulty") == name)["episode"].n_unique()


def _seal(runs: Sequence[RunRows]) -> str:
    open_to_doubt = [str(run.path) for run in runs if not run.sealed]
    if not open_to_doubt:
        return "Rows that were altered after they were written are refused when this pack is made."
    return (
        f"But the rows of {', '.join(open_to_doubt)} have none: whether they were altered after they were written "
        "cannot be told."
    )


def lineage_chapters(
    results: Results, runs: Sequence[RunRows], checks: ValidationReport | None, audit: AuditReport | None
) -> tuple[Chapter, Chapter, Chapter]:
    """Data lineage; proofs and audit of the labels; and, for the appendix, every digest."""
    editions = editions_of(runs)
    told = lineage_of(view_of(results), runs, editions)
    lineage = Chapter(
        "lineage",
        "Data lineage and digests",
        (
            "Every edition is immutable and known by the SHA-256 of its files; every row names its edition, the "
            "mount of its condition, the scorers and the code, and carries a digest over all that decides a "
            "table. " + _seal(runs),
        ),
        tables=(facts_table("lineage", "Where the numbers come from", told.facts),),
    )
    proofs = Chapter(
        "proofs",
        "Soundness of the labels: proofs and audit",
        (
            "An optimum comes with a lower bound that no portfolio can beat, an infeasible mandate with a checked "
            "Farkas ray, a unique answer with a proof of it; what needs no optimiser is derived twice by code "
            "that shares nothing. Validation rechecks every label from the stored numbers; the audit asks what an "
            "outside examiner would: whether each truth can be reached from what an agent sees, and whether "
            "cheating pays.",
            _in_words("Validation", checks, "finskillbench data validate EDITION --json, given by --checks"),
            _in_words("Audit", audit, "finskillbench audit EDITION --json FILE, given by --audit"),
        ),
        tables=present(*told.tables, *(_checked(each) for each in (checks, audit)), _findings(checks, audit)),
    )
    digests = Chapter("digests", "Appendix: digests and notes of the build", tables=present(*_digests(runs, editions)))
    return lineage, proofs, digests


def _in_words(what: str, report: ValidationReport | AuditReport | None, how: str) -> str:
    if report is None:
        return f"{what}: not run for this pack ({how})."
    failed = sum(check.state == "FAIL" for check in report.checks)
    warned = sum(check.state == "WARN" for check in report.checks)
    skipped = sum(check.state == "SKIP" for check in report.checks)
    told = f"{failed} of {len(report.checks)} checks failed" if failed else f"no check of {len(report.checks)} failed"
    return f"{what} of edition {report.digest[:12]}: {told}; {warned} with warnings, {skipped} skipped."


def _checked(report: ValidationReport | AuditReport | None) -> Table | None:
    if report is None:
        return None
    what = "audit" if isinstance(report, AuditReport) else "validation"
    rows = tuple(
        (each.domain, each.name, each.state.value, len(each.findings), _figures(each)) for each in report.checks
    )
    columns = (
        Column("domain", "Domain"),
        Column("check", "Check"),
        Column("state", "State"),
        Column("findings", "Findings and warnings", Kind.COUNT),
        Column("figures", "Figures"),
    )
    return Table(what, f"Checks of the {what}", columns, rows)


def _figures(check: Check) -> str | None:
    plain = {name: value for name, value in check.figures.items() if isinstance(value, (int, float, str))}
    told = [f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()]
    return check.reason or ", ".join(told) or None


def _findings(*reports: ValidationReport | AuditReport | None) -> Table | None:
    found = [(check.name, each) for report in reports if report for check in report.checks for each in check.findings]
    found.sort(key=lambda each: each[1].state != "FAIL")
    rows = tuple(
        (each.state.value, name, each.where, each.field or None, each.message) for name, each in found[:_MOST_FINDINGS]
    )
    columns = (
        Column("state", "Severity"),
        Column("check", "Check"),
        Column("where", "Where"),
        Column("field", "Field"),
        Column("evidence", "Evidence"),
    )
    left = len(found) - len(rows)
    notes = (f"And {left} more; the JSON of validation and audit has all.",) if left else ()
    return Table("findings", "Findings and warnings, the gravest first", columns, rows, notes)


def _digests(runs: Sequence[RunRows], editions: dict[str, Edition | str]) -> Iterator[Table]:
    for run in runs:
        if run.record is None:
            continue
        record = run.record
        facts = [("Prompts", record.prompts_digest), ("Scorers", record.scorer_version)]
        for name, mount in record.mounts.items():
            facts.append((f"Mount of {name}", str(mount["digest"])))
            facts += [(f"{name}: package {package}", str(digest)) for package, digest in mount["packages"].items()]
        facts += [(f"Version of {name}", version) for name, version in record.versions.items()]
        facts += [
            (f"Guard of scripts: {name}", "held" if held else "not held") for name, held in record.sandbox.items()
        ]
        facts += [(f"Interpreter of {name}", who) for name, who in record.interpreters.items()]
        yield facts_table("run", f"Run {run.path.name}", facts)
    for digest, edition in editions.items():
        if not isinstance(edition, str):
            files = ((name, str(each)) for name, each in edition.manifest["files"].items())
            noted = tuple((note,) for note in edition.manifest["notes"])
            yield Table("noted", f"Noted when edition {digest[:12]} was built", (Column("note", "Note"),), noted)
            yield facts_table("files", f"Files of edition {digest[:12]} (SHA-256)", files)

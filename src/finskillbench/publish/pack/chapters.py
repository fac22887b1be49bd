"""Chapters of a pack before rendering; those on criteria, on the soundness of the labels and on failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from finskillbench.analysis.results import Results, distinct_values, entries_of, frame_of_names
from finskillbench.domains import domains
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import WHOLE, CheckReport, checks_of, names_of_audits
from finskillbench.errors import FinSkillBenchError
from finskillbench.findings import Check, CheckState
from finskillbench.harness.models import labels
from finskillbench.reports.compare.gates import OF_ROWS, ThresholdMeasure, ThresholdResult
from finskillbench.reports.read import RunRows
from finskillbench.reports.tables.base import Cell, Column, Kind, Table, columns_of
from finskillbench.reports.tables.common import hosted_models, table_from_frame
from finskillbench.reports.tables.episodes.endings import failures_table, incidents_table, status_table
from finskillbench.runs.postprocess.failures import failures_of

MOST_ROWS = 15
"""Maximum rows of a table in the body; the appendix has longer ones in full."""


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: paragraphs, points of a list, tables, and tables for the appendix."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    appendix: tuple[Table, ...] = ()

    def shortened(self) -> Chapter:
        """Return the chapter with long tables cut in the body and complete in the appendix."""
        long = tuple(table for table in self.tables if len(table.rows) > MOST_ROWS)
        return replace(self, tables=tuple(map(_cut, self.tables)), appendix=(*long, *self.appendix))


def _cut(table: Table) -> Table:
    if len(table.rows) <= MOST_ROWS:
        return table
    footnote = f"The first {MOST_ROWS} of {len(table.rows)} rows; the appendix has all."
    return replace(table, rows=table.rows[:MOST_ROWS], notes=(*table.notes, footnote))


def facts_table(name: str, title: str, facts: Iterable[tuple[str, str]]) -> Table:
    """Return facts as a table of name and value."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(facts)
    return Table(name, title, (Column("fact", "Item"), Column("value", "Value")), rows)


def captioned(table: Table | None, title: str, population: str, *notes: str) -> tuple[Table, ...]:
    """Return a table under a title with population and unit as the first note; nothing for an empty one."""
    if table is None or not table.rows:
        return ()
    return (replace(table, title=title, notes=(f"Population: {population}.", *notes)),)


_NAMES = {
    ThresholdMeasure.MEAN: "Mean score, at least",
    ThresholdMeasure.LOWER_BOUND: "Lower 95 % bound of the mean score, at least",
    ThresholdMeasure.COVERAGE: "Share of rows with a verdict, at least",
    ThresholdMeasure.INCIDENTS: "Share of rows with an incident, at most",
}


def criteria_chapter(judged: Sequence[ThresholdResult] | None) -> Chapter:
    """Return acceptance criteria with their outcomes; None if none were supplied."""
    if judged is None:
        paragraph = (
            "No acceptance criteria were supplied (--criteria FILE). This pack states no pass or fail of the models."
        )
        return Chapter("criteria", "Acceptance criteria", (paragraph,))
    paragraph = (
        f"{criteria_met(judged)} The firm supplied the criteria. A criterion on a mean or its bound is met only if "
        "it would also be met had every episode without a verdict scored 0. A value that cannot be computed fails."
    )
    rows = tuple(
        (
            each.threshold.part,
            each.model,
            each.condition,
            _NAMES[each.threshold.measure],
            each.threshold.limit,
            each.value,
            "PASS" if each.outcome.holds else "FAIL",
            _remark(each),
        )
        for each in judged
    )
    columns = (
        *columns_of(Kind.TEXT, part="Part", model="Model", condition="Condition", measure="Measure"),
        *columns_of(Kind.NUMBER, digits=4, limit="Limit", value="Measured"),
        *columns_of(Kind.TEXT, outcome="Outcome", remark="Remark"),
    )
    population = "episodes (means, bounds) or rows (shares) of the part, model and condition; unit: fraction, 0 to 1"
    table = Table("criteria", "", columns, rows)
    tables = captioned(table, "Criteria and outcomes", population)
    return Chapter("criteria", "Acceptance criteria", (paragraph,), tables=tables)


def criteria_met(judged: Sequence[ThresholdResult] | None) -> str:
    """Return a sentence with the number of criteria that are met."""
    if judged is None:
        return "None supplied."
    met = sum(each.outcome.holds for each in judged)
    return f"{'PASS' if met == len(judged) else 'FAIL'}: {met} of {len(judged)} criteria are met."


def _remark(judged: ThresholdResult) -> str:
    """Return the reason of a failure that the measured value does not show."""
    if judged.value is not None and judged.threshold.measure in OF_ROWS:
        return ""
    shown = judged.value is not None and judged.value < judged.threshold.limit
    return "" if judged.outcome.holds or shown else judged.outcome.reason


_PROOFS = (
    "Optimal: a bound proves the optimum. Infeasible: a certificate proves that no answer exists. Rederived: derived "
    "twice by independent code. Composed: known by construction. Feasible: a portfolio within all limits is known."
)

_SKIPPED = "Not run includes skipped. A check that is run for several domains counts once, by its gravest state."


_GRAVITY = (CheckState.SKIP, CheckState.PASS, CheckState.WARN, CheckState.FAIL)


@dataclass(frozen=True, slots=True)
class EditionReport:
    """A validation or audit of the edition: applicable checks by name, and the report of those that were run."""

    name: str
    command: str
    expected: tuple[str, ...]
    supplied: CheckReport | None

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return the checks that were run, without skipped ones."""
        supplied = self.supplied.checks if self.supplied else ()
        return tuple(check for check in supplied if check.state is not CheckState.SKIP)

    @property
    def left_out(self) -> list[str]:
        """Return the names of checks that were not run."""
        run = {name for check in self.checks for name in (check.name, f"{check.domain}/{check.name}")}
        return [name for name in self.expected if name not in run]

    def count(self, state: CheckState) -> int:
        """Count applicable checks whose gravest state over their domains is `state`."""
        found: dict[str, CheckState] = {}
        for check in self.checks:
            name = check.name if check.name in self.expected else f"{check.domain}/{check.name}"
            found[name] = max(found.get(name, check.state), check.state, key=_GRAVITY.index)
        return sum(each is state for each in found.values())

    def __str__(self) -> str:
        left, number = self.left_out, len(self.expected)
        if self.supplied is None:
            return f"{self.name}: not run for this pack ({self.command}); {number} checks apply."
        names = f" Not run: {', '.join(left)}." if left else ""
        digest, failed = self.supplied.digest[:12], self.count(CheckState.FAIL)
        return f"{self.name} of edition {digest}: {number - len(left)} of {number} checks run, {failed} failed.{names}"


def reports_on(
    results: Results, editions: Mapping[str, Edition | str], checks: CheckReport | None, audit: CheckReport | None
) -> tuple[EditionReport, EditionReport]:
    """Compare validation and audit with the checks that apply to the editions, or else to the rows' domains."""
    known = [edition for edition in editions.values() if isinstance(edition, Edition)]
    there = [one.skill for edition in known for one in edition.episodes()] or distinct_values(results.rows, "domain")
    domain_checks = [f"{one.name}/{name}" for one in domains() if one.name in set(there) for name in checks_of(one)]
    return (
        EditionReport(
            "Validation",
            "finskillbench data validate EDITION --json, supplied by --checks",
            (*domain_checks, f"{WHOLE}/labels"),
            checks,
        ),
        EditionReport(
            "Audit", "finskillbench audit EDITION --json FILE, supplied by --audit", names_of_audits(there), audit
        ),
    )


def soundness_chapter(reports: Sequence[EditionReport], labels: Iterable[Table]) -> Chapter:
    """Return proofs of labels by edition, the states of checks, and their gravest findings."""
    paragraphs = (
        "Each label is proved, derived twice by independent code, or known by construction. Validation rechecks every "
        "label from the stored data. The audit tests whether each label follows from what an agent can see, and "
        "whether shortcuts earn credit.",
        *map(str, reports),
    )
    tables = [
        *captioned(
            _states(reports), "Checks run and not run", "checks that apply to the edition; unit: checks", _SKIPPED
        ),
        *(
            one
            for table in labels
            for one in captioned(table, "Proofs of labels", "episodes of the edition; unit: labels", _PROOFS)
        ),
        *captioned(_gravest(reports), "Checks with findings or warnings", "checks run; unit: findings and warnings"),
    ]
    appendix = tuple(
        one
        for each in reports
        for one in captioned(_checked(each), f"{each.name}: checks supplied", "checks supplied; unit: as named")
    )
    return Chapter("proofs", "Soundness of the labels", paragraphs, tables=tuple(tables), appendix=appendix)


def _states(reports: Sequence[EditionReport]) -> Table:
    states = {CheckState.PASS: "Passed", CheckState.WARN: "With warnings", CheckState.FAIL: "Failed"}
    rows = tuple(
        (
            each.name,
            len(each.expected),
            len(each.expected) - len(each.left_out),
            len(each.left_out),
            *map(each.count, states),
        )
        for each in reports
    )
    columns = (
        Column("report", "Report"),
        *columns_of(Kind.COUNT, applicable="Applicable", run="Run", not_run="Not run"),
        *(Column(state.value.lower(), title, Kind.COUNT) for state, title in states.items()),
    )
    return Table("states", "", columns, rows)


def _checked(report: EditionReport) -> Table | None:
    checks = report.supplied.checks if report.supplied else ()
    rows = tuple((each.domain, each.name, each.state.value, len(each.findings), _figures(each)) for each in checks)
    columns = (
        *columns_of(Kind.TEXT, domain="Domain", check="Check", state="State"),
        Column("findings", "Findings and warnings", Kind.COUNT),
        Column("figures", "Figures"),
    )
    return Table("checks", "", columns, rows)


def _figures(check: Check) -> str | None:
    plain = {name: value for name, value in check.figures.items() if isinstance(value, (int, float, str))}
    figures = [
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    ]
    return check.reason or ", ".join(figures) or None


def _gravest(reports: Sequence[EditionReport]) -> Table:
    checks = [(report.name, check) for report in reports for check in report.checks if check.findings]
    checks.sort(key=lambda each: each[1].state is not CheckState.FAIL)
    rows = tuple(
        (check.state.value, name, check.name, len(check.findings), worst.where, worst.field or None, worst.message)
        for name, check in checks
        for worst in sorted(check.findings, key=lambda each: each.state is not CheckState.FAIL)[:1]
    )
    columns = (
        *columns_of(Kind.TEXT, state="State", report="Report", check="Check"),
        Column("findings", "Findings", Kind.COUNT),
        *columns_of(Kind.TEXT, where="Location of the gravest", field="Field", evidence="Evidence"),
    )
    return Table("findings", "", columns, rows)


_ROWS = "all rows of the models under validation, repeats counted; unit"
_CAUSES = "First: rows in which it is the earliest cause. Applies: rows in which it is among the causes."


def failures_chapter(results: Results, runs: Sequence[RunRows], rows: pl.DataFrame) -> Chapter:
    """Return endings, causes and examples of the models under validation; `rows` are those of the runs."""
    paragraphs = [
        "A row of status error is a failure of the provider or of the harness and carries no score. Every other ending "
        "is attributed to the agent and is scored. Causes are assigned by rule from the recorded trajectories; "
        "the appendix has an example of each."
    ]
    found: list[pl.DataFrame] = []
    for run in runs:
        if run.record is None or not run.has_trajectories:
            paragraphs.append(f"{run.path.name}: causes are not known; the run has no trajectories.")
            continue
        try:
            found.append(failures_of(run.path))
        except FinSkillBenchError as error:
            paragraphs.append(f"{run.path.name}: causes are not known ({error}).")
    tables = [
        *captioned(
            status_table(results),
            "Endings of episodes",
            f"{_ROWS}: rows, with Wilson 95 % intervals of the effective sample size",
        ),
        *captioned(incidents_table(results), "Incidents", f"{_ROWS}: incidents and rows"),
    ]
    examples: tuple[Table, ...] = ()
    if found:
        failures = pl.concat(found)
        model_failures = _hosted_model_failures(results, rows, failures)
        population = f"{model_failures.height:,} rows of the models under validation without full marks; unit"
        shown = "finskillbench show RUN TASK --model M --condition C --run-idx REPEAT displays the trajectory."
        tables += captioned(failures_table(results, failures), "Causes of failure", f"{population}: rows", _CAUSES)
        examples = captioned(
            _examples(model_failures), "An example of each cause of failure", f"{population}: score, 0 to 1", shown
        )
    return Chapter("failures", "Failure analysis", tuple(paragraphs), tables=tuple(tables), appendix=examples)


def _hosted_model_failures(results: Results, rows: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    hosted = hosted_models(results)
    names = {entry: name for entry, name in labels(entries_of(rows)).items() if name in hosted}
    return causes.join(frame_of_names(names), on=["model", "arguments"], how="inner", maintain_order="left")


def _examples(causes: pl.DataFrame) -> Table:
    """Return the row with the lowest score of each cause, with its evidence."""
    ordered = causes.sort("score", nulls_last=False, maintain_order=True)
    lowest = ordered.unique("cause", keep="first", maintain_order=True)
    columns = (
        *columns_of(Kind.TEXT, cause="Cause", model="Model", condition="Condition", task_id="Task"),
        Column("run_idx", "Repeat", Kind.COUNT),
        Column("score", "Score", Kind.SCORE),
        Column("evidence", "Evidence"),
    )
    return table_from_frame("examples", "", lowest.with_columns(harness=pl.lit("")), columns, ())

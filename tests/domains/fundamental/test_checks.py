"""Validation of fundamental analysis: each planted defect fails its own check and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import polars as pl
import pytest
from tests.sampling import THOROUGH, sampled

from finskillbench.domains import domains
from finskillbench.domains.fundamental.checks.tables import FLOWS, INSTANTS, PERIODIC, UNITS
from finskillbench.domains.fundamental.rederive import answers, definitions
from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport, checks_of
from finskillbench.engines.accounting import drivers, periods, quality, statements
from finskillbench.findings import CheckState
from finskillbench.sources.edgar.companyfacts import PERIODIC_FORMS
from finskillbench.sources.edgar.numerals import CANONICAL, METRICS

FUNDAMENTAL = "fundamental_analysis"
SUBTASKS = ("normalization", "earnings_quality", "driver_decomposition")
OUTPUT = "expected_output"
Row = dict[str, Any]
Change = Callable[[Row], Any]


CHECKS = {domain.name: checks_of(domain) for domain in domains()}


def failed(report: CheckReport) -> set[tuple[str, str]]:
    return {(check.domain, check.name) for check in report.checks if check.state is CheckState.FAIL}


def defects_of(report: CheckReport) -> list[tuple[str, str, str]]:
    return [(c.name, f.where, f.message) for c in report.checks for f in c.findings if f.state is CheckState.FAIL]


def test_a_built_edition_passes_its_checks(edition: Edition, synthetic_report: CheckReport) -> None:
    checks = {check.name: check for check in synthetic_report.checks if check.domain == FUNDAMENTAL}
    assert list(checks) == list(CHECKS[FUNDAMENTAL])
    assert [finding for finding in defects_of(synthetic_report) if finding[0] in checks] == []
    assert {check.state for check in checks.values()} <= {CheckState.PASS, CheckState.WARN}
    figures = {name: check.figures for name, check in checks.items()}
    counts = edition.manifest["counts"]
    for name in SUBTASKS:
        assert figures[name]["labels"] == counts[name]
        assert figures[name]["greatest_difference"] <= 1e-9
    assert figures["point_in_time"]["episodes"] == sum(counts[name] for name in SUBTASKS)
    assert figures["restatements"]["asked"] >= 100
    assert figures["derived_quarters"]["differences"] >= 1000
    assert figures["segments"]["breakdowns"] >= 1000
    done, _, examined = figures["balance_sheet"]["exact"].split()
    assert done == examined


def test_the_second_arithmetic_knows_what_the_engines_know() -> None:
    """It shares no code with them, so that its constants are written twice."""
    assert {str(name): days for name, days in periods.DAYS.items()} == definitions.LENGTHS
    assert definitions.QUARTER_APART[:2] == periods.QUARTER_APART
    assert definitions.YEAR_APART[:2] == periods.YEAR_APART
    assert (answers.MANIPULATION, answers.LOW_SCORE, answers.HIGH_ACCRUALS, answers.LEAST_CHANGE) == (
        quality.MANIPULATION_ABOVE,
        quality.LOW_PIOTROSKI,
        quality.HIGH_ACCRUALS,
        drivers.LEAST_DELTA_PP,
    )
    assert (definitions.AXES, definitions.MOST_SEGMENTS, definitions.SEGMENT_GAP) == (
        drivers.AXES,
        drivers.TOP_SEGMENTS,
        drivers.SEGMENT_TOLERANCE,
    )
    assert {**drivers.MARGINS, **drivers.EXPENSE_RATIOS} == answers.RATIOS
    assert tuple(answers.normalised({})) == statements.NORMALISED
    assert {*FLOWS, *INSTANTS} == set(CANONICAL)
    assert {name: METRICS[name].unit for name in CANONICAL} == UNITS
    assert {name for name in CANONICAL if METRICS[name].kind == "flow"} == set(FLOWS)
    assert set(PERIODIC_FORMS) == PERIODIC


def at(
    part: str, sub_task: str, change: Change, which: Callable[[Row], Any] = lambda row: True
) -> Callable[[Any], None]:
    """Change a row of a part: the first for which `which` holds."""

    def plant(workshop: Any) -> None:
        index = next(place for place, row in enumerate(workshop.rows(part, sub_task)) if which(row))
        workshop.edit(part, sub_task, change, index)

    return plant


def _unused(workshop: Any, frame: pl.DataFrame) -> pl.Expr:
    """Whether a row is of a period that no episode sees."""
    seen = pl.lit(value=False)
    for name in SUBTASKS:
        for row in workshop.rows("episodes", name):
            held = row["input"]["filing_facts"]
            seen |= (
                (pl.col("symbol") == held["symbol"])
                & (pl.col("end") >= date.fromisoformat(held["since"]))
                & (pl.col("filed") <= date.fromisoformat(held["as_of"]))
            )
    return ~seen


def in_panel(name: str, which: pl.Expr, change: Callable[[Row], Any], *, remove: bool = False) -> Callable[[Any], None]:
    """Change or remove the first row of a panel that no episode sees and for which `which` holds."""

    def plant(workshop: Any) -> None:
        path = workshop.folder / "panels" / f"{name}.parquet"
        frame = pl.read_parquet(path).with_row_index("place")
        place = frame.filter(which & _unused(workshop, frame))["place"][0]
        row = frame.row(place, named=True)
        change(row)
        changed = pl.DataFrame([row], schema=frame.schema)
        rest = frame.filter(pl.col("place") != place)
        whole = rest if remove else pl.concat([rest, changed]).sort("place", maintain_order=True)
        whole.drop("place").write_parquet(path)

    return plant


def _shares_in_thousands(workshop: Any, metric: str) -> tuple[str, str]:
    """Make every number of shares of one filing that no episode sees a thousandth; its symbol and accession."""
    path = workshop.folder / "panels" / "facts.parquet"
    frame = pl.read_parquet(path)
    shares = pl.col("metric") == metric
    filings = frame.filter(shares).group_by("symbol", "accession").agg(_unused(workshop, frame).all().alias("unused"))
    symbol, accession, _ = filings.filter("unused").sort("symbol", "accession").row(-1)
    mine = shares & (pl.col("symbol") == symbol) & (pl.col("accession") == accession)
    frame.with_columns(pl.when(mine).then(pl.col("value") / 1e3).otherwise("value").alias("value")).write_parquet(path)
    return symbol, accession


def is_of(metric: str, **fields: Any) -> pl.Expr:
    return pl.all_horizontal(pl.col("metric") == metric, *(pl.col(name) == value for name, value in fields.items()))


def clear(field: str) -> Change:
    return lambda row: row[field].clear()


def _fewer_counted(manifest: Row) -> None:
    manifest["counts"].update(earnings_quality=6)


def without_the_domain(manifest: Row) -> None:
    for name in SUBTASKS:
        manifest["counts"].pop(name)


def _renamed(row: Row) -> None:
    row.update(task_id="pc_con_1")


def _scale(factor: float) -> Change:
    return lambda row: row.update(value=row["value"] * factor)


def setting(**fields: Any) -> Change:
    return lambda row: row.update(fields)


def of_input(**fields: Any) -> Change:
    return lambda row: row["input"].update(fields)


def _scale_at(*path: Any, factor: float = 1.001) -> Change:
    """Multiply a number that the path leads to."""

    def change(row: Row) -> None:
        value: Any = row
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] *= factor

    return change


def _known(name: str) -> Callable[[Row], Any]:
    return lambda row: row[OUTPUT][name] is not None


def _flip_signal(row: Row) -> None:
    signals = row[OUTPUT]["piotroski_components"]
    name = next(name for name, signal in signals.items() if signal is not None)
    signals[name] = 1 - signals[name]


def _next_day(row: Row) -> None:
    held = row["input"]["filing_facts"]
    held["as_of"] = str(date.fromisoformat(held["as_of"]) + timedelta(days=1))


def _rename(workshop: Any) -> None:
    for part in ("episodes", "truth", "certificates"):
        workshop.edit(part, "normalization", _renamed)


def _another(form: str) -> Change:
    return lambda row: row["input"].update(form_type=form)


def _repeat(workshop: Any) -> None:
    """A balance stated once more, by the next report of the company."""
    path = workshop.folder / "panels" / "facts.parquet"
    frame = pl.read_parquet(path)
    rows = frame.filter(is_of("cash", derived=False) & _unused(workshop, frame))
    first, later = (rows.row(place, named=True) for place in (0, 1))
    again = first | {name: later[name] for name in ("filed", "accession", "form")}
    pl.concat([frame, pl.DataFrame([again], schema=frame.schema)]).write_parquet(path)


def _too_little(row: Row) -> None:
    given = row["input"]
    given["filing_facts"]["since"] = str(date.fromisoformat(given["period_end"]) - timedelta(days=100))


def _gross_profit(workshop: Any) -> None:
    """A quarter's gross profit that only an episode of normalisation sees, which no label of these needs."""
    path = workshop.folder / "panels" / "facts.parquet"
    frame = pl.read_parquet(path).with_row_index("place")
    others = pl.lit(value=False)
    for name in SUBTASKS[1:]:
        for row in workshop.rows("episodes", name):
            given = row["input"]
            held, end = (
                given["filing_facts"],
                date.fromisoformat(given.get("period_end") or given["current_period_end"]),
            )
            apart = (pl.lit(end) - pl.col("end")).dt.total_days()
            compared = apart.is_between(0, 130) | apart.is_between(340, 390)
            public = pl.col("filed") <= date.fromisoformat(held["as_of"])
            others |= (pl.col("symbol") == held["symbol"]) & public & compared
    mine = is_of("gross_profit", derived=False, duration="quarterly") & ~others
    inner = pl.col("start").dt.month() != frame.filter(duration="annual")["start"].dt.month().mode()[0]
    rows = frame.filter(mine & inner)
    places = {(row["symbol"], row["end"]): row["place"] for row in rows.iter_rows(named=True)}
    given = (row["input"] for row in workshop.rows("episodes", "normalization"))
    ends = ((one["symbol"], date.fromisoformat(one["period_end"])) for one in given if one["form_type"] == "10-Q")
    place = next(places[end] for end in ends if end in places)
    changed = pl.when(pl.col("place") == place).then(0.9 * pl.col("value")).otherwise("value")
    frame.with_columns(changed.alias("value")).drop("place").write_parquet(path)


def _another_cik(manifest: Row) -> None:
    known = manifest["parameters"]["fundamental_entities"]
    first, second = sorted(known)[:2]
    known[first].update(cik=known[second]["cik"], entity=known[second]["entity"])


REPORTED = pl.col("derived").not_()
DIFFERENCE = pl.col("derived") & (pl.col("metric") == "capex")
DEFECTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "coverage: truth inside an episode": (
        "coverage",
        at("episodes", "normalization", of_input(expected_output={"metrics": {"revenue": 1.0}})),
    ),
    "coverage: a task of another prefix": ("coverage", _rename),
    "coverage: fewer episodes than counted": (
        "coverage",
        lambda workshop: workshop.edit_json("manifest.json", _fewer_counted),
    ),
    "forms: a proxy statement": (
        "forms",
        in_panel("facts", is_of("net_income", derived=False), setting(form="DEF 14A")),
    ),
    "forms: a quarterly report called annual": (
        "forms",
        at("episodes", "earnings_quality", _another("10-K"), lambda row: row["input"]["form_type"] == "10-Q"),
    ),
    "forms: an unknown filing": (
        "forms",
        in_panel("facts", is_of("inventory", derived=False), setting(accession="0000000000-00-000000")),
    ),
    "durations: a half year called a quarter": (
        "durations",
        in_panel("facts", (pl.col("duration") == "half") & REPORTED, setting(duration="quarterly")),
    ),
    "durations: a balance over a period": (
        "durations",
        in_panel(
            "facts", is_of("inventory"), lambda row: row.update(start=row["end"] - timedelta(90), duration="quarterly")
        ),
    ),
    "units: euros": ("units", in_panel("facts", is_of("revenue", derived=False), setting(unit="EUR"))),
    "units: a metric that nobody knows": ("units", in_panel("facts", is_of("inventory"), setting(metric="goodwill"))),
    "units: diluted shares in thousands": ("units", partial(_shares_in_thousands, metric="diluted_shares")),
    "units: no number": ("units", in_panel("facts", is_of("cash"), setting(value=float("nan")))),
    "point_in_time: facts of the day after": ("point_in_time", at("episodes", "earnings_quality", _next_day)),
    "point_in_time: facts of too few quarters": ("point_in_time", at("episodes", "normalization", _too_little)),
    "restatements: a comparative repeated": ("restatements", _repeat),
    "derived_quarters: not the difference": ("derived_quarters", in_panel("facts", DIFFERENCE, _scale(1.001))),
    "derived_quarters: one left out": ("derived_quarters", in_panel("facts", DIFFERENCE, setting(), remove=True)),
    "balance_sheet: liabilities that are too great": (
        "balance_sheet",
        in_panel("facts", is_of("total_liabilities", derived=False), _scale(1.1)),
    ),
    "balance_sheet: no assets": ("balance_sheet", in_panel("facts", is_of("total_assets"), _scale(0.0))),
    "identities: a gross profit that is not revenue less cost": ("identities", _gross_profit),
    "entities: the facts of another company": (
        "entities",
        lambda workshop: workshop.edit_json("manifest.json", _another_cik),
    ),
    "segments: a member that is too great": ("segments", in_panel("segments", REPORTED, _scale(1.5))),
    "segments: a member left out": ("segments", in_panel("segments", REPORTED, setting(), remove=True)),
    "segments: an unknown axis": ("segments", in_panel("segments", REPORTED, setting(axis="customer"))),
    "normalization: another figure": (
        "normalization",
        at("truth", "normalization", _scale_at(OUTPUT, "metrics", "revenue")),
    ),
    "normalization: an unknown figure": (
        "normalization",
        at("truth", "normalization", lambda row: row[OUTPUT]["metrics"].update(ebitda=None)),
    ),
    "normalization: another definition": (
        "normalization",
        at("episodes", "normalization", lambda row: row["input"]["conventions"].update(units="thousands")),
    ),
    "normalization: derived once": (
        "normalization",
        at("truth", "normalization", lambda row: row["proof"].update(difference=0.1)),
    ),
    "earnings_quality: another ratio": (
        "earnings_quality",
        at("truth", "earnings_quality", _scale_at(OUTPUT, "accruals_ratio")),
    ),
    "earnings_quality: another signal": ("earnings_quality", at("truth", "earnings_quality", _flip_signal)),
    "earnings_quality: another flag": (
        "earnings_quality",
        at("truth", "earnings_quality", lambda row: row[OUTPUT].update(flags=["high_accruals", "low_piotroski"])),
    ),
    "earnings_quality: another M-score": (
        "earnings_quality",
        at("truth", "earnings_quality", _scale_at(OUTPUT, "beneish_m_score"), _known("beneish_m_score")),
    ),
    "driver_decomposition: another change": (
        "driver_decomposition",
        at("truth", "driver_decomposition", _scale_at(OUTPUT, "revenue_delta")),
    ),
    "driver_decomposition: another direction": (
        "driver_decomposition",
        at("truth", "driver_decomposition", lambda row: row[OUTPUT]["margin_drivers"][0].update(direction="unchanged")),
    ),
    "driver_decomposition: a segment left out": (
        "driver_decomposition",
        at(
            "truth",
            "driver_decomposition",
            lambda row: row[OUTPUT]["top_revenue_drivers"].pop(),
            lambda row: row[OUTPUT]["top_revenue_drivers"],
        ),
    ),
    "driver_decomposition: another order": (
        "driver_decomposition",
        at("truth", "driver_decomposition", lambda row: row[OUTPUT]["margin_drivers"].reverse()),
    ),
}
"""What is planted: the check that must fail, alone, and how."""


FIRST = {check: name for name, (check, _) in reversed(DEFECTS.items())}
WHOLE = {*FIRST.values()} if THOROUGH else {next(iter(DEFECTS))}
"""Defects of which the other domains are looked at too: the first of each check, or of one."""


@pytest.mark.parametrize("name", sampled(DEFECTS, 3))
def test_a_planted_defect_fails_its_check_alone(name: str, workshop: Any) -> None:
    check, plant = DEFECTS[name]
    plant(workshop)
    report = workshop.validated(*(() if name in WHOLE else (FUNDAMENTAL,)))
    assert failed(report) == {(FUNDAMENTAL, check)}, defects_of(report)


def test_shares_of_a_cover_page_in_thousands_are_named(workshop: Any) -> None:
    """No earnings per share tell their scale, but the filings before do."""
    symbol, accession = _shares_in_thousands(workshop, "shares_outstanding")
    report = workshop.validated(FUNDAMENTAL)
    assert failed(report) == {(FUNDAMENTAL, "units")}, defects_of(report)
    assert any(symbol in where and accession in where for _, where, _ in defects_of(report))


def test_every_check_has_its_defect() -> None:
    assert {check for check, _ in DEFECTS.values()} == set(CHECKS[FUNDAMENTAL])

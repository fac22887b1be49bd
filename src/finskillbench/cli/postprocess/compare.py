"""`finskillbench compare`: differences between two runs, models, harnesses or conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST

if TYPE_CHECKING:
    from finskillbench.reports.compare.gates import Outcome
    from finskillbench.reports.compare.moves import Cut
    from finskillbench.reports.compare.paired import Paired
    from finskillbench.reports.formats import Format
    from finskillbench.reports.tables.base import Table

EXAMPLE = """\b
Examples:
  finskillbench compare runs/before runs/after
  finskillbench compare runs/mine --compare model openai/gpt-5 anthropic/claude-opus-4
  finskillbench compare runs/mine --compare condition curated skill:mine --flips 20 --gain 0.05
  finskillbench compare runs/main runs/branch --fail-under headline=0.6 --fail-on-regression"""


# Longer than a screen: each option is a parameter with its help text.
def compare(
    runs: Annotated[
        list[Path], Argument(metavar="RUN_A [RUN_B]", help="Two run folders; with --compare, one or more.")
    ],
    within: Annotated[
        tuple[str, str, str] | None,
        Option(
            "--compare",
            metavar="WHAT A B",
            help="Compare two models, harnesses or conditions of the runs: --compare model A B.",
        ),
    ] = None,
    model: Annotated[list[str] | None, Option(help="Only this model; repeatable.")] = None,
    condition: Annotated[list[str] | None, Option(help="Only this condition; repeatable.")] = None,
    subtask: Annotated[list[str] | None, Option(help="Only this subtask; repeatable.")] = None,
    profile: Annotated[str, Option(help="certified, strict or paper.")] = "certified",
    by: Annotated[
        list[str] | None,
        Option(help="headline, domain, subtask, difficulty, model or condition; repeatable. Default: the first three."),
    ] = None,
    gain: Annotated[
        float | None, Option(min=0.001, max=1.0, help="Print the sample size that detects this difference in scores.")
    ] = None,
    flips: Annotated[int, Option(min=0, max=LARGEST, help="Flips to print for each direction.")] = 10,
    every: Annotated[bool, Option("--all", help="Include lines without changes, and all flips.")] = False,
    format_: Annotated[str, Option("--format", help="table, md, csv or json.")] = "table",
    fail_under: Annotated[
        list[str] | None,
        Option(
            metavar="PART[@CONDITION]=SCORE",
            help="Exit with 1 if B scores less. PART: headline, a domain or a subtask; repeatable.",
        ),
    ] = None,
    fail_on_regression: Annotated[
        bool, Option("--fail-on-regression", help="Exit with 1 if a score fell significantly.")
    ] = False,
    margin: Annotated[
        float, Option(min=0.0, max=1.0, help="Fall of a mean score that --fail-on-regression allows.")
    ] = 0.0,
) -> None:
    """Compare two sides on the same episodes: scores, resources used, and episodes whose score changed.

    Exit code 0: done, and every gate holds; 1: a gate fails, which a line on standard error explains; 2: the sides
    cannot be compared.
    """
    from finskillbench.analysis.results import distinct_values
    from finskillbench.episode import Profile
    from finskillbench.reports.compare.gates import check_finished, check_thresholds, parse_floor
    from finskillbench.reports.compare.moves import DEFAULT_CUTS, Cut
    from finskillbench.reports.compare.paired import check_regression, make_pairs
    from finskillbench.reports.compare.sides import RowFilter, SideDimension, make_sides
    from finskillbench.reports.formats import Format
    from finskillbench.reports.read import read_run_rows

    form, judged_by = console.one_of(Format, format_, "--format"), console.one_of(Profile, profile, "--profile")
    cuts = [console.one_of(Cut, each, "--by") for each in by] if by else DEFAULT_CUTS
    floors = [parse_floor(text) for text in fail_under or ()]
    chosen = RowFilter(model or (), condition or (), subtask or ())
    between = None if within is None else SideDimension(*within)
    with console.Progress() as progress:
        progress("Reading the runs")
        paired = make_pairs(make_sides([read_run_rows(run) for run in runs], between, chosen, judged_by))
    gates = [each.outcome for each in check_thresholds(paired.sides.b.results, floors)]
    if fail_on_regression:
        gates.append(check_regression(paired, margin))
    if gates:
        side = paired.sides.b.results.rows
        gates += check_finished(paired.sides.runs[path] for path in distinct_values(side, "run"))
    if form is Format.TABLE:
        _print(paired, _tables(paired, cuts, gain), None if every else flips)
    else:
        _write(paired, _tables(paired, cuts, gain), gates, form)
    print_gates(gates)


def _print(paired: Paired, tables: Sequence[Table], most: int | None) -> None:
    """Print readable tables without unchanged lines, and the flips with their commands."""
    from finskillbench.reports.compare.moves import readable_table
    from finskillbench.reports.formats import Format, render

    if most is not None:
        tables = [readable_table(table) for table in tables]
    # The first table is informative even without changes: it counts unchanged episodes and names unfinished runs.
    shown = [tables[0], *(table for table in tables[1:] if table.rows)]
    typer.echo(render(shown, Format.TABLE, console.width()))
    for line in _flips(paired, most):
        typer.echo(line)


def _tables(paired: Paired, cuts: Sequence[Cut], gain: float | None) -> list[Table]:
    from finskillbench.reports.compare.moves import (
        cheaper_table,
        noise_of,
        resource_changes_table,
        score_changes_table,
        within_budget_table,
    )

    tables = (within_budget_table, cheaper_table, resource_changes_table)
    return [score_changes_table(paired, cuts), *noise_of(paired, gain), *(table(paired) for table in tables)]


def _write(paired: Paired, tables: Sequence[Table], gates: Sequence[Outcome], form: Format) -> None:
    """Write all tables in a machine-readable format."""
    from finskillbench.reports.compare.gates import gates_table
    from finskillbench.reports.compare.paired import find_flips, flips_table
    from finskillbench.reports.formats import render

    tables = [*tables, flips_table(find_flips(paired))]
    typer.echo(render([*tables, gates_table(gates)] if gates else tables, form), nl=False)


def _flips(paired: Paired, most: int | None) -> Iterator[str]:
    from finskillbench.reports.compare.paired import find_flips

    flips = find_flips(paired)
    fallen, risen = [each for each in flips if each.change < 0], [each for each in flips[::-1] if each.change > 0]
    for title, moved in (("fell", fallen), ("rose", risen)):
        yield f"Scores that {title}: {len(moved)}"
        for each in moved[:most]:
            yield f"  {each.a:.3f} -> {each.b:.3f}  {each.show_b or ' '.join((each.task_id, *each.keys.values()))}"
        if most is not None and len(moved) > most:
            yield f"  and {len(moved) - most} more; --flips {len(moved)} prints them"
    if flips and most != 0 and flips[0].show_a is not None:
        yield f"Other side of the first: {flips[0].show_a}"


def print_gates(gates: Sequence[Outcome]) -> None:
    """Print the result of each gate on standard error, failures last; exit with 1 if a gate fails."""
    for gate in sorted(gates, key=lambda each: each.holds, reverse=True):
        typer.echo(f"{'passed' if gate.holds else 'failed'}: {gate.reason}", err=True)
    if not all(gate.holds for gate in gates):
        raise typer.Exit(1)

"""`finskillbench data`: build, describe, validate, compare, import and hand out editions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from finskillbench.cli.display import console
from finskillbench.errors import InputError

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.edition.validation import Check

app = typer.Typer(help="Build, describe, validate, compare, import and hand out editions of the benchmark.")

_SHOWN_FINDINGS = 5

EditionArgument = Annotated[Path, typer.Argument(metavar="EDITION", help="Folder of the edition.")]
NewFolder = Annotated[
    Path,
    typer.Option(
        "--out", parser=console.out_path, metavar="PATH", help="Folder to make; it must not exist or be empty."
    ),
]


class Source(StrEnum):
    """Where raw files come from."""

    SYNTHETIC = "synthetic"
    RAW_DIR = "raw-dir"


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)


@app.command(epilog="Example: finskillbench data build --seed 7 --out editions/seven")
def build(
    out: NewFolder,
    source: Annotated[Source, typer.Option(help="Fictional companies from a seed, or files you have.")] = (
        Source.SYNTHETIC
    ),
    raw_dir: Annotated[Path | None, typer.Option(help="Collection of raw files, for --source raw-dir.")] = None,
    seed: Annotated[
        int | None, typer.Option(max=console.LARGEST, help="Seed of the market and of the draws; 1 by default.")
    ] = None,
    names: Annotated[
        int | None, typer.Option(help="Companies, 30 to 3,000; by default 30, or what the raw files name.")
    ] = None,
) -> None:
    """Build an edition: panels, episodes, truth and the proof of every label."""
    if source is Source.RAW_DIR and raw_dir is None:
        raise InputError("--source raw-dir needs --raw-dir DIR, the folder of the raw files")
    if source is Source.SYNTHETIC and raw_dir is not None:
        raise InputError("--raw-dir is only read with --source raw-dir; add it or leave --raw-dir out")

    from finskillbench.edition.build import DEFAULT_SEED, build_edition

    with console.Progress() as progress:
        edition = build_edition(
            source=source.value,
            raw_dir=raw_dir,
            seed=DEFAULT_SEED if seed is None else seed,
            names=names,
            out=out,
            progress=progress,
        )
    _describe(edition)


@app.command(epilog="Example: finskillbench data info editions/seven")
def info(edition: EditionArgument) -> None:
    """Print what an edition holds: origin, digest, versions, notes, and episodes by subtask and difficulty."""
    from finskillbench.edition import load_edition

    _describe(load_edition(edition))


@app.command(epilog="Example: finskillbench data validate editions/seven")
def validate(
    edition: EditionArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the whole report as JSON, with every finding.")
    ] = False,
) -> None:
    """Check an edition: its panels, and every label against its proof. Exit code 1 if a check fails."""
    import orjson

    from finskillbench.edition import load_edition
    from finskillbench.edition.validation import validate_edition

    with console.Progress() as progress:
        report = validate_edition(load_edition(edition), progress)
    if as_json:
        typer.echo(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        for domain, checks in groupby(report.checks, key=lambda check: check.domain):
            typer.echo(domain.replace("_", " "))
            _show_checks(list(checks))
        typer.echo(", ".join(f"{count} {state}" for state, count in report.counts.items() if count))
    if not report.passed:
        raise typer.Exit(1)


def _show_checks(checks: Sequence[Check]) -> None:
    """The checks of one domain, a line each; one line for all if the edition has nothing for any of them."""
    reasons = {check.reason for check in checks if not check.findings}
    if len(checks) > 1 and len(reasons) == 1 and all(check.state == "SKIP" for check in checks):
        typer.echo(f"{checks[0].state:<5} {f'all {len(checks)}':<14} {reasons.pop()}")
        return
    for check in checks:
        typer.echo(f"{check.state:<5} {check.name:<14} {check.reason or _in_words(check.figures)}")
        for finding in check.findings[:_SHOWN_FINDINGS]:
            typer.echo(f"      {finding.state} {finding.where}: {finding.message}")
        if (hidden := len(check.findings) - _SHOWN_FINDINGS) > 0:
            typer.echo(f"      and {hidden} more; --json prints all")


@app.command("import", epilog="Example: finskillbench data import downloads/release --out editions/published")
def import_release(
    release: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="Folder of the published release.")],
    out: NewFolder,
) -> None:
    """Import the published release as an edition; report the episodes whose inputs do not resolve."""
    from finskillbench.edition import load_edition
    from finskillbench.edition import release as releases

    with console.Progress() as progress:
        progress("Importing the release")
        report = releases.import_release(release, out)
    _describe(load_edition(out))
    for task_id, reason in report.unresolved.items():
        typer.echo(f"unresolved: {task_id}: {reason}")


@app.command(epilog="Example: finskillbench data diff editions/seven editions/seven-again")
def diff(
    first: EditionArgument,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of the edition to compare it with.")],
) -> None:
    """Say what differs between two editions, and where scores are comparable. Exit code 1 if they are not."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.difference import PARTS, compare_editions

    with console.Progress() as progress:
        found = compare_editions(load_edition(first), load_edition(second), progress)
    for field, (one, other) in found.fields.items():
        typer.echo(f"{field}: {_shortened(one)} -> {_shortened(other)}")
    columns = ("episodes", "removed", "added", *PARTS)
    typer.echo(f"{'':<28}" + "".join(f"{name:>{len(name) + 2}}" for name in columns) + "  scores comparable")
    for each in found.subtasks:
        changed = (len(each.changed[part]) for part in PARTS)
        counts = (each.common, len(each.only_first), len(each.only_second), *changed)
        texts = (f"{count:>{len(name) + 2}}" for name, count in zip(columns, counts, strict=True))
        typer.echo(f"{each.name:<28}" + "".join(texts) + f"  {'yes' if each.same_scores else 'no'}")
    if not found.compared_truth:
        typer.echo("One of them was handed out without truth: whether scores are comparable cannot be said.")
    if not found.same_scores:
        raise typer.Exit(1)


def _shortened(value: object, most: int = 60) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."


@app.command(epilog="Example: finskillbench data export editions/seven --public --out handed-out/seven")
def export(
    edition: EditionArgument,
    out: NewFolder,
    public: Annotated[
        bool, typer.Option("--public", help="Without truth, certificates and seed, and with a canary; required.")
    ] = False,
) -> None:
    """Copy an edition to hand out: agents find all they need in it, and nobody can score with it."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.publish import export_public

    if not public:
        raise InputError("data export makes public copies only: add --public, or copy the folder to keep its truth")
    _describe(export_public(load_edition(edition), out))


def _describe(edition: Edition) -> None:
    """Print an edition: what it was made from, then a line per subtask with its episodes by difficulty.

    Below it, the median work of an episode of each difficulty.
    """
    from collections import Counter

    manifest = edition.manifest
    source = ", ".join(f"{key} {value}" for key, value in manifest["source"].items() if key != "raw_digest")
    dates = manifest["as_of_dates"]
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    for title, value in (
        ("Edition", edition.path),
        ("Digest", edition.digest),
        ("Source", f"{source}, seed {'not told' if manifest['seed'] is None else manifest['seed']}"),
        ("Universe", f"{len(manifest['universe'])} names"),
        ("Dates", f"{len(dates)}, {dates[0]} to {dates[-1]}" if dates else "none"),
        ("Truth", "included" if edition.has_truth else "withheld"),
        ("Made with", versions),
    ):
        typer.echo(f"{title + ':':<11}{value}")
    typer.echo("")
    for name in edition.sub_tasks:
        episodes = edition.episodes([name])
        levels = Counter(episode.difficulty for episode in episodes)
        counts = ", ".join(f"{levels[level]} {level}" for level in sorted(levels, key=_by_difficulty))
        typer.echo(f"{name:<28}{len(episodes):>5}  {counts}")
        for level, work in manifest.get("work", {}).get(name, {}).items():
            typer.echo(f"{'':<35}{level}: " + ", ".join(f"{number:.0f} {kind}" for kind, number in work.items()))
    for note in manifest["notes"]:
        typer.echo(f"note: {note}")


def _by_difficulty(level: str) -> tuple[int, str]:
    known = ("easy", "medium", "hard")
    return (known.index(level) if level in known else len(known), level)


def _in_words(figures: Mapping[str, Any]) -> str:
    """Figures on one line; nested ones are left to the JSON report."""
    plain = {name: value for name, value in figures.items() if not isinstance(value, Mapping)}
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in plain.items()
    )

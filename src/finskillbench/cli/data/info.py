"""Commands `finskillbench data info`, `diff`, `doctor` and `explain`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import EditionArgument
from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput

DIFF_EXAMPLE = "Example: finskillbench data diff editions/seven editions/seven-again"


def diff(
    first: EditionArgument,
    other_edition: Annotated[Path, Argument(metavar="OTHER", help="Folder of the edition to compare it with.")],
) -> None:
    """Compare two editions and print for which subtasks scores are comparable. Exit code 1 if any are not."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.diagnosis import PARTS, compare_editions

    with console.Progress() as progress:
        found = compare_editions(load_edition(first), load_edition(other_edition), progress)
    for field, (one, other) in found.fields.items():
        typer.echo(f"{field}: {_shortened(one)} -> {_shortened(other)}")
    columns = ("episodes", "removed", "added", *PARTS)
    typer.echo(f"{'':<28}" + "".join(f"{name:>{len(name) + 2}}" for name in columns) + "  scores comparable")
    for each in found.subtasks:
        changed = (len(each.changed[part]) for part in PARTS)
        counts = (each.common, len(each.only_first), len(each.only_other), *changed)
        texts = (f"{count:>{len(name) + 2}}" for name, count in zip(columns, counts, strict=True))
        typer.echo(f"{each.name:<28}" + "".join(texts) + f"  {'yes' if each.same_scores else 'no'}")
    if not found.compared_truth:
        typer.echo("One edition has no truth, so the comparability of scores is unknown.")
    if not found.same_scores:
        raise typer.Exit(1)


def _shortened(value: object, most: int = 60) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."


if TYPE_CHECKING:
    from finskillbench.edition.diagnosis import Prospect
    from finskillbench.sources.raw.doctor import FormatReport

DOCTOR_EXAMPLE = "Example: finskillbench data doctor downloads/raw --json findings.json"
_SHOWN = 10


def data_doctor(
    raw_dir: Annotated[Path, Argument(metavar="DIR", help="Folder of raw files, as for `data build --raw-dir`.")],
    as_json: JsonOutput = None,
) -> None:
    """Check a folder of raw files: everything missing or wrong, file by file, and what can be built from it.

    `finskillbench data template` shows the format of every file. Exit code 0: no findings; 1: findings; 2: the check
    could not run.
    """
    from finskillbench.edition.diagnosis import diagnose

    with console.Progress() as progress:
        report = diagnose(raw_dir, progress)
    if not console.json_printed(as_json, report.to_json):
        for one in report.diagnosis.examined:
            _show_files(one)
        _show_notes("company facts", report.unusable)
        _show_notes("note", report.notes)
        typer.echo("")
        for prospect in report.prospects:
            _show_prospect(prospect)
    if not report.clean:
        raise typer.Exit(1)


def _show_files(one: FormatReport) -> None:
    """Print the state of one kind of file, with its findings and its format if there are any."""
    worst = "FAIL" if any(finding.state == "FAIL" for finding in one.found) else "WARN"
    state = worst if one.found else "PASS" if one.files else "SKIP"
    typer.echo(f"{state:<5} {one.format.path}: {one.files} file{'' if one.files == 1 else 's'}")
    for finding in one.found[:_SHOWN]:
        typer.echo(f"      {finding.state} {finding.where}: {finding.message}")
    if (hidden := len(one.found) - _SHOWN) > 0:
        typer.echo(f"      and {hidden} more; --json FILE has all")
    if one.found:
        typer.echo(f"      format: {one.format.header}")


def _show_notes(title: str, notes: Sequence[str]) -> None:
    for text in notes[:_SHOWN]:
        typer.echo(f"{title}: {text}")
    if (hidden := len(notes) - _SHOWN) > 0:
        typer.echo(f"{title}: and {hidden} more; --json FILE has all")


def _show_prospect(prospect: Prospect) -> None:
    outcome = (
        f"{', '.join(prospect.subtasks)} (of {prospect.size})" if prospect.subtasks else f"not built: {prospect.reason}"
    )
    typer.echo(f"{prospect.domain.replace('_', ' ')}: {outcome}")


EXPLAIN_EXAMPLE = "Example: finskillbench data explain editions/seven fa_norm_AAPL_2024-03-30 total_liabilities"


def explain(
    edition: EditionArgument,
    task_id: Annotated[str, Argument(metavar="TASK_ID", help="Task id of fundamental analysis.")],
    metric: Annotated[str, Argument(metavar="METRIC", help="Metric of the label, such as revenue.")],
) -> None:
    """Print the facts considered for a metric, the rule that chose one, and its witnesses, with accession numbers."""
    from finskillbench.domains.fundamental.explain import explain_metric as lines
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.panels.store import read_panel_table

    opened = load_edition(edition)
    episode = next((one for one in opened.episodes() if one.task_id == task_id), None)
    if episode is None:
        raise InputError(f"{edition} has no episode {task_id}; `finskillbench inspect {edition}` lists all")
    filed = read_panel_table(edition / "panels", "filed")
    for line in lines(episode, opened.full_input(episode), filed, metric):
        typer.echo(line)


if TYPE_CHECKING:
    from collections.abc import Mapping

    from finskillbench.analysis.cutoffs import Cutoffs
    from finskillbench.edition import Edition

INFO_EXAMPLE = """\b
Examples:
  finskillbench data info editions/seven
  finskillbench data info editions/seven --shortcuts
  finskillbench data info editions/seven --cutoff provider/model=2026-03-31"""
_FICTIONAL = "synthetic"
"""Source kind of fictional companies, which no training data contain."""


def info(
    edition: EditionArgument,
    cutoff: Annotated[
        list[str] | None,
        Option(metavar="[MODEL=]DATE", help="Last day of training data, to count later episodes; repeatable."),
    ] = None,
    shortcuts: Annotated[
        bool, Option("--shortcuts", help="Score the standard shortcuts of each subtask and print their means.")
    ] = False,
) -> None:
    """Print the contents of an edition: origin, digest, versions, notes, and episodes by subtask and difficulty.

    The last lines show the newest date, and how many episodes a model may know from training data up to a cut-off.
    """
    from finskillbench.analysis.cutoffs import parse_cutoffs
    from finskillbench.edition import load_edition

    cutoffs = parse_cutoffs(cutoff or ())
    loaded = load_edition(edition)
    describe(loaded)
    for line in _contamination(loaded, cutoffs):
        typer.echo(line)
    if shortcuts:
        for line in _shortcuts(loaded):
            typer.echo(line)


def _shortcuts(edition: Edition) -> list[str]:
    """Return lines with the mean certified score of each shortcut by tier, and its bounds."""
    from finskillbench.domains import subtask_named
    from finskillbench.edition.checks.engine import audit_edition
    from finskillbench.edition.checks.scores import SHORTCUTS, Means

    (check,) = audit_edition(edition, [SHORTCUTS]).checks
    means: Mapping[str, Means] = check.figures.get("means", {})
    lines: list[str] = []
    for name, by_shortcut in means.items():
        stated = subtask_named(name).examples.shortcuts
        tiers = list(dict.fromkeys(tier for by_tier in by_shortcut.values() for tier in by_tier))
        bounds = "".join(f"{stated.bound(tier):>9.3f}" for tier in tiers) if stated is not None else ""
        lines += ["", f"{name + ': mean certified score of shortcuts':<60}" + "".join(f"{tier:>9}" for tier in tiers)]
        lines += [f"{'  bound':<60}{bounds}"]
        lines += [
            f"  {shortcut:<58}" + "".join(f"{by_tier[tier]:>9.3f}" if tier in by_tier else f"{'':>9}" for tier in tiers)
            for shortcut, by_tier in by_shortcut.items()
        ]
    return lines or ["", "no subtask of this edition has shortcuts that can be scored"]


def describe(edition: Edition) -> None:
    """Print the origin of an edition, then its episodes and their median work by subtask and difficulty."""
    from collections import Counter

    manifest = edition.manifest
    source_fields = {key: value for key, value in manifest["source"].items() if key not in ("raw_digest", "provenance")}
    source = ", ".join(f"{key} {value}" for key, value in source_fields.items())
    dates = manifest["as_of_dates"]
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    for title, value in (
        ("Edition", edition.path),
        ("Digest", edition.digest),
        ("Source", f"{source}, seed {'not stated' if manifest['seed'] is None else manifest['seed']}"),
        *((("Catalog", ", ".join(manifest["catalog"]["files"]) or "withheld"),) if "catalog" in manifest else ()),
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
    for text in manifest["notes"]:
        typer.echo(f"note: {text}")


def _contamination(edition: Edition, cutoffs: Cutoffs) -> list[str]:
    """Return lines with the newest day of an edition and its episodes after each cut-off."""
    from collections import Counter

    from finskillbench.domains import domain
    from finskillbench.episode import PAPER_SUITE

    invented = edition.manifest["source"]["kind"] == _FICTIONAL
    dated = [each for each in edition.episodes() if not invented and domain(each.skill).suite == PAPER_SUITE]
    if not dated:
        return [
            "contamination: everything in it is fictional; only a model trained on this edition can know its answers"
        ]
    days = [each.as_of_date for each in dated]
    quarters = Counter(f"{day.year}-Q{(day.month + 2) // 3}" for day in days)
    counts = ", ".join(f"{quarter} {quarters[quarter]}" for quarter in sorted(quarters))
    lines = [f"newest day: {max(days)}; no episode contains later data", f"as-of dates: {counts}"]
    named = [("", cutoffs.every)] if cutoffs.every else []
    for model, day in [*named, *cutoffs.models.items()]:
        after = sum(each > day for each in days)
        who = f"{model}, trained on data up to {day}," if model else f"a model trained on data up to {day}"
        lines.append(
            f"contamination: {who} may know the answers of {len(days) - after:,} of {len(days):,} episodes; "
            f"{after:,} have a later as-of date (report --cutoff separates the two)"
        )
    return lines


def _by_difficulty(level: str) -> tuple[int, str]:
    known = ("easy", "medium", "hard")
    return (known.index(level) if level in known else len(known), level)

"""`finskillbench data info`: what an edition holds.

`finskillbench data diff`: what two editions differ in.

`finskillbench data doctor`: everything that is missing or wrong in a folder of raw files, and what can be built.

`finskillbench data explain`: where a figure of a fundamental label comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument
from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput

DIFF_EXAMPLE = "Example: finskillbench data diff editions/seven editions/seven-again"


def diff(
    first: EditionArgument,
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of the edition to compare it with.")],
) -> None:
    """Say what differs between two editions, and where scores are comparable. Exit code 1 if they are not."""
    from finskillbench.edition import load_edition
    from finskillbench.edition.diagnosis import PARTS, compare_editions

    with console.Progress() as progress:
        found = compare_editions(load_edition(first), load_edition(second), progress)
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
        typer.echo("One of them was handed out without truth: whether scores are comparable cannot be said.")
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


def doctor(
    raw_dir: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of raw files, as for `data build --raw-dir`.")],
    as_json: JsonOutput = None,
) -> None:
    """Say all that is missing or wrong in a folder of raw files, file by file, and what can be built from it.

    `finskillbench data template` shows the format of every file. Exit code 0: all is well; 1: something was found;
    2: it could not run.
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
    """One kind of file: a line if nothing is wrong with it, else what is and the format."""
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
    """The first of some sentences, a line each."""
    for note in notes[:_SHOWN]:
        typer.echo(f"{title}: {note}")
    if (hidden := len(notes) - _SHOWN) > 0:
        typer.echo(f"{title}: and {hidden} more; --json FILE has all")


def _show_prospect(prospect: Prospect) -> None:
    told = (
        f"{', '.join(prospect.subtasks)} (of {prospect.size})" if prospect.subtasks else f"not built: {prospect.reason}"
    )
    typer.echo(f"{prospect.domain.replace('_', ' ')}: {told}")


EXPLAIN_EXAMPLE = "Example: finskillbench data explain editions/seven fa_norm_AAPL_2024-03-30 total_liabilities"


def explain(
    edition: EditionArgument,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID", help="Episode of fundamental analysis.")],
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="Metric of its label, such as revenue.")],
) -> None:
    """Print the facts considered for a metric, the rule that chose, and its witnesses, with accession numbers."""
    from finskillbench.domains.fundamental.explain import explain_metric as lines
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.panels.store import read_panel_table

    opened = load_edition(edition)
    episode = next((one for one in opened.episodes() if one.task_id == task_id), None)
    if episode is None:
        raise InputError(f"{edition} has no episode {task_id}; `finskillbench data info {edition}` names its subtasks")
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
"""The kind of source whose companies nobody can have read about."""


def info(
    edition: EditionArgument,
    cutoff: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MODEL=]DATE", help="Last day of training data: how many episodes lie after it; repeatable."
        ),
    ] = None,
    shortcuts: Annotated[
        bool, typer.Option("--shortcuts", help="Score the standard shortcuts of each subtask and print their means.")
    ] = False,
) -> None:
    """Print what an edition holds: origin, digest, versions, notes, and episodes by subtask and difficulty.

    It ends with the newest day in it, and what a model whose training data reach a cut-off may have read of it.
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
    """Mean certified score of each shortcut by tier, with its bounds."""
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
    """Print an edition: what it was made from, then a line per subtask with its episodes by difficulty.

    Below it, the median work of an episode of each difficulty.
    """
    from collections import Counter

    manifest = edition.manifest
    told = {key: value for key, value in manifest["source"].items() if key not in ("raw_digest", "provenance")}
    source = ", ".join(f"{key} {value}" for key, value in told.items())
    dates = manifest["as_of_dates"]
    versions = ", ".join(f"{name} {number}" for name, number in manifest["versions"].items())
    for title, value in (
        ("Edition", edition.path),
        ("Digest", edition.digest),
        ("Source", f"{source}, seed {'not told' if manifest['seed'] is None else manifest['seed']}"),
        *((("Catalog", ", ".join(manifest["catalog"]["files"]) or "held back"),) if "catalog" in manifest else ()),
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


def _contamination(edition: Edition, cutoffs: Cutoffs) -> list[str]:
    """The newest day in an edition, and what lies after each cut-off."""
    from collections import Counter

    from finskillbench.domains import domain
    from finskillbench.episode import PAPER_SUITE

    invented = edition.manifest["source"]["kind"] == _FICTIONAL
    dated = [each for each in edition.episodes() if not invented and domain(each.skill).suite == PAPER_SUITE]
    if not dated:
        return ["contamination: everything in it is fictional; who has not seen this edition has read nothing of it"]
    days = [each.as_of_date for each in dated]
    quarters = Counter(f"{day.year}-Q{(day.month + 2) // 3}" for day in days)
    told = ", ".join(f"{quarter} {quarters[quarter]}" for quarter in sorted(quarters))
    lines = [f"newest day: {max(days)}; no episode knows anything later", f"asked as of: {told}"]
    named = [("", cutoffs.every)] if cutoffs.every else []
    for model, day in [*named, *cutoffs.models.items()]:
        after = sum(each > day for each in days)
        who = f"{model}, trained on data up to {day}," if model else f"a model trained on data up to {day}"
        lines.append(
            f"contamination: {who} may have read the answers of {len(days) - after:,} of {len(days):,} episodes; "
            f"{after:,} are asked as of a later day (report --cutoff tells the two apart)"
        )
    return lines


def _by_difficulty(level: str) -> tuple[int, str]:
    known = ("easy", "medium", "hard")
    return (known.index(level) if level in known else len(known), level)

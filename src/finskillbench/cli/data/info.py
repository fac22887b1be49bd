"""`finskillbench data info`: what an edition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.data.arguments import EditionArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from finskillbench.analysis.cutoffs import Cutoffs
    from finskillbench.edition import Edition

EXAMPLE = """\b
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
    from finskillbench.domains import by_name
    from finskillbench.edition.checks.engine import audit_edition
    from finskillbench.edition.checks.scores import SHORTCUTS, Means

    (check,) = audit_edition(edition, [SHORTCUTS]).checks
    means: Mapping[str, Means] = check.figures.get("means", {})
    lines: list[str] = []
    for name, by_shortcut in means.items():
        stated = by_name(name).examples.shortcuts
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

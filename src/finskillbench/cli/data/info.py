"""`finskillbench data info`: what an edition holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from finskillbench.cli.data.arguments import EditionArgument

if TYPE_CHECKING:
    from finskillbench.edition import Edition

EXAMPLE = "Example: finskillbench data info editions/seven"


def info(edition: EditionArgument) -> None:
    """Print what an edition holds: origin, digest, versions, notes, and episodes by subtask and difficulty."""
    from finskillbench.edition import load_edition

    describe(load_edition(edition))


def describe(edition: Edition) -> None:
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
        *((("Catalog", ", ".join(manifest["catalog"]["files"])),) if "catalog" in manifest else ()),
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

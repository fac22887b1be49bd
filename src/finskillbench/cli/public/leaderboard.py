"""`finskillbench leaderboard`: a page from the bundles that somebody was sent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench leaderboard build bundles/*.zip --edition editions/held-out --out site
  finskillbench leaderboard build bundles/*.zip --edition editions/held-out --out site --signers allowed --keep-going"""
app = typer.Typer(help="A page from the bundles that somebody was sent, with every score computed again.")


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)


@app.command("build", epilog=EXAMPLE)
def build(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE...", help="What finskillbench submit wrote.")],
    edition: Annotated[Path, typer.Option(metavar="DIR", help="The edition with its truth.")],
    out: Annotated[
        Path, typer.Option("--out", parser=console.out_path, metavar="DIR", help="Folder of the page; new or empty.")
    ],
    baselines: Annotated[
        Path | None,
        typer.Option(metavar="BUNDLE", help="Bundle of a run of the baselines that you made yourself; shown beside."),
    ] = None,
    signers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Allowed signers, as ssh-keygen(1) has them. Default: any key."),
    ] = None,
    allow_unsigned: Annotated[bool, typer.Option("--allow-unsigned", help="Take bundles without a signature.")] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Leave out what does not fit, and list it on the page.")
    ] = False,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "FinSkillBench leaderboard",
    profile: Annotated[str, typer.Option(help="certified, strict or paper.")] = "certified",
) -> None:
    """Hold submissions against the truth and write a static page of what they earn.

    Refused in one line, with exit code 2: a bundle of another edition, altered, wrongly signed, with episodes missing,
    twice or unknown, with other skills than it says, or with a score that its answer does not earn.
    """
    from datetime import date

    from finskillbench.edition import load_edition
    from finskillbench.episode import Profile
    from finskillbench.publish.leaderboard import gather, write_site

    judged_by = console.one_of(Profile, profile, "--profile")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition)
        gathered = gather(
            bundles,
            loaded,
            programs=baselines,
            signers=signers,
            unsigned=allow_unsigned,
            keep_going=keep_going,
            progress=lambda name, done, total: progress(f"Judging {name}", done, total),
        )
        progress("Writing the page")
        board = write_site(gathered, loaded, out, today=date.today(), title=title, profile=judged_by)
    for each in gathered.refused:
        print(f"refused: {each.name}: {each.reason}", file=sys.stderr)
    typer.echo(f"{out / 'index.html'}: {len(board.entries)} entries, {len(gathered.refused)} bundles refused")

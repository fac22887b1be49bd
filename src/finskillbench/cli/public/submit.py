"""`finskillbench submit`: a run as a bundle for a leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console

EXAMPLE = """\b
Examples:
  finskillbench submit runs/mine --out mine.zip --name "Example Lab" --url https://lab.example
  finskillbench submit runs/mine --out mine.zip --name "Example Lab" --cutoff openai/gpt-5=2024-10-01"""


# As long as its options are many, each of which is named and explained once, here.
def submit(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    out: Annotated[
        Path,
        typer.Option("--out", parser=console.out_path, metavar="PATH", help="New file ending in .zip, or new folder."),
    ],
    name: Annotated[str, typer.Option(help="Who submits, as the leaderboard shows it.")],
    contact: Annotated[str | None, typer.Option(help="How to reach you; shown.")] = None,
    url: Annotated[str | None, typer.Option(help="An address of the web; shown.")] = None,
    edition: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="What it was run on, with or without truth. Default: where the run says."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="SSH key to sign with. Default: id_ed25519, id_ecdsa or id_rsa of ~/.ssh."),
    ] = None,
    unsigned: Annotated[bool, typer.Option("--unsigned", help="Without a signature; shown as such.")] = False,
    partial: Annotated[
        str | None, typer.Option(metavar="REASON", help="Submit a run with episodes missing; shown and not ranked.")
    ] = None,
    cutoff: Annotated[
        list[str] | None,
        typer.Option(metavar="[MODEL=]DATE", help="Last day of a model's training data; repeatable."),
    ] = None,
    trajectories: Annotated[
        bool, typer.Option("--trajectories", help="With everything that was said and done, without keys.")
    ] = False,
) -> None:
    """Write a bundle of a run: answers, rows, settings and digests, signed, with nothing of the truth and no keys.

    Whoever holds the truth computes every score again from it: finskillbench leaderboard build. Nothing is sent.
    """
    from finskillbench.analysis.cutoffs import parse_cutoffs
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.publish.bundle.manifest import Submitter
    from finskillbench.publish.bundle.sign import default_key
    from finskillbench.publish.bundle.write import submit as write
    from finskillbench.runs.afterwards.rescore import read_run

    if unsigned and key is not None:
        raise InputError("--unsigned and --key: give one of the two")
    signing = None if unsigned else key or default_key()
    if signing is None and not unsigned:
        raise InputError("there is no SSH key in ~/.ssh; name one with --key, or give --unsigned")
    cutoffs = parse_cutoffs(cutoff or ())
    record = read_run(run)
    if unknown := sorted(cutoffs.models.keys() - {each.model for asked in record.asked for each in asked.entries}):
        raise InputError(f"--cutoff: the run has no model {unknown[0]}")
    was = Path(record.edition_path)
    if edition is None and not was.is_dir():
        raise InputError(f"{run}: the edition is no longer at {was}; name it with --edition")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition or was)
        progress("Writing the bundle")
        submitter = Submitter(name=name, contact=contact, url=url)
        done = write(
            *(run, loaded, out, submitter),
            key=signing,
            partial=partial,
            cutoff=cutoffs.of,
            trajectories=trajectories,
        )
    signed = f"signed with {signing}" if done.signed else "unsigned"
    typer.echo(f"{done.path}: {done.rows:,} episodes, {signed}")

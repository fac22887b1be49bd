"""Commands `submit`, `leaderboard`, `data export` and `data canary`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import EditionArgument
from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console
from finskillbench.errors import InputError

if TYPE_CHECKING:
    from finskillbench.edition import Edition

SUBMIT, EXPORT, CANARY = typer.Typer(), typer.Typer(), typer.Typer()
SUBMIT_EXAMPLE = """\b
Examples:
  finskillbench submit runs/mine --out mine.zip --name "Example Lab" --url https://lab.example
  finskillbench submit runs/mine --out mine.zip --name "Example Lab" --cutoff openai/gpt-5=2024-10-01"""


# Longer than a screen: each option is a parameter with its help text.
@SUBMIT.command("submit", epilog=SUBMIT_EXAMPLE)
def submit_command(
    run: Annotated[Path, Argument(metavar="RUN", help="Run folder.")],
    out: Annotated[
        Path, Option("--out", parser=console.out_path, metavar="PATH", help="New file ending in .zip, or new folder.")
    ],
    name: Annotated[str, Option(help="Name of the submitter, shown on the leaderboard.")],
    contact: Annotated[str | None, Option(help="Contact, shown on the leaderboard.")] = None,
    url: Annotated[str | None, Option(help="Web address, shown on the leaderboard.")] = None,
    edition: Annotated[
        Path | None,
        Option(
            metavar="DIR", help="Edition of the run, with or without truth. Default: the path that the run recorded."
        ),
    ] = None,
    key: Annotated[
        Path | None,
        Option(metavar="FILE", help="SSH key to sign with. Default: id_ed25519, id_ecdsa or id_rsa of ~/.ssh."),
    ] = None,
    unsigned: Annotated[
        bool, Option("--unsigned", help="Submit without a signature; shown on the leaderboard.")
    ] = False,
    partial: Annotated[
        str | None, Option(metavar="REASON", help="Submit a run with missing episodes; shown, but not ranked.")
    ] = None,
    cutoff: Annotated[
        list[str] | None, Option(metavar="[MODEL=]DATE", help="Last day of a model's training data; repeatable.")
    ] = None,
    trajectories: Annotated[bool, Option("--trajectories", help="Include full trajectories, without keys.")] = False,
) -> None:
    """Write a bundle of a run: answers, rows, settings and digests, signed, without truth and keys.

    The bundle is not sent anywhere. `finskillbench leaderboard build` recomputes every score from it.
    """
    from finskillbench.analysis.cutoffs import parse_cutoffs
    from finskillbench.edition import load_edition
    from finskillbench.publish.bundle import Submitter, default_key
    from finskillbench.publish.bundle.write import submit_run as write
    from finskillbench.runs.postprocess.rescore import read_run

    if unsigned and key is not None:
        raise InputError("--unsigned and --key: give one of the two")
    signing = None if unsigned else key or default_key()
    if signing is None and not unsigned:
        raise InputError("there is no SSH key in ~/.ssh; name one with --key, or give --unsigned")
    cutoffs = parse_cutoffs(cutoff or ())
    record = read_run(run)
    if unknown := sorted(cutoffs.models.keys() - {each.model for request in record.asked for each in request.entries}):
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
            *(run, loaded, out, submitter), key=signing, partial=partial, cutoff=cutoffs.of, trajectories=trajectories
        )
    signed = f"signed with {signing}" if done.signed else "unsigned"
    typer.echo(f"{done.path}: {done.rows:,} episodes, {signed}")


BUILD_EXAMPLE = """\b
Examples:
  finskillbench leaderboard build bundles/*.zip --edition editions/held-out --out site
  finskillbench leaderboard build bundles/*.zip --edition editions/held-out --out site --signers allowed --keep-going"""
LEADERBOARD = typer.Typer(help="Build a leaderboard page from bundles, with every score recomputed.")


@LEADERBOARD.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)


@LEADERBOARD.command("build", epilog=BUILD_EXAMPLE)
def build(
    bundles: Annotated[list[Path], Argument(metavar="BUNDLE...", help="Bundles written by finskillbench submit.")],
    edition: Annotated[Path, Option(metavar="DIR", help="The edition with its truth.")],
    out: Annotated[
        Path, Option("--out", parser=console.out_path, metavar="DIR", help="Folder of the page; new or empty.")
    ],
    baselines: Annotated[
        Path | None, Option(metavar="BUNDLE", help="Bundle of your run of the baselines; listed separately.")
    ] = None,
    signers: Annotated[
        Path | None, Option(metavar="FILE", help="File of allowed signers, see ssh-keygen(1). Default: any key.")
    ] = None,
    allow_unsigned: Annotated[bool, Option("--allow-unsigned", help="Accept bundles without a signature.")] = False,
    keep_going: Annotated[
        bool, Option("--keep-going", help="Omit invalid bundles, and list them on the page.")
    ] = False,
    title: Annotated[str, Option(help="Title of the page.")] = "FinSkillBench leaderboard",
    profile: Annotated[str, Option(help="certified, strict or paper.")] = "certified",
) -> None:
    """Recompute the scores of bundles against the truth and write a static leaderboard page.

    Refused with exit code 2: a bundle of another edition, altered, wrongly signed, with missing, duplicate or unknown
    episodes, with other skills than stated, or with a score that its answer does not earn.
    """
    from datetime import date

    from finskillbench.edition import load_edition
    from finskillbench.episode import Profile
    from finskillbench.publish.leaderboard import gather_bundles, write_site

    judged_by = console.one_of(Profile, profile, "--profile")
    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = load_edition(edition)
        gathered = gather_bundles(
            bundles,
            loaded,
            programs=baselines,
            signers=signers,
            unsigned=allow_unsigned,
            keep_going=keep_going,
            progress=lambda name, done, total: progress(f"Judging {name}", done, total),
        )
        progress("Writing the page")
        leaderboard = write_site(gathered, loaded, out, today=date.today(), title=title, profile=judged_by)
    for each in gathered.refused:
        print(f"refused: {each.name}: {each.reason}", file=sys.stderr)
    typer.echo(f"{out / 'index.html'}: {len(leaderboard.entries)} entries, {len(gathered.refused)} bundles refused")


EXPORT_EXAMPLE = """\b
Examples:
  finskillbench data export editions/seven --public --out handed-out/seven
  finskillbench data export editions/seven --hub hub/seven"""
_GUESSED = 2**48
"""Smaller seeds can be found by trial; 1,000 builds per second take 9,000 years for this many."""


@EXPORT.command("export", epilog=EXPORT_EXAMPLE)
def export_command(
    edition: EditionArgument,
    out: Annotated[
        Path | None,
        Option(
            "--out", parser=console.out_path, metavar="PATH", help="Folder of the copy; new or empty. Needs --public."
        ),
    ] = None,
    public: Annotated[
        bool, Option("--public", help="Without truth, certificates and seed, and with a canary; required by --out.")
    ] = False,
    hub: Annotated[
        Path | None,
        Option(
            "--hub",
            parser=console.out_path,
            metavar="PATH",
            help="Folder of a data set instead: Parquet, a card, Croissant metadata, the copy; new or empty.",
        ),
    ] = None,
    with_truth: Annotated[
        bool, Option("--with-truth", help="Include the labels, in a separate configuration; needs --hub.")
    ] = False,
) -> None:
    """Copy an edition for distribution, without what is needed to score.

    --hub writes a folder for upload to a data set hub. Labels are included only with --with-truth.
    """
    from finskillbench.edition import load_edition
    from finskillbench.edition.withheld import export_public

    if (out is None) == (hub is None):
        raise InputError("give either --public --out PATH, or --hub PATH")
    if hub is not None:
        if public:
            raise InputError("--public needs --out; --hub writes a public data set unless --with-truth is given")
        _to_hub(load_edition(edition), hub, truth=with_truth)
        return
    if with_truth:
        raise InputError("--with-truth needs --hub; copy the folder to keep its truth")
    if not public or out is None:
        raise InputError("--out makes public copies only: add --public, or copy the folder to keep its truth")
    loaded = load_edition(edition)
    describe(export_public(loaded, out))
    _warn_of_seed(loaded)


def _to_hub(edition: Edition, out: Path, *, truth: bool) -> None:
    from datetime import date

    from finskillbench.publish.hub import CARD, CROISSANT, export_hub

    with console.Progress() as progress:
        progress("Writing the data set")
        shards = export_hub(edition, out, today=date.today(), truth=truth)
    typer.echo(f"{out}: {len(shards)} shards, {sum(each.rows for each in shards):,} rows, {CARD}, {CROISSANT}")
    if truth:
        print(f"warning: {out / 'truth'} contains the expected answers; do not publish it", file=sys.stderr)
    _warn_of_seed(edition)


def _warn_of_seed(edition: Edition) -> None:
    seed = edition.manifest["seed"]
    if edition.manifest["source"]["kind"] == "synthetic" and seed is not None and seed < _GUESSED:
        print(
            "warning: the seed of this edition is small enough to be found by trial, which reveals the truth; for "
            "a leaderboard draw one at random (docs/publishing.md)",
            file=sys.stderr,
        )


CANARY_EXAMPLE = """\b
Examples:
  finskillbench data canary corpus/part-00*.jsonl.gz
  some-program | finskillbench data canary -"""


@CANARY.command(epilog=CANARY_EXAMPLE)
def canary(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Files or folders; - is standard input.")],
) -> None:
    """Print the files that contain the canary of FinSkillBench, which every episode has. Exit code 1 if any does.

    Gzipped files are also searched unpacked; folders are searched recursively.
    """
    from finskillbench.publish.hub.shards import file_has_canary, has_canary

    found = 0
    for path in files:
        if str(path) == "-":
            marked = ["standard input"] if has_canary(sys.stdin.buffer.read()) else []
        else:
            below = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
            marked = [str(each) for each in below if file_has_canary(each)]
        for name in marked:
            typer.echo(name)
        found += len(marked)
    if found:
        raise typer.Exit(1)

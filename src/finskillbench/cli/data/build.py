"""Commands `finskillbench data build`, `catalog`, `template`, `import` and `validate`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.data.arguments import EditionArgument, NewFolder, PartOfEdition
from finskillbench.cli.data.info import describe
from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST
from finskillbench.cli.options.kinds import JsonOutput
from finskillbench.episode import PAPER_SUITE, Disclosure
from finskillbench.errors import InputError

CATALOG_EXAMPLE = (
    "Example: finskillbench data catalog --out mine, then: finskillbench data build --catalog mine --out editions/mine"
)


def catalog(out: NewFolder) -> None:
    """Write the built-in mandates, scenarios, tiers and texts as files to edit and pass to `data build --catalog`."""
    from finskillbench.domains import catalog_files
    from finskillbench.edition.store import new_folder

    with new_folder(out) as folder:
        for kind in catalog_files():
            for name, text in kind.example().items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                typer.echo(f"{out / name}")


TEMPLATE_EXAMPLE = "Example: finskillbench data template downloads/raw"


def template(
    out: Annotated[Path, Argument(metavar="OUT", parser=console.out_path, help="Folder to create, or an empty one.")],
) -> None:
    """Write a small example of every file that `data build --raw-dir` reads, and a README that documents each field.

    The companies are fictional and too few to build an edition; replace them with your own files.
    """
    from finskillbench.sources.raw.doctor import write_template

    for name in write_template(out):
        typer.echo(name)


RELEASE_EXAMPLE = "Example: finskillbench data import downloads/release --out editions/published"


def import_release(
    release: Annotated[Path, Argument(metavar="RELEASE_DIR", help="Folder of the published release.")], out: NewFolder
) -> None:
    """Import the published release as an edition and list episodes whose inputs do not resolve."""
    from finskillbench.edition import load_edition
    from finskillbench.edition import release as releases

    with console.Progress() as progress:
        progress("Importing the release")
        report = releases.import_published_release(release, out)
    describe(load_edition(out))
    for task_id, reason in report.unresolved.items():
        typer.echo(f"unresolved: {task_id}: {reason}")


VALIDATE_EXAMPLE = "Example: finskillbench data validate editions/seven"


def validate(edition: EditionArgument, suite: PartOfEdition = None, as_json: JsonOutput = None) -> None:
    """Check an edition: its panels, and every label against its proof. Exit code 1 if a check fails.

    The result is saved in your state folder under the digest of the edition; `run` and `score` print it.
    """
    from finskillbench.edition import load_edition
    from finskillbench.edition.checks.engine import validate_edition
    from finskillbench.errors import InputError
    from finskillbench.runs.store.version import save_validation

    with console.Progress() as progress:
        loaded = load_edition(edition, suite)
        report = validate_edition(loaded, progress)
    if not console.json_printed(as_json, report.to_json):
        typer.echo(report)
    try:
        save_validation(loaded, passed=report.passed)
    except InputError as error:
        print(f"note: the result is not saved: {error}", file=sys.stderr)
    if not report.passed:
        raise typer.Exit(1)


BUILD_EXAMPLE = "Example: finskillbench data build --seed 7 --out editions/seven"


class Source(StrEnum):
    """Source of raw files."""

    SYNTHETIC = "synthetic"
    RAW_DIR = "raw-dir"


def build(
    out: NewFolder,
    source: Annotated[Source, Option(help="Fictional companies from a seed, or your raw files.")] = (Source.SYNTHETIC),
    raw_dir: Annotated[Path | None, Option(help="Folder of raw files, for --source raw-dir.")] = None,
    seed: Annotated[int | None, Option(max=LARGEST, help="Random seed of market and episodes. Default: 1.")] = None,
    companies: Annotated[
        int | None, Option(help="Number of companies, 15 to 3,000. Default: 30, or as in the raw files.")
    ] = None,
    suite: Annotated[
        str, Option(metavar="NAME", help="Suite to build: paper, one of another package, or all.")
    ] = PAPER_SUITE,
    disclosure: Annotated[
        Disclosure | None,
        Option(
            help="How much cases of the desk suite state of the law they follow. Default: half described, half data."
        ),
    ] = None,
    catalog: Annotated[
        Path | None, Option(help="Folder of your mandates, books and scenarios; `data catalog` writes an example.")
    ] = None,
    cluster: Annotated[
        str | None,
        Option(metavar="ADDRESS", help="Scheduler of a Dask cluster that builds the labels, such as tcp://host:8786."),
    ] = None,
) -> None:
    """Build an edition: panels, episodes, truth and a proof of every label."""
    if source is Source.RAW_DIR and raw_dir is None:
        raise InputError("--source raw-dir needs --raw-dir DIR, the folder of the raw files")
    if source is Source.SYNTHETIC and raw_dir is not None:
        raise InputError("--raw-dir needs --source raw-dir; add it or leave --raw-dir out")

    from finskillbench.edition.build import DEFAULT_SEED, build_edition

    with console.Progress() as progress:
        edition = build_edition(
            source=source.value,
            raw_dir=raw_dir,
            seed=DEFAULT_SEED if seed is None else seed,
            companies=companies,
            suite=suite,
            disclosure=disclosure,
            catalog=catalog,
            cluster=cluster,
            out=out,
            progress=progress,
        )
    describe(edition)

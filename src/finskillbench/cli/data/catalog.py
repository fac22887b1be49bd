"""`finskillbench data catalog`: what is built in, as files to start from."""

from __future__ import annotations

import typer

from finskillbench.cli.data.arguments import NewFolder

EXAMPLE = (
    "Example: finskillbench data catalog --out mine, then: finskillbench data build --catalog mine --out editions/mine"
)


def catalog(out: NewFolder) -> None:
    """Write the built-in mandates, scenarios, tiers and texts, to edit and build from with `data build --catalog`."""
    from finskillbench.domains import catalog_files
    from finskillbench.edition.store import new_folder

    with new_folder(out) as folder:
        for kind in catalog_files():
            for name, text in kind.example().items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                typer.echo(f"{out / name}")

"""`finskillbench skills`: list, lint, show, create and evaluate skill packages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument

from finskillbench.cli import evaluate
from finskillbench.cli.display import console

app = typer.Typer(help="List, lint, show, create and evaluate skill packages.")
app.command("eval", epilog=evaluate.EXAMPLE)(evaluate.eval_command)


@app.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    console.help_when_alone(context)


@app.command("list", epilog="Example: finskillbench skills list")
def list_packages() -> None:
    """List the curated packages with their descriptions."""
    from finskillbench.harness.skills.loader import curated

    packages = curated()
    for name, package in packages.items():
        counts = f"{len(package.references)} references, {len(package.scripts)} scripts"
        typer.echo(f"{name} ({counts}, sha256 {package.digest[:12]})")
        typer.echo(f"  {package.description}")
    if not packages:
        typer.echo("No curated packages.")


@app.command("lint", epilog="Example: finskillbench skills lint my-skills/mine")
def lint_packages(
    packages: Annotated[
        list[str] | None,
        Argument(metavar="[PACKAGE...]", help="Names or folders of packages. Default: all curated packages."),
    ] = None,
) -> None:
    """Check packages against the Agent Skills specification and this project's rules. Exit code 1 if there are
    problems.
    """
    from finskillbench.harness.skills.lint import lint
    from finskillbench.harness.skills.loader import curated, package_folders

    named = [_folder(name) for name in packages or ()] or [package.root for package in curated().values()]
    folders = [package for folder in named for package in package_folders(folder)]
    clean = True
    for folder in folders:
        problems = lint(folder)
        clean = clean and not problems
        typer.echo(f"{folder.resolve().name}: {_count(problems)}")
        for problem in problems:
            typer.echo(f"  {problem}")
    if not clean:
        raise typer.Exit(1)


@app.command("show", epilog="Example: finskillbench skills show portfolio-construction")
def show_package(package: Annotated[str, Argument(help="Name of a curated package, or a package folder.")]) -> None:
    """Print a package as an agent reads it: its document, then the names of its references and scripts."""
    from finskillbench.harness.skills.loader import load_package

    loaded = load_package(_folder(package))
    typer.echo(loaded.body)
    typer.echo("")
    for title, entries in (("References", loaded.references), ("Scripts", loaded.scripts)):
        typer.echo(f"{title}: {', '.join(entries) or 'none'}")
    typer.echo(f"Folder: {loaded.root}")


@app.command("faults", epilog="Example: finskillbench skills faults sign")
def print_faults(
    kind: Annotated[str | None, Argument(help="Kind of fault, as in the condition faulty:KIND. Default: all.")] = None,
) -> None:
    """Print planted faults: the package, the changed lines, and the passages of prompts that contradict them."""
    from difflib import unified_diff

    from finskillbench.harness.conditions import arm_of
    from finskillbench.harness.skills.faults import FAULTY_PREFIX, faults
    from finskillbench.harness.skills.loader import curated, read_files

    if kind is not None:
        arm_of(FAULTY_PREFIX + kind)  # raises InputError for unknown kinds
    for _, fault in faults(kind):
        typer.echo(f"{FAULTY_PREFIX}{fault.kind} in {fault.package}")
        for sub_task, clause in fault.clauses.items():
            typer.echo(f"  {sub_task} states: {clause}")
        before = read_files(curated()[fault.package].root)
        for name, data in fault.applied(before).items():
            old, new = before[name].decode().splitlines(), data.decode().splitlines()
            for line in unified_diff(old, new, name, name, n=0, lineterm=""):
                typer.echo(f"  {line}")


@app.command("new", epilog="Example: finskillbench skills new my-skills/portfolio-notes")
def new(folder: Annotated[Path, Argument(metavar="DIR", help="Folder to create, which names the skill.")]):
    """Create a template package with a document, a reference, a script and test cases; it passes the linter."""
    from finskillbench.edition.store import new_folder
    from finskillbench.errors import InputError
    from finskillbench.harness.skills.template import package_files

    if folder.exists():
        raise InputError(f"{folder} already exists; name a new folder")
    files = package_files(folder.absolute().name)
    with new_folder(folder) as staged:
        for path, text in files.items():
            (staged / path).parent.mkdir(exist_ok=True)
            (staged / path).write_text(text, encoding="utf-8")
    typer.echo(f"{folder}: {', '.join(files)}")
    typer.echo(f"Edit them, then: finskillbench skills lint {folder}")
    typer.echo(f"Measure their effect: finskillbench skills eval {folder} --model MODEL")


def _folder(name: str) -> Path:
    """Return the folder of a curated package, or the given folder."""
    from finskillbench.errors import InputError
    from finskillbench.harness.skills.loader import curated

    known = curated()
    if name in known:
        return known[name].root
    if Path(name).is_dir():
        return Path(name)
    raise InputError(f"no skill package {name!r}; give a folder or one of: {', '.join(known) or 'none'}")


def _count(problems: list[str]) -> str:
    if not problems:
        return "clean"
    return "1 problem" if len(problems) == 1 else f"{len(problems)} problems"

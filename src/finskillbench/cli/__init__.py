"""Command line: parse arguments, call the library, print results.

Heavy imports wait until a command needs them. Extensions register their commands through entry points.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Annotated

import typer
from typer import Option, TyperException
from typer.main import get_command

from finskillbench.cli import audit, data, demo, doctor, inspect, plan, run, skills
from finskillbench.cli.display import console
from finskillbench.cli.groups import ExtensibleGroup
from finskillbench.cli.options.kinds import command
from finskillbench.cli.postprocess import compare, report, short_form, show
from finskillbench.errors import CatalogError, FinSkillBenchError, InputError, InternalError
from finskillbench.redaction import logger, redactor_of_process

FAILED = 2
"""Exit code for errors in input, arguments or file access; 1 is for checks with findings."""
MIN_ADDRESS_SPACE = 1400 << 20
"""Minimum address space in bytes; one episode of a program takes 1.3 GB on two cores."""

app = typer.Typer(
    name="finskillbench",
    cls=ExtensibleGroup,
    help="Benchmark of investment-management agents and their skills, with point-in-time data and proved labels.",
    epilog="Start with: finskillbench demo",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.command("audit", epilog=audit.EXAMPLE)(audit.audit)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("plan", epilog=plan.EXAMPLE)(command(plan.plan, plan.PlanOptions))
app.command("run", epilog=run.EXAMPLE)(command(run.run, run.RunCommandOptions))
app.command("inspect", epilog=inspect.EXAMPLE)(inspect.inspect)
app.command("read", hidden=True)(inspect.inspect)  # former name, removed in the next release
app.command("merge", epilog=show.MERGE_EXAMPLE)(show.merge)
app.command("show", epilog=show.SHOW_EXAMPLE)(show.show)
app.command("report", epilog=report.EXAMPLE)(report.report_command)
app.command("compare", epilog=compare.EXAMPLE)(compare.compare)
app.command("short-form", epilog=short_form.EXAMPLE)(short_form.short_form)
app.command("failures", epilog=show.FAILURES_EXAMPLE)(show.failures)
app.command("rescore", epilog=show.RESCORE_EXAMPLE)(show.rescore)
app.add_typer(skills.app, name="skills")
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"finskillbench {version('finskillbench')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    show_version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        int, Option("-v", "--verbose", count=True, help="Log progress to standard error; -vv adds tracebacks.")
    ] = 0,
) -> None:
    console.log_to_stderr(verbose)
    console.help_when_alone(context)
    _check_address_space()


def _check_address_space() -> None:
    """Refuse a memory limit under which libraries end in tracebacks or kill the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if resource.RLIM_INFINITY != limit < MIN_ADDRESS_SPACE:
        raise InputError(
            f"address space is limited to {limit >> 20:,} MB, but the libraries need {MIN_ADDRESS_SPACE >> 20:,} MB; "
            "raise the limit, for example with `ulimit -v unlimited`"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done; 1: a check has findings; 2: an error, printed as one line on standard error, or one line per mistake in a
    catalog; 130: interrupted. An unexpected exception is a bug and keeps its traceback. -vv logs tracebacks of errors.
    """
    try:
        code = _command()(
            _with_json_target(sys.argv[1:] if arguments is None else arguments),
            prog_name="finskillbench",
            standalone_mode=False,
        )
    except InternalError as error:
        return _fail(f"{error} (a bug in finskillbench: please report it)")
    except CatalogError as error:
        return _fail(*error.mistakes)
    except FinSkillBenchError as error:
        return _fail(str(error))
    except TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "finskillbench"
        return _fail(f"{error.format_message().rstrip('.')}; see {command} --help")
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}; check the path, its permissions and free disk space")
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        print("interrupted; the same command resumes a run", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _with_json_target(arguments: Sequence[str]) -> list[str]:
    """Make standard output the target of `--json` without FILE, because Typer has no optional option values."""
    return [
        f"--json={console.STANDARD_OUTPUT}" if name == "--json" and following.startswith("-") else name
        for name, following in zip(arguments, [*arguments, "-"][1:], strict=True)
    ]


@cache
def _command() -> Callable[..., object]:
    """Return the command that Typer builds from the functions, built once per process."""
    return get_command(app)


def _fail(*messages: str) -> int:
    logger(__name__).debug("the command failed", exc_info=True)
    for message in messages:
        print("error: " + redactor_of_process()(" ".join(message.split())), file=sys.stderr)
    return FAILED

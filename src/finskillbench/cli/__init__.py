"""The command line: parse, call, print. One file per command group; every import of weight waits for its command.

The commands of extensions, ours and others, are registered through entry points.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from typing import Annotated

import typer
from typer import TyperException
from typer.main import get_command

from finskillbench.cli import audit, data, demo, doctor, inspect, plan, run, skills
from finskillbench.cli.display import console
from finskillbench.cli.groups import ExtensibleGroup
from finskillbench.cli.options.kinds import command
from finskillbench.cli.postprocess import compare, report, show
from finskillbench.errors import CatalogError, FinSkillBenchError, InputError, InternalError
from finskillbench.redaction import logger, redactor_of_process

FAILED = 2
"""Exit code where the input, the arguments or the disk are at fault; 1 is left for checks that found something."""
LEAST_MEMORY = 1400 << 20
"""Bytes of address space: a run of a program on one episode takes 1.3 GB on two cores."""

app = typer.Typer(
    name="finskillbench",
    cls=ExtensibleGroup,
    help="A proved, point-in-time benchmark of investment-management agents and of the skills they use.",
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
app.command("run", epilog=run.EXAMPLE)(command(run.run, run.PlayOptions))
app.command("inspect", epilog=inspect.EXAMPLE)(inspect.inspect)
app.command("read", hidden=True)(inspect.inspect)  # former name, removed in the next release
app.command("merge", epilog=show.MERGE_EXAMPLE)(show.merge)
app.command("show", epilog=show.SHOW_EXAMPLE)(show.show)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("compare", epilog=compare.EXAMPLE)(compare.compare)
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
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        int,
        typer.Option("-v", "--verbose", count=True, help="Log what is done to standard error; -vv with tracebacks."),
    ] = 0,
) -> None:
    console.log_to_stderr(verbose)
    console.help_when_alone(context)
    _refuse_little_memory()


def _refuse_little_memory() -> None:
    """Refuse a limit below what the libraries take: they end in tracebacks, or end the process themselves."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if resource.RLIM_INFINITY != limit < LEAST_MEMORY:
        raise InputError(
            f"a process may take {limit >> 20:,} MB of address space here, and the libraries take "
            f"{LEAST_MEMORY >> 20:,} MB; raise the limit, as `ulimit -v unlimited` does"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0: done; 1: a check found something; 2: an error, in one line on standard error, or each mistake of a catalog in a
    line of its own; 130: interrupted.
    An exception that nobody foresaw keeps its traceback, since it is our bug; that of an error is logged under -vv.
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
        return _fail(f"{where}{error.strerror or error}; check the path, its permissions and the space left")
    except KeyboardInterrupt:
        code = 130
    if code == 130:
        print("interrupted; the same command resumes a run", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _with_json_target(arguments: Sequence[str]) -> list[str]:
    """Give `--json` without a FILE the target standard output: Typer has no options with an optional value."""
    return [
        f"--json={console.STANDARD_OUTPUT}" if name == "--json" and following.startswith("-") else name
        for name, following in zip(arguments, [*arguments, "-"][1:], strict=True)
    ]


@cache
def _command() -> Callable[..., object]:
    """The command line as Typer makes it of the functions, once in a process."""
    return get_command(app)


def _fail(*messages: str) -> int:
    logger(__name__).debug("the command failed", exc_info=True)
    for message in messages:
        print("error: " + redactor_of_process()(" ".join(message.split())), file=sys.stderr)
    return FAILED

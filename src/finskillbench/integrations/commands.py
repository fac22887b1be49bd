"""Commands `drive`, `serve` and `export`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import INTERRUPTED, print_result
from finskillbench.cli.options.kinds import ConditionOptions, checked, command, find_condition

if TYPE_CHECKING:
    from finskillbench.runs.execute.progress import RunProgress
    from finskillbench.runs.store.rows import Row

DRIVE, SERVE, EXPORT = typer.Typer(), typer.Typer(), typer.Typer()
DRIVE_EXAMPLE = """\b
Examples:
  finskillbench drive editions/seven --name my-agent --limit 2 --out runs/my-agent \\
    --agent-command 'my-agent --mcp {mcp_config} --prompt {prompt_file}'
  finskillbench drive editions/seven --name my-agent --condition no_skill --out runs/my-agent \\
    --agent-command 'sh agent.sh {mcp_url} {prompt_file} {usage_file}'"""
SERVE_EXAMPLE = """\b
Examples:
  finskillbench serve editions/seven TASK_ID --condition curated --out runs/by-hand
  finskillbench serve editions/seven TASK_ID --http 8765 --out runs/by-hand"""

_Edition = Annotated[Path, Argument(help="Folder of the edition.")]
_Seconds = Annotated[float, Option(min=1, max=10**6, help="An episode that takes longer ends without an answer.")]
_Calls = Annotated[int, Option(min=1, max=10**6, help="An episode with more tool calls ends without an answer.")]
_Out = Annotated[Path, Option(parser=console.out_path, metavar="PATH", help="Run folder.")]


@dataclass(kw_only=True)
class DriveOptions(ConditionOptions):
    """Options of `drive`."""

    edition: _Edition
    agent_command: Annotated[
        str,
        Option(
            metavar="COMMAND",
            help="Command line of the agent. {mcp_config} is an MCP client configuration for the tools, "
            "{mcp_url} their HTTP address, {prompt_file} the task, {usage_file} the file for its tokens and "
            "price, {log_file} the log that --harness reads. It runs in an empty folder; arguments that name existing "
            "files are first resolved against the current folder.",
        ),
    ]
    name: Annotated[str, Option(help="Name of the agent in rows.")]
    out: _Out
    harness: Annotated[
        str,
        Option(
            metavar="PROGRAM",
            help="Program that the command runs: claude-code, codex, openhands or mini-swe-agent. Its own skill folder "
            "gets the skills of the condition, instead of tools that load them, and its log states which it used.",
        ),
    ] = "mcp"
    seconds: _Seconds = 1800.0
    calls: _Calls = 200
    max_cost: Annotated[
        float | None,
        Option(
            min=0,
            metavar="USD",
            help="Cost limit of the run folder, by {usage_file}. No episode starts that would exceed it at the cost of "
            "the dearest episode so far.",
        ),
    ] = None
    max_concurrency: Annotated[int, Option(min=1, help="Commands at a time.")] = 4


def drive(options: DriveOptions) -> None:
    """Start a command-line agent once for each episode, give it the tools over MCP, and print the table.

    Repeat the command to resume. Exit code 1 if an episode ended in an error, was dropped or was not run. The agent
    runs under your user with your environment; SECURITY.md lists what it can read.
    """
    from finskillbench.cli.display.progress import Display
    from finskillbench.edition import load_edition
    from finskillbench.integrations import require_extra

    require_extra("mcp")
    from finskillbench.integrations.mcp.drive import drive_agent, parse_command, parse_harness

    parse_command(options.agent_command)
    parse_harness(options.harness, options.agent_command)
    _ = options.user_skills  # reject wrong skill folders before the edition is read
    options.check_library()
    with console.Progress() as progress:
        progress("reading the edition")
        loaded = options.part(load_edition(options.edition))
    with Display() as display:
        result = drive_agent(
            loaded,
            options.agent_command,
            options.name,
            harness=options.harness,
            conditions=options.conditions,
            subtasks=options.subtask or None,
            skills=options.skill_folders,
            library=options.library,
            limit=options.limit,
            sample=options.sample,
            tasks=options.tasks(loaded),
            epochs=options.epochs,
            turns=options.turns,
            token_budget=options.token_budget,
            seconds=options.seconds,
            calls=options.calls,
            max_cost=options.max_cost,
            max_concurrency=options.max_concurrency,
            allow_unconfined=options.allow_unconfined,
            out=options.out,
            progress=display,
        )
    print_result(result, loaded)


DRIVE.command(epilog=DRIVE_EXAMPLE)(command(drive, DriveOptions))


@SERVE.command(epilog=SERVE_EXAMPLE)
def serve(
    edition: _Edition,
    task_id: Annotated[str, Argument(help="Task id of the episode.")],
    out: _Out,
    condition: Annotated[str, Option(callback=checked(find_condition), help="Condition, as for run.")] = "no_skill",
    name: Annotated[str, Option(help="Name of the client in rows.")] = "mcp/client",
    http: Annotated[
        int | None,
        Option(min=0, max=65_535, metavar="PORT", help="Serve streamable HTTP on this machine; 0 takes a free port."),
    ] = None,
    seconds: _Seconds = 1800.0,
    calls: _Calls = 200,
) -> None:
    """Serve one episode over MCP, by standard input and output or HTTP, and add its row to OUT.

    Name this command in the configuration of an MCP client. It ends once the answer is in. Exit code 1 if the client
    disconnected before it called a tool.
    """
    from finskillbench.edition import load_edition
    from finskillbench.integrations import require_extra

    require_extra("mcp")
    from finskillbench.integrations.mcp.serve import serve_episode

    result = serve_episode(
        load_edition(edition),
        task_id,
        condition,
        name=name,
        port=http,
        seconds=seconds,
        calls=calls,
        out=out,
        announce=_print_stderr,
        progress=_print_notice,
    )
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    mine = result.rows.filter(task_id=task_id).row(0, named=True) if result.rows.height else {}
    _print_stderr(f"{task_id}: {mine.get('status', 'not run')}, score {mine.get('score')}; {out}")
    if mine.get("status") in (None, "error"):
        raise typer.Exit(1)


def _print_notice(progress: RunProgress, row: Row | None) -> None:
    _print_stderr(progress.notice)


def _print_stderr(text: str) -> None:
    """Print to standard error; standard output carries the protocol."""
    if text:
        print(text, file=sys.stderr, flush=True)


EXPORT_EXAMPLE = """\b
Examples:
  finskillbench export runs/mine --out logs
  inspect view --log-dir logs
  inspect view bundle --log-dir logs --output-dir site
  finskillbench export runs/mine --to csv --out rows.csv
  finskillbench export runs/mine --to atif --out trajectories
  finskillbench export runs/mine --to every-eval-ever --out records --organization "Example Lab"
  finskillbench export runs/mine --to mlflow --out tracking --attach report"""


class ExportTarget(StrEnum):
    """Formats and trackers that a run can be exported to."""

    INSPECT = "inspect"
    PARQUET = "parquet"
    CSV = "csv"
    MLFLOW = "mlflow"
    WANDB = "wandb"
    ATIF = "atif"
    EVERY_EVAL_EVER = "every-eval-ever"
    INSPECT_EVALS = "inspect-evals"


# Longer than a screen: each option is a parameter with its help text.
@EXPORT.command(epilog=EXPORT_EXAMPLE)
def export(
    run: Annotated[Path, Argument(help="Run folder; for parquet, csv, mlflow and wandb also a table of rows.")],
    out: Annotated[
        Path,
        Option(
            "--out",
            parser=console.out_path,
            metavar="PATH",
            help="Folder of the files or the tracker store, made if absent; for parquet and csv the file.",
        ),
    ],
    to: Annotated[str, Option(help=f"{', '.join(ExportTarget)}.")] = ExportTarget.INSPECT,
    model: Annotated[list[str] | None, Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, Option(help="Condition; repeatable. Default: all of the run.")] = None,
    profile: Annotated[
        str, Option(help="Score profile for mlflow, wandb and every-eval-ever: certified, strict or paper.")
    ] = "certified",
    attach: Annotated[
        list[Path] | None,
        Option(help="File or folder to attach to the run in mlflow or wandb, such as a report; repeatable."),
    ] = None,
    organization: Annotated[
        str | None, Option(metavar="NAME", help="Organization that made the run; required by every-eval-ever.")
    ] = None,
    repository: Annotated[
        str | None, Option(metavar="URL", help="Web address of the code; required by inspect-evals.")
    ] = None,
    commit: Annotated[
        str | None, Option(metavar="SHA", help="Commit that inspect-evals pins. Default: that of the rows.")
    ] = None,
) -> None:
    """Write a run as logs, rows, runs of a tracker, trajectories, or records for a receiver of results.

    inspect: one .eval log per model and condition. parquet, csv: flat rows. mlflow, wandb: one run per model and
    condition with scores, gains and interval limits. atif: one trajectory per attempt. every-eval-ever: one record and
    its samples per model and condition. inspect-evals: an entry of its register. Flat rows and trackers hold details of
    scores, which reveal labels; the others do not. Nothing is sent over the network. inspect needs the extra llm, the
    trackers mlflow and wandb.
    """
    from finskillbench.episode import Profile
    from finskillbench.errors import InputError
    from finskillbench.integrations import require_extra
    from finskillbench.reports.read import filter_run, read_run_rows

    target, judged_by = console.one_of(ExportTarget, to, "--to"), console.one_of(Profile, profile, "--profile")
    if attach and target not in (ExportTarget.MLFLOW, ExportTarget.WANDB):
        raise InputError(f"--attach applies to mlflow and wandb, not to {target}")
    if target is ExportTarget.INSPECT:
        require_extra("llm")
    if target is ExportTarget.EVERY_EVAL_EVER and organization is None:
        raise InputError("every-eval-ever needs --organization, the name of the organization that made the run")
    if target is ExportTarget.INSPECT_EVALS and repository is None:
        raise InputError("inspect-evals needs --repository, the web address of the code")
    with console.Progress() as progress:
        progress(f"Writing for {target}")
        match target:
            case ExportTarget.INSPECT:
                from finskillbench.integrations.logs import export_run

                written = export_run(run, out, model, condition, progress=progress)
            case ExportTarget.ATIF:
                from finskillbench.integrations.receivers import export_atif

                written = export_atif(run, out, model or (), condition or ())
            case ExportTarget.EVERY_EVAL_EVER:
                from finskillbench.integrations.receivers import export_every_eval_ever

                chosen = (model or (), condition or ())
                written = export_every_eval_ever(run, out, organization or "", *chosen, judged_by)
            case ExportTarget.INSPECT_EVALS:
                from finskillbench.integrations.receivers import export_register_entry

                written = [export_register_entry(run, out, repository or "", commit)]
            case _:
                from finskillbench.integrations.exports import FlatFormat, export_mlflow, export_wandb, write_flat

                read = filter_run(read_run_rows(run), model or (), condition or ())
                if target is ExportTarget.MLFLOW:
                    ids = export_mlflow(read, out, judged_by, attach or ())
                    shown_by = f"mlflow ui --backend-store-uri sqlite:///{out}/mlflow.db"
                    written = [f"{out}: {len(ids)} runs, shown by: {shown_by}"]
                elif target is ExportTarget.WANDB:
                    written = export_wandb(read, out, judged_by, attach or ())
                else:
                    write_flat(read.rows, out, FlatFormat(target.value))
                    written = [out]
    for line in written:
        typer.echo(line)

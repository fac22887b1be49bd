"""Commands `drive` and `serve` for agents that speak the Model Context Protocol, and `export` of runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from finskillbench.cli.display import console
from finskillbench.cli.display.console import INTERRUPTED, print_result
from finskillbench.cli.options.kinds import ArmOptions, checked, command, find_condition

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

_Edition = Annotated[Path, typer.Argument(help="Folder of the edition.")]
_Seconds = Annotated[float, typer.Option(min=1, max=10**6, help="An episode that takes longer ends without an answer.")]
_Calls = Annotated[int, typer.Option(min=1, max=10**6, help="An episode with more tool calls ends without an answer.")]
_Out = Annotated[Path, typer.Option(parser=console.out_path, metavar="PATH", help="Run folder.")]


@dataclass(kw_only=True)
class DriveOptions(ArmOptions):
    """The options of `drive`."""

    edition: _Edition
    agent_command: Annotated[
        str,
        typer.Option(
            metavar="COMMAND",
            help="Command line of the agent. {mcp_config} is a file that tells MCP clients how to reach the tools, "
            "{mcp_url} an address for those that take one, {prompt_file} the task, {usage_file} where it may write its "
            "tokens and price. It runs in an empty folder: words that name existing files are resolved against the "
            "current folder first.",
        ),
    ]
    name: Annotated[str, typer.Option(help="Under which rows file the agent.")]
    out: _Out
    seconds: _Seconds = 1800.0
    calls: _Calls = 200
    max_cost: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="USD",
            help="What the run folder may cost, as {usage_file} tells it: nothing is begun that would not fit if it "
            "cost as much as the dearest episode so far.",
        ),
    ] = None
    max_concurrency: Annotated[int, typer.Option(min=1, help="Commands at a time.")] = 4


def drive(options: DriveOptions) -> None:
    """Start a command-line agent once for each episode, give it the tools over MCP, and print the table.

    The same command again resumes. Exit code 1 if an episode ended in an error, was dropped or was not run. The agent
    runs as you, with your environment: see SECURITY.md for what it could read.
    """
    from finskillbench.cli.display.progress import Display
    from finskillbench.edition import load_edition
    from finskillbench.integrations import require_extra

    require_extra("mcp")
    from finskillbench.integrations.mcp.drive import drive as drive_agent
    from finskillbench.integrations.mcp.drive import parse_command

    parse_command(options.agent_command)
    _ = options.given  # wrong folders of skills are refused before the edition is read
    with console.Progress() as progress:
        progress("reading the edition")
        loaded = options.part(load_edition(options.edition))
    with Display() as display:
        result = drive_agent(
            loaded,
            options.agent_command,
            options.name,
            options.conditions,
            options.subtask or None,
            skills=options.folders,
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
    task_id: Annotated[str, typer.Argument(help="The episode.")],
    out: _Out,
    condition: Annotated[str, typer.Option(callback=checked(find_condition), help="As of run.")] = "no_skill",
    name: Annotated[str, typer.Option(help="Under which rows file whoever connects.")] = "mcp/client",
    http: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="PORT", help="Serve streamable HTTP on this machine; 0 takes a free port."
        ),
    ] = None,
    seconds: _Seconds = 1800.0,
    calls: _Calls = 200,
) -> None:
    """Serve one episode over MCP, by standard input and output or HTTP, until its answer is in; it is a row of OUT.

    An MCP client is told to start this command. Exit code 1 if the client went before it had called a tool.
    """
    from finskillbench.edition import load_edition
    from finskillbench.integrations import require_extra

    require_extra("mcp")
    from finskillbench.integrations.mcp.serve import serve as serve_episode

    result = serve_episode(
        load_edition(edition),
        task_id,
        condition,
        name=name,
        port=http,
        seconds=seconds,
        calls=calls,
        out=out,
        announce=_say,
        progress=lambda board, row: _say(board.notice),
    )
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
    mine = result.rows.filter(task_id=task_id).row(0, named=True) if result.rows.height else {}
    _say(f"{task_id}: {mine.get('status', 'not run')}, score {mine.get('score')}; {out}")
    if mine.get("status") in (None, "error"):
        raise typer.Exit(1)


def _say(text: str) -> None:
    """Standard output is the wire: all that is said goes to standard error."""
    if text:
        print(text, file=sys.stderr, flush=True)


EXPORT_EXAMPLE = """\b
Examples:
  finskillbench export runs/mine --out logs
  inspect view --log-dir logs
  inspect view bundle --log-dir logs --output-dir site
  finskillbench export runs/mine --to csv --out rows.csv
  finskillbench export runs/mine --to mlflow --out tracking --attach report"""


class To(StrEnum):
    """Whom a run can be written for."""

    INSPECT = "inspect"
    PARQUET = "parquet"
    CSV = "csv"
    MLFLOW = "mlflow"
    WANDB = "wandb"


@EXPORT.command(epilog=EXPORT_EXAMPLE)
def export(
    run: Annotated[Path, typer.Argument(help="Run folder; but for Inspect, a table of rows will do.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            parser=console.out_path,
            metavar="PATH",
            help="Folder of the logs or the tracker's store, made if absent; the file of parquet and csv.",
        ),
    ],
    to: Annotated[str, typer.Option(help=f"{', '.join(To)}.")] = To.INSPECT,
    model: Annotated[list[str] | None, typer.Option(help="Model; repeatable. Default: all of the run.")] = None,
    condition: Annotated[list[str] | None, typer.Option(help="Condition; repeatable. Default: all of the run.")] = None,
    profile: Annotated[
        str, typer.Option(help="Of the scores that mlflow and wandb are told: certified, strict or paper.")
    ] = "certified",
    attach: Annotated[
        list[Path] | None,
        typer.Option(help="File or folder, such as that of a report, to lie at a run of mlflow or wandb; repeatable."),
    ] = None,
) -> None:
    """Write a run as Inspect logs, flat rows (Parquet or CSV), an MLflow store or offline runs of Weights & Biases.

    Inspect logs are one .eval file per model and condition and hold nothing of the truth. MLflow and Weights & Biases
    get one run per model and condition, with its parameters, and as metrics its scores and gains by headline, domain
    and subtask, with the ends of their intervals. Nothing is sent anywhere. Inspect needs the extra llm, the trackers
    mlflow and wandb.
    """
    from finskillbench.episode import Profile
    from finskillbench.errors import InputError
    from finskillbench.integrations import require_extra
    from finskillbench.reports.read import filter_run, read_run_rows

    whom, judged_by = console.one_of(To, to, "--to"), console.one_of(Profile, profile, "--profile")
    if attach and whom not in (To.MLFLOW, To.WANDB):
        raise InputError(f"--attach is for mlflow and wandb; {whom} takes the run alone")
    if whom is To.INSPECT:
        require_extra("llm")
    with console.Progress() as progress:
        progress("Reading the run")
        if whom is To.INSPECT:
            from finskillbench.integrations.logs import export_run

            told = export_run(run, out, model, condition, progress=progress)
        else:
            from finskillbench.integrations.exports import Flat, export_mlflow, export_wandb, write_flat

            read = filter_run(read_run_rows(run), model or (), condition or ())
            progress(f"Writing for {whom}")
            if whom is To.MLFLOW:
                ids = export_mlflow(read, out, judged_by, attach or ())
                told = [f"{out}: {len(ids)} runs, shown by: mlflow ui --backend-store-uri sqlite:///{out}/mlflow.db"]
            elif whom is To.WANDB:
                told = export_wandb(read, out, judged_by, attach or ())
            else:
                write_flat(read.rows, out, Flat(whom.value))
                told = [out]
    for line in told:
        typer.echo(line)

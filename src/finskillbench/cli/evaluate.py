"""`finskillbench skills eval`: measure the effect of user skills in one command."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST, exit_with, print_end
from finskillbench.cli.options import kinds
from finskillbench.cli.options.runs import RunOptions
from finskillbench.cli.run import execute_run
from finskillbench.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from finskillbench.analysis.results import Comparison, Results
    from finskillbench.analysis.skills import ConditionUsage, Evaluation, Flip, Loads
    from finskillbench.edition import Edition
    from finskillbench.episode import Episode
    from finskillbench.harness.skills.loader import SkillPackage
    from finskillbench.reports.tables.base import Table
    from finskillbench.runs.execute.run import RunResult

EXAMPLE = """\b
Examples:
  finskillbench skills eval my-skills/my-package --model openai/gpt-5 --max-cost 5
  finskillbench skills eval my-skills/my-package --model openai/gpt-5 --epochs 2 --gain 0.05
  finskillbench skills eval my-skills/my-package --model openai/gpt-5 --limit 40 --sequential --gain 0.05
  finskillbench skills eval my-skills/new --against my-skills/old --domain risk_management --model my_module:model"""
PER_SUBTASK = 3
"""Default episodes per subtask: about forty in all, most of them controls."""
BATCHES = 10
"""Batches of a sequential run, after each of which it may stop."""
SEQUENTIAL = (
    "Each cluster (market date, mandate, company) counts once in means; the interval holds wherever a run stops."
)
SHOWN = 10
"""Flips of each direction to print; the JSON has all."""


# Longer than a screen: each option is a parameter with its help text.
def eval_command(
    folder: Annotated[Path, Argument(metavar="DIR", help="Your skills: one package, or a folder of several.")],
    model: Annotated[str, Option(help="As for `run`: baseline/NAME, provider/name, or package.module:name.")],
    against: Annotated[
        str,
        Option(metavar="CONDITION|DIR", help="Reference: no_skill, curated, library:N, or a folder of other skills."),
    ] = "no_skill",
    activation: Annotated[
        bool,
        Option("--activation", help="Also run with a hint and with the documents in the prompt (+hinted, +forced)."),
    ] = False,
    library: kinds.Library = None,
    domain: Annotated[
        list[str] | None,
        Option(help="Domain of the skills; repeatable. Default: the domains that their documents name."),
    ] = None,
    keep_curated: Annotated[bool, Option("--keep-curated", help="Keep the curated packages available too.")] = False,
    python: Annotated[
        Path | None, Option(metavar="PATH", help="Python interpreter of their scripts. Default: the current one.")
    ] = None,
    edition: kinds.EditionFolder = None,
    subtask: kinds.Subtasks = None,
    limit: Annotated[int, Option(min=1, max=LARGEST, help="First episodes of each subtask.")] = PER_SUBTASK,
    epochs: kinds.Epochs = 1,
    gain: Annotated[
        float | None,
        Option(min=0.001, max=1.0, help="Smallest gain of interest: print the sample size that detects it."),
    ] = None,
    sequential: Annotated[
        bool,
        Option(
            "--sequential",
            help="Run in batches and stop once an always-valid interval of the difference excludes 0, or --gain.",
        ),
    ] = False,
    max_concurrency: kinds.MaxConcurrency = None,
    base_url: kinds.BaseUrl = None,
    prices: kinds.Prices = None,
    max_cost: kinds.MaxCost = None,
    allow_unconfined: kinds.AllowUnconfined = False,
    out: kinds.RunFolder = None,
    as_json: kinds.JsonOutput = None,
) -> None:
    """Run the same episodes with and without your skills, and print the differences in scores and cost.

    Episodes of all domains are run; those outside the domain of the skills are negative controls. The same command
    resumes. Exit code 1 if an episode ended in an error, was dropped or was not run.
    """
    import polars as pl

    from finskillbench.analysis.results import Comparison, collect
    from finskillbench.analysis.skills import domains_of, evaluate_skills
    from finskillbench.domains import domain as registered
    from finskillbench.harness.conditions import Activation
    from finskillbench.harness.skills.loader import curated
    from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX
    from finskillbench.reports.tables.episodes.library import activation_table

    name = _name(folder)
    treated, reference, other = f"{USER_SKILLS_PREFIX}{name}", *_reference(against, name)
    options = RunOptions(
        edition=edition,
        model=[model],
        condition=[reference, treated, *([f"{treated}+{way}" for way in Activation if way] if activation else [])],
        skills=[f"{name}{'+' if keep_curated else ''}={folder}", *other],
        skill_python=None if python is None else [f"{name}={python}"],
        library=library,
        subtask=subtask,
        limit=limit,
        epochs=epochs,
        max_concurrency=max_concurrency,
        base_url=base_url,
        prices=prices,
        max_cost=max_cost,
        allow_unconfined=allow_unconfined,
        out=out,
    )
    curated_packages = curated() if keep_curated else {}
    offered = options.user_skills[treated].packages
    packages = {key: package for key, package in offered.items() if key not in curated_packages}
    meant_for = [registered(each).name for each in domain] if domain else domains_of(packages.values())
    comparison = Comparison(treated, reference)
    (entry,) = options.model_keys

    def evaluate(rows: pl.DataFrame) -> tuple[Results, Evaluation]:
        results = collect(rows.filter(model=entry.model, arguments=entry.arguments))  # the folder may have other models
        return results, evaluate_skills(results, comparison, packages, meant_for, sequential=sequential)

    if sequential:
        result, loaded, tasks, ending = _run_in_batches(options, lambda rows: _decision(evaluate(rows)[1], gain))
        results, found = evaluate(result.rows.filter(pl.col("task_id").is_in(tasks)))
    else:
        (result, loaded), ending = execute_run(options), None
        results, found = evaluate(result.rows)
    tables = _noise_tables(results, comparison, found, gain)
    in_domain = results.rows.filter(pl.col("domain").is_in(meant_for)) if meant_for else results.rows
    if activation and (table := activation_table(collect(in_domain))):
        tables.append(replace(table, title=f"{table.title}, {found.parts[0].name}"))
    if console.json_printed(as_json, lambda: _to_json(found, result.folder, tables, ending)):
        exit_with(result)
        return
    for line in _report(found, packages, result.folder, tables, ending, named=bool(domain)):
        typer.echo(line)
    print_end(result, loaded, f"finskillbench skills eval {shlex.quote(str(folder))} --model openai/gpt-5 --max-cost 5")


def _run_in_batches(
    options: RunOptions, decide: Callable[[pl.DataFrame], str | None]
) -> tuple[RunResult, Edition, list[str], str]:
    """Run batches of clusters until `decide` returns a reason to stop, or the run is interrupted.

    Returns the result with the counts of all batches, the edition, the tasks of the batches, and how the run ended.
    """
    import polars as pl

    from finskillbench.harness.conditions import arm_of
    from finskillbench.runs.plan.items import choose_episodes, playable

    if kept := [each for each in options.conditions if arm_of(each).kept]:
        raise InputError(f"--sequential needs independent episodes, but {kept[0]} passes skills on; run without it")
    options.check_names()
    with console.Progress() as progress:
        edition = options.open_edition(progress)
    episodes = choose_episodes(playable(edition, options.subtask), options.limit)
    batches, tasks = _batches(episodes), list[str]()
    folder, ran = options.folder(edition), 0
    while True:
        tasks += next(batches)
        result, _ = execute_run(replace(options, limit=None, task=tasks, out=folder))
        ran += result.ran
        result = replace(result, ran=ran, kept=max(result.kept + result.ran - ran, 0))
        stopped = result.dropped or result.not_run
        reason = "interrupted" if stopped else decide(result.rows.filter(pl.col("task_id").is_in(tasks)))
        if reason or len(tasks) == len(episodes):
            ending = f"{len(tasks)} of {len(episodes)} episodes; {reason or 'no decision'}"
            return result, edition, tasks, ending


def _batches(episodes: Sequence[Episode]) -> Iterator[list[str]]:
    """Divide episodes into batches of whole clusters, in a pseudorandom order of clusters that is always the same."""
    from finskillbench.domains import cluster_of

    clusters: dict[str, list[str]] = {}
    for episode in episodes:
        clusters.setdefault(cluster_of(episode), []).append(episode.task_id)
    batch: list[str] = []
    for _, tasks in sorted(clusters.items(), key=lambda each: sha256(each[0].encode()).digest()):
        batch += tasks
        if len(batch) * BATCHES >= len(episodes):
            yield batch
            batch = []
    if batch:
        yield batch


def _decision(found: Evaluation, gain: float | None) -> str | None:
    """Return why a sequential run may stop, None if it may not."""
    part = found.parts[0]
    low, high = part.interval or (-1.0, 1.0)
    if low > 0.0 or high < 0.0:
        return f"stopped: the interval of {part.name} excludes 0"
    if gain is not None and high < gain:
        return f"stopped: the interval of {part.name} excludes a gain of {gain:g}"
    return None


def _noise_tables(results: Results, comparison: Comparison, found: Evaluation, gain: float | None) -> list[Table]:
    """Tabulate the noise of the episodes of the first part, where there are repeats, and the sample sizes."""
    import polars as pl

    from finskillbench.analysis.results import pairs
    from finskillbench.reports.compare.noise import make_group, noise_tables

    paired = pairs(results, comparison)
    if found.meant_for:
        paired = paired.filter(pl.col("domain").is_in(found.meant_for))
    treated, reference = (results.rows.filter(pl.col("condition") == name) for name in comparison)
    names = (comparison.reference, comparison.treated)
    tables = noise_tables([make_group((), paired, reference, treated)], names, (), gain)
    titled = (replace(table, title=f"{table.title}, {found.parts[0].name}") for table in tables)
    return [table for table in titled if table.rows]


def _name(folder: Path) -> str:
    """Return the condition name for a folder of skills."""
    return re.sub(r"[^a-z0-9._-]+", "-", folder.absolute().name.lower()).lstrip("._-")[:60] or "mine"


def _reference(against: str, name: str) -> tuple[str, list[str]]:
    """Return the reference condition, and its `--skills` option if it is a folder."""
    from finskillbench.harness.conditions import ARMS, LIBRARY_PREFIX
    from finskillbench.harness.skills.user_skills import USER_SKILLS_PREFIX

    if against in ARMS or against.startswith(LIBRARY_PREFIX):
        return against, []
    other = _name(Path(against))
    other = f"{other}-2" if other == name else other
    return f"{USER_SKILLS_PREFIX}{other}", [f"{other}={against}"]


def _report(
    found: Evaluation,
    packages: dict[str, SkillPackage],
    run: Path,
    tables: Sequence[Table],
    ending: str | None,
    *,
    named: bool,
) -> list[str]:
    from finskillbench.reports.formats import Format, render

    treated, reference = found.sides
    model = f"{found.model} (program)" if found.model.startswith("baseline/") else found.model
    return [
        f"{', '.join(packages)}: {treated.condition} against {reference.condition}, {model}",
        "",
        *_gains(found, sequential=ending is not None),
        *([] if ending is None else ["", f"Sequential run: {ending}.", SEQUENTIAL]),
        "",
        *([render(tables, Format.TABLE, console.width()), ""] if tables else []),
        *_costs(found),
        "",
        *_triggers(found, named=named),
        "",
        *_flips(found, run),
        "",
    ]


def _gains(found: Evaluation, *, sequential: bool) -> list[str]:
    from finskillbench.cli.display.console import render_table
    from finskillbench.reports.tables.base import Estimate, difference_text

    treated, reference = (side.condition for side in found.sides)
    rows = [
        (
            part.name,
            str(part.episodes),
            _score(part.reference),
            _score(part.treated),
            difference_text(None if part.difference is None else Estimate(part.difference, *(part.interval or ()))),
        )
        for part in found.parts
    ]
    interval = "always-valid 95 % interval" if sequential else "95 % interval"
    header = ("episodes of", "number", reference, treated, f"difference, {interval}")
    return render_table(header, rows, text_columns=1).splitlines()


def _costs(found: Evaluation) -> list[str]:
    from finskillbench.cli.display.console import render_table

    rows = [
        (
            side.condition,
            f"{side.rows}{f' ({side.errors} err)' if side.errors else ''}",
            f"{side.turns:.1f}",
            f"{side.tool_calls:.1f}",
            _tokens(side.input_tokens, side),
            _tokens(side.output_tokens, side),
            "unknown" if side.cost_usd is None else f"{side.cost_usd:,.2f}",
        )
        for side in reversed(found.sides)
    ]
    header = ("mean per episode", "episodes", "turns", "tool calls", "input tokens", "output tokens", "total USD")
    return render_table(header, rows, text_columns=1).splitlines()


def _tokens(mean: float | None, side: ConditionUsage) -> str:
    """Format a mean number of tokens, with the number of episodes if some are not counted."""
    if mean is None:
        return "unknown"
    return f"{mean:,.0f}{f' (of {side.counted})' if side.counted < side.rows else ''}"


def _triggers(found: Evaluation, *, named: bool) -> list[str]:
    by_domain = ", ".join(f"{loads.loaded} of {loads.episodes} in {name}" for name, loads in found.loads.items())
    lines = [f"Loaded:        {by_domain}"]
    if found.meant_for:
        source = "from --domain" if named else "from its documents; --domain overrides"
        lines.append(f"Meant for:     {', '.join(found.meant_for)} ({source})")
        lines.append(f"Trigger:       {_rate(found.trigger)} of the episodes of its domain")
        lines.append(f"False trigger: {_rate(found.false_trigger)} of the others")
    else:
        lines.append("Meant for:     unknown, so there is no trigger rate; set it with --domain")
    if found.model == "baseline/reference":
        lines.append(
            "               (this program loads skills, best description first, until a document has its task)"
        )
    return lines


def _rate(loads: Loads) -> str:
    return "no episodes" if loads.rate is None else f"{loads.rate:.2f} ({loads.loaded} of {loads.episodes})"


def _flips(found: Evaluation, run: Path) -> list[str]:
    up = [flip for flip in found.flips if flip.change > 0]
    down = [flip for flip in reversed(found.flips) if flip.change < 0]
    lines: list[str] = []
    for title, flips in (("up", up), ("down", down)):
        lines.append(f"Scores that went {title}: {len(flips)}")
        lines += _lines(flips[:SHOWN], found, run)
        if len(flips) > SHOWN:
            lines.append(f"  and {len(flips) - SHOWN} more; --json FILE has all")
    if found.flips:
        lines.append(f"For the other side of each: --condition {found.sides[1].condition}")
    return lines


def _lines(flips: Sequence[Flip], found: Evaluation, run: Path) -> list[str]:
    condition = found.sides[0].condition
    return [f"  {flip.reference:.3f} -> {flip.treated:.3f}  {_command(run, flip, condition)}" for flip in flips]


def _command(run: Path, flip: Flip, condition: str) -> str:
    """Return the command that shows the first repeat of an episode."""
    arguments = ("finskillbench", "show", str(run), flip.task_id, "--condition", condition, "--run-idx", "0")
    return shlex.join(arguments)


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _to_json(found: Evaluation, run: Path, tables: Sequence[Table], ending: str | None) -> dict[str, Any]:
    from finskillbench.reports.formats import to_json

    figures: dict[str, Any] = asdict(found) | {"tables": [to_json(table) for table in tables], "sequential": ending}
    for name in ("trigger", "false_trigger"):
        figures[name]["rate"] = getattr(found, name).rate
    commands = ([_command(run, flip, side.condition) for side in found.sides] for flip in found.flips)
    for flip, shown in zip(figures["flips"], commands, strict=True):
        flip["show"] = shown
    return {"run": str(run), **figures}

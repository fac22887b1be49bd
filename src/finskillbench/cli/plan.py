"""`finskillbench plan`: estimate the usage and cost of a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from finskillbench.cli.display import console
from finskillbench.cli.options.runs import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from finskillbench.runs.plan.usage import Amount, Forecast, UsageEstimate

EXAMPLE = """\b
Examples:
  finskillbench plan --model openai/gpt-5 --condition no_skill --condition curated
  finskillbench plan --model openai/gpt-5 --like runs/pilot
  finskillbench plan --model mine/model --prices prices.json --out runs/mine"""


@dataclass(kw_only=True)
class PlanOptions(RunOptions):
    """Options of `run` and the basis of the estimate."""

    like: Annotated[
        Path | None,
        Option(
            exists=True,
            file_okay=False,
            metavar="RUN",
            help="Earlier run of the model to estimate from, such as a pilot with --limit 5.",
        ),
    ] = None


def plan(options: PlanOptions) -> None:
    """Print episodes, model calls, tokens and cost by model and condition. Takes the options of `run`.

    Estimates come from an earlier run of the model or from published figures; baseline programs cost nothing. Nothing
    is written and no provider is called. Finished episodes of the run folder are not counted.
    """
    from finskillbench.harness.conditions import parse_condition
    from finskillbench.runs.plan.usage import EarlierRun, estimate, left_to_run
    from finskillbench.runs.store.journal import read_history

    shard = options.parsed_shard
    options.check_names()
    like = options.like
    earlier_run = None if like is None else EarlierRun(str(like), read_history(like).rows.values())

    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = options.open_edition(progress)
        folder = options.folder(loaded)
        conditions = [parse_condition(name) for name in options.conditions]
        episodes = loaded.episodes(options.subtask or None)
        work = options.episodes(loaded).plan(episodes, options.model_keys, conditions)
        left, finished = left_to_run(folder, loaded, work, shard=shard, retry_errors=options.retry_errors)
        estimates = estimate(
            work,
            left,
            prices=options.model_options.charged,
            like=earlier_run,
            user_skills=options.user_skills,
            library=options.library,
            allow_unconfined=options.allow_unconfined,
        )
    typer.echo(_table("Expected", estimates, lambda each: _figures(each.expected)))
    typer.echo(_table("From - to", estimates, _spread))
    for line in _closing(options, estimates, folder, finished):
        typer.echo(line)


def _closing(options: PlanOptions, estimates: Sequence[UsageEstimate], folder: Path, finished: int) -> Iterator[str]:
    """Yield the basis of the estimates, the finished episodes, and the expected effect of --max-cost."""
    from finskillbench.runs.store.journal import read_history

    for basis in dict.fromkeys(each.forecast.basis for each in estimates):
        of = [f"{each.model} {each.condition}" for each in estimates if each.forecast.basis == basis]
        yield f"{'All' if len(of) == len(estimates) > 1 else ', '.join(of)}: {basis}."
    if options.like is None and any("published" in each.forecast.basis for each in estimates):
        yield "A pilot improves the estimate: run with --limit 5, then plan --like with its run folder."
    if finished:
        yield f"Finished: {finished:,} episodes in {folder}, not counted above."
    prices, max_cost = options.model_options.charged, options.max_cost
    unpriced = sorted({each.model for each in estimates if each.forecast.expected.cost_usd is None})
    if unpriced:
        yield f"Price unknown: {', '.join(unpriced)}; give it in a file with --prices."
    elif max_cost is not None:
        history = read_history(folder)
        paid = history.spent({model: prices.price_of(model) for model, _ in history.amounts()})
        expected = math.fsum(each.forecast.expected.cost_usd or 0.0 for each in estimates)
        verdict = "stop the run early" if paid + expected > max_cost else "be enough"
        already = f", of which {paid:,.2f} are spent," if paid else ""
        yield f"--max-cost {max_cost:,.2f} USD{already} is expected to {verdict}."


def _table(title: str, estimates: Sequence[UsageEstimate], cells: Callable[[Forecast], tuple[str, ...]]) -> str:
    from finskillbench.cli.display.console import render_table

    header = (title, "condition", "episodes", "calls", "input tokens", "output tokens", "cost USD")

    def row(model: str, condition: str, some: Sequence[UsageEstimate]) -> tuple[str, ...]:
        episodes = sum(each.episodes for each in some)
        return (model, condition, f"{episodes:,}", *cells(reduce(add, (each.forecast for each in some))))

    rows: list[tuple[str, ...]] = []
    for model in dict.fromkeys(each.model for each in estimates):
        of_model = [each for each in estimates if each.model == model]
        rows += [row(model if number == 0 else "", each.condition, [each]) for number, each in enumerate(of_model)]
        if len(of_model) > 1:
            rows.append(row("", "all", of_model))
    if len({each.model for each in estimates}) > 1:
        rows.append(row("all", "", estimates))
    return render_table(header, rows, text_columns=2) + "\n"


def _figures(amount: Amount) -> tuple[str, ...]:
    cost = "unknown" if amount.cost_usd is None else f"{amount.cost_usd:,.2f}"
    return (*(f"{count:,}" for count in (amount.calls, amount.input_tokens, amount.output_tokens)), cost)


def _spread(forecast: Forecast) -> tuple[str, ...]:
    pairs = zip(_figures(forecast.low), _figures(forecast.high), strict=True)
    return tuple(low if low == high else f"{low} - {high}" for low, high in pairs)

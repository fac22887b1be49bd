"""`finskillbench plan`: what a run would use, before a cent is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli.display import console
from finskillbench.cli.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finskillbench.runs.plan.estimate import Amount, Estimate

EXAMPLE = """\b
Examples:
  finskillbench plan --model openai/gpt-5 --condition no_skill --condition curated
  finskillbench plan --model mine/model --prices prices.json --out runs/mine"""


@dataclass(kw_only=True)
class PlanOptions(RunOptions):
    """The options of `run`, and what a model is taken to write."""

    output_tokens_per_call: Annotated[
        int | None,
        typer.Option(
            min=0, max=console.LARGEST, help="What a hosted model writes per call besides tool calls. Default: 500."
        ),
    ] = None


def plan(options: PlanOptions) -> None:
    """Print episodes, model calls, tokens and cost by model and condition; the same arguments as `run`.

    Baselines play a sample of the episodes in memory: nothing is written and no provider is asked. Episodes that the
    run folder already holds are left out.
    """
    from finskillbench.harness.conditions import MAX_TURNS, parse_condition
    from finskillbench.harness.models import entry_called
    from finskillbench.runs.plan.estimate import OUTPUT_TOKENS_PER_CALL, STAND_IN, estimate, left_to_run
    from finskillbench.runs.plan.items import make_plan
    from finskillbench.runs.store.journal import read_history

    part, prices, max_tokens, max_cost = options.part, options.called.prices, options.max_tokens, options.max_cost
    options.check_names()
    per_call = options.output_tokens_per_call
    written = OUTPUT_TOKENS_PER_CALL if per_call is None else per_call

    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = options.open_edition(progress)
        folder = options.folder(loaded)
        arms = [parse_condition(name) for name in options.conditions]
        entries = [entry_called(name, options.called) for name in options.models]
        episodes = loaded.episodes(options.subtask or None)
        work = make_plan(
            episodes,
            entries,
            arms,
            limit=options.limit,
            sample=options.sample,
            tasks=options.task,
            epochs=options.epochs,
        )
        left, finished = left_to_run(folder, loaded, work, shard=part, retry_errors=options.retry_errors)
        estimates = estimate(
            loaded,
            work,
            left,
            prices=prices,
            max_tokens=max_tokens,
            output_tokens_per_call=written,
            given=options.given,
            allow_unconfined=options.allow_unconfined,
            progress=lambda done, total: progress("Playing a sample", done, total),
        )
    typer.echo(_table("Expected", estimates, [each.expected for each in estimates]))
    typer.echo(_table("At most", estimates, [each.most for each in estimates]))
    sampled = sum(each.sampled for each in estimates)
    typer.echo(f"Expected: as {sampled} sample episodes went. No input is taken to come from a provider's cache.")
    if any(each.player != each.model for each in estimates):
        typer.echo(f"Hosted models: as {STAND_IN}, and {written} output tokens per call (--output-tokens-per-call).")
    typer.echo(
        f"At most: {MAX_TURNS} calls an episode, {max_tokens:,} output tokens each (--max-tokens), before each the "
        "longest tool results of the sample."
    )
    if finished:
        typer.echo(f"Finished: {finished:,} episodes in {folder}, not counted above.")
    unknown = sorted({each.model for each in estimates if each.expected.cost_usd is None})
    if unknown:
        typer.echo(f"Price unknown: {', '.join(unknown)}; give it in a file with --prices.")
    elif max_cost is not None:
        history = read_history(folder)
        paid = history.spent({model: prices.of(model) for model, _ in history.amounts()})
        expected = sum(each.expected.cost_usd or 0.0 for each in estimates)
        verdict = "stop early" if paid + expected > max_cost else "be enough"
        already = f", of which {paid:,.2f} are spent," if paid else ""
        typer.echo(f"--max-cost {max_cost:,.2f} USD{already} is expected to {verdict}.")


def _table(title: str, estimates: Sequence[Estimate], amounts: Sequence[Amount]) -> str:
    from finskillbench.cli.display.tables import render_table

    header = (title, "condition", "episodes", "calls", "input tokens", "output tokens", "cost USD")
    pairs = list(zip(estimates, amounts, strict=True))
    rows: list[tuple[str, ...]] = []
    for model in dict.fromkeys(each.model for each in estimates):
        of_model = [(each, amount) for each, amount in pairs if each.model == model]
        rows += [
            _row(model if number == 0 else "", each.condition, each.episodes, amount)
            for number, (each, amount) in enumerate(of_model)
        ]
        if len(of_model) > 1:
            episodes = sum(each.episodes for each, _ in of_model)
            rows.append(_row("", "all", episodes, _sum([amount for _, amount in of_model])))
    if len({each.model for each in estimates}) > 1:
        rows.append(_row("all", "", sum(each.episodes for each in estimates), _sum(amounts)))
    return render_table(header, rows, words=2) + "\n"


def _row(model: str, condition: str, episodes: int, amount: Amount) -> tuple[str, ...]:
    cost = "unknown" if amount.cost_usd is None else f"{amount.cost_usd:,.2f}"
    counts = (episodes, amount.calls, amount.input_tokens, amount.output_tokens)
    return (model, condition, *(f"{count:,}" for count in counts), cost)


def _sum(amounts: Sequence[Amount]) -> Amount:
    first, *rest = amounts
    for amount in rest:
        first += amount
    return first

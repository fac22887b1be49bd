"""`finskillbench plan`: what a run would use, before a cent is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli import console, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finskillbench.runs.plan.estimate import Amount, Estimate

EXAMPLE = """\b
Examples:
  finskillbench plan --model openai/gpt-5 --condition no_skill --condition curated
  finskillbench plan --model mine/model --prices prices.json --out runs/mine"""


def plan(
    edition: options.Edition_ = None,
    model: options.Models = None,
    condition: options.Conditions = None,
    subtask: options.Subtasks = None,
    limit: options.Limit = None,
    epochs: options.Epochs = 1,
    seed: options.Seed = 0,
    max_concurrency: options.MaxConcurrency = None,
    out: options.Out = None,
    base_url: options.BaseUrl = None,
    max_tokens: options.MaxTokens = options.DEFAULT_MAX_TOKENS,
    request_timeout: options.RequestTimeout = options.DEFAULT_REQUEST_TIMEOUT,
    attempt_timeout: options.AttemptTimeout = None,
    reasoning_effort: options.ReasoningEffort = None,
    prices: options.Prices = None,
    max_cost: options.MaxCost = None,
    shard: options.ShardText = None,
    retry_errors: options.RetryErrors = True,
    output_tokens_per_call: Annotated[
        int | None,
        typer.Option(
            min=0, max=console.LARGEST, help="What a hosted model writes per call besides tool calls. Default: 500."
        ),
    ] = None,
) -> None:
    """Print episodes, model calls, tokens and cost by model and condition; the same arguments as `run`.

    Baselines play a sample of the episodes in memory: nothing is written and no provider is asked. Episodes that the
    run folder already holds are left out.
    """
    from finskillbench.harness.conditions import parse_condition
    from finskillbench.runs.execute import run as runs
    from finskillbench.runs.plan.estimate import OUTPUT_TOKENS_PER_CALL, STAND_IN, estimate, left_to_run
    from finskillbench.runs.plan.items import make_plan
    from finskillbench.runs.plan.streams import parse_shard
    from finskillbench.runs.store.dropped import spent

    models = model or list(runs.DEFAULT_MODELS)
    conditions = condition or [each.value for each in runs.DEFAULT_CONDITIONS]
    part = None if shard is None else parse_shard(shard)
    called = options.model_options(
        base_url=base_url,
        seed=seed,
        max_tokens=max_tokens,
        request_timeout=request_timeout,
        attempt_timeout=attempt_timeout,
        reasoning_effort=reasoning_effort,
        prices=prices,
    )
    options.check_names(models, conditions, subtask or ())
    written = OUTPUT_TOKENS_PER_CALL if output_tokens_per_call is None else output_tokens_per_call

    with console.Progress() as progress:
        progress("Reading the edition")
        loaded = options.open_edition(edition, progress)
        folder = out or options.default_folder(
            loaded, models, conditions, subtask, limit=limit, epochs=epochs, called=called, shard=shard
        )
        arms = [parse_condition(name) for name in conditions]
        work = make_plan(loaded.episodes(subtask or None), models, arms, limit=limit, epochs=epochs)
        left, finished = left_to_run(folder, loaded, work, shard=part, retry_errors=retry_errors)
        estimates = estimate(
            loaded,
            work,
            left,
            prices=called.prices,
            max_tokens=max_tokens,
            output_tokens_per_call=written,
            progress=lambda done, total: progress("Playing a sample", done, total),
        )
    typer.echo(_table("Expected", estimates, [each.expected for each in estimates]))
    typer.echo(_table("At most", estimates, [each.most for each in estimates]))
    sampled = sum(each.sampled for each in estimates)
    typer.echo(f"Expected: as {sampled} sample episodes went. No input is taken to come from a provider's cache.")
    if any(each.player != each.model for each in estimates):
        typer.echo(f"Hosted models: as {STAND_IN}, and {written} output tokens per call (--output-tokens-per-call).")
    typer.echo(
        f"At most: 12 calls an episode, {max_tokens:,} output tokens each (--max-tokens), before each the longest "
        "tool results of the sample."
    )
    if finished:
        typer.echo(f"Finished: {finished:,} episodes in {folder}, not counted above.")
    unknown = sorted({each.model for each in estimates if each.expected.cost_usd is None})
    if unknown:
        typer.echo(f"Price unknown: {', '.join(unknown)}; give it in a file with --prices.")
    elif max_cost is not None:
        paid = spent(folder, {name: called.prices.of(name) for name in models})
        expected = sum(each.expected.cost_usd or 0.0 for each in estimates)
        verdict = "stop early" if paid + expected > max_cost else "be enough"
        already = f", of which {paid:,.2f} are spent," if paid else ""
        typer.echo(f"--max-cost {max_cost:,.2f} USD{already} is expected to {verdict}.")


def _table(title: str, estimates: Sequence[Estimate], amounts: Sequence[Amount]) -> str:
    from finskillbench.cli.tables import render_table

    header = (title, "condition", "episodes", "calls", "input tokens", "output tokens", "cost USD")
    pairs = list(zip(estimates, amounts, strict=True))
    rows = []
    for model in dict.fromkeys(each.model for each in estimates):
        own = [(each, amount) for each, amount in pairs if each.model == model]
        rows += [
            _row(model if number == 0 else "", each.condition.value, each.episodes, amount)
            for number, (each, amount) in enumerate(own)
        ]
        if len(own) > 1:
            rows.append(_row("", "all", sum(each.episodes for each, _ in own), _sum([amount for _, amount in own])))
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

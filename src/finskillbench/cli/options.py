"""The options that say what is run: the same for `run`, which does it, and `plan`, which says what it would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from finskillbench.cli import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finskillbench.edition import Edition
    from finskillbench.harness.models import ModelOptions

DEFAULT_MAX_TOKENS = 8_192
DEFAULT_REQUEST_TIMEOUT = 600.0

Edition_ = Annotated[
    Path | None,
    typer.Option("--edition", help="Folder of the edition; the default one is built into the user's cache."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="baseline/..., or provider/name as in openai/gpt-4o; repeatable. Default: the reference, trivial and nop "
        "baselines.",
    ),
]
Conditions = Annotated[
    list[str] | None,
    typer.Option(
        "--condition",
        help="no_skill, curated, self_generated, docs_only, scripts_only, inline, placebo or "
        "self_generated_persistent; repeatable. Default: the first three.",
    ),
]
Subtasks = Annotated[
    list[str] | None, typer.Option("--subtask", help="Subtask; repeatable. Default: all of the edition.")
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        max=console.LARGEST,
        help="First episodes of each subtask. Default: 40, and 100 for fundamentals.",
    ),
]
Epochs = Annotated[int, typer.Option("--epochs", min=1, max=console.LARGEST, help="Repeats of each episode.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=console.LARGEST, help="Seed handed to whatever draws, providers included.")
]
MaxConcurrency = Annotated[
    int | None,
    typer.Option(
        "--max-concurrency", min=1, help="Episodes in flight for each provider; fewer under rate limits. Default: 64."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        parser=console.out_path,
        metavar="PATH",
        help="Run folder. Default: a folder in runs/ named after what is run.",
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="Where an OpenAI-compatible server listens.")
]
MaxTokens = Annotated[int, typer.Option("--max-tokens", min=1, max=10**9, help="Most tokens that one call generates.")]
RequestTimeout = Annotated[
    float,
    typer.Option(
        "--request-timeout",
        min=1,
        max=10**6,
        metavar="SECONDS",
        help="Without a byte for so long, a request has failed.",
    ),
]
AttemptTimeout = Annotated[
    float | None,
    typer.Option(
        "--attempt-timeout",
        min=1,
        max=10**6,
        metavar="SECONDS",
        help="After so long a request has failed in any case. Default: that of --request-timeout.",
    ),
]
ReasoningEffort = Annotated[
    str | None,
    typer.Option("--reasoning-effort", metavar="EFFORT", help="For models that reason, such as low, medium or high."),
]
Prices = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="JSON prices that go before the built-in ones."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, metavar="USD", help="Hard limit on what the run folder costs in all."),
]
ShardText = Annotated[
    str | None,
    typer.Option(
        "--shard", metavar="I/N", help="Run the I-th of N parts, into a folder of its own; see finskillbench merge."
    ),
]
RetryErrors = Annotated[
    bool, typer.Option("--retry-errors/--no-retry-errors", help="Run episodes that ended in an error again.")
]


def model_options(
    *,
    base_url: str | None,
    seed: int,
    max_tokens: int,
    request_timeout: float,
    attempt_timeout: float | None,
    reasoning_effort: str | None,
    prices: Path | None,
) -> ModelOptions:
    """How hosted models are called under these options."""
    from finskillbench.harness.models import ModelOptions
    from finskillbench.harness.providers.prices import PriceTable

    return ModelOptions(
        base_url=base_url,
        seed=seed,
        max_tokens=max_tokens,
        request_timeout=request_timeout,
        attempt_timeout=attempt_timeout,
        reasoning_effort=reasoning_effort,
        prices=PriceTable.load(prices),
    )


def check_names(models: Sequence[str], conditions: Sequence[str], subtasks: Sequence[str]) -> None:
    """Refuse a wrong name before an edition is built for it."""
    from finskillbench.domains import by_name
    from finskillbench.harness.conditions import parse_condition
    from finskillbench.harness.models import check_model

    for names, find in ((models, check_model), (conditions, parse_condition), (subtasks, by_name)):
        for name in names:
            find(name)


def default_folder(
    edition: Edition,
    models: Sequence[str],
    conditions: Sequence[str],
    subtasks: Sequence[str] | None,
    *,
    limit: int | None,
    epochs: int,
    called: ModelOptions,
    shard: str | None,
) -> Path:
    """The run folder that belongs to everything that decides what is run and how it comes out."""
    from finskillbench.runs.plan.defaults import run_folder

    how = (called.seed, called.base_url, called.max_tokens, called.reasoning_effort)
    return run_folder(edition, models, conditions, subtasks, limit, epochs, *how, shard)


def open_edition(path: Path | None, progress: console.Progress) -> Edition:
    """The edition named by the option, or the default one."""
    from finskillbench.edition import load_edition
    from finskillbench.runs.plan.defaults import default_edition

    return load_edition(path or default_edition(progress))

"""The options of a run of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import (
    ArmOptions,
    BaseUrl,
    EditionFolder,
    MaxConcurrency,
    MaxCost,
    Prices,
    RunFolder,
)
from finskillbench.cli.options.runfile import RunFile, apply_run_file, read_run_file
from finskillbench.episode import PAPER_SUITE

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.harness.loop import Harness
    from finskillbench.harness.models import ModelConfig, ModelKey, ModelOptions
    from finskillbench.runs.config import EpisodeSelection, RunLimits
    from finskillbench.runs.plan.streams import Shard

_OURS = "finskillbench"


@dataclass(kw_only=True)
class RunOptions(ArmOptions):
    """The options of a run of models."""

    edition: EditionFolder = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="baseline/..., provider/name as in openai/gpt-4o, or package.module:name of a model or an agent of "
            "yours; repeatable. Default: the four baselines.",
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=console.LARGEST,
            help="Seed of whatever draws; repeat r hands seed + r to providers that take one.",
        ),
    ] = 0
    max_concurrency: MaxConcurrency = None
    out: RunFolder = None
    base_url: BaseUrl = None
    max_tokens: Annotated[int, typer.Option(min=1, max=10**9, help="Most tokens that one call generates.")] = 8_192
    request_timeout: Annotated[
        float,
        typer.Option(min=1, max=10**6, metavar="SECONDS", help="Without a byte for so long, a request has failed."),
    ] = 600.0
    attempt_timeout: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=10**6,
            metavar="SECONDS",
            help="After so long a request has failed in any case. Default: that of --request-timeout.",
        ),
    ] = None
    reasoning_effort: Annotated[
        str | None,
        typer.Option(metavar="EFFORT", help="For models that reason, such as low, medium or high."),
    ] = None
    temperature: Annotated[float, typer.Option(min=0, max=2, help="Sent where the model takes one.")] = 0.0
    model_args: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="Further settings of a call, or arguments of Inspect's adapter, such as '{\"top_p\": 0.9}'.",
        ),
    ] = None
    prices: Prices = None
    max_cost: MaxCost = None
    batch: Annotated[
        bool,
        typer.Option(
            "--batch", help="Ask through the provider's batch interface: cheaper, and a turn takes up to a day."
        ),
    ] = False
    response_cache: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep answers there, and do not ask again what was asked before."),
    ] = None
    harness: Annotated[
        str,
        typer.Option(
            help="finskillbench, our own loop; hermes, the Hermes Agent, see make hermes; or one that is registered."
        ),
    ] = _OURS
    hermes_python: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", envvar="FINSKILLBENCH_HERMES_PYTHON", help="Interpreter that Hermes is installed in."
        ),
    ] = None
    limit_for: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION=N", help="Another --limit under this condition; repeatable."),
    ] = None
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Run the I-th of N parts, into a folder of its own; see finskillbench merge."),
    ] = None
    retry_errors: Annotated[bool, typer.Option(help="Run episodes that ended in an error again.")] = True
    file: Annotated[
        RunFile | None,
        typer.Option(
            parser=read_run_file,
            callback=apply_run_file,
            is_eager=True,
            metavar="FILE",
            help="All of this and more in a file (TOML); what stands here goes before it. See docs/running.md.",
        ),
    ] = None

    @property
    def models(self) -> list[str]:
        """The names of the models, or of the default ones."""
        from finskillbench.runs.config import DEFAULT_MODELS

        return self.model or list(DEFAULT_MODELS)

    @cached_property
    def limits(self) -> dict[str, int]:
        """Limits of their own by condition.

        Raises
        ------
        InputError : no condition and number.
        """
        from finskillbench.errors import InputError

        found: dict[str, int] = {}
        for text in self.limit_for or ():
            condition, _, number = text.rpartition("=")
            if not condition or not number.isascii() or not number.isdigit():
                raise InputError(f"--limit-for {text!r} is no CONDITION=N, as in no_skill=20")
            found[condition] = int(number)
        return found

    @property
    def single(self) -> Sequence[Self]:
        """The options of each entry of the run, which may have arguments of its own."""
        own = () if self.file is None or "model" in self.on_line else self.file.models
        if not own:
            return [replace(self, model=[name], file=None) for name in self.models]
        return [
            replace(
                self,
                model=[model["name"]],
                file=None,
                **{k: v for k, v in model.items() if k not in {"name", *self.on_line}},
            )
            for model in own
        ]

    @property
    def model_configs(self) -> list[ModelConfig]:
        """The models of the run, each with its own options."""
        from finskillbench.harness.models import ModelConfig

        return [ModelConfig(each.models[0], each.called, each.allowance) for each in self.single]

    def loop(self) -> Harness:
        """Return the named harness.

        Raises
        ------
        InputError : there is none of that name, or it is not installed.
        """
        if self.harness == _OURS:
            from finskillbench.harness.loop import BuiltinLoop

            return BuiltinLoop()
        from finskillbench.errors import InputError
        from finskillbench.extensions import HARNESSES, registered_extensions

        others = registered_extensions(HARNESSES, [_OURS])
        if self.harness not in others:
            raise InputError(f"harness {self.harness!r} is unknown; choose from: {', '.join([_OURS, *others])}")
        return others[self.harness].load(type)(self.hermes_python)

    @property
    def run_limits(self) -> RunLimits:
        """Limits of the run and of its episodes."""
        from finskillbench.runs.config import BATCH_CONCURRENCY, DEFAULT_CONCURRENCY, RunLimits

        return RunLimits(
            turns=self.turns,
            token_budget=self.token_budget,
            max_concurrency=self.max_concurrency or (BATCH_CONCURRENCY if self.batch else DEFAULT_CONCURRENCY),
            max_cost=self.max_cost,
            retry_errors=self.retry_errors,
            allow_unconfined=self.allow_unconfined,
        )

    def episodes(self, edition: Edition) -> EpisodeSelection:
        """Return the selection of episodes."""
        from finskillbench.runs.config import EpisodeSelection

        return EpisodeSelection(
            subtasks=self.subtask or None,
            limit=self.limit,
            sample=self.sample,
            tasks=self.tasks(edition),
            limits=self.limits,
            epochs=self.epochs,
            shard=self.part_of_plan,
        )

    @property
    def part_of_plan(self) -> Shard | None:
        """Part of the plan to run."""
        from finskillbench.runs.plan.streams import parse_shard

        return None if self.shard is None else parse_shard(self.shard)

    @cached_property
    def called(self) -> ModelOptions:
        """How hosted models are called."""
        from finskillbench.harness.models import ModelOptions
        from finskillbench.harness.providers.prices import PriceTable
        from finskillbench.harness.providers.settings import parse_model_args

        return ModelOptions(
            base_url=self.base_url,
            seed=self.seed,
            max_tokens=self.max_tokens,
            request_timeout=self.request_timeout,
            attempt_timeout=self.attempt_timeout,
            reasoning_effort=self.reasoning_effort,
            temperature=self.temperature,
            model_args={} if self.model_args is None else parse_model_args(self.model_args),
            prices=PriceTable.load(self.prices),
            batch=self.batch,
            response_cache=self.response_cache,
        )

    @property
    def entries(self) -> list[ModelKey]:
        """How a run files its models."""
        from finskillbench.harness.models import key_of_name

        entries = [key_of_name(each.models[0], each.called, each.allowance) for each in self.single]
        return entries if self.harness == _OURS else [entry.under(self.harness) for entry in entries]

    def check_names(self) -> None:
        """Refuse wrong models, settings, limits, skills or harness before an edition is read or built for them."""
        from finskillbench.harness.models import check_model

        for name in self.models:
            check_model(name)
        _ = self.called, self.limits, self.given, self.part_of_plan
        self.loop()

    def open_edition(self, progress: console.Progress) -> Edition:
        """The suite of the edition named by the option, or the default edition of that suite."""
        from finskillbench.domains import EVERY_SUITE, domain_of
        from finskillbench.edition import load_edition
        from finskillbench.runs.plan.streams import default_edition

        if self.edition is not None:
            return self.part(load_edition(self.edition))
        named = {domain_of(name).suite for name in self.subtask or ()} or {PAPER_SUITE}
        suite = self.suite or (named.pop() if len(named) == 1 else EVERY_SUITE)
        return load_edition(default_edition(progress, suite))

    def folder(self, edition: Edition) -> Path:
        """The run folder: the one named, or one that belongs to all that decides what is run and how it comes out."""
        from finskillbench.runs.plan.streams import run_folder

        single = [(each.models, each.called.arguments, each.allowance.arguments) for each in self.single]
        what = (
            single,
            self.conditions,
            edition.suites,
            self.subtask,
            self.limit,
            self.sample,
            self.tasks(edition),
            self.epochs,
        )
        brought = {arm: [each.digest for each in given.packages.values()] for arm, given in self.given.items()}
        return self.out or run_folder(edition, *what, self.harness, self.limits, self.shard, brought)

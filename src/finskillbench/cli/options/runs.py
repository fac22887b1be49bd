"""Options of a run of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from typer import Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST
from finskillbench.cli.options.kinds import (
    BaseUrl,
    ConditionOptions,
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

_BUILTIN = "finskillbench"


@dataclass(kw_only=True)
class RunOptions(ConditionOptions):
    """Options shared by `run`, `plan`, `demo` and `skills eval`."""

    edition: EditionFolder = None
    model: Annotated[
        list[str] | None,
        Option(
            help="baseline/NAME, provider/name such as openai/gpt-4o, or package.module:name of your model or agent; "
            "repeatable. Default: the four baselines."
        ),
    ] = None
    seed: Annotated[
        int, Option(min=0, max=LARGEST, help="Random seed; repeat r sends seed + r to providers that accept one.")
    ] = 0
    max_concurrency: MaxConcurrency = None
    out: RunFolder = None
    base_url: BaseUrl = None
    max_tokens: Annotated[int, Option(min=1, max=10**9, help="Maximum output tokens per call.")] = 8_192
    request_timeout: Annotated[
        float, Option(min=1, max=10**6, metavar="SECONDS", help="A request fails after this time without data.")
    ] = 600.0
    attempt_timeout: Annotated[
        float | None,
        Option(
            min=1,
            max=10**6,
            metavar="SECONDS",
            help="A request fails after this time in any case. Default: --request-timeout.",
        ),
    ] = None
    reasoning_effort: Annotated[
        str | None, Option(metavar="EFFORT", help="Effort of reasoning models, such as low, medium or high.")
    ] = None
    temperature: Annotated[float, Option(min=0, max=2, help="Sent to models that accept one.")] = 0.0
    model_args: Annotated[
        str | None,
        Option(
            metavar="JSON", help="Further call settings, or arguments of Inspect's model, such as '{\"top_p\": 0.9}'."
        ),
    ] = None
    prices: Prices = None
    max_cost: MaxCost = None
    batch: Annotated[
        bool, Option("--batch", help="Use the provider's batch interface: cheaper, but a turn takes up to a day.")
    ] = False
    response_cache: Annotated[
        Path | None, Option(metavar="FILE", help="Cache responses in this file and reuse them for identical requests.")
    ] = None
    harness: Annotated[
        str,
        Option(
            help="finskillbench (the built-in loop), hermes (the Hermes Agent, see make hermes), or a registered one."
        ),
    ] = _BUILTIN
    hermes_python: Annotated[
        Path | None,
        Option(metavar="PATH", envvar="FINSKILLBENCH_HERMES_PYTHON", help="Python interpreter with Hermes installed."),
    ] = None
    short: Annotated[
        Path | None, Option(exists=True, dir_okay=False, metavar="FILE", help="Run the episodes of a short form.")
    ] = None
    limit_for: Annotated[
        list[str] | None, Option(metavar="CONDITION=N", help="Override --limit for this condition; repeatable.")
    ] = None
    shard: Annotated[
        str | None,
        Option(metavar="I/N", help="Run the I-th of N parts, into a separate folder; see finskillbench merge."),
    ] = None
    retry_errors: Annotated[bool, Option(help="Run episodes that ended in an error again.")] = True
    file: Annotated[
        RunFile | None,
        Option(
            parser=read_run_file,
            callback=apply_run_file,
            is_eager=True,
            metavar="FILE",
            help="TOML file of options, which the command line overrides. See docs/running.md.",
        ),
    ] = None

    @property
    def models(self) -> list[str]:
        """Names of the selected or default models."""
        from finskillbench.runs.config import DEFAULT_MODELS

        return self.model or list(DEFAULT_MODELS)

    @cached_property
    def limits(self) -> dict[str, int]:
        """Episode limits by condition; refuse a text that is not CONDITION=N."""
        from finskillbench.errors import InputError

        found: dict[str, int] = {}
        for text in self.limit_for or ():
            condition, _, number = text.rpartition("=")
            if not condition or not number.isascii() or not number.isdigit():
                raise InputError(f"--limit-for {text!r} is not CONDITION=N, such as no_skill=20")
            found[condition] = int(number)
        return found

    def tasks(self, edition: Edition) -> list[str] | None:
        """Return the selected tasks, or those of the short form; refuse a short form of another edition."""
        from finskillbench.analysis.short_form import read_short_form
        from finskillbench.errors import InputError

        named = super().tasks(edition)
        if self.short is None:
            return named
        if named is not None:
            raise InputError("--short cannot be combined with --task or --portfolio; leave these out")
        form = read_short_form(self.short)
        if form.edition != edition.digest:
            raise InputError(f"{self.short}: is not of {edition.path}; name edition {form.edition[:8]} with --edition")
        return [*form.weights]

    @property
    def by_model(self) -> Sequence[Self]:
        """Options of each model of the run, with its arguments from the file."""
        file_models = () if self.file is None or "model" in self.on_command_line else self.file.models
        if not file_models:
            return [replace(self, model=[name], file=None) for name in self.models]
        return [
            replace(
                self,
                model=[model["name"]],
                file=None,
                **{k: v for k, v in model.items() if k not in {"name", *self.on_command_line}},
            )
            for model in file_models
        ]

    @property
    def model_configs(self) -> list[ModelConfig]:
        """Configuration of each model of the run."""
        from finskillbench.harness.models import ModelConfig

        return [ModelConfig(each.models[0], each.model_options, each.allowance) for each in self.by_model]

    def make_harness(self) -> Harness:
        """Return the selected harness; refuse one that is unknown or not installed."""
        if self.harness == _BUILTIN:
            from finskillbench.harness.loop import BuiltinLoop

            return BuiltinLoop()
        from finskillbench.errors import InputError
        from finskillbench.extensions import HARNESSES, registered_extensions

        registered = registered_extensions(HARNESSES, [_BUILTIN])
        if self.harness not in registered:
            raise InputError(f"harness {self.harness!r} is unknown; choose from: {', '.join([_BUILTIN, *registered])}")
        return registered[self.harness].load(type)(self.hermes_python)

    @property
    def run_limits(self) -> RunLimits:
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
        from finskillbench.runs.config import EpisodeSelection

        return EpisodeSelection(
            subtasks=self.subtask or None,
            limit=self.limit,
            sample=self.sample,
            tasks=self.tasks(edition),
            limits=self.limits,
            epochs=self.epochs,
            shard=self.parsed_shard,
        )

    @property
    def parsed_shard(self) -> Shard | None:
        """Shard of the plan to run."""
        from finskillbench.runs.plan.streams import parse_shard

        return None if self.shard is None else parse_shard(self.shard)

    @cached_property
    def model_options(self) -> ModelOptions:
        """Call options of hosted models."""
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
    def model_keys(self) -> list[ModelKey]:
        """Keys of the models in the rows of the run."""
        from finskillbench.harness.models import key_of_name

        entries = [key_of_name(each.models[0], each.model_options, each.allowance) for each in self.by_model]
        return entries if self.harness == _BUILTIN else [entry.under(self.harness) for entry in entries]

    def check_names(self) -> None:
        """Refuse invalid models, settings, limits, skills or harness before an edition is read or built."""
        from finskillbench.harness.models import check_model

        for name in self.models:
            check_model(name)
        _ = self.model_options, self.limits, self.user_skills, self.parsed_shard
        self.check_library()
        self.make_harness()

    def open_edition(self, progress: console.Progress) -> Edition:
        """Load the selected suite from the given edition or from the default edition."""
        from finskillbench.domains import EVERY_SUITE, domain_of
        from finskillbench.edition import load_edition
        from finskillbench.runs.plan.streams import default_edition

        if self.edition is not None:
            return self.part(load_edition(self.edition))
        named = {domain_of(name).suite for name in self.subtask or ()} or {PAPER_SUITE}
        suite = self.suite or (named.pop() if len(named) == 1 else EVERY_SUITE)
        return load_edition(default_edition(progress, suite))

    def folder(self, edition: Edition) -> Path:
        """Return the run folder: the given one, or one named after all options that affect results."""
        from finskillbench.runs.plan.streams import run_folder

        models = [(each.models, each.model_options.arguments, each.allowance.arguments) for each in self.by_model]
        episodes = (self.subtask, self.limit, self.sample, self.tasks(edition), self.epochs)
        selection = (models, self.conditions, edition.suites, *episodes)
        digests = {arm: [each.digest for each in skills.packages.values()] for arm, skills in self.user_skills.items()}
        if self.library is not None:
            digests["library"] = [str(self.library.resolve())]
        return self.out or run_folder(edition, *selection, self.harness, self.limits, self.shard, digests)

"""Options that several commands have, each with its name, bounds and words.

What is run under which arms, and how a command takes its options as one object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from finskillbench.cli.display import console
from finskillbench.episode import PAPER_SUITE
from finskillbench.harness.allowance import MAX_TURNS, MIN_TOKENS, Allowance

T = TypeVar("T", str | None, list[str] | None)


def checked(find: Callable[[str], object]) -> Callable[[T], T]:
    """A callback that refuses unknown names when they are read, before anything is opened for them."""

    def check(value: T) -> T:
        for name in [value] if isinstance(value, str) else value or ():
            find(name)
        return value

    return check


def find_suite(name: str) -> None:
    """Refuse an unknown suite."""
    from finskillbench.domains import suites_named

    suites_named(name)


def _find_subtask(name: str) -> None:
    from finskillbench.domains import subtask_named

    subtask_named(name)


def find_condition(name: str) -> None:
    """Refuse an unknown condition."""
    from finskillbench.harness.conditions import parse_condition

    parse_condition(name)


Suite = Annotated[
    str | None,
    typer.Option(
        callback=checked(find_suite),
        metavar="NAME",
        help="Suite: paper, one of another distribution, or all. Default: paper, or that of the named subtasks.",
    ),
]
Subtasks = Annotated[
    list[str] | None,
    typer.Option(callback=checked(_find_subtask), help="Subtask; repeatable. Default: all of the suite."),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=console.LARGEST,
        help="First episodes of each subtask. Default: as many as the full-run protocol takes of its domain.",
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=console.LARGEST,
        help="So many of these episodes in all, evenly over subtasks and by difficulty; a larger one holds a smaller.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        help="Tasks by their ids, which `finskillbench inspect` lists, or patterns such as 'rm_*_P001*'; repeatable."
    ),
]
Portfolios = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Tasks of a portfolio of your catalog, by its file's name; repeatable."),
]
EditionFolder = Annotated[
    Path | None,
    typer.Option("--edition", help="Folder of the edition; the default one is built into the user's cache."),
]
Epochs = Annotated[int, typer.Option(min=1, max=console.LARGEST, help="Repeats of each episode.")]
MaxConcurrency = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Episodes in flight for each model; fewer under its rate limits. Default: 64, or 1,000 with --batch.",
    ),
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        parser=console.out_path,
        metavar="PATH",
        help="Run folder. Default: a folder in runs/ named after what is run.",
    ),
]
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="Where an OpenAI-compatible server listens.")]
Prices = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="JSON prices that go before the built-in ones, in USD per million tokens, such as "
        '{"openai-api/local/*": {"input": 0.1, "output": 0.4}}.',
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Hard limit on what the run folder costs in all."),
]
Skills = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=DIR",
        help="A folder of skills of yours as the condition skill:NAME, in place of the curated ones, or with "
        "NAME+=DIR beside them; repeatable.",
    ),
]
SkillPython = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=PATH",
        help="Interpreter of the scripts of --skills NAME, which needs nothing of ours; repeatable. Default: this one.",
    ),
]
Turns = Annotated[
    int,
    typer.Option(min=1, max=console.LARGEST, help="Model calls of an episode, as its prompt says; the paper's: 12."),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(
        min=MIN_TOKENS,
        max=console.LARGEST,
        metavar="TOKENS",
        help="Tokens that a model may generate in an episode, reasoning included and input not; each message says what "
        "is left. Default: as many as its turns take.",
    ),
]
JsonOutput = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[FILE]",
        help="Write the full report as JSON to FILE; without FILE, print it in place of the text.",
    ),
]
AllowUnconfined = Annotated[
    bool,
    typer.Option(
        "--allow-unconfined",
        help="Run scripts of packages that are not ours even where guards are missing; see finskillbench doctor.",
    ),
]


if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.harness.skills.user_skills import SkillFolder, UserSkills


def part_of(edition: Edition, suite: str | None, *, named: bool) -> Edition:
    """Return an edition with the episodes of one suite: by default the paper's, if the edition has it.

    Where subtasks or tasks are `named`, all of the edition is looked at by default.
    """
    if suite is None and (named or PAPER_SUITE not in edition.suites):
        return edition
    return edition.part(suite or PAPER_SUITE)


@dataclass(kw_only=True)
class ArmOptions:
    """What is run under which arms, whoever plays: one field for each option; a command takes them by `command`."""

    condition: Annotated[
        list[str] | None,
        typer.Option(
            callback=checked(find_condition),
            help="no_skill, curated, self_generated, docs_only, scripts_only, inline, placebo, "
            "self_generated_persistent, code or code_curated; repeatable. Default: the first three.",
        ),
    ] = None
    skills: Skills = None
    skill_python: SkillPython = None
    suite: Suite = None
    subtask: Subtasks = None
    limit: Limit = None
    sample: Sample = None
    task: Tasks = None
    portfolio: Portfolios = None
    epochs: Epochs = 1
    turns: Turns = MAX_TURNS
    token_budget: TokenBudget = None
    allow_unconfined: AllowUnconfined = False
    on_line: frozenset[str] = field(default=frozenset(), init=False)
    """Options that the command line says, not a file."""

    def part(self, edition: Edition) -> Edition:
        """Return the edition with the episodes of the suite that the options name.

        Raises
        ------
        InputError : the edition was built without it; with the command that builds it.
        """
        return part_of(edition, self.suite, named=bool(self.subtask or self.task or self.portfolio))

    def tasks(self, edition: Edition) -> list[str] | None:
        """The ids and patterns of the tasks that the options name; None for none.

        Raises
        ------
        InputError : the edition has no portfolio of a name.
        """
        from finskillbench.domains.risk.user_catalogs.books import tasks_of_book

        of_books = (each for name in self.portfolio or () for each in tasks_of_book(edition.manifest, name))
        return [*(self.task or ()), *of_books] or None

    @property
    def allowance(self) -> Allowance:
        """What an episode may take."""
        return Allowance(self.turns, self.token_budget)

    @property
    def conditions(self) -> list[str]:
        """The names of the conditions, or of the default ones, and those of the skills that were brought."""
        from finskillbench.runs.config import DEFAULT_CONDITIONS

        named = self.condition or [condition.value for condition in DEFAULT_CONDITIONS]
        return [*named, *(arm for arm in self.given if arm not in named)]

    @cached_property
    def folders(self) -> dict[str, SkillFolder]:
        """Where the skills are that were brought, by name."""
        from finskillbench.harness.skills.user_skills import parse_skills

        return parse_skills(self.skills or (), self.skill_python or ())

    @cached_property
    def given(self) -> dict[str, UserSkills]:
        """What their arms mount."""
        from finskillbench.harness.skills.user_skills import read_user_skills

        return read_user_skills(self.folders)


Options = TypeVar("Options", bound=ArmOptions)


def command(function: Callable[[Options], None], kind: type[Options]) -> Callable[..., None]:
    """A command line function with one parameter for each field of `kind`, for Typer to read."""

    @wraps(function)
    def call(context: typer.Context, **values: Any) -> None:
        made = kind(**values)
        sources = {name: context.get_parameter_source(name) for name in values}
        made.on_line = frozenset(name for name, source in sources.items() if source and source.name == "COMMANDLINE")
        function(made)

    hints = get_type_hints(kind, include_extras=True)
    signature = inspect.signature(kind)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [each.replace(annotation=hints[each.name]) for each in signature.parameters.values()]
    vars(call).update(__signature__=signature.replace(parameters=[context, *parameters]))
    call.__annotations__ = {**hints, "context": typer.Context}
    return call

"""Options shared by several commands: types, bounds, help texts, and parsing into one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer import Option

from finskillbench.cli.display import console
from finskillbench.cli.display.console import LARGEST
from finskillbench.episode import PAPER_SUITE
from finskillbench.harness.allowance import MAX_TURNS, MIN_TOKENS, Allowance

T = TypeVar("T", str | None, list[str] | None)


def checked(find: Callable[[str], object]) -> Callable[[T], T]:
    """Return a callback that refuses unknown names before any file is opened."""

    def check(value: T) -> T:
        for name in [value] if isinstance(value, str) else value or ():
            find(name)
        return value

    return check


def find_suite(name: str) -> None:
    from finskillbench.domains import suites_named

    suites_named(name)


def _find_subtask(name: str) -> None:
    from finskillbench.domains import subtask_named

    subtask_named(name)


def find_condition(name: str) -> None:
    from finskillbench.harness.conditions import parse_condition

    parse_condition(name)


Suite = Annotated[
    str | None,
    Option(
        callback=checked(find_suite),
        metavar="NAME",
        help="Suite: paper, one of another package, or all. Default: paper, or the suite of --subtask.",
    ),
]
Subtasks = Annotated[
    list[str] | None, Option(callback=checked(_find_subtask), help="Subtask; repeatable. Default: all of the suite.")
]
Limit = Annotated[
    int | None,
    Option(min=1, max=LARGEST, help="First episodes of each subtask. Default: the number in the full-run protocol."),
]
Sample = Annotated[
    int | None,
    Option(
        min=1,
        max=LARGEST,
        help="Total episodes, spread over subtasks and difficulties; a larger sample contains a smaller one.",
    ),
]
Tasks = Annotated[
    list[str] | None,
    Option(help="Task id, as listed by `finskillbench inspect`, or a pattern such as 'rm_*_P001*'; repeatable."),
]
Portfolios = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Only tasks of this portfolio of your catalog, by its file name; repeatable."),
]
EditionFolder = Annotated[
    Path | None, Option("--edition", help="Folder of the edition. Default: an edition built into the user's cache.")
]
Epochs = Annotated[int, Option(min=1, max=LARGEST, help="Repeats of each episode.")]
MaxConcurrency = Annotated[
    int | None,
    Option(
        min=1, help="Concurrent episodes per model; fewer under its rate limits. Default: 64, or 1,000 with --batch."
    ),
]
RunFolder = Annotated[
    Path | None,
    Option(
        parser=console.out_path, metavar="PATH", help="Run folder. Default: a folder in runs/ named after the options."
    ),
]
BaseUrl = Annotated[str | None, Option(metavar="URL", help="Address of an OpenAI-compatible server.")]
Prices = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="JSON prices that override the built-in ones, in USD per million tokens, such as "
        '{"openai-api/local/*": {"input": 0.1, "output": 0.4}}.',
    ),
]
MaxCost = Annotated[float | None, Option(min=0, metavar="USD", help="Hard limit on the total cost of the run folder.")]
Skills = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=DIR",
        help="Folder of your skills, run as condition skill:NAME without the curated ones; NAME+=DIR keeps the "
        "curated ones too; repeatable.",
    ),
]
Library = Annotated[
    Path | None,
    Option(
        metavar="DIR",
        help="Folder of public skill packages, at any depth, for a third of the distractors of --condition library:N. "
        "Default: all are generated.",
    ),
]
SkillPython = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=PATH",
        help="Python of the scripts of --skills NAME, without finskillbench; repeatable. Default: the current one.",
    ),
]
Turns = Annotated[
    int, Option(min=1, max=LARGEST, help="Model calls allowed per episode, as the prompt states; the paper allows 12.")
]
TokenBudget = Annotated[
    int | None,
    Option(
        min=MIN_TOKENS,
        max=LARGEST,
        metavar="TOKENS",
        help="Tokens that a model may generate per episode, with reasoning and without input; each message states "
        "the remaining number. Default: limited by --turns only.",
    ),
]
JsonOutput = Annotated[
    str | None,
    Option(
        "--json",
        metavar="[FILE]",
        help="Write the full report as JSON to FILE; without FILE, print it instead of the text.",
    ),
]
AllowUnconfined = Annotated[
    bool,
    Option(
        "--allow-unconfined",
        help="Run scripts of other packages even if sandbox guards are missing; see finskillbench doctor.",
    ),
]


if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.harness.skills.user_skills import SkillFolder, UserSkills


def part_of(edition: Edition, suite: str | None, *, named: bool) -> Edition:
    """Return the episodes of one suite; the default is the paper's suite if the edition has it.

    If subtasks or tasks are `named`, the default is all suites.
    """
    if suite is None and (named or PAPER_SUITE not in edition.suites):
        return edition
    return edition.part(suite or PAPER_SUITE)


@dataclass(kw_only=True)
class ConditionOptions:
    """Options that select conditions and episodes; `command` makes one command-line option of each field."""

    condition: Annotated[
        list[str] | None,
        Option(
            callback=checked(find_condition),
            help="no_skill, curated, self_generated, docs_only, scripts_only, inline, placebo, "
            "self_generated_persistent, code, code_curated, library:N (the curated skills among N) or "
            "faulty:KIND (with a planted fault); +hinted or +forced may follow; repeatable. Default: the first three.",
        ),
    ] = None
    skills: Skills = None
    library: Library = None
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
    on_command_line: frozenset[str] = field(default=frozenset(), init=False)
    """Names of options given on the command line, as opposed to a file."""

    def part(self, edition: Edition) -> Edition:
        """Return the edition with the selected suite; refuse a suite that it lacks."""
        return part_of(edition, self.suite, named=bool(self.subtask or self.task or self.portfolio))

    def tasks(self, edition: Edition) -> list[str] | None:
        """Return ids and patterns of the selected tasks, None without a selection; refuse an unknown portfolio."""
        from finskillbench.domains.risk.user_catalogs.books import tasks_of_book

        portfolio_tasks = (each for name in self.portfolio or () for each in tasks_of_book(edition.manifest, name))
        return [*(self.task or ()), *portfolio_tasks] or None

    @property
    def allowance(self) -> Allowance:
        """Turns and tokens allowed per episode."""
        return Allowance(self.turns, self.token_budget)

    @property
    def conditions(self) -> list[str]:
        """Names of the selected or default conditions, followed by those of user skills."""
        from finskillbench.runs.config import DEFAULT_CONDITIONS

        named = self.condition or [condition.value for condition in DEFAULT_CONDITIONS]
        return [*named, *(arm for arm in self.user_skills if arm not in named)]

    @cached_property
    def skill_folders(self) -> dict[str, SkillFolder]:
        """Folders of user skills by name."""
        from finskillbench.harness.skills.user_skills import parse_skills

        return parse_skills(self.skills or (), self.skill_python or ())

    @cached_property
    def user_skills(self) -> dict[str, UserSkills]:
        """User skills by condition."""
        from finskillbench.harness.skills.user_skills import read_user_skills

        return read_user_skills(self.skill_folders)

    def check_library(self) -> None:
        """Refuse a folder of public packages that is missing, too small or used by no condition."""
        from finskillbench.errors import InputError
        from finskillbench.harness.conditions import LIBRARY_PREFIX, mount_all

        if self.library is None:
            return
        libraries = [name for name in self.conditions if name.startswith(LIBRARY_PREFIX)]
        if not libraries:
            raise InputError(f"--library {self.library}: no condition uses it; add --condition {LIBRARY_PREFIX}100")
        mount_all(libraries, library=self.library)


Options = TypeVar("Options", bound=ConditionOptions)


def command(function: Callable[[Options], None], kind: type[Options]) -> Callable[..., None]:
    """Return a function for Typer with one parameter for each field of `kind`."""

    @wraps(function)
    def call(context: typer.Context, **values: Any) -> None:
        options = kind(**values)
        sources = {name: context.get_parameter_source(name) for name in values}
        options.on_command_line = frozenset(
            name for name, source in sources.items() if source and source.name == "COMMANDLINE"
        )
        function(options)

    hints = get_type_hints(kind, include_extras=True)
    signature = inspect.signature(kind)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [each.replace(annotation=hints[each.name]) for each in signature.parameters.values()]
    vars(call).update(__signature__=signature.replace(parameters=[context, *parameters]))
    call.__annotations__ = {**hints, "context": typer.Context}
    return call

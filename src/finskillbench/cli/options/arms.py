"""What is run under which arms, and how a command takes its options as one object."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

from finskillbench.cli.options.kinds import (
    AllowUnconfined,
    Epochs,
    Limit,
    Portfolios,
    Sample,
    SkillPython,
    Skills,
    Subtasks,
    Suite,
    Tasks,
    TokenBudget,
    Turns,
    checked,
    find_condition,
)
from finskillbench.episode import PAPER_SUITE
from finskillbench.harness.conditions import MAX_TURNS, Allowance

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.harness.skills.given import Given, SkillFolder


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
        from finskillbench.domains.risk.own.books import tasks_of_book

        of_books = (each for name in self.portfolio or () for each in tasks_of_book(edition.manifest, name))
        return [*(self.task or ()), *of_books] or None

    @property
    def allowance(self) -> Allowance:
        """What an episode may take."""
        return Allowance(self.turns, self.token_budget)

    @property
    def conditions(self) -> list[str]:
        """The names of the conditions, or of the default ones, and those of the skills that were brought."""
        from finskillbench.runs.execute.run import DEFAULT_CONDITIONS

        named = self.condition or [condition.value for condition in DEFAULT_CONDITIONS]
        return [*named, *(arm for arm in self.given if arm not in named)]

    @cached_property
    def folders(self) -> dict[str, SkillFolder]:
        """Where the skills are that were brought, by name."""
        from finskillbench.harness.skills.given import parse_skills

        return parse_skills(self.skills or (), self.skill_python or ())

    @cached_property
    def given(self) -> dict[str, Given]:
        """What their arms mount."""
        from finskillbench.harness.skills.given import read_given

        return read_given(self.folders)


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

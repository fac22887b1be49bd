"""Options that several commands have, each with its name, bounds and words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from finskillbench.cli.display import console
from finskillbench.harness.conditions import LEAST_TOKENS

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
    from finskillbench.domains import by_name

    by_name(name)


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
        help="Tasks by their ids, which `finskillbench read` lists, or patterns such as 'rm_*_P001*'; repeatable."
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
        min=LEAST_TOKENS,
        max=console.LARGEST,
        metavar="TOKENS",
        help="Tokens that a model may generate in an episode, reasoning included and input not; each message says what "
        "is left. Default: as many as its turns take.",
    ),
]
AllowUnconfined = Annotated[
    bool,
    typer.Option(
        "--allow-unconfined",
        help="Run scripts of packages that are not ours even where guards are missing; see finskillbench doctor.",
    ),
]

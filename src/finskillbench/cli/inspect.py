"""`finskillbench inspect`: show an episode as an agent sees it, without a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from finskillbench.cli.display import console
from finskillbench.cli.options.kinds import JsonOutput, Skills, checked, find_condition

if TYPE_CHECKING:
    from finskillbench.edition import Edition
    from finskillbench.episode import Episode
    from finskillbench.harness.episode_state import EpisodeState

EXAMPLE = """\b
Examples:
  finskillbench inspect editions/seven
  finskillbench inspect editions/seven TASK_ID --condition curated
  finskillbench inspect editions/seven TASK_ID --field covariance_matrix"""


def inspect(
    edition: Annotated[Path, Argument(help="Folder of the edition.")],
    task_id: Annotated[str | None, Argument(help="Task id. Default: list all.")] = None,
    condition: Annotated[str, Option(callback=checked(find_condition), help="Condition, as for `run`.")] = "no_skill",
    skills: Skills = None,
    field: Annotated[str | None, Option(help="Print what get_task_data returns for this field.")] = None,
    as_json: JsonOutput = None,
) -> None:
    """Print what an agent sees of an episode: prompt, tools and available data fields."""
    from finskillbench.edition import load_edition
    from finskillbench.errors import InputError
    from finskillbench.harness.conditions import mount_all, parse_condition
    from finskillbench.harness.episode_state import EpisodeState, Resources
    from finskillbench.harness.skills.user_skills import parse_skills, read_user_skills
    from finskillbench.harness.trace import BUILTIN_HARNESS
    from finskillbench.runs.execute.backend import prepare_episode

    if task_id is None and (field is not None or as_json is not None):
        raise InputError("--field and --json need a task; add TASK_ID")
    user_skills = read_user_skills(parse_skills(skills or ()), run_locally=False)
    loaded = load_edition(edition)
    if task_id is None:
        for each in loaded.episodes():
            typer.echo(f"{each.task_id}  {each.sub_task}  {each.difficulty}  {each.as_of_date}")
        return
    episode = _find(loaded, task_id)
    mounted_condition = next(iter(user_skills), parse_condition(condition))
    mounted = mount_all([mounted_condition], user_skills)[mounted_condition]
    state = EpisodeState(
        "reader", BUILTIN_HARNESS, prepare_episode(loaded, episode).spec(mounted), Resources(filings=loaded.filings)
    )
    state.append_remaining()
    try:
        if field is not None:
            typer.echo(asyncio.run(_field(state, field)))
        elif not console.json_printed(as_json, lambda: _to_json(state)):
            _print(state, episode)
    finally:
        state.toolbox.close()


def _to_json(state: EpisodeState) -> dict[str, object]:
    """Return messages and tools as a model receives them."""
    messages = [{"role": message.role, "content": message.content} for message in state.messages]
    return {"messages": messages, "tools": state.tools}


def _find(edition: Edition, task_id: str) -> Episode:
    from difflib import get_close_matches

    from finskillbench.errors import InputError

    by_id = {episode.task_id: episode for episode in edition.episodes()}
    if task_id not in by_id:
        like = get_close_matches(task_id, by_id, n=3) or list(by_id)[:3]
        raise InputError(f"{edition.path}: has no task {task_id!r}; its tasks include {', '.join(like)}")
    return by_id[task_id]


async def _field(state: EpisodeState, name: str) -> str:
    """Return the tool result for a field; refuse an unknown field."""
    import orjson

    from finskillbench.errors import InputError
    from finskillbench.harness.model import ToolCall

    arguments = orjson.dumps({"field": name}).decode()
    text, outcome, _ = await state.serve(ToolCall("1", "get_task_data", arguments), state.tools)
    if outcome != "ok":
        answer = orjson.loads(text)
        raise InputError(
            "; ".join([answer["error"], *(f"{key}: {', '.join(answer[key])}" for key in answer if key != "error")])
        )
    return text


def _print(state: EpisodeState, episode: Episode) -> None:
    from finskillbench.runs.postprocess.show import printable

    for message in state.messages:
        _heading(message.role)
        for line in message.content.splitlines():
            typer.echo(printable(line))
    _heading("tools")
    for tool in state.tools:
        typer.echo(f"{tool.name}({', '.join(tool.parameters['properties'])})")
        for line in tool.description.splitlines():
            typer.echo(f"    {printable(line)}")
    _heading("fields")
    typer.echo(printable(", ".join(episode.input)))


def _heading(text: str) -> None:
    typer.secho(f"\n--- {text}", bold=True)

"""An episode that is played move by move on tables: its tools, its state, its budget, and programs that play it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from finskillbench.domains import subtask_named
from finskillbench.domains.interactive import (
    EpisodeBudget,
    InteractiveCase,
    InvalidActionError,
    ProcedureCall,
    ToolContract,
)
from finskillbench.domains.tables import EpisodeTable, reference
from finskillbench.episode import Episode
from finskillbench.harness.allowance import DEFAULT_ALLOWANCE, Allowance
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.programs import program
from finskillbench.harness.programs.program import Textbook, Trapped
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.tools import contracts as tools_module
from finskillbench.harness.trace import Trace

FRAME = pl.DataFrame({"name": ["A", "B"] * 300, "day": range(600), "value": [number / 8 for number in range(600)]})
ADVANCE = ToolContract(
    "advance",
    "Move on.",
    {
        "type": "object",
        "properties": {"trades": {"type": "object", "description": "Name to amount."}},
        "required": ["trades"],
        "additionalProperties": False,
    },
)


class Walk:
    """A state of two moves; each refuses trades of more than 1."""

    def __init__(self) -> None:
        self.moves: list[Mapping[str, Any]] = []

    @property
    def fields(self) -> dict[str, Any]:
        return {"current": {"moves": len(self.moves)}}

    @property
    def record(self) -> dict[str, Any]:
        return {"moves": list(self.moves)}

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if any(abs(amount) > 1 for amount in arguments["trades"].values()):
            raise InvalidActionError("at most 1 a name; trade less")
        self.moves.append(arguments["trades"])
        return {"moves_left": 2 - len(self.moves)}


def procedure() -> Generator[tuple[ProcedureCall, ...], list[Mapping[str, Any]], dict[str, Any]]:
    first = yield (
        ProcedureCall("read_table", {"table": "history", "rows": 1}),
        ProcedureCall("load_skill", {"skill_name": "x"}),
    )
    second = yield (ProcedureCall("advance", {"trades": {"A": first[0]["rows"][0][2]}}),)
    return {"seen": [first[0]["matching"], second[0]["moves_left"]]}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, episode: Episode, tabled: str):
    """Plays turns, or a program, on an episode with a table, a stage and a budget."""
    toy = replace(
        subtask_named(episode.sub_task),
        interactive=InteractiveCase(
            budget=EpisodeBudget(turns=5, output_tokens=400, data_calls=2),
            procedures={"textbook": procedure},
            tools=(ADVANCE,),
            open_state=lambda task_input, hidden: Walk(),
        ),
    )
    monkeypatch.setattr(tools_module, "subtask_named", lambda name: toy)
    monkeypatch.setattr(program, "subtask_named", lambda name: toy)
    given = {"history": reference("t", "history", FRAME), "current": {"moves": 0}, "memo": {"text": "Read me."}}
    shown = replace(episode, skill=tabled, input=given)
    data = {**given, "history": EpisodeTable(FRAME)}

    def play(
        model: object, condition: Condition = Condition.NO_SKILL, allowance: Allowance = DEFAULT_ALLOWANCE, **around
    ) -> Trace:
        mounted = around.pop("mounted", mount(Condition.NO_SKILL, {}, {}))
        prompt = task_prompt(shown, toy.answer)
        assignment = EpisodeSpec(shown, prompt, lambda: data, mounted, allowance=allowance, open_state=Walk)
        return asyncio.run(run_episode(model, assignment, Resources(**around)))

    return play


def turn(*calls: tuple[str, dict[str, Any]], tokens: int = 10) -> Turn:
    made = tuple(ToolCall(str(place), name, json.dumps(arguments)) for place, (name, arguments) in enumerate(calls))
    return Turn(tool_calls=made, usage=Usage(output_tokens=tokens))


SUBMIT = turn(("submit_answer", {"answer": "{}"}))


def results(trace: Trace) -> list[dict[str, Any]]:
    return [json.loads(message.content.partition("\n")[0]) for message in trace.messages if message.role == "tool"]


def test_a_page_of_a_table(played, scripted) -> None:
    asked = {"table": "history", "first": 1, "rows": 2, "columns": ["day", "value"], "where": {"name": "B"}}
    (page, described, _) = results(
        played(scripted([turn(("read_table", asked)), turn(("get_task_data", {"field": "history"})), SUBMIT]))
    )
    assert page == {"columns": ["day", "value"], "first": 1, "matching": 300, "rows": [[3, 0.375], [5, 0.625]]}
    assert described["value"] == {"rows": 600, "columns": ["name", "day", "value"], "read_with": "read_table"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"table": "memo"}, "is not a table of the task"),
        ({"table": "history", "rows": 201}, "rows must be between 1 and 200"),
        ({"table": "history", "first": -1}, "first must not be negative"),
        ({"table": "history", "columns": ["price"]}, "there is no column 'price'; choose from: name, day, value"),
        ({"table": "history", "where": {"price": 1}}, "there is no column 'price'"),
    ],
)
def test_a_page_that_cannot_be_meant(played, scripted, asked: dict[str, Any], told: str) -> None:
    refused = results(played(scripted([turn(("read_table", asked)), SUBMIT])))[0]
    assert told in refused["error"]


def test_moves_change_the_state_and_are_recorded(played, scripted) -> None:
    moves = [
        ("advance", {"trades": {"A": 1}}),
        ("advance", {"trades": {"A": 9}}),
        ("get_task_data", {"field": "current"}),
    ]
    trace = played(scripted([turn(*moves), SUBMIT]))
    first, refused, now, _ = results(trace)
    assert (first, refused) == ({"moves_left": 1}, {"error": "at most 1 a name; trade less"})
    assert now["value"] == {"moves": 1}
    assert trace.submission.record == {"moves": [{"A": 1}]}
    assert [call.fate for call in trace.tool_calls] == ["ok", "tool_failed", "ok", "ok"]


def test_two_episodes_share_no_state(played, scripted) -> None:
    move = turn(("advance", {"trades": {"A": 1}}))
    assert [played(scripted([move, SUBMIT])).record for _ in range(2)] == [{"moves": [{"A": 1}]}] * 2


def test_the_budget_is_stated_and_kept(played, scripted) -> None:
    read = turn(("get_task_data", {"field": "memo"}))
    model = scripted([read, read, read, SUBMIT])
    trace = played(model)
    prompt = model.seen[0][0][1].content
    assert "You have 5 turns left, this one included, and 400 tokens" in prompt
    told = [messages[-1].content.rpartition(" Calls left ")[2] for messages, *_ in model.seen]
    assert told == [f"that read data (`get_task_data`, `read_table`): {left}." for left in (2, 1, 0, 0)]
    assert "You have 5 turns" in model.seen[0][0][0].content
    assert ["error" in each for each in results(trace)] == [False, False, True, False]
    assert "all data calls of the budget are used" in results(trace)[2]["error"]


def test_more_tokens_than_the_budget_end_the_episode(played, scripted) -> None:
    assert (
        played(scripted([turn(("get_task_data", {"field": "memo"}), tokens=401), SUBMIT])).ended == "budget_exhausted"
    )


def test_a_run_may_name_other_turns_and_tokens(played, scripted) -> None:
    model = scripted([SUBMIT])
    played(model, allowance=Allowance(turns=7, tokens=90))
    assert "You have 7 turns left, this one included, and 90 tokens" in model.seen[0][0][1].content


def test_the_tools_stand_before_those_of_the_arm(played, scripted) -> None:
    model = scripted([SUBMIT])
    trace = played(model)
    assert trace.tools == ("submit_answer", "get_task_data", "read_table", "advance")


def test_a_program_plays_a_procedure(played, mounts, runner) -> None:
    trace = played(Textbook(), mounted=mounts[Condition.CURATED], runner=runner)
    assert json.loads(trace.answer or "") == {"seen": [600, 1]}
    assert trace.record == {"moves": [{"A": 0.0}]}
    assert trace.turns == 3


def test_without_scripts_or_procedure_it_gives_the_constant_answer(played, mounts, runner) -> None:
    assert played(Textbook()).turns == 1
    assert played(Trapped(), mounted=mounts[Condition.CURATED], runner=runner).turns == 1

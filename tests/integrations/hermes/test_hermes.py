"""The real Hermes Agent, where it is installed: `make hermes`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_socket
from tests.integrations.hermes.said import SUBMIT, Said, calls
from tests.integrations.mcp.small import traces
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, sampled

from finskillbench.edition import Edition
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.programs.reference import Reference
from finskillbench.harness.trace import Trace
from finskillbench.integrations.hermes import Hermes
from finskillbench.runs.execute.run import run

pytestmark = [pytest.mark.enable_socket, pytest.mark.slow]

SAME = (
    *("task_id", "condition", "status", "valid_json", "score", "scores", "scoring_details", "answer_digest"),
    *("skills_loaded", "scripts_run", "incidents", "edition", "mount"),
)


def test_rows_are_those_of_our_own_loop(
    synthetic_edition: Edition, real_hermes: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = sampled([subtask.name for subtask in SUBTASKS], one_in=4)
    which = {"conditions": ["no_skill", "curated"], "subtasks": names, "limit": 2 if THOROUGH else 1}
    ours = run(synthetic_edition, [Reference()], **which, out=tmp_path / "ours")
    with caplog.at_level(logging.WARNING):
        theirs = run(synthetic_edition, [Reference()], **which, harness=Hermes(real_hermes), out=tmp_path / "theirs")
    assert theirs.rows["error"].drop_nulls().to_list() == []
    assert theirs.rows.select(SAME).equals(ours.rows.select(SAME))
    assert {*theirs.rows["harness"]} == {"hermes"}
    assert set(theirs.rows["status"]) == {"scored"}
    assert not [record.getMessage() for record in caplog.records], "no address but ours is asked for"


READ = ("get_task_data", '{"field": "cash"}')
BROKEN = calls(("get_task_data", '{"field": '))
OUTSIDE = [
    ("skill_view", '{"name": "../config.yaml"}'),
    ("skill_view", '{"name": "risk-management", "file_path": "../../config.yaml"}'),
    ("skill_view", '{"name": "risk-management", "file_path": "/etc/hostname"}'),
    ("skill_view", '{"name": "risk-management", "file_path": "evals/evals.json"}'),
]
INSIDE = [
    ("skill_view", '{"name": "risk-management", "file_path": "references/methods.md"}'),
    ("skill_view", '{"name": "risk-management"}'),
    ("run_skill_script", '{"script_path": "scripts/stress_test.py"}'),
]
LAST = calls(READ, READ, ("submit_answer", '{"answer": {"turnover": 1.50}}'), ("get_task_data", "{}"))
STRANGE = ToolCall("x|y", "get_task_data", '{"field": "\\ud83d\\ude00 </tool> <think> ${HOME} \\u0000"}')
FREE = Usage(cost_usd=0)
MODELS = {
    "browses": [calls(("browse", "{}"), READ), LAST],
    "stutters": [BROKEN, BROKEN, BROKEN, BROKEN, LAST],
    "talks": [Turn("Let me think.", usage=FREE)],
    "reads": [calls(("get_task_data", f'{{"field": "cash{i}"}}')) for i in range(12)],
    "is_cut_off": [Turn("I think that", usage=FREE, stop="max_tokens"), SUBMIT],
    "is_cut_off_in_a_call": [Turn("", BROKEN.tool_calls, FREE, stop="max_tokens"), SUBMIT],
    "is_silent": [Turn(usage=FREE), SUBMIT],
    "declines": [Turn("I would rather not.", usage=FREE, stop="refused"), SUBMIT],
    "pries": [calls(("skills_list", "{}")), calls(*OUTSIDE, *INSIDE), SUBMIT],
    "is_strange": [Turn("naïve – “words”", (STRANGE,), FREE), SUBMIT],
}
"""What models say, turn after turn."""


@pytest.fixture(scope="module")
def played(small_edition: Edition, real_hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Trace]:
    """What happened when one of the models played an episode; all of them play at once."""
    pytest_socket.enable_socket()  # the mark enables it only for the tests themselves
    result = run(
        small_edition,
        [Said(*turns, name=f"model/{name}") for name, turns in MODELS.items()],
        ["no_skill", "curated"],
        ["rebalancing"],
        limit=1,
        harness=Hermes(real_hermes),
        out=tmp_path_factory.mktemp("hermes") / "run",
    )
    found = {(trace.model, trace.condition): trace for trace in traces(result)}
    return lambda name, condition="no_skill": found[f"model/{name}", condition]


def fates(trace: Trace) -> list[tuple[int, str, str]]:
    """What became of each call: its turn, the tool, and what came of it."""
    return [(call.turn, call.name, call.fate) for call in trace.tool_calls]


def test_a_tool_that_there_is_not_and_what_stands_beside_it(played: Callable[..., Trace]) -> None:
    trace = played("browses")
    assert fates(trace)[:2] == [(1, "browse", "unknown_tool"), (1, "get_task_data", "ok")]
    assert trace.incidents == ("unknown_tool",)


def test_arguments_that_are_no_json_the_same_call_twice_and_one_after_the_answer(played: Callable[..., Trace]) -> None:
    trace = played("stutters")
    assert trace.ended == "submitted"
    assert trace.answer == '{"turnover": 1.50}', "the digits that the model wrote"
    assert set(fates(trace)[:-4]) == {(turn, "get_task_data", "invalid_arguments") for turn in range(1, trace.turns)}
    assert fates(trace)[-4:] == [
        (trace.turns, "get_task_data", "ok"),
        (trace.turns, "get_task_data", "not_run"),
        (trace.turns, "submit_answer", "ok"),
        (trace.turns, "get_task_data", "not_run"),
    ]


def test_text_is_answered_by_a_reminder_and_twelve_turns_are_all(played: Callable[..., Trace]) -> None:
    trace = played("talks")
    assert (trace.ended, trace.turns, trace.incidents) == ("max_turns", 12, ("text_only",) * 12)
    assert trace.messages[3].content.startswith("Plain text is not recorded")


def test_calls_in_every_turn_end_after_twelve(played: Callable[..., Trace]) -> None:
    trace = played("reads")
    assert (trace.ended, trace.turns) == ("max_turns", 12)
    assert any(message.content.startswith("This is the last turn") for message in trace.messages)


@pytest.mark.parametrize(
    ("name", "incident"),
    [
        ("is_cut_off", "max_tokens"),
        ("is_cut_off_in_a_call", "max_tokens"),
        ("is_silent", "text_only"),
        ("declines", "refused"),
    ],
)
def test_a_turn_that_came_to_nothing_is_followed_by_another(
    played: Callable[..., Trace], name: str, incident: str
) -> None:
    trace = played(name)
    assert trace.ended == "submitted"
    assert trace.incidents[0] == incident


def test_skills_are_read_by_hermes_and_nothing_beside_them(played: Callable[..., Trace]) -> None:
    trace = played("pries", "curated")
    assert [call.fate for call in trace.tool_calls[1:5]] == ["tool_failed"] * 4
    assert fates(trace)[5:] == [
        (2, "skill_view", "ok"),
        (2, "skill_view", "ok"),
        (2, "run_skill_script", "tool_failed"),
        (3, "submit_answer", "ok"),
    ]
    assert trace.skills_loaded == ("risk-management",)
    assert trace.scripts_run == ("risk-management/scripts/stress_test.py",)
    assert {fate for _, _, fate in fates(played("pries"))[:-1]} == {"unknown_tool"}, "no_skill has none of these tools"


def test_strange_words_arrive_as_they_are(played: Callable[..., Trace]) -> None:
    trace = played("is_strange")
    assert trace.ended == "submitted"
    assert trace.messages[2].content == "naïve – “words”"
    assert "there is no field" in trace.messages[3].content

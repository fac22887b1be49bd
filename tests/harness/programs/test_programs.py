"""The programs, those that ship and two that misbehave, through the real loop."""

import dataclasses
from contextlib import nullcontext, suppress
from itertools import product
from typing import get_type_hints

import orjson
import pytest
from tests.harness.programs.cheat import EXPLOITS, PARSED, REFUSED, Cheat
from tests.harness.programs.faulty import Faulty
from tests.sampling import sampled
from tests.scoring.examples import example_of

from finskillbench.domains import domain_of, subtask_named, subtasks
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.model import Model
from finskillbench.harness.models import BASELINES, get_model
from finskillbench.harness.programs.program import Nop, Trivial
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.loader import curated
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission

PACKAGES = curated()
NAMES = [subtask.name for subtask in subtasks()]


@pytest.fixture
def mounts(mounts):
    """Every arm over the packages that ship, one for each domain."""
    return {condition: mount(condition, PACKAGES, mounts[Condition.PLACEBO].packages) for condition in Condition}


@pytest.fixture
def solve(play, episode):
    """The trace of a program on an episode of any subtask, `salt` making its prompt another one."""

    def go(model: Model, sub_task: str, condition=Condition.NO_SKILL, *, salt: int = 0, **more):
        subtask = subtask_named(sub_task)
        read = subtask.baselines.trivial.fields if subtask.baselines.trivial is not None else ()
        types = get_type_hints(subtask.input) if read else {}
        task_input = {**{field: example_of(types[field]) for field in read}, **episode.input, "salt": salt, **more}
        other = dataclasses.replace(episode, sub_task=sub_task, skill=domain_of(subtask.name).name, input=task_input)
        return play(model, condition, episode=other, base_prompt=task_prompt(other, subtask.answer))

    return go


@pytest.mark.parametrize("name", BASELINES)
def test_names_agree_with_the_registry(name: str) -> None:
    model = get_model(name)
    assert model.name == name
    assert isinstance(model, Model)


def test_an_unknown_model_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError) as caught:
        get_model("baseline/none")
    assert "'baseline/none' is unknown" in str(caught.value)
    assert all(name in str(caught.value) for name in BASELINES)


@pytest.mark.slow
@pytest.mark.parametrize(("sub_task", "condition"), sampled(product(NAMES, Condition), 3))
def test_nop_submits_every_key_null(solve, sub_task: str, condition: Condition) -> None:
    trace = solve(Nop(), sub_task, condition)
    assert (trace.ended, trace.turns, trace.usage.cost_usd) == ("submitted", 1, 0.0)
    assert orjson.loads(trace.answer) == dict.fromkeys(subtask_named(sub_task).answer.model_fields)


@pytest.mark.parametrize("sub_task", NAMES)
def test_trivial_fills_every_key_without_skills(solve, sub_task: str) -> None:
    trace = solve(Trivial(), sub_task, Condition.CURATED)
    answer = orjson.loads(trace.answer)
    assert tuple(answer) == tuple(subtask_named(sub_task).answer.model_fields)
    assert None not in answer.values()
    assert (trace.skills_loaded, trace.scripts_run) == ((), ())


def test_trivial_weights_are_equal_and_its_flags_are_the_constraints_set(solve, full_input) -> None:
    third = {"AAA": 1 / 3, "BBB": 1 / 3, "CCC": 1 / 3}
    assert orjson.loads(solve(Trivial(), "unconstrained_optimization").answer) == {"weights": third}
    answer = orjson.loads(solve(Trivial(), "constrained_optimization").answer)
    assert answer == {"weights": third, "constraint_satisfaction": {"long_only": True}}


@pytest.mark.parametrize("sub_task", NAMES)
def test_texts_that_are_no_json_are_refused_and_the_others_read(sub_task: str) -> None:
    for exploit in REFUSED.values():
        with pytest.raises(InvalidSubmission):
            parse_submission(exploit(sub_task))
    for name, exploit in PARSED.items():
        with suppress(InvalidSubmission) if name == "an order to the grader" else nullcontext():
            parse_submission(exploit(sub_task))


def test_cheat_tries_every_exploit_and_gets_nothing_after_submitting(solve) -> None:
    answers = set()
    for salt in range(120):
        trace = solve(Cheat(), "unconstrained_optimization", salt=salt)
        assert [record.fate for record in trace.tool_calls] == ["ok", "not_run", "not_run"]
        answers.add(trace.answer)
    assert answers == {exploit("unconstrained_optimization") for exploit in EXPLOITS}


@pytest.mark.parametrize("program", [Cheat, Trivial, Nop])
def test_a_program_answers_alike_in_every_arm(solve, program) -> None:
    for salt in range(10):
        answers = {solve(program(), "unconstrained_optimization", arm, salt=salt).answer for arm in Condition}
        assert len(answers) == 1


@pytest.mark.slow
def test_faulty_never_submits_and_always_ends(solve) -> None:
    seen = set()
    for salt in range(32):
        for condition in Condition:
            trace = solve(Faulty(), "normalization", condition, salt=salt)
            assert (trace.ended, trace.answer) == ("max_turns", None)
            seen.add(trace.tool_calls[0].name if trace.tool_calls else "text")
            seen.add(trace.tool_calls[0].arguments[:60] if trace.tool_calls else "text")
    assert {"text", "submit_answer", "place_order", "get_task_data", "load_skill"} <= seen

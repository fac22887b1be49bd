"""`baseline/reference` in every arm, over the packages that ship: it does what the arm allows, and no more."""

import dataclasses
from collections.abc import Iterator

import orjson
import pytest

from finskillbench.domains import subtask_named
from finskillbench.domains.interactive import ProcedureCall
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.model import Message
from finskillbench.harness.models import get_model
from finskillbench.harness.programs.program import next_turn, result_of, submit
from finskillbench.harness.prompts.compose import task_prompt
from finskillbench.harness.skills.loader import curated
from finskillbench.harness.skills.runner import script_runner
from finskillbench.harness.skills.user_skills import Memory
from finskillbench.harness.trace import Trace
from finskillbench.sandbox.runner import ScriptRunner

PACKAGES = curated()
SUB_TASK = "unconstrained_optimization"
PERSISTENT = Condition.SELF_GENERATED_PERSISTENT
SCRIPTED = (Condition.CURATED, Condition.INLINE, Condition.CODE_CURATED)
DOCUMENTS = {
    Condition.CURATED: ("portfolio-construction",),
    Condition.CODE_CURATED: ("portfolio-construction",),
    Condition.DOCS_ONLY: ("portfolio-construction",),
    Condition.PLACEBO: ("bee-keeping",),
    Condition.SELF_GENERATED: ("working-notes",),
    PERSISTENT: ("working-notes",),
}
"""Skills that the reference loads for a portfolio task; its index comes in order, so that some arms load more."""


@pytest.fixture
def mounts(mounts):
    return {condition: mount(condition, PACKAGES, mounts[Condition.PLACEBO].packages) for condition in Condition}


@pytest.fixture
def full_input(full_input):
    """Every field of the task's recipe."""
    return {**full_input, "risk_free_rate": 0.04, "risk_aversion": 2.5}


@pytest.fixture
def solve(play, episode, full_input):
    """The reference's trace on a portfolio task."""
    complete = dataclasses.replace(episode, input=full_input)

    def go(condition: Condition, **more) -> Trace:
        prompt = task_prompt(complete, subtask_named(SUB_TASK).answer)
        return play(get_model("baseline/reference"), condition, episode=complete, base_prompt=prompt, **more)

    return go


@pytest.fixture
def by_hand(solve) -> str:
    """What it answers where it has no skill."""
    trace = solve(Condition.NO_SKILL)
    assert (trace.skills_loaded, trace.scripts_run) == ((), ())
    return trace.answer


def test_it_injects_of_its_table_what_the_task_has(play, episode, full_input, runner) -> None:
    less = dataclasses.replace(episode, input={k: v for k, v in full_input.items() if k != "risk_aversion"})
    prompt = task_prompt(less, subtask_named(SUB_TASK).answer)
    play(get_model("baseline/reference"), Condition.CURATED, episode=less, base_prompt=prompt)
    (call,) = runner.calls
    assert "risk_aversion" not in orjson.loads(call[1])
    assert orjson.loads(call[1]).keys() < full_input.keys()


@pytest.mark.parametrize("condition", SCRIPTED)
def test_with_document_and_scripts_it_submits_what_the_script_returns(solve, runner, condition: Condition) -> None:
    trace = solve(condition)
    assert trace.scripts_run == ("portfolio-construction/scripts/optimize.py",)
    assert orjson.loads(trace.answer) == {"weights": runner.outcome.output["weights"]}
    payload = orjson.loads(runner.calls[0][1])
    assert payload["covariance_matrix"]["matrix"][0][0] == 0.040000001
    assert trace.incidents == ()


@pytest.mark.parametrize("condition", [c for c in Condition if c not in SCRIPTED])
def test_without_either_it_computes_by_hand(solve, by_hand: str, runner, condition: Condition) -> None:
    trace = solve(condition)
    assert (trace.answer, trace.scripts_run, runner.calls) == (by_hand, (), [])
    assert trace.incidents == ()


@pytest.mark.parametrize("condition", list(Condition))
def test_it_loads_the_documents_that_an_arm_has_until_one_helps(solve, condition: Condition) -> None:
    loaded = solve(condition).skills_loaded
    assert set(DOCUMENTS.get(condition, ())) <= set(loaded)
    assert bool(loaded) is (condition in DOCUMENTS)


def test_a_stream_saves_once_and_later_reads_what_it_saved(solve, by_hand: str) -> None:
    first = solve(PERSISTENT)
    assert [record.name for record in first.tool_calls[:2]] == ["save_skill", "load_skill"]
    assert list(first.saved_skills) == ["working-notes"]
    second = solve(PERSISTENT, memory=Memory(first.saved_skills))
    names = [record.name for record in second.tool_calls]
    assert (names[0], "save_skill" in names) == ("load_skill", False)
    read = orjson.loads(result_of(second.messages[second.tool_calls[0].message]))
    assert read["content"] == first.saved_skills["working-notes"]
    assert (second.saved_skills, second.answer) == (first.saved_skills, by_hand)


def test_a_stream_with_skills_of_others_still_saves_its_own(solve) -> None:
    trace = solve(PERSISTENT, memory=Memory({"my-working-notes": "x"}))
    assert sorted(trace.saved_skills) == ["my-working-notes", "working-notes"]


@pytest.fixture
def real_runner() -> Iterator[ScriptRunner]:
    with script_runner() as runner:
        yield runner


class TestWithRealScripts:
    """The same with the scripts that ship, run by the runner that a run uses."""

    @pytest.fixture
    def runner(self, real_runner: ScriptRunner) -> ScriptRunner:
        return real_runner

    @pytest.mark.slow
    def test_curated_and_inline_agree_and_beat_arithmetic(self, solve, full_input) -> None:
        answers = {condition: orjson.loads(solve(condition).answer)["weights"] for condition in SCRIPTED}
        curated_weights = answers[Condition.CURATED]
        assert curated_weights == answers[Condition.INLINE]
        assert sum(curated_weights.values()) == pytest.approx(1.0, abs=1e-9)
        by_hand = orjson.loads(solve(Condition.NO_SKILL).answer)["weights"]
        assert _sharpe(curated_weights, full_input) > _sharpe(by_hand, full_input) + 1e-6


def _sharpe(weights: dict[str, float], data) -> float:
    tickers, matrix = data["covariance_matrix"]["tickers"], data["covariance_matrix"]["matrix"]
    mean = sum(weights.get(t, 0.0) * data["expected_returns"][t] for t in tickers) - data["risk_free_rate"]
    variance = sum(
        weights.get(a, 0.0) * weights.get(b, 0.0) * matrix[i][j]
        for i, a in enumerate(tickers)
        for j, b in enumerate(tickers)
    )
    return mean / variance**0.5


def test_a_procedure_whose_scripts_are_not_mounted_gives_way() -> None:
    """As under skills that somebody brings: the script is refused, and there is no output to go on with."""

    def procedure() -> Iterator[tuple[ProcedureCall, ...]]:
        (result,) = yield (ProcedureCall("run_skill_script", {"script_path": "scripts/other.py"}),)
        return {"answer": result["output"]}

    asked = next_turn(procedure, [], [])
    assert asked is not None
    said = Message("assistant", "", tool_calls=asked.tool_calls)
    for result, wanted in (({"error": "no script"}, None), ({"output": 1}, submit({"answer": 1}))):
        told = Message("tool", orjson.dumps(result).decode(), tool_call_id=asked.tool_calls[0].id)
        assert next_turn(procedure, [said, told], []) == wanted

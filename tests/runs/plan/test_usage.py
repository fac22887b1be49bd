"""What a model is expected to use, as in an earlier run or as published."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.runs.examples import row

from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.models import ModelKey
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.usage import PUBLISHED, Amount, EarlierRun, Forecast, amount, published_forecast
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import Row

PRICE = Price(input=2.0, cached_input=0.5, cache_write=2.5, output=10.0)
MODEL = ModelKey("vendor/large")
PORTFOLIO, RISK = "portfolio_construction", "risk_management"
BOTH = Counter({(PORTFOLIO, "rebalancing"): 10, (RISK, "stress_testing"): 2})


def used(turns: int, sub_task: str = "rebalancing", condition: str = "no_skill", **more) -> Row:
    """An episode of so many calls, a thousand tokens of input and ten of output each."""
    domain = RISK if sub_task == "stress_testing" else PORTFOLIO
    tokens = {"total_input_tokens": 1_000 * turns, "total_output_tokens": 10 * turns}
    more = {"model": MODEL.model, "arguments": MODEL.arguments, **tokens, **more}
    return row(turns, turns=turns, sub_task=sub_task, domain=domain, condition=condition, **more)


def forecast(rows: Sequence[Row], entry: ModelKey = MODEL, condition: str = "no_skill", episodes=BOTH) -> Forecast:
    return EarlierRun("pilot", rows).forecast(entry, condition, episodes, 12, PRICE)


def test_each_subtask_goes_on_as_its_own_episodes_went() -> None:
    rows = [used(4), used(6), used(9, "stress_testing"), used(11, "stress_testing")]
    found = forecast(rows)
    assert found.expected == Amount(10 * 5 + 2 * 10, 70_000, 700, pytest.approx((70_000 * 2 + 700 * 10) / 1e6))
    # One relative scatter for both; of ten (two) new episodes, and of their mean, which two episodes tell.
    scatter = (2 / 5**2 + 2 / 10**2) / 2
    error = 2 * (scatter * 5**2 * (10**2 / 2 + 10) + scatter * 10**2 * (2**2 / 2 + 2)) ** 0.5
    assert (found.low.calls, found.high.calls) == (round(70 - error), round(70 + error))
    assert found.basis == "4 episodes in pilot"


def test_what_a_cache_spares_is_spared() -> None:
    found = forecast([used(4, total_cached_tokens=1_000), used(4, total_cached_tokens=1_000)])
    assert found.expected.cost_usd == pytest.approx((36_000 * 2 + 12_000 * 0.5 + 480 * 10) / 1e6)


def test_programs_errors_and_unknown_tokens_tell_nothing() -> None:
    rows = [used(5), used(1, model="baseline/nop"), used(1, status=Status.ERROR), used(1, total_output_tokens=None)]
    found = forecast(rows)
    assert found.expected.calls == 60
    assert found.basis.startswith("1 episodes in pilot (1 more without token counts are excluded)")
    with pytest.raises(InputError, match="pilot: no model has finished an episode with known tokens"):
        EarlierRun("pilot", rows[1:])


def test_a_subtask_that_was_not_run_is_like_its_domain() -> None:
    rows = [used(4), used(6), used(9, "stress_testing")]
    episodes = Counter({(PORTFOLIO, "rebalancing"): 1, (RISK, "risk_remediation"): 1, ("elsewhere", "new"): 3})
    found = forecast(rows, episodes=episodes)
    assert found.expected.calls == round(5 + 9 + 3 * (4 + 6 + 9) / 3)
    assert found.basis.endswith("risk_remediation, new")


def test_a_condition_that_was_not_run_is_scaled_as_published() -> None:
    rows = [used(4), used(6)]
    found, own = forecast(rows, condition="curated"), forecast(rows)
    old, new = PUBLISHED[Condition.NO_SKILL], PUBLISHED[Condition.CURATED]
    assert found.expected.calls == round(own.expected.calls * new.turns / old.turns)
    assert found.expected.input_tokens == round(own.expected.input_tokens * new.mean / old.mean)
    assert found.high.input_tokens > 1.9 * found.expected.input_tokens
    assert "under no_skill in pilot, times the published ratio" in found.basis
    assert found.high.calls == 12 * 12  # no episode takes more


def test_an_agent_may_make_more_calls_than_our_loop_allows() -> None:
    assert forecast([used(40, harness="python"), used(60, harness="python")]).expected.calls == 12 * 50
    assert forecast([used(40), used(60)]).expected.calls == 12 * 12


def test_a_model_is_like_itself_before_others() -> None:
    plain, thinking = used(4), used(8, arguments='{"reasoning_effort":"high"}')
    assert forecast([plain, thinking]).expected.calls == 48
    other = ModelKey(MODEL.model, '{"seed":1}')
    assert forecast([plain, thinking], other).expected.calls == 72
    assert forecast([plain, thinking], other).basis.startswith("2 episodes with other arguments in pilot;")
    assert forecast([plain], ModelKey("vendor/new")).basis.startswith("1 episodes of vendor/large in pilot;")
    with pytest.raises(
        InputError, match=r"pilot: has no episodes of vendor/new; it has episodes of vendor/large, vendor/small"
    ):
        forecast([plain, used(3, model="vendor/small")], ModelKey("vendor/new"))


@pytest.mark.parametrize("condition", ARMS)
def test_of_an_unknown_model_the_published_figures_are_told(condition: str) -> None:
    found = published_forecast(condition, 100, 12, PRICE)
    without = condition in ("no_skill", "code")
    own = condition in ("self_generated", "self_generated_persistent")
    name = Condition.NO_SKILL if without else Condition.SELF_GENERATED if own else Condition.CURATED
    nearest = PUBLISHED[name]
    assert found.expected.calls == round(100 * nearest.turns)
    assert found.expected.input_tokens + found.expected.output_tokens == 100 * nearest.mean
    low, high = (each.input_tokens + each.output_tokens for each in (found.low, found.high))
    assert low < 100 * nearest.median < 100 * nearest.mean < high
    assert found.low.cost_usd < found.expected.cost_usd < found.high.cost_usd
    assert found.high.calls == 1200


def test_an_unknown_price_is_not_a_price_of_nothing() -> None:
    assert published_forecast("no_skill", 1, 12, None).expected.cost_usd is None
    assert (Amount(1, 2, 3, None) + Amount(1, 2, 3, 4.0)).cost_usd is None
    assert Amount(1, 2, 3, 0.5) + Amount(1, 1, 1, 4.0) == Amount(2, 3, 4, 4.5)
    assert amount(1.4, 2.6, 3.5, None) == Amount(1, 3, 4, None)


class Noisy:
    """Takes a number of turns and writes a number of tokens that differ from episode to episode, as models do."""

    name, provider, price = MODEL.model, "vendor", PRICE

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        await asyncio.sleep(0)
        hard = "infeasib" in messages[1].content
        (task,) = re.findall(r"^Task \d+", messages[1].content, re.MULTILINE)
        draw = random.Random(f"{hard} {task}")  # other words of a prompt change no number
        turns = min(12, 1 + round(draw.lognormvariate(1.8 if hard else 1.0, 0.5)))
        done = sum(message.role == "assistant" for message in messages)
        read = sum(len(message.content) for message in messages) // 4
        usage = Usage(input_tokens=3_000 + read, output_tokens=1 + round(draw.lognormvariate(6.0, 0.8)))
        if done + 1 < turns:
            return Turn(tool_calls=(ToolCall("r", "get_task_data", '{"field": "expected_returns"}'),), usage=usage)
        return Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "{}"}'),), usage=usage)


def test_a_pilot_tells_what_a_run_then_uses(memory_edition, episodes_of, tmp_path) -> None:
    kinds = [("unconstrained_optimization", "pc_uncon"), ("infeasibility_detection", "pc_infeas")]
    edition = memory_edition([each for kind, prefix in kinds for each in episodes_of(kind, prefix, 60)])
    pilot = run(edition, [Noisy()], ["no_skill"], limit=40, out=tmp_path / "pilot").rows
    whole = run(edition, [Noisy()], ["no_skill"], limit=60, out=tmp_path / "whole").rows
    assert pilot.height == 80
    earlier = EarlierRun("pilot", read_history(tmp_path / "pilot").rows.values())
    found = earlier.forecast(
        ModelKey(MODEL.model, whole["arguments"][0]),
        "no_skill",
        Counter({(PORTFOLIO, kind): 60 for kind, _ in kinds}),
        12,
        PRICE,
    )
    for column, said in (
        ("turns", lambda each: each.calls),
        ("total_input_tokens", lambda each: each.input_tokens),
        ("total_output_tokens", lambda each: each.output_tokens),
    ):
        really = whole[column].sum()
        assert said(found.low) < really < said(found.high)
        assert said(found.expected) == pytest.approx(really, rel=0.15)
    assert whole["cost_usd"].sum() == pytest.approx(found.expected.cost_usd, rel=0.15)

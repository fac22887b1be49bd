"""What a plan says a run will use, against what the run then uses."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import cast

import pytest
from tests.harness.programs.cheat import Cheat
from tests.harness.programs.faulty import Faulty
from tests.sampling import THOROUGH, sampled, thorough

from finskillbench.domains import subtasks
from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.allowance import Allowance
from finskillbench.harness.conditions import Condition
from finskillbench.harness.entries import Entry, canonical
from finskillbench.harness.models import BASELINES
from finskillbench.harness.providers.prices import Price, PriceTable
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan import estimate as estimating
from finskillbench.runs.plan import rehearsal
from finskillbench.runs.plan.estimate import Estimate, estimate, left_to_run
from finskillbench.runs.plan.items import Plan, make_plan
from finskillbench.runs.plan.streams import parse_shard
from finskillbench.runs.plan.usage import Amount
from finskillbench.runs.store.journal import read_history

NOP, REFERENCE, HOSTED = "baseline/nop", "baseline/reference", "vendor/large"
PRICE = Price(input=2.0, cached_input=0.5, cache_write=2.5, output=10.0)


@pytest.fixture(autouse=True)
def misbehaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two programs of the tests, known by name like those that ship."""
    for program in (Cheat, Faulty):
        monkeypatch.setitem(BASELINES, program.name, program)


class Prices:
    """A table that knows one hosted model."""

    def of(self, model: str) -> Price | None:
        return {HOSTED: PRICE, NOP: Price(0, 0, 0, 0), REFERENCE: Price(0, 0, 0, 0)}.get(model)


PRICES = cast(PriceTable, Prices())


def plan_of(edition, models=(NOP,), conditions=(Condition.NO_SKILL,), **options) -> Plan:
    return make_plan(edition.episodes(), [*map(Entry, models)], conditions, **options)


def used(rows, model: str, condition: str) -> tuple[int, int, int]:
    own = rows.filter(model=model, condition=condition)
    return tuple(own[name].sum() for name in ("episodes", "total_input_tokens", "total_output_tokens"))


def played(each: Estimate) -> int:
    """Episodes that a program played."""
    return int(re.search(r"as (\d+) episodes played", each.forecast.basis)[1])


@thorough
@pytest.mark.slow
def test_baselines_use_what_the_plan_said(synthetic_edition: Edition, tmp_path: Path) -> None:
    """Every baseline that ends by itself, under all conditions in a thorough run: within 15 %.

    Of the desk, a case of which takes a second, there is one in any other run.
    """
    models = [REFERENCE, "baseline/trivial", Cheat.name]
    conditions = sampled(Condition, 5)
    short = [one.name for one in subtasks() if one.budget is None]
    tasks = [
        episode.task_id
        for name in (*short, *sampled((one.name for one in subtasks() if one.budget is not None), 4))
        for episode in synthetic_edition.episodes([name])[: 10 if THOROUGH else 6 if name in short else 1]
    ]
    plan = plan_of(synthetic_edition, models, conditions, tasks=tasks)
    estimates = estimate(synthetic_edition, plan, prices=PRICES)
    rows = run(synthetic_edition, models, [each.value for each in conditions], tasks=tasks, out=tmp_path / "run").rows
    assert [(each.model, each.condition) for each in estimates] == [(m, c) for m in models for c in conditions]
    worst = 0.0
    for each in estimates:
        said = each.forecast.expected.calls, each.forecast.expected.input_tokens, each.forecast.expected.output_tokens
        really = used(rows, each.model, each.condition)
        assert each.episodes == len(tasks)
        off = [expected / figure - 1 for expected, figure in zip(said, really, strict=True)]
        worst = max(worst, *map(abs, off))
        assert max(map(abs, off)) < 0.15, (each.model, each.condition, off)
    print(f"worst deviation {worst:.1%}")
    rehearsed = sum(played(each) for each in estimates if each.model == REFERENCE)
    assert rehearsed < len(conditions) * len(tasks)


def test_a_forecast_keeps_to_turns_and_a_budget(edition) -> None:
    entries = [Entry(HOSTED, canonical(Allowance(*each).arguments)) for each in ((12, None), (5, None), (12, 3_000))]
    plan = make_plan(edition.episodes(), entries, [Condition.NO_SKILL])
    # In the order of a plan, where arguments are sorted as text.
    poor, short, free = (each.forecast for each in estimate(edition, plan, prices=PRICES))
    assert (free.high.calls, short.high.calls, short.expected.calls) == (12 * 12, 12 * 5, 12 * 5)
    assert poor.high.output_tokens == poor.expected.output_tokens == 12 * 3_000 < free.expected.output_tokens
    saved = (free.expected.output_tokens - 12 * 3_000) * PRICE.output / 1e6
    assert free.expected.cost_usd - poor.expected.cost_usd == pytest.approx(saved)


def test_a_program_that_was_played_whole_is_known(edition, tmp_path: Path) -> None:
    plan = plan_of(edition, [Faulty.name])
    (each,) = estimate(edition, plan, prices=PRICES)
    rows = run(edition, [Faulty.name], ["no_skill"], out=tmp_path / "run").rows
    calls, read, said = used(rows, Faulty.name, "no_skill")
    assert each.forecast.expected == each.forecast.low == each.forecast.high == Amount(calls, read, said, 0.0)
    assert played(each) == 12


def test_costly_episodes_that_a_pilot_misses_are_found(memory_edition, episodes_of, monkeypatch) -> None:
    """One episode in ten costs a hundred times the others; following the least certain stratum would miss some."""
    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 200))

    async def play(self, player, condition, task_id, verdicts, allowance):
        costly = int(task_id[-3:]) % 10 == 3
        return rehearsal.Play(1, 100, 5000 if costly else 50)

    monkeypatch.setattr(rehearsal.Rehearsal, "play", play)
    (each,) = estimate(edition, plan_of(edition, limit=200), prices=PRICES)
    assert each.forecast.expected.output_tokens == pytest.approx(20 * 5000 + 180 * 50, rel=0.05)
    monkeypatch.setattr(estimating, "STANDARD_ERROR", math.inf)
    (rough,) = estimate(edition, plan_of(edition, limit=200), prices=PRICES)
    assert played(rough) == estimating.PILOT < played(each)
    assert rough.forecast.low.output_tokens < each.forecast.expected.output_tokens < rough.forecast.high.output_tokens


def test_repeats_count_and_are_played_once(edition) -> None:
    (once,) = estimate(edition, plan_of(edition), prices=PRICES)
    (thrice,) = estimate(edition, plan_of(edition, epochs=3), prices=PRICES)
    assert (played(thrice), thrice.episodes) == (played(once), 3 * once.episodes)
    assert thrice.forecast.expected.input_tokens == 3 * once.forecast.expected.input_tokens


def test_prompts_of_the_persistent_arm_grow_with_its_stream(memory_edition, episodes_of) -> None:
    def opening(count: int) -> float:
        edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", count))
        plan = plan_of(edition, [NOP], (Condition.SELF_GENERATED_PERSISTENT,), limit=count)
        (each,) = estimate(edition, plan, prices=PRICES)
        return each.forecast.expected.input_tokens / each.forecast.expected.calls

    first, five, forty = opening(1), opening(5), opening(40)
    assert first < five < forty
    # A verdict is some forty characters; forty episodes see twenty of them at the most.
    assert forty - first < 20 * 60 / 3


def test_what_is_finished_is_not_planned(edition, oracle, tmp_path: Path) -> None:
    model = oracle(fail=[1])
    run(edition, [model], ["no_skill"], out=tmp_path)
    plan = plan_of(edition, [model.name])
    left, finished = left_to_run(tmp_path, edition, plan)
    assert sorted(item.task_id for item in left) == ["pc_infeas_001", "pc_uncon_001"]
    assert finished == 10
    assert left_to_run(tmp_path, edition, plan, retry_errors=False) == ((), 12)
    (each,) = estimate(edition, plan, left, prices=PRICES)
    assert (each.episodes, each.forecast.high.calls) == (2, 24)
    (none,) = estimate(edition, plan, [], prices=PRICES)
    assert (none.episodes, none.forecast.expected) == (0, Amount(0, 0, 0, None))
    (tmp_path / left[0].trajectory).with_name("pc_uncon_002__0.json.gz").unlink()
    assert len(left_to_run(tmp_path, edition, plan)[0]) == 3


def test_a_folder_with_nothing_begun_has_everything_left(edition, tmp_path: Path) -> None:
    plan = plan_of(edition)
    for folder in (tmp_path, tmp_path / "absent"):
        left, finished = left_to_run(folder, edition, plan)
        assert (set(left), finished) == (set(plan.items), 0)
    assert list(tmp_path.iterdir()) == []


def test_shards_share_a_plan_out(edition, tmp_path: Path) -> None:
    plan = plan_of(edition)
    parts = [left_to_run(tmp_path, edition, plan, shard=parse_shard(f"{i}/3"))[0] for i in (1, 2, 3)]
    assert sorted(item for part in parts for item in part) == sorted(plan.items)
    assert all(len(part) < 12 for part in parts)


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"edition_digest": 1, "plan": 2}'])
def test_a_damaged_record_is_named(content: bytes, edition, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError, match=r"run\.json: not a (readable )?run record"):
        left_to_run(tmp_path, edition, plan_of(edition))


def test_only_what_the_folder_does_not_have_is_left(edition, oracle, tmp_path: Path) -> None:
    run(edition, [oracle()], ["no_skill"], limit=2, out=tmp_path)
    assert left_to_run(tmp_path, edition, plan_of(edition, [oracle().name], limit=1)) == ((), 2)
    wider = plan_of(edition, [oracle().name, "other"], [Condition.NO_SKILL, Condition.PLACEBO], limit=3, epochs=2)
    left, finished = left_to_run(tmp_path, edition, wider)
    assert (finished, len(left)) == (4, 2 * 2 * 6 * 2 - 4)
    assert set(left) | read_history(tmp_path).rows.keys() == set(wider.items)


def test_a_run_of_another_edition_is_refused(edition, oracle, tmp_path: Path) -> None:
    run(edition, [oracle()], ["no_skill"], out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "edition_digest": "0" * 64}))
    with pytest.raises(InputError, match="holds a run of another edition"):
        left_to_run(tmp_path, edition, plan_of(edition, [oracle().name]))

"""What a plan says a run will use, against what the run then uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from finskillbench.errors import InputError
from finskillbench.harness.allowance import Allowance
from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import ModelKey, canonical
from finskillbench.harness.providers.prices import Price, PriceTable
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.items import Plan, make_plan
from finskillbench.runs.plan.streams import parse_shard
from finskillbench.runs.plan.usage import Amount, estimate, left_to_run
from finskillbench.runs.store.journal import read_history

NOP, REFERENCE, HOSTED = "baseline/nop", "baseline/reference", "vendor/large"
PRICE = Price(input=2.0, cached_input=0.5, cache_write=2.5, output=10.0)


class Prices:
    """A table that knows one hosted model."""

    def price_of(self, model: str) -> Price | None:
        return {HOSTED: PRICE, NOP: Price(0, 0, 0, 0), REFERENCE: Price(0, 0, 0, 0)}.get(model)


PRICES = cast(PriceTable, Prices())


def plan_of(edition, models=(NOP,), conditions=(Condition.NO_SKILL,), **options) -> Plan:
    return make_plan(edition.episodes(), [*map(ModelKey, models)], conditions, **options)


def test_a_forecast_keeps_to_turns_and_a_budget(edition) -> None:
    entries = [ModelKey(HOSTED, canonical(Allowance(*each).arguments)) for each in ((12, None), (5, None), (12, 3_000))]
    plan = make_plan(edition.episodes(), entries, [Condition.NO_SKILL])
    # In the order of a plan, where arguments are sorted as text.
    poor, short, free = (each.forecast for each in estimate(plan, prices=PRICES))
    assert (free.high.calls, short.high.calls, short.expected.calls) == (12 * 12, 12 * 5, 12 * 5)
    assert poor.high.output_tokens == poor.expected.output_tokens == 12 * 3_000 < free.expected.output_tokens
    saved = (free.expected.output_tokens - 12 * 3_000) * PRICE.output / 1e6
    assert free.expected.cost_usd - poor.expected.cost_usd == pytest.approx(saved)


def test_a_program_asks_no_model(edition) -> None:
    (each,) = estimate(plan_of(edition, epochs=3), prices=PRICES)
    assert (each.episodes, each.forecast.basis) == (36, "a program; makes no model calls")
    assert each.forecast.low == each.forecast.expected == each.forecast.high == Amount(0, 0, 0, 0.0)


def test_what_is_finished_is_not_planned(edition, oracle, tmp_path: Path) -> None:
    model = oracle(fail=[1])
    run(edition, [model], ["no_skill"], out=tmp_path)
    plan = plan_of(edition, [model.name])
    left, finished = left_to_run(tmp_path, edition, plan)
    assert sorted(item.task_id for item in left) == ["pc_infeas_001", "pc_uncon_001"]
    assert finished == 10
    assert left_to_run(tmp_path, edition, plan, retry_errors=False) == ((), 12)
    (each,) = estimate(plan, left, prices=PRICES)
    assert (each.episodes, each.forecast.high.calls) == (2, 24)
    (none,) = estimate(plan, [], prices=PRICES)
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

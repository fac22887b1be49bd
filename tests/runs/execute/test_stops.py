"""What stops a run or a part of it: the budget, a model that cannot be asked, a full disk. Nothing is lost by it."""

import asyncio
import errno
import os
from collections import Counter
from dataclasses import replace

import orjson
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.errors import Cause, InputError, ProviderError
from finskillbench.harness.model import Turn, Usage
from finskillbench.harness.models import ModelOptions
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.metered import Budget, Metered
from finskillbench.runs.execute.run import run
from finskillbench.runs.store.journal import JOURNAL, read_events, read_history
from finskillbench.runs.store.record import Dropped, Finished
from finskillbench.runs.store.rows import TIMINGS

PRICE = Price(input=2.0, cached_input=0.2, cache_write=2.5, output=10.0)
CALL = (1_000 * 2.0 + 50 * 10.0) / 1e6
"""What the fake model's call really costs."""


def spent(out) -> float:
    return read_history(out).spent({})


@pytest.mark.usefixtures("virtual_runs")
def test_a_budget_stops_the_run_and_more_money_finishes_it(edition, paid, tmp_path) -> None:
    whole = run(edition, [paid(price=PRICE)], ["no_skill"], out=tmp_path / "whole").rows
    out = tmp_path / "run"
    # One call may cost some 0.10 and costs 0.0025: there is room for a few of the twelve, one after another.
    first = run(edition, [paid(price=PRICE)], ["no_skill"], out=out, max_cost=0.11)
    assert 0 < first.ran < 12
    assert first.ran + first.dropped + first.not_run == 12
    assert "--max-cost 0.11 is reached" in first.stopped["run"]
    assert spent(out) <= 0.11
    assert pl.read_parquet(out / "rows.parquet").equals(first.rows)
    before = spent(out)
    stuck = run(edition, [paid(price=PRICE)], ["no_skill"], out=out, max_cost=0.11)
    assert (stuck.ran, stuck.kept, spent(out)) == (0, first.ran, before)
    last = run(edition, [paid(price=PRICE)], ["no_skill"], out=out, max_cost=5.0)
    assert (last.kept + last.ran, last.stopped) == (12, {})
    assert last.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))
    assert last.rows["cost_usd"].to_list() == pytest.approx([CALL] * 12)


@pytest.mark.slow
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    price=st.builds(Price, *[st.floats(0.01, 60.0)] * 4),
    most=st.floats(0.0, 6.0),
    concurrency=st.integers(1, 24),
    spend=st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.01, 9)), min_size=1, max_size=8),
    faults=st.lists(st.sampled_from([*Cause, None, None, None, None]), min_size=1, max_size=9),
)
def test_no_run_costs_more_than_it_may(
    virtual, edition, paid, tmp_path_factory, price, most, concurrency, spend, faults
) -> None:
    """Prices, usages, latencies, faults and concurrency are anything; usage stays within what a call may use."""
    out = tmp_path_factory.mktemp("run")
    bills: list[float] = []

    class Spender(paid):
        async def generate(self, messages, tools, tool_choice) -> Turn:
            self.calls += 1
            fault = faults[self.calls % len(faults)]
            part, written, seconds = spend[self.calls % len(spend)]
            await asyncio.sleep(seconds)
            size = sum(len(message.content.encode()) for message in messages)
            usage = Usage(
                input_tokens=int(size * part), cached_tokens=int(size * part / 3), output_tokens=int(8_192 * written)
            )
            if fault is not None:
                if fault in (Cause.TIMEOUT, Cause.DROPPED, Cause.MALFORMED, Cause.EMPTY):
                    bills.append(price.cost(usage))  # billed, although the answer never arrived
                raise ProviderError(fault.value, fault)
            bills.append(price.cost(usage))
            turn = await super(paid, self).generate(messages, tools, tool_choice)
            return replace(turn, usage=usage)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finskillbench.runs.execute.run.asyncio.run", virtual)
        for _ in range(2):
            result = run(
                edition,
                [Spender(price=price)],
                ["no_skill", "self_generated_persistent"],
                out=out,
                max_cost=most,
                max_concurrency=concurrency,
            )
            assert sum(bills) <= most + 1e-9
            assert sum(bills) <= spent(out) + 1e-9
            assert spent(out) <= most + 1e-9
            # Nothing is lost, nothing stands twice.
            assert result.ran + result.kept + result.dropped + result.not_run == 24
            assert result.rows.n_unique(["condition", "task_id"]) == result.rows.height


def test_what_was_dropped_is_written_down(edition, paid, virtual_runs, tmp_path) -> None:
    class TwoTurns(paid):
        async def generate(self, messages, tools, tool_choice) -> Turn:
            turn = await super().generate(messages, tools, tool_choice)
            if len(messages) > 3:
                return turn
            # So much was read that the next call may cost more than this one might have.
            return replace(turn, tool_calls=(), text="Thinking.", usage=Usage(input_tokens=20_000, output_tokens=50))

    result = run(edition, [TwoTurns(price=PRICE)], ["no_skill"], out=tmp_path, max_cost=0.125, max_concurrency=1)
    (dropped,) = (event for event in read_events(tmp_path) if isinstance(event, Dropped))
    assert result.dropped == 1
    assert (dropped.why, dropped.expense.calls, dropped.expense.usage.input_tokens) == ("budget", 1, 20_000)
    assert spent(tmp_path) == pytest.approx(result.rows["cost_usd"].sum() + dropped.expense.usage.cost_usd)


def test_a_price_that_is_not_known_is_refused_before_anything_is_written(edition, paid, oracle, tmp_path) -> None:
    for model in (paid(), oracle()):
        with pytest.raises(InputError, match=rf"--max-cost needs the price of {model.name}"):
            run(edition, [model], ["no_skill"], out=tmp_path / "run", max_cost=1.0)
    assert not (tmp_path / "run").exists()
    assert run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path / "run", max_cost=0.0).ran == 12


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_a_budget_that_is_no_amount_is_refused(edition, tmp_path, wrong: float) -> None:
    with pytest.raises(InputError, match="max_cost is"):
        run(edition, ["baseline/nop"], ["no_skill"], out=tmp_path / "run", max_cost=wrong)


def test_a_call_without_an_answer_counts_at_its_bound(paid, virtual) -> None:
    class Silent(paid):
        cause = Cause.TIMEOUT

        async def generate(self, messages, tools, tool_choice) -> Turn:
            raise ProviderError("nothing came", self.cause)

    async def main() -> None:
        for cause, counted in [(Cause.TIMEOUT, True), (Cause.DROPPED, True), (Cause.RATE_LIMIT, False)]:
            model, budget = Silent(price=PRICE), Budget(10.0)
            model.cause = cause
            metered = Metered(model, None, budget, 1_000)
            with pytest.raises(ProviderError):
                await metered.generate((), (), "auto")
            assert (budget.spent > 0.01) is counted
            assert metered.lost_usd == budget.spent

    virtual(main())


@pytest.mark.parametrize("cause", [Cause.AUTH, Cause.QUOTA, Cause.UNKNOWN_MODEL])
def test_a_model_that_cannot_be_asked_stops_alone(edition, paid, oracle, virtual_runs, tmp_path, cause) -> None:
    class Locked(paid):
        async def generate(self, messages, tools, tool_choice) -> Turn:
            self.calls += 1
            await asyncio.sleep(1)
            raise ProviderError("the key is not valid", cause)

    locked = Locked("fake/locked")
    first = run(edition, [locked, oracle()], ["no_skill"], out=tmp_path, max_concurrency=2)
    assert first.rows.group_by("model", "status").len().sort("model").rows() == [
        ("fake/locked", "error", 2),
        ("test/oracle", "scored", 12),
    ]
    assert (locked.calls, first.errors, first.not_run) == (2, 2, 10)
    assert first.stopped == {"fake/locked": f"{cause.value}: the key is not valid"}
    again = run(edition, [paid("fake/locked"), oracle()], ["no_skill"], out=tmp_path)
    assert (again.ran, again.kept, again.errors, again.stopped) == (12, 12, 0, {})


class Full:
    """Takes so many bytes, then is full; a write that does not fit leaves its first half."""

    def __init__(self, room: int) -> None:
        self.room, self.write = room, os.write

    def __call__(self, handle: int, data: bytes) -> int:
        if len(data) > self.room:
            if self.room > 1:
                self.room, half = 0, data[: self.room // 2]
                return self.write(handle, half)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return self.write(handle, data)


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 700, 4_000, 9_000])
def test_a_full_disk_leaves_whole_lines_and_the_run_goes_on_later(edition, oracle, tmp_path, room: int) -> None:
    whole = run(edition, [oracle()], ["no_skill"], out=tmp_path / "whole").rows
    out = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finskillbench.runs.store.journal.os.write", Full(room))
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); free some space"):
            run(edition, [oracle()], ["no_skill"], out=out, max_concurrency=3)
    data = (out / JOURNAL).read_bytes()
    assert data == b"" or data.endswith(b"\n")
    assert all(orjson.loads(line) for line in data.splitlines())
    assert not list(out.rglob("*.part"))
    assert not (out / "rows.parquet").exists()
    result = run(edition, [oracle()], ["no_skill"], out=out)
    assert (result.kept, result.ran + result.kept) == (data.count(b"\n"), 12)
    assert result.rows.drop(TIMINGS).equals(whole.drop(TIMINGS))
    assert max(Counter(event.row.item for event in read_events(out) if isinstance(event, Finished)).values()) == 1


def test_a_trajectory_that_does_not_fit_leaves_no_part(edition, oracle, tmp_path, monkeypatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run(edition, [oracle()], ["no_skill"], out=tmp_path)
    (tmp_path / "rows.parquet").unlink()
    monkeypatch.setattr("finskillbench.runs.store.version.os.fsync", full)
    with pytest.raises(InputError, match=r"rows\.parquet: cannot be written .* free some space"):
        run(edition, [oracle()], ["no_skill"], out=tmp_path)
    assert not list(tmp_path.rglob("*.part"))


def test_an_episode_that_asked_nothing_was_not_begun(edition, paid, tmp_path) -> None:
    result = run(edition, [paid(price=PRICE)], ["no_skill"], out=tmp_path, max_cost=0.0)
    assert (result.ran, result.dropped, result.not_run) == (0, 0, 12)
    assert read_events(tmp_path) == []


def test_the_table_is_gone_while_episodes_are_run(edition, oracle, tmp_path) -> None:
    run(edition, [oracle(fail=[1])], ["no_skill"], out=tmp_path)
    seen = []
    run(
        edition,
        [oracle()],
        ["no_skill"],
        out=tmp_path,
        progress=lambda board, row: seen.append(row is not None and (tmp_path / "rows.parquet").exists()),
    )
    assert seen
    assert not any(seen)
    assert (tmp_path / "rows.parquet").exists()


@pytest.mark.parametrize(
    ("models", "address", "printed"),
    [
        (["openai/a", "openai-api/local/b"], "http://127.0.0.1:9/v1", "shared by openai, openai-api"),
        (["openai-api/local/b", "baseline/nop"], "http://me:secret@127.0.0.1:9/v1", "pass keys in the environment"),
        (["openai-api/local/b"], "http://me-secret@127.0.0.1:9/v1", "pass keys in the environment"),
        (["openai-api/local/b"], "http://127.0.0.1:9/v1?code=secret-4711", "pass keys in the environment"),
        (["openai-api/local/b"], "http://127.0.0.1:9/v1#secret-4711", "pass keys in the environment"),
        (["openai-api/local/b"], "http://127.0.0.1:9/secret-of-the-house/v1", "pass keys in the environment"),
        (["openai-api/local/b"], "http://127.0.0.1:9/gsk_secretsecretsecretsecret/v1", "pass keys in the environment"),
    ],
)
def test_an_address_gets_the_keys_of_one_provider_and_holds_none(
    edition, models, address, printed, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret-of-the-house")
    with pytest.raises(InputError, match=printed) as caught:
        run(edition, models, ["no_skill"], out=tmp_path / "run", options=ModelOptions(base_url=address))
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "run").exists()

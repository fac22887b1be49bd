"""The budget is never exceeded, whatever calls cost and whoever waits; and it strands nobody."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from finskillbench.errors import RunStoppedError
from finskillbench.runs.execute.metered import Budget

calls = st.tuples(st.floats(0.001, 1.0), st.floats(0.0, 1.0), st.floats(0.01, 3.0))
"""Bound in dollars, the part of it that is really spent, and seconds of latency."""


@settings(max_examples=examples(150))
@given(
    most=st.floats(0.0, 8.0),
    before=st.floats(0.0, 2.0),
    episodes=st.lists(st.lists(calls, min_size=1, max_size=6), min_size=1, max_size=12),
)
def test_it_is_never_exceeded_and_nobody_waits_for_ever(virtual, most, before, episodes) -> None:
    budget = Budget(most, before)
    paid = []
    held = 0.0

    async def episode(turns) -> str:
        nonlocal held
        mine = 0.0
        for bound, part, seconds in turns:
            try:
                await budget.reserve(bound, mine)
            except RunStoppedError:
                assert budget.spent + bound > most
                return "stopped"
            held += bound
            assert before + sum(paid) + held <= most + 1e-9
            await asyncio.sleep(seconds)
            held -= bound
            paid.append(bound * part)
            mine += bound * part
            budget.settle(bound, bound * part)
        return "finished"

    async def main() -> list[str]:
        return await asyncio.gather(*map(episode, episodes))

    ends = virtual(main())
    assert budget.spent == pytest.approx(before + sum(paid))
    assert budget.spent <= max(most, before) + 1e-9
    bounds = sum(bound for turns in episodes for bound, _, _ in turns)
    if before + bounds <= most:
        assert set(ends) == {"finished"}, "there was money for all"


def test_a_call_waits_for_what_others_give_back(virtual) -> None:
    async def main() -> list[str]:
        budget, log = Budget(1.0), []
        await budget.reserve(0.8)

        async def other() -> None:
            await budget.reserve(0.5)
            log.append("granted")

        task = asyncio.create_task(other())
        await asyncio.sleep(1)
        log.append("waited")
        budget.settle(0.8, 0.5)
        await task
        return log

    assert virtual(main()) == ["waited", "granted"]


def test_the_episode_that_has_cost_most_goes_first(virtual) -> None:
    async def main() -> list[str]:
        budget, log = Budget(1.0), []
        await budget.reserve(0.9)

        async def call(name: str, invested: float) -> None:
            await budget.reserve(0.4, invested)
            log.append(name)

        tasks = [asyncio.create_task(call(name, cost)) for name, cost in [("new", 0.0), ("old", 0.3), ("mid", 0.1)]]
        await asyncio.sleep(1)
        budget.settle(0.9, 0.1)  # room for two of the three
        await asyncio.sleep(1)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return log

    assert virtual(main()) == ["old", "mid"]


def test_a_call_cancelled_while_it_waits_holds_nothing(virtual) -> None:
    async def main() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.9)
        for moment in ("waiting", "granted"):
            task = asyncio.create_task(budget.reserve(0.5))
            await asyncio.sleep(0)
            if moment == "granted":
                budget.settle(0.9, 0.0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(budget.reserve(1.0), 1)

    virtual(main())


def test_the_refusal_says_what_is_spent_and_what_helps(virtual) -> None:
    with pytest.raises(RunStoppedError, match=r"--max-cost 2 is reached: 1\.75 USD are spent, the next call may cost"):
        virtual(Budget(2.0, 1.75).reserve(0.5))

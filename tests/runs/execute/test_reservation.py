"""What is reserved for a whole attempt: all of it, or what is left."""

from __future__ import annotations

import asyncio

import pytest

from finskillbench.errors import RunStoppedError
from finskillbench.runs.execute.metered import Budget


def test_an_attempt_gets_its_share_or_once_nobody_holds_any_all_that_is_left() -> None:
    async def main() -> None:
        budget, amounts = Budget(1.0), list[float]()

        async def attempt(cost: float) -> None:
            async with budget.holding(0.7, partial=True) as held:
                amounts.append(held.amount)
                await asyncio.sleep(0)
                held.cost, held.unanswered = cost, 0.1

        await asyncio.gather(attempt(0.3), attempt(0.4), attempt(0.0))
        assert amounts == pytest.approx([0.7, 0.6, 0.1])
        assert budget.spent == pytest.approx(1.0)

    asyncio.run(main())


def test_a_reservation_that_may_not_be_less_stops_the_run_and_one_that_failed_is_settled() -> None:
    async def main() -> None:
        budget = Budget(1.0)

        async def fail() -> None:
            async with budget.holding(0.4, partial=False) as held:
                held.unanswered = held.amount
                raise KeyError

        with pytest.raises(KeyError):
            await fail()
        assert budget.spent == 0.4
        with pytest.raises(RunStoppedError, match=r"--max-cost 1 is reached: 0\.40 USD are spent"):
            await budget.holding(0.7, partial=False).__aenter__()

    asyncio.run(main())

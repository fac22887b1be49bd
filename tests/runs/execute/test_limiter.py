"""Concurrency that follows a provider's limit, in virtual time."""

import asyncio
from collections import deque

import pytest

from finskillbench.runs.execute.limiter import Limiter


class Provider:
    """Takes at most `most` calls in any second, refuses the others at once; keeps who was in flight."""

    def __init__(self, most: int, seconds: float = 0.5) -> None:
        self.most, self.seconds = most, seconds
        self.begun: deque[float] = deque()
        self.refused = self.answered = self.in_flight = self.peak = 0

    async def call(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self.begun and self.begun[0] <= now - 1:
            self.begun.popleft()
        if len(self.begun) >= self.most:
            self.refused += 1
            return False
        self.begun.append(now)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        await asyncio.sleep(self.seconds)
        self.in_flight -= 1
        self.answered += 1
        return True


async def drive(limiter: Limiter, provider: Provider, callers: int, each: int) -> list[int]:
    """Callers make so many calls each, trying again a second after a refusal; returns tries of each call."""
    tries: list[int] = []

    async def caller() -> None:
        for _ in range(each):
            for attempt in range(1, 1_000):
                begun = await limiter.acquire()
                answered = await provider.call()
                limiter.release(begun, "answered" if answered else "limited")
                if answered:
                    tries.append(attempt)
                    break
                await asyncio.sleep(1)

    await asyncio.gather(*(caller() for _ in range(callers)))
    return tries


def test_without_refusals_everybody_calls_at_once(virtual) -> None:
    limiter, provider = Limiter(64), Provider(1_000)
    virtual(drive(limiter, provider, 64, 5))
    assert (provider.peak, provider.refused, limiter.limit) == (64, 0, 64)


@pytest.mark.parametrize("most", [4, 10, 30])
def test_under_a_rate_limit_few_calls_are_refused_and_none_too_often(virtual, most: int) -> None:
    limiter, provider = Limiter(64), Provider(most)
    tries = virtual(drive(limiter, provider, 64, 20))
    assert provider.answered == 64 * 20
    # The loop tries a call four times: hardly one in a hundred may need more.
    assert sum(count > 4 for count in tries) <= len(tries) / 100
    assert provider.refused < provider.answered / 4
    assert limiter.limit <= most


def test_a_burst_of_refusals_halves_once_per_round(virtual) -> None:
    async def main() -> list[int]:
        limiter = Limiter(32)
        begun = [await limiter.acquire() for _ in range(32)]
        limits = []
        for each in begun:
            limiter.release(each, "limited")
            limits.append(limiter.limit)
        again = await limiter.acquire()
        limiter.release(again, "limited", 5.0)
        return [*limits, limiter.limit]

    assert virtual(main()) == [16] * 32 + [8]


def test_a_window_of_answers_adds_one_up_to_the_most(virtual) -> None:
    async def main() -> list[int]:
        limiter = Limiter(4)
        limiter.release(await limiter.acquire(), "limited", 0.0)
        limits = []
        for _ in range(12):
            limiter.release(await limiter.acquire(), "answered")
            limits.append(limiter.limit)
        return limits

    assert virtual(main()) == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


@pytest.mark.parametrize(("asked", "waited"), [(None, 1.0), (7.0, 7.0), (1e6, 120.0), (-3.0, 0.0)])
def test_nobody_calls_before_the_provider_wants_it(virtual, asked, waited) -> None:
    async def main() -> float:
        limiter = Limiter(8)
        limiter.release(await limiter.acquire(), "limited", asked)
        await limiter.acquire()
        return asyncio.get_running_loop().time()

    assert virtual(main()) == pytest.approx(waited)


def test_a_cancelled_caller_leaves_its_slot(virtual) -> None:
    async def main() -> None:
        limiter = Limiter(1)
        begun = await limiter.acquire()
        for moment in ("waiting", "handed over"):
            task = asyncio.create_task(limiter.acquire())
            await asyncio.sleep(0)
            if moment == "handed over":
                limiter.release(begun, "answered")
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.wait_for(limiter.acquire(), 1)

    virtual(main())

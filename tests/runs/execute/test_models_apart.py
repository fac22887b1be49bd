"""A model that is slow, or whose provider limits its rate, holds up no other of the same provider; in virtual time."""

import asyncio
from pathlib import Path

import pytest

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.programs.program import Nop
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import arun


def ends(virtual, edition, models, out: Path) -> dict[str, float]:
    """When the last episode of each model was over, on the loop's own clock."""
    last: dict[str, float] = {}

    async def main() -> None:
        def progress(board, row) -> None:
            if row is not None:
                last[row.model] = asyncio.get_running_loop().time()

        result = await arun(edition, models, ["no_skill"], max_concurrency=2, progress=progress, out=out)
        assert result.rows.height == len(models) * 12

    virtual(main())
    return last


@pytest.fixture
def limited(paid):
    class Limited(paid):
        """Answers every other call; the others come too early, by two minutes."""

        async def generate(self, messages, tools, tool_choice):
            self.asked = getattr(self, "asked", 0) + 1
            if self.asked % 2:
                raise ProviderError("429", Cause.RATE_LIMIT, retry_after=120.0)
            return await super().generate(messages, tools, tool_choice)

    return Limited


def test_a_model_takes_as_long_as_alone(virtual, paid, limited, edition, tmp_path) -> None:
    alone = ends(virtual, edition, [paid("one/fast", seconds=0.05)], tmp_path / "alone")
    # Twelve episodes of one call each, two at a time.
    assert alone == {"one/fast": pytest.approx(0.3)}
    models = [limited("one/limited"), paid("one/slow", seconds=5.0), paid("one/fast", seconds=0.05)]
    beside = ends(virtual, edition, models, tmp_path / "beside")
    assert beside["one/fast"] == pytest.approx(0.3)
    assert beside["one/slow"] == pytest.approx(30.0)
    assert beside["one/limited"] > 120.0


def test_latency_is_the_model_s_own(virtual, paid, edition, tmp_path) -> None:
    class Busy(paid):
        """Refuses its very first call and wants to be left alone for ten seconds."""

        async def generate(self, messages, tools, tool_choice):
            if not self.calls:
                self.calls = 1
                await asyncio.sleep(0.5)
                raise ProviderError("429", Cause.RATE_LIMIT, retry_after=10.0)
            return await super().generate(messages, tools, tool_choice)

    rows = virtual(arun(edition, [Busy(seconds=1.0)], ["no_skill"], max_concurrency=2, out=tmp_path / "run")).rows
    assert rows["latency_seconds"].to_list() == pytest.approx([1.0] * 12)
    assert sorted(rows["retry_seconds"].to_list()) == pytest.approx([0.0] * 11 + [10.5])
    # One was under way when the doors closed, the next waited from its end on; then one goes at a time at first.
    assert sorted(rows["queue_seconds"].to_list())[-1] == pytest.approx(9.5)
    took = (rows["ended"] - rows["started"]).dt.total_microseconds() / 1e6
    assert took.to_list() == pytest.approx(
        (rows["latency_seconds"] + rows["queue_seconds"] + rows["retry_seconds"]).to_list(), abs=2e-6
    )
    assert set(rows["provider"]) == {"fake"}


def test_waiting_for_the_budget_is_a_queue(virtual, paid, edition, tmp_path) -> None:
    """What is left pays for one call at a time: each of two waits for the other's to be settled."""
    model = paid(price=Price(2.0, 2.0, 2.0, 10.0), seconds=1.0)
    run = arun(edition, [model], ["no_skill"], limit=1, max_concurrency=2, max_cost=0.15, out=tmp_path / "run")
    rows = virtual(run).rows
    assert rows["latency_seconds"].to_list() == pytest.approx([1.0, 1.0])
    assert sorted(rows["queue_seconds"].to_list()) == pytest.approx([0.0, 1.0])


def test_programs_take_their_places_together(virtual, edition, tmp_path) -> None:
    """They wait for nobody, and share what is made for an episode: whoever is first must not run ahead with it."""
    most = in_flight = 0

    class Watched(Nop):
        async def generate(self, messages, tools, tool_choice):
            nonlocal most, in_flight
            in_flight += 1
            most = max(most, in_flight)
            await asyncio.sleep(1.0)
            in_flight -= 1
            return await super().generate(messages, tools, tool_choice)

    class Other(Watched):
        name = "baseline/other"

    ends(virtual, edition, [Watched(), Other()], tmp_path / "run")
    assert most == 2

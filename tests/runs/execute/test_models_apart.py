"""A model that is slow, or whose provider limits its rate, holds up no other of the same provider; in virtual time."""

import asyncio
from pathlib import Path

import pytest

from finskillbench.errors import Cause, ProviderError
from finskillbench.harness.programs.nop import Nop
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

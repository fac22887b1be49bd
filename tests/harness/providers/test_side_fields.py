"""Odd side fields never cost a good answer, with the real client over a real socket.

`FINSKILLBENCH_ANSWERS=10000` asks for that many answers instead of 120.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from importlib.util import find_spec

import pytest
from tests.faults.hosted import SERVED, TALK, TOOLS, served, warm
from tests.faults.random_replies import odd_side_fields
from tests.faults.server import SUBMIT

from finskillbench.harness.model import Turn, Usage, clean_turn

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
ANSWERS = int(os.environ.get("FINSKILLBENCH_ANSWERS", "120"))
ARGUMENTS = json.loads(SUBMIT.body)["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]


def test_no_odd_side_field_costs_a_good_answer() -> None:
    warm(SERVED)
    draws = iter(range(ANSWERS))
    with served(lambda _: odd_side_fields(random.Random(next(draws)))) as server:

        async def ask(gate: asyncio.Semaphore) -> Turn:
            async with gate:
                return clean_turn(await server.model.generate(TALK, TOOLS, "auto"))

        async def main() -> list[Turn]:
            gate = asyncio.Semaphore(16)
            try:
                return await asyncio.gather(*(ask(gate) for _ in range(ANSWERS)))
            finally:
                await server.model.close()

        turns = asyncio.run(main())
    assert {(call.name, call.arguments) for turn in turns for call in turn.tool_calls} == {("submit_answer", ARGUMENTS)}
    assert {len(turn.tool_calls) for turn in turns} == {1}
    assert {turn.stop for turn in turns} <= {"done", "refused"}
    assert all(call.id for turn in turns for call in turn.tool_calls)
    counted = [turn.usage for turn in turns if turn.usage != Usage()]
    assert all(usage.input_tokens and usage.output_tokens for usage in counted)
    print(f"{len(turns)} answers, the tokens of {len(counted)} are known")

"""What a plan says of a model, from a pilot and without one, against what the run then uses.

Run: python benchmarks/plan.py [--edition DIR] [--limit N] [--models N]

The model is a stand-in with the habits of hosted ones: how many turns an episode takes and how much is written in each
differ from subtask to subtask, from condition to condition and, by far, from episode to episode; a part of the input
comes from a cache. Prompts, tools and episodes are real. It runs up to the limit; plans that are made of pilots, each
of five episodes of each subtask and condition drawn from that run, and of nothing at all, are held against it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np

from finskillbench.edition import Edition, load_edition
from finskillbench.harness.allowance import MAX_TURNS
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.streams import default_edition
from finskillbench.runs.plan.usage import Amount, EarlierRun, Forecast, published_forecast
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import Row

REQUIRED, OF_PILOTS = 0.15, 0.95
PILOT, PILOTS = 5, 200
CONDITIONS = ("no_skill", "curated", "self_generated")
PRICE = Price(2.0, 0.2, 2.5, 10.0)


class Noisy:
    """Looks at the task's data for as many turns as it happens to take, then submits."""

    provider, price = "bench", PRICE

    def __init__(self, number: int) -> None:
        self.name = f"bench/noisy-{number}"

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        """Play the turn that is due; all chance lies in the words of the task."""
        await asyncio.sleep(0)
        words = messages[1].content
        names = "".join(tool.name for tool in tools if tool.name != "query_xbrl")
        habit = self._draw(words.partition("\n")[0] + ("skill" if "run_skill_script" in names else ""))
        typical, scatter = habit.uniform(3, 9), habit.uniform(0.3, 0.6)
        written = habit.uniform(200, 900)
        episode = self._draw(words)
        turns = min(12, max(1, round(typical * episode.lognormvariate(0, scatter))))
        talk = episode.lognormvariate(0, 0.5)
        done = sum(message.role == "assistant" for message in messages)
        turn = self._draw(f"{words}{done}")
        read = sum(len(message.content) for message in messages) // 4 + 1_500
        usage = Usage(
            input_tokens=read,
            cached_tokens=round(read * turn.uniform(0.2, 0.8)) if done else 0,
            output_tokens=1 + round(written * talk * turn.lognormvariate(0, 0.7)),
        )
        if done + 1 < turns and tool_choice == "auto":
            return Turn(
                "x" * 4 * usage.output_tokens, (ToolCall("r", "get_task_data", '{"field": "objective"}'),), usage
            )
        return Turn(tool_calls=(ToolCall("s", "submit_answer", '{"answer": "{}"}'),), usage=usage)

    def _draw(self, key: str) -> random.Random:
        return random.Random(hashlib.sha256(f"{self.name}{key}".encode()).digest())


def compare(edition: Edition, number: int, limit: int) -> tuple[float, bool]:
    """Print one model's plans and use; the share of pilots that come near enough, and whether the published hold."""
    with tempfile.TemporaryDirectory() as folder:
        run(edition, [Noisy(number)], CONDITIONS, limit=limit, out=Path(folder) / "run")
        rows = [*read_history(Path(folder) / "run").rows.values()]
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row.condition, row.sub_task), []).append(row)
    really = Amount(
        sum(row.turns for row in rows),
        sum(row.total_input_tokens for row in rows),
        sum(row.total_output_tokens for row in rows),
        sum(row.cost_usd or 0.0 for row in rows),
    )
    tokens = np.array([row.total_input_tokens + row.total_output_tokens for row in rows])
    print(f"bench/noisy-{number}: {len(rows):,} episodes", end="")
    print(
        f", {really.calls / len(rows):.1f} calls and {tokens.mean():,.0f} tokens each (median {np.median(tokens):,.0f})"
    )
    draw = random.Random(number)
    pilots = [[row for cell in cells.values() for row in draw.sample(cell, PILOT)] for _ in range(PILOTS)]
    planned = [_planned(rows, EarlierRun("the pilot", pilot)) for pilot in pilots]
    off = np.abs([_off(each.expected, really) for each in planned])
    near = float(np.mean(off.max(axis=1) <= REQUIRED))
    for place, name in enumerate(("calls", "input", "output", "USD")):
        middle, usual, worst = np.quantile(off[:, place], [0.5, 0.95, 1.0])
        print(f"  --like, {name}: off by {middle:.1%} in the middle, {usual:.1%} at 95 %, {worst:.1%} at most")
    print(f"  --like: all within {REQUIRED:.0%} in {near:.1%} of pilots", end=", ")
    print(f"within the spread in {np.mean([_covers(each, really) for each in planned]):.1%}")
    without = _planned(rows, None)
    held = _covers(without, really)
    told = ", ".join(f"{each:+.0%}" for each in _off(without.expected, really))
    print(f"  published: off by {told}; its spread covers the run: {held}")
    return near, held


def _planned(rows: Sequence[Row], like: EarlierRun | None) -> Forecast:
    """The sum of a plan over the conditions."""
    forecasts: list[Forecast] = []
    for condition in CONDITIONS:
        own = [row for row in rows if row.condition == condition]
        counts = Counter((row.domain, row.sub_task) for row in own)
        if like is None:
            forecasts.append(published_forecast(condition, len(own), MAX_TURNS, PRICE))
        else:
            forecasts.append(like.forecast(own[0].item.model_key, condition, counts, MAX_TURNS, PRICE))
    return reduce(add, forecasts)


def _figures(amount: Amount) -> tuple[float, ...]:
    return amount.calls, amount.input_tokens, amount.output_tokens, amount.cost_usd or 0.0


def _off(said: Amount, really: Amount) -> list[float]:
    return [ours / theirs - 1 for ours, theirs in zip(_figures(said), _figures(really), strict=True)]


def _covers(said: Forecast, really: Amount) -> bool:
    bounds = zip(_figures(said.low), _figures(really), _figures(said.high), strict=True)
    return all(low <= figure <= high for low, figure, high in bounds)


def main() -> int:
    """Print both; exit code 1 where too many pilots miss the requirement, or the published spread does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--limit", type=int, default=40, help="episodes of each subtask (default: 40)")
    parser.add_argument("--models", type=int, default=3, help="models, each with other habits (default: 3)")
    arguments = parser.parse_args()
    edition = load_edition(arguments.edition or default_edition(print))
    found = [compare(edition, number, arguments.limit) for number in range(arguments.models)]
    least = min(near for near, _ in found)
    print(
        f"pilots within {REQUIRED:.0%}: {least:.1%} at least; required {OF_PILOTS:.0%}; ratio {least / OF_PILOTS:.2f}"
    )
    return int(least < OF_PILOTS or not all(held for _, held in found))


if __name__ == "__main__":
    sys.exit(main())

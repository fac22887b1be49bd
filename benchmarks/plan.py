"""What a plan says of a model, from a pilot and without one, against what the run then uses.

Run: python benchmarks/plan.py [--edition DIR] [--limit N] [--models N]

The model is a stand-in with the habits of hosted ones: how many turns an episode takes and how much is written in each
differ from subtask to subtask, from condition to condition and, by far, from episode to episode; a part of the input
comes from a cache. Prompts, tools and episodes are real. It runs the first five episodes of each subtask as a pilot,
then all up to the limit; both plans are held against that.
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
from pathlib import Path
from statistics import median

from finskillbench.edition import Edition, load_edition
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import run
from finskillbench.runs.plan.defaults import default_edition
from finskillbench.runs.plan.usage import Amount, Earlier, Forecast, published
from finskillbench.runs.store.journal import read_history

REQUIRED = 0.15
PILOT = 5
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
    """Print one model's plans and use; the worst deviation of the first, and whether the spread of the other held."""
    with tempfile.TemporaryDirectory() as folder:
        model, pilot = Noisy(number), Path(folder) / "pilot"
        run(edition, [model], CONDITIONS, limit=PILOT, out=pilot)
        earlier = Earlier("the pilot", read_history(pilot).rows.values())
        rows = read_history(Path(run(edition, [model], CONDITIONS, limit=limit, out=Path(folder) / "all").folder)).rows
    worst, covered = 0.0, True
    for condition in CONDITIONS:
        own = [row for row in rows.values() if row.condition == condition]
        counts = Counter((row.domain, row.sub_task) for row in own)
        like = earlier.forecast(own[0].item.entry, condition, counts, 12, PRICE)
        without = published(condition, len(own), 12, PRICE)
        really = Amount(
            sum(row.turns for row in own),
            sum(row.total_input_tokens for row in own),
            sum(row.total_output_tokens for row in own),
            sum(row.cost_usd or 0.0 for row in own),
        )
        off = _off(like.expected, really)
        worst, covered = max(worst, *map(abs, off)), covered and _covers(without, really)
        print(f"{model.name} {condition:14} {really.calls / len(own):.1f} calls an episode", end=", ")
        print(f"{(really.input_tokens + really.output_tokens) / len(own):,.0f} tokens; --like off by", end=" ")
        print(
            ", ".join(f"{name} {each:+.1%}" for name, each in zip(("calls", "in", "out", "USD"), off, strict=True)),
            end="",
        )
        print(f"; within its spread: {_covers(like, really)}; published off by", end=" ")
        print(", ".join(f"{each:+.0%}" for each in _off(without.expected, really)), end="")
        print(f", spread covers: {_covers(without, really)}")
    return worst, covered


def _figures(amount: Amount) -> tuple[float, ...]:
    return amount.calls, amount.input_tokens, amount.output_tokens, amount.cost_usd or 0.0


def _off(said: Amount, really: Amount) -> list[float]:
    return [ours / theirs - 1 for ours, theirs in zip(_figures(said), _figures(really), strict=True)]


def _covers(said: Forecast, really: Amount) -> bool:
    bounds = zip(_figures(said.low), _figures(really), _figures(said.high), strict=True)
    return all(low <= figure <= high for low, figure, high in bounds)


def main() -> int:
    """Print both; exit code 1 where a pilot misses the requirement in one of two models, or a spread does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--limit", type=int, default=40, help="episodes of each subtask (default: 40)")
    parser.add_argument("--models", type=int, default=3, help="models, each with other habits (default: 3)")
    arguments = parser.parse_args()
    edition = load_edition(arguments.edition or default_edition(print))
    found = [compare(edition, number, arguments.limit) for number in range(arguments.models)]
    worst = [each for each, _ in found]
    print(f"--like off by {median(worst):.1%} at worst in the median model, {max(worst):.1%} in any", end="")
    print(f"; required {REQUIRED:.0%}; ratio {median(worst) / REQUIRED:.2f}")
    return int(median(worst) > REQUIRED or not all(covered for _, covered in found))


if __name__ == "__main__":
    sys.exit(main())

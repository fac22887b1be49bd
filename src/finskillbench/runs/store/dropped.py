"""`dropped.jsonl`: what was paid for and stands in no row.

One line for each episode that was dropped in flight, with what its answered calls used, and one for each episode whose
row lacks calls that may have been billed without an answer. Fields: the item (model, condition, task_id, run_idx),
`why`, `calls`, tokens as in rows, `cost_usd` (null: price unknown) and `lost_usd`, the upper bound of the calls
that were never answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from finskillbench.harness.model import FREE, Usage
from finskillbench.harness.providers.prices import NO_CHARGE, Price
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.journal import read_json_lines, read_lines

FILE = "dropped.jsonl"


def key(item: Item) -> dict[str, Any]:
    """The fields of a line that say which episode it is about."""
    return {
        "model": item.model,
        "condition": item.condition.value,
        "task_id": item.task_id,
        "run_idx": item.run_idx,
    }


def dropped_line(item: Item, why: str, *, calls: int, usage: Usage, lost_usd: float) -> dict[str, Any]:
    """The line of one episode."""
    return {
        **key(item),
        "why": why,
        "calls": calls,
        "total_input_tokens": usage.input_tokens,
        "total_cached_tokens": usage.cached_tokens,
        "total_output_tokens": usage.output_tokens,
        "total_reasoning_tokens": usage.reasoning_tokens,
        "cost_usd": usage.cost_usd,
        "lost_usd": lost_usd,
    }


def lost_line(item: Item, lost_usd: float) -> dict[str, Any]:
    """The line of an episode that has a row, for what its unanswered calls may have cost."""
    return dropped_line(item, "unanswered", calls=0, usage=FREE, lost_usd=lost_usd)


def read_dropped(path: Path, *, mend: bool = False) -> list[dict[str, Any]]:
    """The lines of a `dropped.jsonl`, oldest first; arguments and errors as those of `read_json_lines`."""

    return read_json_lines(path, check_line, mend=mend)


def check_line(line: Any) -> dict[str, Any]:
    """Return the line if it says what was paid; raises TypeError, ValueError or KeyError otherwise."""
    if not isinstance(line, dict):
        raise TypeError("not an object")
    _cost(line, {})
    return line


def spent(folder: Path, prices: Mapping[str, Price | None]) -> float:
    """US dollars that a run folder says were spent: every journal line, repeats included, and what was dropped.

    `prices`, by model, serve for lines that were written while the price was not known.
    """
    lines = [line for path in sorted((folder / "journal").glob("*.jsonl")) for _, line in read_lines(path)]
    return sum(_cost(line, prices) for line in [*lines, *read_dropped(folder / FILE)])


def _cost(line: Mapping[str, Any], prices: Mapping[str, Price | None]) -> float:
    known = line["cost_usd"]
    if known is None:
        read, cached = line["total_input_tokens"], line["total_cached_tokens"]
        price = prices.get(line["model"]) or NO_CHARGE
        # How much of the input was written to a cache stands in no row: taken at the dearer of the two prices.
        written = read - cached if price.cache_write > price.input else 0
        known = price.cost(
            Usage(
                input_tokens=read,
                cached_tokens=cached,
                cache_write_tokens=written,
                output_tokens=line["total_output_tokens"],
            )
        )
    return float(known) + float(line.get("lost_usd", 0.0))

"""Table 6 of the paper: what an episode takes in tokens, seconds, turns and dollars."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from finskillbench.analysis.results import Results
from finskillbench.reports.tables.base import Cell, Column, Kind, Table
from finskillbench.reports.tables.common import compared, contenders
from finskillbench.reports.tables.notes import notes

_QUANTITIES: dict[str, tuple[str, str, int]] = {
    "tokens": ("tokens", "", 0),
    "output_tokens": ("output tokens", "", 0),
    "latency": ("latency", "s", 2),
    "turns": ("turns", "", 2),
    "cost": ("cost", "USD", 4),
}
"""By name: title, unit, decimals."""
_TAKEN = {
    "tokens": pl.sum_horizontal("total_input_tokens", "total_output_tokens", ignore_nulls=False),
    "output_tokens": pl.col("total_output_tokens"),
    "latency": pl.col("latency_seconds"),
    "turns": pl.col("turns"),
    "cost": pl.col("cost_usd"),
}
_NOTE = (
    "Of every episode that did not end in an error, repeats counted. Tokens: input (cached ones included) and output. "
    "Latency: answered model calls and tools, without waiting. A cost that is not known for every row is absent; of "
    "tokens the middle is that of the episodes whose count is known."
)


def resources_table(results: Results) -> Table:
    """Median and mean of each quantity, a row for each condition."""
    taken = _taken(results)
    rows: list[tuple[Cell, ...]] = [
        (condition, *_figures(taken.filter(pl.col("condition") == condition))) for condition in results.conditions
    ]
    told = (*notes(results, differences=False), _NOTE, *_uncounted(taken, ["condition"]))
    return _table("resources", "What an episode takes, by condition", [Column("condition", "Condition")], rows, told)


def model_resources_table(results: Results) -> Table:
    """The same, a row for each model and condition."""
    rows: list[tuple[Cell, ...]] = []
    taken = _taken(results)
    for model in contenders(results):
        for condition in results.conditions:
            part = taken.filter(pl.col("model") == model, pl.col("condition") == condition)
            if not part.is_empty():
                rows.append((model, condition, *_figures(part)))
    first = [Column("model", "Model"), Column("condition", "Condition")]
    told = (*notes(results, differences=False), _NOTE, *_uncounted(taken, ["model", "condition"]))
    return _table("resources_by_model", "What an episode takes, by model and condition", first, rows, told)


def _taken(results: Results) -> pl.DataFrame:
    """The quantities of each row; null where the rows do not tell one."""
    rows = compared(results, results.rows).filter(~pl.col("failed"))
    needed = {name: quantity.meta.root_names() for name, quantity in _TAKEN.items()}
    told = {
        name: _TAKEN[name] if set(needed[name]) <= set(rows.columns) else pl.lit(None, pl.Float64) for name in _TAKEN
    }
    return rows.select("model", "condition", **told)


def _figures(part: pl.DataFrame) -> list[Cell]:
    figures: list[Cell] = [part.height]
    for name in _QUANTITIES:
        values = part[name].cast(pl.Float64)
        absent = name == "cost" and values.has_nulls()
        figures += [None, None] if absent else [_known(values.median()), _known(values.mean())]
    return figures


def _known(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _uncounted(taken: pl.DataFrame, by: Sequence[str]) -> list[str]:
    """Note of how many episodes of each group token counts are unknown, where there are any."""
    groups = taken.group_by(by, maintain_order=True).agg(pl.len(), unknown=pl.col("tokens").is_null().sum())
    found = groups.filter(pl.col("unknown") > 0).select(pl.concat_str(by, separator=", "), "unknown", "len").rows()
    told = "; ".join(f"{name}: {unknown} of {episodes}" for name, unknown, episodes in found)
    return [f"Episodes without token counts, which are left out of the token columns: {told}."] if found else []


def _table(
    name: str, title: str, first: Sequence[Column], rows: Sequence[tuple[Cell, ...]], footnotes: tuple[str, ...]
) -> Table:
    columns = [*first, Column("episodes", "Episodes", Kind.COUNT)]
    for quantity, (told, unit, digits) in _QUANTITIES.items():
        for middle in ("median", "mean"):
            column = Column(f"{middle}_{quantity}", f"{middle.capitalize()} {told}", Kind.NUMBER, unit, digits=digits)
            columns.append(column)
    return Table(name, title, tuple(columns), tuple(rows), footnotes)

"""What trackers are told of a run: one record for each model, harness and condition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from finskillbench.analysis.intervals import estimate
from finskillbench.analysis.results import Results, pairs
from finskillbench.reports.read import RunRows

HEADLINE = "headline"
_MEANS = {
    "turns": "turns",
    "tool_calls": "tool_calls",
    "total_input_tokens": "input_tokens",
    "total_output_tokens": "output_tokens",
    "latency_seconds": "latency_seconds",
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One model under one condition in one harness.

    `parameters` are texts. `metrics` are finite numbers by name: `score/headline`, `score/domain/NAME`,
    `score/subtask/NAME` and `gain/...` (the paired difference from the condition that stands beside it as
    `gain_over`), each with `_low` and `_high` where an interval can be said; `episodes`, `errors`, `mean/turns` and
    the like, and `cost_usd` in all. What cannot be said is left out.
    """

    model: str
    harness: str
    condition: str
    parameters: Mapping[str, str]
    metrics: Mapping[str, float]

    @property
    def name(self) -> str:
        """What tells it from the others."""
        beside = "" if self.harness == "finskillbench" else f" ({self.harness})"
        return f"{self.model} {self.condition}{beside}"


def arms_of(run: RunRows, results: Results) -> list[Arm]:
    """The arms of a run, in the order of its rows."""
    keys = ["model", "harness", "condition"]
    found: list[Arm] = []
    for model, harness, condition in results.rows.select(keys).unique(maintain_order=True).iter_rows():
        of_arm = (pl.col("model") == model) & (pl.col("harness") == harness)
        rows = results.rows.filter(of_arm, pl.col("condition") == condition)
        against = next((each for each in results.comparisons if each.treated == condition), None)
        parameters = {**_parameters(run, results, rows), "condition": condition}
        metrics = dict(_metrics(rows, results.episodes.filter(of_arm, pl.col("condition") == condition)))
        if against is not None:
            parameters["gain_over"] = against.reference
            metrics |= dict(_means("gain", pairs(results, against).filter(of_arm), "difference"))
        found.append(Arm(model, harness, condition, parameters, metrics))
    return found


def _parameters(run: RunRows, results: Results, rows: pl.DataFrame) -> dict[str, str]:
    same = ("model", "harness", "provider", "arguments", "mount", "edition", "scorer_version", "code_version", "commit")
    told = {name: ", ".join(map(str, rows[name].drop_nulls().unique().sort())) for name in same if name in rows.columns}
    told |= {"profile": results.profile.value, "run": str(run.path)}
    if run.record is not None:
        told |= {"prompts": run.record.prompts_digest}
        told |= {f"version/{name}": version for name, version in run.record.versions.items()}
    return {name: value for name, value in told.items() if value}


def _metrics(rows: pl.DataFrame, episodes: pl.DataFrame) -> Iterator[tuple[str, float]]:
    yield "rows", rows.height
    yield "errors", int(rows["failed"].sum())
    yield "episodes", episodes.height
    yield from _means("score", episodes, "score")
    for column, name in _MEANS.items():
        known = rows[column].drop_nulls() if column in rows.columns else pl.Series()
        if known.len():
            yield f"mean/{name}", float(known.sum()) / known.len()
    if "cost_usd" in rows.columns and not rows["cost_usd"].has_nulls():
        yield "cost_usd", float(rows["cost_usd"].sum())


def _means(what: str, frame: pl.DataFrame, value: str) -> Iterator[tuple[str, float]]:
    """Means with the ends of their intervals: of the headline, of its part in each domain, of each subtask."""
    counted = frame.filter("headline")
    for prefix, of, by in ((HEADLINE, counted, None), ("domain", counted, "domain"), ("subtask", frame, "sub_task")):
        if of.is_empty():
            continue
        for line in estimate(of, value, [by] if by else []).iter_rows(named=True):
            name = f"{what}/{prefix}/{line[by]}" if by else f"{what}/{prefix}"
            yield from ((f"{name}{end}", line[key]) for end, key in _ENDS if line[key] is not None)


_ENDS = (("", "mean"), ("_low", "low"), ("_high", "high"))

"""Format `ladder` of `finskillbench report`: mean scores of the liquidity ladder as a CSV file."""

from pathlib import Path

import polars as pl

from finskillbench.reports.report import ReportFormat, ReportRequest
from liquidity_ladder.subtask import NAME


def write(request: ReportRequest) -> list[Path]:
    """Write the mean score of each model and condition by difficulty."""
    episodes = request.report.results.episodes.filter(pl.col("sub_task") == NAME)
    means = episodes.group_by("model", "condition", "difficulty", maintain_order=True).agg(pl.col("score").mean())
    request.out.mkdir(parents=True, exist_ok=True)
    file = request.out / "ladder.csv"
    means.write_csv(file)
    return [file]


LADDER = ReportFormat(write)

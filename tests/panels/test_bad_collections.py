"""Files that end early or hold a wrong price: the build refuses and says which, instead of another year or a riddle."""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.objects import month_ends
from finskillbench.domains.portfolio.objects.binding import mandate_fields, month_problem, sized_limits
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.engines.portfolio.measures import violations
from finskillbench.errors import SourceError
from finskillbench.panels import build_panels
from finskillbench.sources.market.collection import MarketData, load_market

pytestmark = pytest.mark.slow

SERIES = {
    "factors": "famafrench/F-F_Research_Data_5_Factors_2x3_daily",
    "momentum": "famafrench/F-F_Momentum_Factor_daily",
    "DGS3MO": "fred/DGS3MO",
}


@pytest.fixture(scope="module")
def raw(synthetic_raw: Path) -> Path:
    """Copied before it is altered."""
    return synthetic_raw


@pytest.mark.parametrize("series", SERIES)
def test_a_file_cut_off_is_named_and_never_decides_the_year(raw: Path, tmp_path: Path, series: str) -> None:
    filings = shutil.ignore_patterns("companyfacts", "submissions", "xbrl")
    spoiled = shutil.copytree(raw, tmp_path / "raw", ignore=filings)
    (path,) = (file for file in spoiled.glob("*/*") if str(file).startswith(str(spoiled / SERIES[series])))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:900]))
    last = lines[899][:10].replace("-", "")[:8]
    with pytest.raises(SourceError, match="ends on") as caught:
        build_panels(load_market(spoiled))
    message = str(caught.value)
    assert message.startswith(f"{path}: ends on {last[:4]}-{last[4:6]}-{last[6:]}, ")
    assert "the last full year of the prices" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("last", "factors", "rate"),
    [
        (date(2024, 12, 31), True, True),
        (date(2024, 12, 30), False, True),
        (date(2024, 12, 23), False, True),  # the rate may be ten days old
        (date(2024, 12, 20), False, False),
        (date(2023, 12, 29), False, False),
    ],
)
def test_a_series_reaches_the_end_of_the_last_full_year(
    market: MarketData, last: date, factors: bool, rate: bool
) -> None:
    short = {
        "factors": replace(market, factors=market.factors.filter(pl.col("date") <= last)),
        "DGS3MO": replace(market, macro={"DGS3MO": market.macro["DGS3MO"].filter(pl.col("date") <= last)}),
    }
    for (name, spoiled), enough in zip(short.items(), (factors, rate), strict=True):
        if enough:
            assert build_panels(spoiled).month_ends[-1] == date(2024, 12, 31)
            continue
        with pytest.raises(
            SourceError, match=f"{name}: ends on .* before the end of 2024, .* to 2024-12-31 are missin"
        ):
            build_panels(spoiled)


def test_the_benchmark_of_six_names_keeps_every_tier(market: MarketData) -> None:
    """Six names at 8 % each are never fully invested: no cap is lower than the benchmark's largest weight."""
    context, settings = BuildContext(build_panels(market), seed=1), read_settings()
    month = month_ends(context, settings)[-1]
    for tier in settings["tiers"].values():
        limits = {**sized_limits(tier, month), "max_turnover": None}
        assert 0 <= limits["max_weight"] - month.benchmark.max() <= 0.005
        task_input = {
            **mandate_fields(month, limits, month.benchmark),
            "covariance_matrix": month.covariance_table,
            "objective": "min_variance",
        }
        assert not violations(month_problem(month, task_input), month.benchmark, 1e-9)

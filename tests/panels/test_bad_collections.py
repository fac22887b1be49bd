"""Files that end early or hold a wrong price: the build refuses and says which, instead of another year or a riddle."""

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from finskillbench.domains.building import BuildContext
from finskillbench.domains.portfolio.objects import month_ends
from finskillbench.domains.portfolio.objects.settings import read_settings
from finskillbench.domains.portfolio.objects.tiers import tier_at
from finskillbench.errors import SourceError
from finskillbench.panels import build_panels
from finskillbench.sources.market import MarketData, load_market
from finskillbench.sources.synthetic import write_collection

SERIES = {
    "factors": "famafrench/F-F_Research_Data_5_Factors_2x3_daily",
    "momentum": "famafrench/F-F_Momentum_Factor_daily",
    "DGS3MO": "fred/DGS3MO",
}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw") / "collection"
    write_collection(folder, seed=3)
    return folder


@pytest.mark.parametrize("series", SERIES)
def test_a_file_cut_off_is_named_and_never_decides_the_year(raw: Path, tmp_path: Path, series: str) -> None:
    spoiled = shutil.copytree(raw, tmp_path / "raw")
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


def test_a_tier_nobody_can_keep_names_month_tier_and_the_jumps_of_its_window(market: MarketData) -> None:
    """Six names at 7 % each are never fully invested: any mandate fails here, with the wrong price or without."""
    days = sorted(set(market.prices["date"].to_list()))
    wrong = (pl.col("symbol") == "N002") & (pl.col("date") == date(2024, 3, 6))
    old = (pl.col("symbol") == "N004") & (pl.col("date") == days[5])
    scale = pl.when(wrong | old).then(50.0).otherwise(1.0)
    spoiled = replace(market, prices=market.prices.with_columns(pl.col("close", "adj_close") * scale))
    for data, month, words in (
        (spoiled, 3, ("N002 +", "on 2024-03-06", "N002 -98% on 2024-03-07", "; check those prices")),
        (spoiled, 1, ("2024-02-29: no portfolio", "; check prices")),
        (market, 3, ("; check prices and shares",)),
    ):
        context, settings = BuildContext(build_panels(data), seed=1), read_settings()
        end = month_ends(context, settings)[month]
        with pytest.raises(SourceError, match=f"the hard tier cannot be kept at {end.as_of}: ") as caught:
            tier_at(context, settings, "hard", end)
        message = str(caught.value)
        assert all(word in message for word in words), message
        assert "N004" not in message
        assert ("N002" in message) == (words[0] == "N002 +")

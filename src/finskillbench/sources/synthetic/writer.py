"""Simulate a fictional market and write it as raw files, in the providers' formats and precision.

Price files are plain CSV: gzip output depends on the zlib build, and a seed must give the same bytes everywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import msgspec
import numpy as np
import orjson
import polars as pl

from finskillbench.arrays import SECTORS, Floats
from finskillbench.csv_output import csv_text
from finskillbench.errors import InputError
from finskillbench.sources.companies.constituents import GICS_SECTORS
from finskillbench.sources.companies.universe import SecurityRecord, sector_counts
from finskillbench.sources.synthetic import calendar
from finskillbench.sources.synthetic.filers.edgar_files import companyfacts_json, instances, submissions_json
from finskillbench.sources.synthetic.filers.filer import SyntheticFiler
from finskillbench.sources.synthetic.filers.history import draw_filer
from finskillbench.sources.synthetic.market.companies import (
    SyntheticCompany,
    Traits,
    company_returns,
    draw_traits,
    invent_companies,
    sector_returns,
)
from finskillbench.sources.synthetic.market.factors import (
    Series,
    decimals,
    draw_factors,
    draw_macro,
    volatility_multiplier,
)
from finskillbench.sources.synthetic.market.fundamentals import Fundamentals, draw_fundamentals
from finskillbench.splits import is_for_training

MIN_NAMES, MAX_NAMES = 15, 3000
_ANCHOR = date(2025, 6, 30)
_MEAN_CAP = 6e10
_TOP_OF_THIRTY, _LARGEST_SECTOR, _OTHER_SECTOR = 0.108, 0.21, 0.175


@dataclass(frozen=True, slots=True)
class SyntheticMarket:
    """A simulated market with its true values.

    companies, traits, fundamentals : per name, sorted by symbol. days : (T,) sessions.
    factors : (T, 6) daily decimals as published (exactly what drives the returns); risk_free : (T,).
    adjusted_close : (T, n) as printed in the price files (float32 values). macro : FRED id -> dates and values.
    """

    seed: int
    companies: tuple[SyntheticCompany, ...]
    traits: tuple[Traits, ...]
    fundamentals: tuple[Fundamentals, ...]
    days: tuple[date, ...]
    factors: Floats
    risk_free: Floats
    adjusted_close: Floats
    macro: Mapping[str, Series]

    @property
    def securities(self) -> tuple[SecurityRecord, ...]:
        return tuple(company.security for company in self.companies)

    def draw_filer(self, index: int) -> SyntheticFiler:
        """Draw the filings and statements of the company at `index`; results are not cached."""
        company, sector = self.companies[index], self.companies[index].security.sector
        rank = sum(other.security.sector == sector for other in self.companies[:index])
        return draw_filer(self.seed, index, company, self.traits[index], self.fundamentals[index], rank=rank)


def simulate(seed: int, names: int = 30) -> SyntheticMarket:
    """Draw the fictional market of a seed; InputError for a negative seed or an invalid size.

    names : 15 to 3,000, split over the sectors in the proportions of the default universe.
    """
    if seed < 0:
        raise InputError(f"seed={seed}: a seed is a non-negative integer")
    if not MIN_NAMES <= names <= MAX_NAMES:
        raise InputError(f"names={names}: a synthetic market has {MIN_NAMES} to {MAX_NAMES} names")
    days = calendar.sessions()
    quarters = calendar.quarter_ends(date(2015, 1, 1), date(2025, 9, 30))
    counts = sector_counts({sector: profile.count for sector, profile in calendar.PROFILES.items()}, names)
    rng = calendar.generator(seed, calendar.SyntheticStream.NAMES)
    companies = invent_companies(counts, rng, training=is_for_training(seed))
    sectors = tuple(company.security.sector for company in companies)
    macro = draw_macro(days, calendar.generator(seed, calendar.SyntheticStream.MACRO))
    factors = draw_factors(days, calendar.generator(seed, calendar.SyntheticStream.FACTORS))
    bills = dict(zip(*macro["DGS3MO"], strict=True))
    # The data library prints the bill's daily rate with two decimals of a percent.
    risk_free = np.round([(bills[day] or 0.0) / 252 for day in days], 2) / 100
    multiplier = volatility_multiplier(days)
    caps = _market_caps(sectors, calendar.generator(seed, calendar.SyntheticStream.CAPS))
    common = sector_returns(seed, SECTORS, multiplier)
    traits = tuple(
        draw_traits(seed, i, sector, float(caps[i] / _MEAN_CAP), quarters) for i, sector in enumerate(sectors)
    )
    close = np.empty((len(days), names))
    for i, one in enumerate(traits):
        returns = company_returns(seed, i, one, factors, risk_free, common[sectors[i]], multiplier)
        path = np.cumprod(1 + returns)
        # float32 is the precision in which Yahoo computes adjusted prices.
        close[:, i] = (path / path[-1] * one.last_price).astype(np.float32)
    anchor = max(i for i, day in enumerate(days) if day <= _ANCHOR)
    fundamentals = tuple(
        draw_fundamentals(
            one,
            close[:, i],
            days,
            quarters,
            calendar.on_grid(caps[i] / close[anchor, i], -5),
            calendar.generator(seed, calendar.SyntheticStream.CAPS, i + 1),
        )
        for i, one in enumerate(traits)
    )
    return SyntheticMarket(seed, companies, traits, fundamentals, days, factors, risk_free, close, macro)


def _market_caps(sectors: tuple[str, ...], rng: np.random.Generator) -> Floats:
    """(n,) dollars at mid-2025: lognormal, the largest name near 11 % of 30 and the largest sector near 21 %.

    These are the proportions of the published universe (spec/data.md); concentration falls with the number of names.
    """
    count = len(sectors)
    weights = np.exp(np.round(0.55 * rng.standard_normal(count), 6))
    top = _TOP_OF_THIRTY * (30 / count) ** 0.35
    labels = np.array(sectors)
    sums = {sector: weights[labels == sector].sum() for sector in dict.fromkeys(sectors)}
    # The largest company leads the largest sector with two names or more: a sector of one cannot be 21 %.
    leader = max((sector for sector in sums if (labels == sector).sum() > 1), key=lambda sector: sums[sector])
    inside = np.flatnonzero(labels == leader)
    giant = int(inside[np.argmax(weights[inside])])
    for _ in range(60):
        weights = weights / weights.sum()
        weights = np.minimum(weights, 0.8 * top)
        weights[giant] = top
        outside = labels != leader
        rest = (labels == leader) & (np.arange(count) != giant)
        weights[rest] *= (_LARGEST_SECTOR - top) / weights[rest].sum()
        for sector in sums:
            if sector != leader and (total := weights[labels == sector].sum()) > _OTHER_SECTOR:
                weights[labels == sector] *= _OTHER_SECTOR / total
        weights[outside] *= (1 - _LARGEST_SECTOR) / weights[outside].sum()
    return np.round(weights * count * _MEAN_CAP, -6)


_GICS = {ours: gics for gics, ours in GICS_SECTORS.items()}
_CENTS = ("eps", "divPS")


def write_collection(out: Path, *, seed: int, names: int = 30) -> None:
    """Write the raw collection of a seed into the new folder `out`, completely or not at all.

    Raises
    ------
    InputError : `out` exists and is not an empty folder; invalid seed or size.
    """
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not an empty folder; name a new one")
    truth = simulate(seed, names)
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        _write_all(temporary, truth)
        temporary.chmod(0o755)
        if out.exists():
            out.rmdir()
        temporary.replace(out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _write_all(folder: Path, truth: SyntheticMarket) -> None:
    market = ("constituents", "prices", "famafrench", "fred", "statements_derived")
    for name in (*market, "companyfacts", "submissions", "xbrl"):
        (folder / name).mkdir()
    _text(folder / "universe.json", _universe(truth))
    _text(folder / "constituents" / "constituents.csv", _constituents(truth.companies))
    five, momentum = _french(truth)
    _text(folder / "famafrench" / "F-F_Research_Data_5_Factors_2x3_daily.csv", five)
    _text(folder / "famafrench" / "F-F_Momentum_Factor_daily.csv", momentum)
    for series, values in truth.macro.items():
        _text(folder / "fred" / f"{series}.csv", _fred(series, values))
    stamps = [f"{day.isoformat()} 00:00:00{calendar.new_york_offset(day)}" for day in truth.days]
    # One name at a time, to limit memory.
    for i, company in enumerate(truth.companies):
        symbol = company.security.symbol
        _text(folder / "prices" / f"{symbol}.csv", csv_text(price_frame(truth, i, stamps)))
        _text(folder / "statements_derived" / f"{symbol}.json", statements_json(truth, i))
        filer = truth.draw_filer(i)
        (folder / "companyfacts" / f"CIK{company.security.cik}.json").write_bytes(companyfacts_json(filer))
        (folder / "submissions" / f"CIK{company.security.cik}.json").write_bytes(submissions_json(filer))
        (folder / "xbrl" / symbol).mkdir()
        for accession, instance in instances(filer):
            (folder / "xbrl" / symbol / f"{accession}.xml").write_bytes(instance)


def price_frame(truth: SyntheticMarket, index: int, stamps: list[str]) -> pl.DataFrame:
    """Return a yfinance table: Date, Open, High, Low, Close (all adjusted), Volume, Dividends, Stock Splits."""
    rng = calendar.generator(truth.seed, calendar.SyntheticStream.TRADING, index)
    traits, facts = truth.traits[index], truth.fundamentals[index]
    close = truth.adjusted_close[:, index]
    count = len(close)
    overnight = np.round(0.004 * rng.standard_normal(count), 6)
    reach = np.round(np.abs(0.006 * rng.standard_normal((2, count))), 6)
    opening = _single(np.concatenate([close[:1], close[:-1]]) * (1 + overnight))
    # The maximum of both, so that rounding cannot put a high below the close.
    high = np.maximum(_single(np.maximum(opening, close) * (1 + reach[0])), np.maximum(opening, close))
    low = np.minimum(_single(np.minimum(opening, close) * (1 - reach[1])), np.minimum(opening, close))
    activity = np.round(np.exp(np.round(0.35 * rng.standard_normal(count), 6)), 5)
    volume = np.round(facts.latest_shares[1] * traits.turnover * activity, -2).astype(np.int64)
    splits = np.zeros(count)
    if traits.split is not None and traits.split[0] < count:
        splits[traits.split[0]] = traits.split[1]
    return pl.DataFrame(
        {
            "Date": stamps,
            "Open": opening,
            "High": high,
            "Low": low,
            "Close": close,
            "Volume": volume,
            "Dividends": _dividends(truth, index),
            "Stock Splits": splits,
        }
    )


def _dividends(truth: SyntheticMarket, index: int) -> Floats:
    """Return a quarter of the yield at the previous close, four decimals, on the ex-dividend sessions."""
    close = truth.adjusted_close[:, index]
    paid = np.zeros(len(close))
    at = np.array(calendar.dividend_sessions())
    paid[at] = np.round(close[at - 1] * truth.traits[index].dividend_yield / 4, 4)
    return paid


def _single(values: Floats) -> Floats:
    return values.astype(np.float32).astype(np.float64)


def statements_json(truth: SyntheticMarket, index: int) -> str:
    """Return one company's statements in the derived-EDGAR format."""
    company, facts = truth.companies[index], truth.fundamentals[index]
    security = company.security
    city, state = company.headquarters.split(", ")
    when, latest = facts.latest_shares
    record = {
        "updated": f"{truth.days[-1].isoformat()}T22:00:00.000Z",
        "symbol": security.symbol,
        "name": security.name,
        "cik": security.cik,
        "profile": {
            "sic": security.sub_sector,
            "fye": facts.annual_ends[-1].strftime("%m%d"),
            "city": city.upper(),
            "state": state,
            "website": None,
            "exchange": security.exchange,
        },
        "annual": {name: _entries(facts.annual_ends, name, values) for name, values in facts.annual.items()},
        "quarterly": {name: _entries(facts.quarter_ends, name, values) for name, values in facts.quarterly.items()},
        "balances": {name: _entries(facts.annual_ends, name, values) for name, values in facts.balances.items()},
        "dilutedShares": _entries(facts.annual_ends, "shares", facts.diluted_shares),
        "sharesLatest": {"end": when.isoformat(), "v": round(latest)},
    }
    return orjson.dumps(record).decode()


def _entries(ends: tuple[date, ...], name: str, values: Floats) -> list[dict[str, object]]:
    whole = name not in _CENTS
    return [
        {"end": end.isoformat(), "v": round(value) if whole else round(value, 2)}
        for end, value in zip(ends, values.tolist(), strict=True)
    ]


def _universe(truth: SyntheticMarket) -> str:
    sectors: dict[str, dict[str, list[str]]] = {}
    for sector in SECTORS:
        symbols = [s.symbol for s in truth.securities if s.sector == sector]
        if symbols:
            sectors[sector] = {"names": symbols, "alternates": []}
    described: dict[str, dict[str, object]] = {s.symbol: msgspec.to_builtins(s) for s in truth.securities}
    for record in described.values():
        del record["symbol"]
    universe = {
        "about": f"{len(described)} fictional companies of seed {truth.seed}; any likeness to real ones is accidental.",
        "snapshot": truth.days[-1].isoformat(),
        "sectors": sectors,
        "securities": described,
    }
    return orjson.dumps(universe, option=orjson.OPT_INDENT_2).decode() + "\n"


def _constituents(companies: tuple[SyntheticCompany, ...]) -> str:
    columns = "Symbol,Security,GICS Sector,GICS Sub-Industry,Headquarters Location,Date added,CIK,Founded"
    rows: list[tuple[str | None, ...]] = []
    for company in companies:
        s = company.security
        added = s.date_added.isoformat() if s.date_added else None
        cik = str(int(s.cik)) if s.cik else None
        sector, founded = _GICS[s.sector], str(company.founded)
        rows.append((s.symbol, s.name, sector, s.sub_sector, company.headquarters, added, cik, founded))
    return csv_text(pl.DataFrame(rows, dict.fromkeys(columns.split(","), pl.String), orient="row"))


def _french(truth: SyntheticMarket) -> tuple[str, str]:
    """Return both daily files, in percent with two decimals, with prose before and after as in the library."""
    percent = np.round(truth.factors * 100, 2).tolist()
    bills = np.round(truth.risk_free * 100, 2).tolist()
    stamps = [day.strftime("%Y%m%d") for day in truth.days]
    head = f"This file was created by a simulation with seed {truth.seed}.  It is fictional.\n"
    foot = "\nCopyright: none, simulated data\n"
    five = "".join(
        f"{stamp},{','.join(f'{_cell(v):>8}' for v in (*row[:5], bill))}\n"
        for stamp, row, bill in zip(stamps, percent, bills, strict=True)
    )
    momentum = "".join(f"{stamp},{_cell(row[5]):>8}\n" for stamp, row in zip(stamps, percent, strict=True))
    return (
        f"{head}The TBill rate is the simulated three-month bill's.\n\n,Mkt-RF,SMB,HML,RMW,CMA,RF\n{five}{foot}",
        f"{head}Missing data are indicated by -99.99 or -999.\n\n,Mom\n{momentum}{foot}",
    )


def _cell(value: float) -> str:
    return f"{value + 0.0:.2f}"


def _fred(series: str, values: Series) -> str:
    places = decimals(series)
    rows = (f"{day.isoformat()},{'' if v is None else f'{v:.{places}f}'}\n" for day, v in zip(*values, strict=True))
    return f"observation_date,{series}\n{''.join(rows)}"


def _text(path: Path, text: str) -> None:
    path.write_bytes(text.encode())

"""`query_xbrl` against the clock: the facts of 30 and of 6,000 companies, as filed and derived.

    python benchmarks/query.py [--companies 30 6000]

Companies are made up: ten years of quarterly statements of 22 flows and 12 instants, with half years, nine months,
years, restatements, derived quarters and two axes of segments. Queries take their company, day and filters at random,
as an agent may send them; the answer is serialised as the tool does. Exit code 1 if a requirement fails.
"""

import argparse
import resource
import sys
import time
from datetime import date, timedelta

import numpy as np
import orjson
import polars as pl

from finskillbench.panels.filings.facts import PANEL_SCHEMA as FACTS
from finskillbench.panels.filings.query import AXES, DURATIONS, FactStore, FiledStore
from finskillbench.panels.filings.segments.revenue import SEGMENTS_SCHEMA as SEGMENTS
from finskillbench.panels.filings.statements import FILED_SCHEMA as FILED

FLOWS, INSTANTS = [f"flow_{i:02d}" for i in range(14)], [f"instant_{i:02d}" for i in range(12)]
FIRST_YEAR, YEARS, QUERIES = 2015, 10, 20_000
RESTATED = 0.1
REQUIRED_MILLISECONDS = {30: 2.0, 6000: 10.0}
LENGTHS = {"quarterly": 1, "half": 2, "nine_months": 3, "annual": 4}


def periods() -> list[tuple[str, date | None, date, int]]:
    """Duration, start, end and number of the filing of every period of a company; instants have no start."""
    found = []
    for number in range(4 * YEARS):
        year, quarter = FIRST_YEAR + number // 4, number % 4
        end = date(year + (quarter == 3), 3 * (quarter + 1) % 12 + 1, 1) - timedelta(days=1)
        found.append(("instant", None, end, number))
        for duration, quarters in LENGTHS.items():
            if duration == "quarterly" or quarters == quarter + 1:
                start = (
                    date(year, 3 * (quarter + 1 - quarters) + 1, 1)
                    if duration != "quarterly"
                    else date(year, 3 * quarter + 1, 1)
                )
                found.append((duration, start, end, number))
    return found


def one_company(rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Facts, filings and segments of one company, without its symbol."""
    rows, members = [], []
    filings = []
    for duration, start, end, number in periods():
        filed, form = end + timedelta(days=40), "10-K" if end.month == 12 else "10-Q"
        accession = f"0001-{number:06d}"
        if duration == "instant":
            filings.append((accession, form, end, filed))
        for metric in INSTANTS if duration == "instant" else FLOWS:
            derived = duration == "quarterly" and end.month == 12
            parents = f"{metric} annual {end} [{accession}] - {metric} nine_months [{accession}]" if derived else ""
            row = (
                metric,
                start,
                end,
                filed,
                1e9 * rng.random(),
                "USD",
                "" if derived else f"Tag{metric}",
                "us-gaap",
                form,
            )
            more = (2020, "Q1", duration, derived, parents)
            rows.append((*row, accession, *more))
            if rng.random() < RESTATED:
                rows.append((*row[:3], filed + timedelta(days=364), 1e9 * rng.random(), *row[5:], accession, *more))
        if duration == "quarterly":
            members += [
                (axis, f"member {k}", start, end, duration, 1e8, accession, filed, False)
                for axis in AXES
                for k in range(5)
            ]
    facts = pl.DataFrame(rows, schema=_without_symbol(FACTS), orient="row")
    segments = pl.DataFrame(members, schema=_without_symbol(SEGMENTS), orient="row")
    return (
        facts.sort("metric", "end", "start", "filed"),
        pl.DataFrame(filings, schema=["accession", "form", "period_end", "filed"], orient="row"),
        segments,
    )


def _without_symbol(schema: dict) -> dict:
    return {name: kind for name, kind in schema.items() if name != "symbol"}


def many(table: pl.DataFrame, companies: int) -> pl.DataFrame:
    """The table once per company, in order of symbol, each with accession numbers of its own."""
    symbols = pl.DataFrame({"symbol": [f"S{i:05d}" for i in range(companies)]})
    return symbols.join(table, how="cross", maintain_order="left_right").with_columns(
        accession=pl.format("{}-{}", pl.col("symbol").str.tail(5), "accession")
    )


def queries(companies: int, rng: np.random.Generator) -> list[dict]:
    """Arguments of `FactStore.query`."""
    metrics = [*FLOWS, *INSTANTS, "ebitda"]
    ends = [end.isoformat() for _, _, end, _ in periods()]

    def maybe(chance: float, value: object) -> object:
        return value if rng.random() < chance else None

    return [
        {
            "symbol": f"S{rng.integers(companies):05d}",
            "as_of": date(FIRST_YEAR, 6, 1) + timedelta(days=int(rng.integers(365 * YEARS))),
            "period": maybe(0.5, ends[rng.integers(len(ends))][: rng.choice([4, 7, 10])]),
            "metrics": maybe(0.5, [str(name) for name in rng.choice(metrics, rng.integers(1, 12))]),
            "form": maybe(0.2, str(rng.choice(["10-K", "10-Q"]))),
            "duration": maybe(0.3, str(rng.choice(DURATIONS))),
            "axis": maybe(0.2, str(rng.choice(AXES))),
            "limit": int(rng.choice([200, 500])),
        }
        for _ in range(QUERIES)
    ]


def memory() -> float:
    """Resident memory in MB, the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(companies: int) -> bool:
    """Print the figures of one size; whether it meets the requirement."""
    rng = np.random.default_rng(1)
    facts, filings, segments = (many(table, companies) for table in one_company(rng))
    size = (facts.estimated_size() + filings.estimated_size() + segments.estimated_size()) / 2**20
    asked = queries(companies, rng)
    started = time.perf_counter()
    filed = facts.filter(~pl.col("derived")).with_columns(tag=pl.col("metric")).select(list(FILED))
    stores = FiledStore(filed, filings, segments), FactStore(facts, filings, segments)
    opened = time.perf_counter() - started
    seconds, busy, rows = [], [], 0
    for number, arguments in enumerate(asked):
        started, worked = time.perf_counter(), time.thread_time()
        text = orjson.dumps(stores[number % 2].query(**arguments))
        seconds.append(time.perf_counter() - started)
        busy.append(time.thread_time() - worked)
        rows += text.count(b'"accession"')
    p50, p99, worst = np.percentile(seconds, [50, 99, 100]) * 1e3
    own = float(np.percentile(busy, 99)) * 1e3
    limit = REQUIRED_MILLISECONDS.get(companies)
    print(
        f"{companies:>6} companies, {facts.height:>10,} facts ({size:,.0f} MB as tables): stores opened in "
        f"{opened:.2f} s; {QUERIES:,} queries, {rows / QUERIES:.0f} rows each: p50 {p50:.2f} ms, p99 {p99:.2f} ms"
        f"{'' if limit is None else f' (required < {limit:g} ms)'}, worst {worst:.1f} ms, p99 of processor time "
        f"{own:.2f} ms; peak memory {memory():,.0f} MB"
    )
    return limit is None or p99 < limit


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--companies", type=int, nargs="+", default=sorted(REQUIRED_MILLISECONDS))
    met = [measure(companies) for companies in parser.parse_args().companies]
    sys.exit(0 if all(met) else 1)

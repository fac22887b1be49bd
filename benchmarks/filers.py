"""How often fictional filers do what real ones do: rates of the synthetic collection beside those of a real one.

    python benchmarks/filers.py [SEED ...]

One definition counts both sides, from company facts as served. A rate should lie within half and twice the real one.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.synthetic import write_collection

REAL = Path(__file__).resolve().parents[2] / "shared" / "realdata"
LEAST, MOST = 0.5, 2.0
REVENUE = (
    "Revenues",
    "RevenueFromContractWithCustomerExcludingAssessedTax",
    "RevenueFromContractWithCustomerIncludingAssessedTax",
    "SalesRevenueNet",
    "SalesRevenueGoodsNet",
)
DEPRECIATION = (
    "DepreciationDepletionAndAmortization",
    "DepreciationAmortizationAndAccretionNet",
    "DepreciationAndAmortization",
    "Depreciation",
)
COMPARED = frozenset(
    {
        *(*REVENUE, *DEPRECIATION, "CostOfRevenue", "CostOfGoodsAndServicesSold", "GrossProfit", "OperatingIncomeLoss"),
        *("NetIncomeLoss", "SellingGeneralAndAdministrativeExpense", "NetCashProvidedByUsedInOperatingActivities"),
        *("Assets", "StockholdersEquity"),
    }
)
ROUNDING = 5e-4


class Row(NamedTuple):
    """One figure of one filing."""

    tag: str
    start: date | None
    end: date
    value: float
    accession: str
    form: str
    filed: date


Count = tuple[int, int]
"""How many, of how many."""


def rates(rows: Sequence[Row]) -> dict[str, Count]:
    """The counts of one company."""
    rows = [row for row in rows if row.form.removesuffix("/A") in ("10-K", "10-Q")]
    return {
        "quarters with a loss": losses(rows),
        "periods that a later filing restates": restated(rows),
        "10-Ks that recast the year before": recast(rows),
        "filings with two totals of revenue": conflicts(rows, REVENUE),
        "filings with two totals of depreciation": conflicts(rows, DEPRECIATION),
        "filings with another tag of revenue": changes(rows, REVENUE),
        "filings with another tag of depreciation": changes(rows, DEPRECIATION),
    }


def losses(rows: Iterable[Row]) -> Count:
    """Quarters whose net income, as last filed, is negative."""
    latest: dict[date, tuple[date, float]] = {}
    for row in rows:
        if row.tag == "NetIncomeLoss" and row.start is not None and 70 <= (row.end - row.start).days + 1 <= 125:
            latest[row.end] = max(latest.get(row.end, (date.min, 0.0)), (row.filed, row.value))
    return sum(value < 0 for _, value in latest.values()), len(latest)


def restated(rows: Iterable[Row]) -> Count:
    """Figures of one tag and period that a later filing changes by more than rounding."""
    found = [versions for (tag, *_), versions in by_period(rows).items() if tag in COMPARED]
    return sum(any(differ(row, versions[0]) for row in versions[1:]) for versions in found), len(found)


def recast(rows: Sequence[Row]) -> Count:
    """Annual reports that change the year before from what was filed of it."""
    about: dict[str, date] = {}
    for row in rows:
        if row.form == "10-K" and row.tag == "Assets":
            about[row.accession] = max(about.get(row.accession, date.min), row.end)
    changed: dict[str, bool] = {}
    for (tag, start, end), versions in by_period(rows).items():
        if tag in (*REVENUE, *DEPRECIATION, "OperatingIncomeLoss") and start is not None and (end - start).days >= 340:
            for before, row in pairwise(versions):
                if row.accession in about and 340 <= (about[row.accession] - end).days <= 400:
                    changed[row.accession] = changed.get(row.accession, False) or differ(row, before)
    return sum(changed.values()), len(changed)


def conflicts(rows: Iterable[Row], tags: Sequence[str]) -> Count:
    """Filings that give two figures of one period under tags of one line."""
    figures: dict[str, dict[tuple[date | None, date], set[float]]] = defaultdict(lambda: defaultdict(set))
    for row in rows:
        if row.tag in tags:
            figures[row.accession][row.start, row.end].add(row.value)
    return sum(any(len(each) > 1 for each in spans.values()) for spans in figures.values()), len(figures)


def changes(rows: Iterable[Row], tags: Sequence[str]) -> Count:
    """Filings whose first tag of a line is another than that of the filing before."""
    used: dict[tuple[date, str], set[str]] = defaultdict(set)
    for row in rows:
        if row.tag in tags:
            used[row.filed, row.accession].add(row.tag)
    first = [min(found, key=tags.index) for _, found in sorted(used.items())]
    return sum(before != now for before, now in pairwise(first)), max(0, len(first) - 1)


def by_period(rows: Iterable[Row]) -> Mapping[tuple[str, date | None, date], list[Row]]:
    """Figures by tag and period, in order of filing."""
    found: dict[tuple[str, date | None, date], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.filed, row.accession)):
        found[row.tag, row.start, row.end].append(row)
    return found


def differ(row: Row, before: Row) -> bool:
    """Whether two figures differ by more than rounding."""
    return abs(row.value - before.value) > max(ROUNDING * abs(before.value), 1.0)


def collected(raw: Path) -> dict[str, Count]:
    """The counts of a whole collection."""
    sums: dict[str, Count] = {}
    for facts in load_filings(raw).companies.values():
        rows = [Row(*row) for row in facts.facts.select(Row._fields).iter_rows()]
        for name, (some, every) in rates(rows).items():
            before = sums.get(name, (0, 0))
            sums[name] = before[0] + some, before[1] + every
    return sums


def main() -> None:
    """Print every rate of the real collection and of each seed."""
    real = collected(REAL)
    for seed in map(int, sys.argv[1:] or ["1"]):
        with tempfile.TemporaryDirectory() as folder:
            write_collection(Path(folder) / "raw", seed=seed)
            synthetic = collected(Path(folder) / "raw")
        for name, (some, every) in synthetic.items():
            share, wanted = some / every, real[name][0] / real[name][1]
            verdict = "" if LEAST <= share / wanted <= MOST else "  outside"
            ratio = f"x {share / wanted:.2f}{verdict}"
            print(f"seed {seed}  {name:42} {share:6.1%} of {every:6,}  real {wanted:6.1%}  {ratio}")


if __name__ == "__main__":
    main()

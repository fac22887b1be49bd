"""Hand-made companies: raw files as the SEC publishes them, written from a true series of quarters.

Each company follows one rule of reporting and files as the SEC requires: a 10-Q with quarter and year to date on the
income statement, year to date alone on the cash flow statement, and the balance sheet at the day and at the end of last
year; a 10-K with years alone; all with the comparatives of the year before. Quarters count from 0; the first four stand
in comparatives alone. Figures are in millions, of dollars or of shares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from finskillbench.sums import exact_sum

FIRST_FILED = 4
"""The quarter of the first filing."""
Series: TypeAlias = Callable[[int], float]
"""The figure of a quarter."""
Span: TypeAlias = tuple[int | None, int]
"""First and last quarter of a period; of an instant the last alone."""


class Filing(NamedTuple):
    """A report of the quarter or, after the last quarter of a year, of the year."""

    quarter: int
    amendment: bool = False


@dataclass(frozen=True, slots=True)
class Calendar:
    """The ends of quarters, and which quarter each fiscal year begins with."""

    start: date
    ends: tuple[date, ...]
    years: tuple[int, ...]

    def year(self, quarter: int) -> int:
        """The number of the fiscal year that a quarter lies in."""
        return sum(first <= quarter for first in self.years) - 1

    def whole(self, year: int) -> tuple[int, int]:
        """First and last quarter of a fiscal year."""
        return self.years[year], ([*self.years, len(self.ends)][year + 1]) - 1

    def days(self, span: Span) -> tuple[date | None, date]:
        """First and last day of a period."""
        first, last = span
        if first is None:
            return None, self.ends[last]
        return (self.ends[first - 1] + timedelta(days=1) if first else self.start), self.ends[last]

    def form(self, filing: Filing) -> str:
        """The form of a filing; a fiscal year of other than four quarters is a transition period."""
        first, last = self.whole(self.year(filing.quarter))
        annual = "10-K" if last - first == 3 else "10-KT"
        return (annual if filing.quarter == last else "10-Q") + "/A" * filing.amendment

    def filed(self, filing: Filing) -> date:
        """The day of a filing; amendments come 90 days after the end of their year."""
        last = self.whole(self.year(filing.quarter))[1]
        if filing.amendment:
            return self.ends[last] + timedelta(days=90)
        return self.ends[filing.quarter] + timedelta(days=55 if filing.quarter == last else 35)


def always(_: Filing) -> bool:
    """Every filing."""
    return True


def calendar(year: int) -> Calendar:
    """Four calendar years of quarters."""
    days = [date(year + n // 4, (3, 6, 9, 12)[n % 4], (31, 30, 30, 31)[n % 4]) for n in range(16)]
    return Calendar(date(year, 1, 1), tuple(days), (0, 4, 8, 12))


TWENTIES = calendar(2020)


def weeks(start: date, lengths: Sequence[int]) -> Calendar:
    """Four years of quarters of so many weeks."""
    days = tuple(start + timedelta(weeks=sum(lengths[: n + 1]), days=-1) for n in range(len(lengths)))
    return Calendar(start, days, (0, 4, 8, 12))


@dataclass(frozen=True, slots=True)
class Line:
    """One tag on a statement: its true figures, the filings that carry it, and whether they repeat the year before.

    A `note` gives the quarter of a 10-Q and the year of a 10-K, an `average` is no sum of quarters.
    """

    statement: Literal["income", "cash", "note", "average", "balance"]
    true: Series
    filings: Callable[[Filing], bool] = always
    unit: str = "USD"
    repeats: bool = True

    def spans(self, days: Calendar, quarter: int) -> Iterator[Span]:
        """The periods that a filing shows."""
        year = days.year(quarter)
        first, last = days.whole(year)
        if self.statement == "balance":
            yield from ((None, quarter), (None, first - 1))
        elif quarter == last:
            yield from (
                days.whole(before) for before in range(year, max(year - 3, -1) if self.repeats else year - 1, -1)
            )
        else:
            starts = {"cash": {first}, "note": {quarter}}.get(self.statement, {first, quarter})
            yield from ((start - ago, quarter - ago) for start in starts for ago in ((0, 4) if self.repeats else (0,)))

    def over(self, span: Span) -> float:
        """The true figure of a period."""
        first, last = span
        quarters = [self.true(n) for n in range(last if first is None else first, last + 1)]
        return exact_sum(quarters) / (len(quarters) if self.statement == "average" else 1)


def line(at_first: float, by: float = 0) -> Series:
    """A figure that grows by the same amount each quarter."""
    return lambda n: at_first + by * n


def before(quarter: int) -> Callable[[Filing], bool]:
    """Filings of earlier quarters."""
    return lambda filing: filing.quarter < quarter


def since(quarter: int) -> Callable[[Filing], bool]:
    """Filings of a quarter and of those after it."""
    return lambda filing: filing.quarter >= quarter


def income(at_first: float, by: float = 0, filings: Callable[[Filing], bool] = always) -> Line:
    """A line of the income statement."""
    return Line("income", line(at_first, by), filings)


def cash(at_first: float, by: float = 0, filings: Callable[[Filing], bool] = always) -> Line:
    """A line of the cash flow statement."""
    return Line("cash", line(at_first, by), filings)


def note(at_first: float, by: float = 0, filings: Callable[[Filing], bool] = always) -> Line:
    """A figure of the notes."""
    return Line("note", line(at_first, by), filings)


def balance(at_first: float, by: float = 0) -> Line:
    """A line of the balance sheet."""
    return Line("balance", line(at_first, by))


def shares(true: Series, *, repeats: bool = True) -> dict[str, Line]:
    """Diluted shares, and earnings per share that follow from the net income of `STANDARD`."""
    return {
        "WeightedAverageNumberOfDilutedSharesOutstanding": Line("average", true, unit="shares", repeats=repeats),
        "EarningsPerShareDiluted": Line(
            "income", lambda n: round((110 + 2 * n) / true(n), 2), unit="USD/shares", repeats=repeats
        ),
    }


STANDARD: Mapping[str, Line] = {
    "Revenues": income(1000, 10),
    "CostOfRevenue": income(600, 5),
    "GrossProfit": income(400, 5),
    "SellingGeneralAndAdministrativeExpense": income(200, 3),
    "ResearchAndDevelopmentExpense": income(50),
    "OperatingIncomeLoss": income(150, 2),
    "InterestExpense": income(10),
    "IncomeTaxExpenseBenefit": income(30),
    "NetIncomeLoss": income(110, 2),
    **shares(line(100)),
    "NetCashProvidedByUsedInOperatingActivities": cash(170, 3),
    "DepreciationDepletionAndAmortization": cash(40, 1),
    "PaymentsToAcquirePropertyPlantAndEquipment": cash(60),
    "Assets": balance(5000, 40),
    "AssetsCurrent": balance(1500, 10),
    "CashAndCashEquivalentsAtCarryingValue": balance(400, 5),
    "AccountsReceivableNetCurrent": balance(500, 5),
    "PropertyPlantAndEquipmentNet": balance(1500, 20),
    "Liabilities": balance(3000, 20),
    "LiabilitiesCurrent": balance(1000, 5),
    "LongTermDebtNoncurrent": balance(1200, 15),
    "StockholdersEquity": balance(2000, 20),
    "LiabilitiesAndStockholdersEquity": balance(5000, 40),
}
"""An ordinary company: costs leave operating income, and the balance sheet balances."""


@dataclass(frozen=True, slots=True)
class Company:
    """What one company files.

    Parameters
    ----------
    rule : what is special in its filings.
    instead : lines of its own by tag, in place of those of `STANDARD`; none for a tag that it does not file.
    figures : (quarter of the filing, tag, span) -> a figure that differs from the line, or stands beside it.
    amended : quarters that it files again.
    """

    ticker: str
    rule: str
    instead: Mapping[str, tuple[Line, ...]] = field(default_factory=dict[str, tuple[Line, ...]])
    figures: Mapping[tuple[int, str, Span], float] = field(default_factory=dict[tuple[int, str, Span], float])
    calendar: Calendar = TWENTIES
    amended: tuple[int, ...] = ()

    @property
    def lines(self) -> dict[str, tuple[Line, ...]]:
        """Every line that it files, by tag."""
        return {tag: (one,) for tag, one in STANDARD.items()} | dict(self.instead)

    @property
    def filings(self) -> list[Filing]:
        """Its filings by quarter, amendments last."""
        quarters = range(FIRST_FILED, len(self.calendar.ends))
        return [*map(Filing, quarters), *(Filing(quarter, amendment=True) for quarter in self.amended)]

    def shown(self, filing: Filing) -> dict[tuple[str, str, Span], float]:
        """The figures of a filing: (tag, unit, span) -> value."""
        found = {
            (tag, one.unit, span): one.over(span)
            for tag, lines in self.lines.items()
            for one in lines
            if one.filings(filing)
            for span in one.spans(self.calendar, filing.quarter)
        }
        return found | {
            (tag, "USD", span): value
            for (quarter, tag, span), value in self.figures.items()
            if quarter == filing.quarter
        }


def write_collection(companies: Sequence[Company], folder: Path) -> None:
    """Write the raw collection that `data build --source raw-dir` reads: company facts and lists of filings."""
    for name in ("companyfacts", "submissions"):
        (folder / name).mkdir(parents=True)
    for cik, company in enumerate(companies, 1):
        name = f"CIK{cik:010d}.json"
        (folder / "companyfacts" / name).write_text(json.dumps(_company_facts(cik, company)))
        (folder / "submissions" / name).write_text(json.dumps(_submissions(cik, company)))


def _accession(cik: int, company: Company, filing: Filing) -> str:
    return f"{cik:010d}-{company.calendar.filed(filing):%y}-{10 * filing.quarter + filing.amendment:06d}"


def _company_facts(cik: int, company: Company) -> dict[str, Any]:
    days = company.calendar
    concepts: dict[str, dict[str, dict[str, list[dict[str, Any]]]]] = {}
    for filing in company.filings:
        year = days.year(filing.quarter)
        first, last = days.whole(year)
        period = "FY" if filing.quarter == last else f"Q{filing.quarter - first + 1}"
        for (tag, unit, span), value in company.shown(filing).items():
            start, end = days.days(span)
            row = {
                "end": f"{end}",
                "val": value if unit == "USD/shares" else round(value * 1e6),
                "accn": _accession(cik, company, filing),
                "fy": days.ends[last].year,
                "fp": period,
                "form": days.form(filing),
                "filed": f"{days.filed(filing)}",
            }
            rows = concepts.setdefault(tag, {"units": {}})["units"].setdefault(unit, [])
            rows.append({"start": f"{start}", **row} if start else row)
    return {"cik": cik, "entityName": f"{company.ticker} Corp", "facts": {"us-gaap": concepts}}


def _submissions(cik: int, company: Company) -> dict[str, Any]:
    days = company.calendar
    latest = sorted(company.filings, key=days.filed, reverse=True)
    recent = {
        "accessionNumber": [_accession(cik, company, filing) for filing in latest],
        "form": [days.form(filing) for filing in latest],
        "filingDate": [f"{days.filed(filing)}" for filing in latest],
        "reportDate": [f"{days.ends[filing.quarter]}" for filing in latest],
        "acceptanceDateTime": [f"{days.filed(filing)}T16:30:00.000Z" for filing in latest],
    }
    return {
        "cik": f"{cik}",
        "name": f"{company.ticker} Corp",
        "tickers": [company.ticker],
        "filings": {"recent": recent, "files": []},
    }

"""User books (`holdings/NAME.csv`): each date is one portfolio, with up to six episodes before the drawn ones."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, permuted
from finskillbench.domains.catalog import Catalog, CatalogFile
from finskillbench.domains.risk.catalogs import RiskSettings
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.domains.risk.objects.mandates import RiskDate
from finskillbench.domains.risk.objects.monitoring import MonitoringPair, against_mandates
from finskillbench.domains.risk.objects.portfolios import USER_BOOK, PortfolioCase
from finskillbench.domains.risk.objects.remediation import RemediationPair, first_remedied
from finskillbench.domains.risk.objects.scenarios import ScenarioSet
from finskillbench.domains.risk.objects.stress import StressPair, stress_results
from finskillbench.domains.risk.user_catalogs.mandates import mandates_in
from finskillbench.domains.risk.user_catalogs.scenarios import SCENARIOS
from finskillbench.engines.risk.mandate import ConstraintKind
from finskillbench.engines.risk.portfolio import Portfolio
from finskillbench.episode import JsonObject
from finskillbench.errors import CatalogError, InputError
from finskillbench.panels import Panels
from finskillbench.panels.market.estimates.views import WINDOW
from finskillbench.scoring.values import as_object
from finskillbench.sources.catalog.document import located
from finskillbench.sources.catalog.holdings import CASH, HeldRow, HoldingsBook, read_books

MOST = 200
"""Most books, counted per file and date."""
MOST_DATES = 40
USUAL_NAV = 1e9
"""NAV in USD of a book without one; it affects liquidity, and a note reports it."""
_DECIMALS = 6


def _read(files: Mapping[str, bytes]) -> tuple[HoldingsBook, ...]:
    books: list[HoldingsBook] = []
    mistakes: list[str] = []
    names: dict[str, str] = {}
    for file, data in files.items():
        try:
            file_books = read_books(file, data)
        except CatalogError as error:
            mistakes += error.mistakes
            continue
        other = names.setdefault(file_books[0].name.lower(), file)
        if other != file:
            mistakes.append(f"{file}: has the name of {other}; rename one of them")
        books += file_books
    if len(books) > MOST:
        mistakes.append(f"holdings: {len(books)} dates of books, more than {MOST}; leave some out")
    if len(_dates(books)) > MOST_DATES:
        mistakes.append(f"holdings: {len(_dates(books))} different dates, more than {MOST_DATES}; leave some out")
    if mistakes:
        raise CatalogError(mistakes)
    return tuple(books)


def _dates(books: Sequence[HoldingsBook]) -> Collection[date]:
    return {book.as_of for book in books}


def _session(panels: Panels, day: date) -> date | None:
    """Return the last session up to a day; None outside the prices."""
    sessions: list[date] = panels.prices["date"].to_list()
    return sessions[bisect_right(sessions, day) - 1] if sessions[0] <= day <= sessions[-1] else None


def _examine(books: Sequence[HoldingsBook], panels: Panels, catalog: Catalog) -> list[str]:
    """Return errors of dates, symbols, mandates and short positions."""
    kinds = {one["mandate_id"]: {row["type"] for row in one["constraints"]} for one in mandates_in(catalog)["mandates"]}
    mistakes: list[str] = []
    for book in books:
        where = located(book.file, book.line)
        if book.mandate is not None and book.mandate not in kinds:
            mistakes.append(f"{where}: mandate: there is no {book.mandate!r}; choose one of {', '.join(kinds)}")
        if ConstraintKind.LONG_ONLY in kinds.get(book.mandate or "", ()):
            mistakes += [
                f"{located(book.file, row.line)}: {row.symbol} is short, and the mandate {book.mandate} is long-only; "
                "correct the sign, or leave mandate empty to use the one with the fewest violations"
                for row in book.rows
                if row.amount < 0
            ]
        mistakes += _beyond_data(book, panels)
    return mistakes


def _beyond_data(book: HoldingsBook, panels: Panels) -> list[str]:
    where, sessions = located(book.file, book.line), panels.prices["date"]
    day = _session(panels, book.as_of)
    if day is None:
        return [f"{where}: date: {book.as_of} is outside the prices; they run from {sessions[0]} to {sessions[-1]}"]
    if day not in panels.regimes:
        first = sessions[min(WINDOW, len(sessions) - 1)]
        problem = f"too few names of the universe have a year of prices, and known shares, at {day}"
        return [f"{where}: date: {problem}; take a later one, not before {first} in any case"]
    known, complete = set(panels.symbols), set(panels.symbols_at(day))
    mistakes: list[str] = []
    for row in book.rows:
        location = f"{located(book.file, row.line)}: symbol: {row.symbol}"
        if row.symbol not in known:
            mistakes.append(f"{location} is not in the universe; add it to the raw files, or book it under {CASH}")
        elif row.symbol not in complete:
            mistakes.append(
                f"{location} has no year of prices, or no known shares, at {day}; add them, or take a later date"
            )
    if book.quantities and not mistakes:
        values, nav = _values(book, panels, day)
        if nav < 1e4 or not math.isfinite(nav):
            mistakes.append(f"{where}: quantity: the book of {day} is worth {nav:,.0f} USD; it must be worth 10,000")
        elif max(map(abs, values)) > 5 * nav:
            mistakes.append(f"{where}: quantity: a position of {day} is worth five times the book; correct it")
    elif not book.quantities:
        mistakes += [
            f"{located(book.file, row.line)}: weight: is {row.amount:g}; write a fraction, 0.05 for 5 %"
            for row in book.rows
            if abs(row.amount) > 5
        ]
    return mistakes


def _values(book: HoldingsBook, panels: Panels, day: date) -> tuple[list[float], float]:
    """Return the closing value of each row and the NAV, in USD."""
    prices = panels.prices_of("close").filter(pl.col("date") == day)
    values = [row.amount * float(prices[row.symbol][0]) for row in book.rows]
    return values, math.fsum(values) + book.cash


def user_cases(context: BuildContext, dates: Mapping[date, RiskDate]) -> tuple[PortfolioCase, ...]:
    """Convert books to portfolios at the last session up to their dates."""
    cases: list[PortfolioCase] = []
    sized: list[str] = []
    for book in context.catalog.of(BOOKS) or ():
        day = _session(context.panels, book.as_of)
        if day is None:
            continue  # rejected before the build
        if day != book.as_of:
            context.notes.append(f"{book.file}: {book.as_of} is not a trading session; the holdings are used at {day}.")
        market = dates[day].market
        nav = USUAL_NAV if book.nav is None else book.nav
        if book.quantities:
            values, nav = _values(book, context.panels, day)
            amounts = [value / nav for value in values]
        else:
            amounts = [row.amount for row in book.rows]
            sized += [] if book.nav is not None else [book.name]
        weights, cash = _weights(book.rows, amounts, market.tickers)
        identity = f"{book.name}-{book.as_of:%Y%m%d}"
        regime = context.panels.regimes[day]
        portfolio = Portfolio(weights, cash, float(round(nav)))
        home = book.mandate or ""
        cases.append(PortfolioCase(identity, USER_BOOK, regime, day, market, portfolio, np.zeros(len(weights)), home))
    if sized:
        context.notes.append(f"Books without a nav count as {USUAL_NAV:,.0f} USD: {', '.join(sorted(set(sized)))}.")
    return tuple(cases)


def _weights(rows: Sequence[HeldRow], amounts: Sequence[float], tickers: Sequence[str]) -> tuple[Floats, float]:
    """Return (n,) weights with six decimals, and cash; the largest holding absorbs rounding."""
    weights = np.zeros(len(tickers))
    for row, amount in zip(rows, amounts, strict=True):
        weights[tickers.index(row.symbol)] = amount
    weights = np.round(weights, _DECIMALS)
    cash = round(1 - math.fsum(weights), _DECIMALS)
    if cash < 0:
        weights[np.argmax(weights)] = round(float(weights.max()) + cash, _DECIMALS)
    return weights, max(cash, 0.0)


def user_books(manifest: JsonObject) -> set[str]:
    """Return the portfolio ids of user books in an edition."""
    return set(as_object(as_object(manifest.get("parameters")).get("books")))


def tasks_of_book(manifest: JsonObject, name: str) -> list[str]:
    """Return id patterns of all tasks of a user's portfolio.

    Raises
    ------
    InputError : the edition has no such portfolio.
    """
    books = sorted(user_books(manifest))
    found = [each for each in books if name in (each, each.rpartition("-")[0])]
    if not found:
        names = sorted({each.rpartition("-")[0] for each in books})
        there = f"there are {', '.join(names)}" if names else "it has no user holdings"
        raise InputError(f"the edition has no portfolio {name!r}; {there}")
    return [f"*_????-??-??_{each}{end}" for each in found for end in ("", "_*")]


def _no_example() -> Mapping[str, str]:
    return {}  # symbols depend on the market


BOOKS: CatalogFile[tuple[HoldingsBook, ...]] = CatalogFile(
    "holdings/*.csv", _read, _no_example, dates=_dates, examine=_examine
)


SCENARIOS_PER_BOOK = 3
_MOST_NAMED = 5
"""Most books named in a note."""


@dataclass(frozen=True, eq=False)
class UserPools:
    """User books, and their pairs for episodes."""

    books: tuple[PortfolioCase, ...] = ()
    monitored: tuple[MonitoringPair, ...] = ()
    stress: tuple[StressPair, ...] = ()
    remediation: tuple[RemediationPair, ...] = field(default=())

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Return date and mandate of each book, for the manifest."""
        recorded = {case.portfolio_id: {"as_of": case.as_of.isoformat(), "mandate": case.home} for case in self.books}
        return {"books": recorded} if recorded else {}


def user_pools(
    context: BuildContext, dates: Mapping[date, RiskDate], scenarios: ScenarioSet, settings: RiskSettings
) -> UserPools:
    """Build the pools of the books, each under its stated mandate or the one with fewest violations."""
    cases = user_cases(context, dates)
    if not cases:
        return UserPools()
    against = against_mandates(cases, dates)
    books = tuple(replace(case, home=case.home or _nearest(against[case.portfolio_id])) for case in cases)
    monitored = tuple(replace(against[case.portfolio_id][case.home], case=case) for case in books)
    branching = len(books[0].market.tickers) <= settings["large_universe"]
    remedied: list[RemediationPair] = []
    for case, pair in zip(books, monitored, strict=True):
        other_pairs = [one for name, one in against[case.portfolio_id].items() if name != case.home]
        found = first_remedied([pair, *other_pairs], settings, branching=branching)
        remedied += [] if found is None else [found]
    context.notes.extend(left_out("risk_remediation", books, [one.case for one in remedied], _UNREMEDIED))
    return UserPools(books, monitored, _stress(context, books, scenarios), tuple(remedied))


_UNREMEDIED = "no broken mandate has a certified cure that simple rules miss"


def _nearest(against: Mapping[str, MonitoringPair]) -> str:
    return min(against, key=lambda name: len(against[name].violations))


def _stress(context: BuildContext, books: Sequence[PortfolioCase], scenarios: ScenarioSet) -> tuple[StressPair, ...]:
    """Return a few scenarios per book, the user's first."""
    brought = context.catalog.of(SCENARIOS)
    first = () if brought is None else brought.places
    pairs: list[tuple[PortfolioCase, ScenarioInput]] = []
    for case in books:
        mixed = permuted(scenarios.at(case.as_of, case.market), context.generator("risk", "own", case.portfolio_id))
        pairs += [(case, one) for one in sorted(mixed, key=lambda one: one["scenario_id"] not in first)]
    pnl = stress_results([case for case, _ in pairs], [scenario for _, scenario in pairs])[0].tolist()
    every = [StressPair(case, scenario, made) for (case, scenario), made in zip(pairs, pnl, strict=True)]
    large = {case.portfolio_id: [one for one in every if one.case is case and one.large_enough] for case in books}
    return tuple(one for case in books for one in large[case.portfolio_id][:SCENARIOS_PER_BOOK])


def left_out(sub_task: str, books: Sequence[PortfolioCase], used: Sequence[PortfolioCase], why: str) -> list[str]:
    """Return a note on books without an episode of a subtask."""
    kept = {case.portfolio_id for case in used}
    names = [case.portfolio_id for case in books if case.portfolio_id not in kept]
    if not names:
        return []
    listing = ", ".join(names[:_MOST_NAMED]) + (
        f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    )
    return [f"{sub_task} leaves out {len(names)} of {len(books)} user books because {why}: {listing}."]

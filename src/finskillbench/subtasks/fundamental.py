"""What the fundamental subtasks share: reports, labels derived twice, even draws, how a number is judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal, TypeVar

import numpy as np
import polars as pl

from finskillbench.engines.accounting.drivers import Segments, segments_at
from finskillbench.engines.accounting.periods import (
    DAYS,
    QUARTER_APART,
    YEAR_APART,
    Duration,
    duration_of,
    earlier,
)
from finskillbench.engines.accounting.statements import Statement, ledger
from finskillbench.episode import Episode, JsonObject, Prompt, Truth
from finskillbench.panels import Panels
from finskillbench.panels.query import FactStore
from finskillbench.sources.edgar.collection import FilingsData
from finskillbench.sources.edgar.instance import Instance
from finskillbench.sources.edgar.metrics import CANONICAL_TAGS
from finskillbench.subtasks.building import BuildContext, Task, load_catalog
from finskillbench.subtasks.fundamental_second import AGREEMENT, RawBook
from finskillbench.subtasks.risk import closeness

T = TypeVar("T")

SKILL = "fundamental_analysis"
CATALOG = "fundamental.json"
FACTS_REFERENCE = "panels/facts.parquet"
PRECISION = "Give ratios and percentages with at least 6 decimals and amounts in USD, unscaled."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""

_PERIODIC = ("10-Q", "10-K", "20-F", "40-F")
"""Forms that an episode can be about; an amendment only adds to what is known of one."""
_AXES = {
    "product_segment": ("ProductOrServiceAxis", "StatementBusinessSegmentsAxis"),
    "geographic_segment": ("StatementGeographicalAxis",),
}

Unit = Literal["usd", "usd_per_share", "ratio", "score", "percent"]

_FLOORS: Mapping[Unit, tuple[float, float]] = {
    "usd": (0.5, 5.0),
    "usd_per_share": (0.005, 0.01),
    "ratio": (1e-6, 1e-5),
    "score": (5e-4, 5e-3),
    "percent": (0.005, 0.05),
}
"""Per unit the absolute errors up to which a number earns everything, and from which on nothing, however small it is:
half a dollar, half a cent, six decimals, three decimals, two decimals of a percentage."""


def credit(given: float | None, expected: float, *, unit: Unit, zero: float = 0.01) -> float:
    """1 within a tenth of the relative error `zero`, falling linearly to 0 at it; 0 where absent.

    The errors are floored by the unit, so that what is rounded as filings round it is right.
    """
    full_floor, zero_floor = _FLOORS[unit]
    return closeness(given, expected, full=zero / 10, full_floor=full_floor, zero=zero, zero_floor=zero_floor)


def _days(span: tuple[int, int]) -> str:
    return f"{span[0]} to {span[1]} days"


CONVENTIONS = {
    "units": "USD as filed (unscaled), eps in USD per share, margins and ratios decimals (0.25 is 25 %), changes of "
    "margins in percentage points, contributions in percent",
    "public": "only what was filed by as_of_date counts; of a figure filed more than once the latest filing by then. "
    "filing_facts holds those rows, and query_xbrl serves the same",
    "periods": "by their dates, first and last day counted: "
    + ", ".join(f"{name.value} {_days(span)}" for name, span in DAYS.items())
    + "; balance sheet figures are instants, taken at the end of the period",
    "quarters": "a quarter's flow is the reported one; where filers report only the year to date, it is the difference "
    "of two figures that start on the same day and end a quarter apart (a fourth quarter: the year less its nine "
    "months), as they stood when both were first known; it is made again only once both have been restated. Per-share "
    "figures and average share counts are never differences: without a reported one they are null",
    "fallbacks": "where not reported: total_liabilities = total_assets - stockholders_equity - minority_interest; "
    "gross_profit = revenue - cost_of_revenue, and the other way round",
    "null": "what cannot be computed from figures that are known is null",
}
"""What every task says, beside the definitions of its own answer."""
YEAR_BEFORE = f"the quarter that ends {_days(YEAR_APART)} earlier, of several the one nearest to 365"


@dataclass(frozen=True, slots=True)
class Report:
    """A periodic report: what episodes are about, as of the day it was filed."""

    symbol: str
    accession: str
    form: str
    period_end: date
    filed: date

    @property
    def annual(self) -> bool:
        """Whether the report covers a year."""
        return self.form != "10-Q"


@dataclass(frozen=True, slots=True)
class Figures:
    """One derivation of what was public when a report was filed; metrics that are not known are absent or None.

    reported : the period of the report's form, its quarter or its year. quarter : the quarter that ends with it.
    before, year_before : the quarter before, and the same quarter a year earlier, with the days on which they end.
    """

    reported: Mapping[str, float | None]
    quarter: Mapping[str, float | None]
    before: Mapping[str, float | None]
    before_end: date | None
    year_before: Mapping[str, float | None]
    year_before_end: date | None


@dataclass(frozen=True, slots=True)
class Case:
    """A report with what was public on the day of its filing, from the panels and from the raw files.

    reported, quarter, before, year_before : see `Figures`, as the engines take them. segments, segments_before : the
    breakdowns of the quarter's revenue and of that of the quarter before. raw, raw_segments : the second derivation's.
    """

    report: Report
    reported: Statement
    quarter: Statement
    before: Statement
    year_before: Statement
    segments: Segments
    segments_before: Segments
    raw: Figures
    raw_segments: SegmentBook


@dataclass(frozen=True, slots=True)
class Label:
    """A label as derived from the panels, and as derived a second time from the raw files.

    prior_end, second_prior_end : the end of the quarter compared with, None where there is none.
    traits : what the draw keeps even.
    doubtful : whether a verdict hangs on rounding; then the label is no episode.
    """

    report: Report
    expected: dict[str, Any]
    second: dict[str, Any]
    traits: tuple[Hashable, ...]
    difficulty: str
    prior_end: date | None = None
    second_prior_end: date | None = None
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Proved:
    """A label on which both derivations agree: the widest difference (see `compared`), and how many numbers."""

    label: Label
    difference: float
    numbers: int


Derive = Callable[[Case], Label | None]
"""The label of a report for one subtask; None where its filings do not support one."""


@dataclass(slots=True)
class Pool:
    """What a subtask draws its episodes from, with the count of what was left out on the way."""

    proved: list[Proved] = field(default_factory=list)
    examined: int = 0
    unsupported: int = 0
    doubtful: int = 0
    disagreements: list[str] = field(default_factory=list)

    def figures(self, drawn: int) -> dict[str, Any]:
        """Counts for the manifest; `agreement` is the share of the labels derived twice that agree."""
        compared = len(self.proved) + len(self.disagreements)
        return {
            "filings": self.examined,
            "supported": self.examined - self.unsupported,
            "doubtful": self.doubtful,
            "compared": compared,
            "agreed": len(self.proved),
            "agreement": len(self.proved) / compared if compared else None,
            "drawn": drawn,
        }


def fundamental_pools(context: BuildContext) -> dict[str, dict[str, Any]]:
    """What each subtask drew its episodes from, and how often the two derivations agree; kept in the manifest."""
    return context.shared("fundamental/pools", dict)


def build_tasks(context: BuildContext, name: str, derive: Derive, task: Callable[[Proved], Task]) -> list[Task]:
    """The episodes of one subtask: as many of the proved labels as the catalog asks for, drawn evenly by their traits.

    Reports are examined in a random order in which companies take turns, until there are enough or none is left.
    """
    catalog = load_catalog(CATALOG)
    wanted = catalog["episodes"][name]
    cases = context.shared("fundamental/cases", lambda: _cases(context, timedelta(days=catalog["history_days"])))
    if cases is None:
        return []
    pool = Pool()
    for case in cases:
        _prove(pool, derive(case))
        if len(pool.proved) >= catalog["pool"][name]:
            break
    rng = context.generator(name, "draw")
    chosen = balanced(pool.proved, [one.label.traits for one in pool.proved], wanted, rng)
    fundamental_pools(context)[name] = pool.figures(len(chosen))
    if pool.disagreements:
        context.notes.append(
            f"{name}: {len(pool.disagreements)} labels are left out because a second derivation from the raw company "
            f"facts differs, first {pool.disagreements[0]}."
        )
    if len(chosen) < wanted:
        context.notes.append(
            f"{name}: {len(chosen)} episodes instead of {wanted}: of {pool.examined} filings {pool.unsupported} lack "
            f"figures that the answer needs, {pool.doubtful} hang on rounding and {len(pool.disagreements)} were "
            "derived differently a second time."
        )
    return [task(chosen[i]) for i in rng.permutation(len(chosen))]


def _prove(pool: Pool, label: Label | None) -> None:
    pool.examined += 1
    if label is None:
        pool.unsupported += 1
    elif label.doubtful:
        pool.doubtful += 1
    else:
        ends = f"{label.prior_end}", f"{label.second_prior_end}"
        same = compared(
            *({"prior_end": end} | answer for end, answer in zip(ends, (label.expected, label.second), strict=True))
        )
        if isinstance(same, str):
            pool.disagreements.append(f"{label.report.symbol} {label.report.period_end} {same}")
        else:
            pool.proved.append(Proved(label, *same))


def compared(first: JsonObject, second: JsonObject) -> tuple[float, int] | str:
    """The widest difference of two answers and how many numbers they hold, or what differs.

    A difference is relative to the larger of the number and 1; up to `AGREEMENT` it is rounding.
    """
    widest, count = 0.0, 0
    left, right = dict(_leaves(first)), dict(_leaves(second))
    if left.keys() != right.keys():
        return f"{min(left.keys() ^ right.keys())} is in one derivation only"
    for path, value in left.items():
        other = right[path]
        if isinstance(value, int | float) and isinstance(other, int | float):
            apart = abs(value - other) / max(1.0, abs(value))
            if not apart <= AGREEMENT:
                return f"{path} ({value!r} and {other!r})"
            widest, count = max(widest, apart), count + 1
        elif value != other:
            return f"{path} ({value!r} and {other!r})"
    return widest, count


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Path to leaf; entries of a list that name a driver go by it, so that the order of ties does not count."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            name = item.get("driver", place) if isinstance(item, Mapping) else place
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield path, value


class _Held(Iterable[T]):
    """An iterable that takes each item from its source once, when it is first asked for, and keeps it."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._items = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item


def _cases(context: BuildContext, history: timedelta) -> Iterable[Case] | None:
    """The reports of every company with its figures; None, and a note, where a collection has no company facts."""
    if context.filings is None or context.panels.facts.is_empty():
        context.notes.append("Fundamental analysis is left out: the collection has no company facts.")
        return None
    return _Held(_opened(context.panels, context.filings, context.generator(SKILL), history))


def _opened(panels: Panels, filings: FilingsData, rng: np.random.Generator, history: timedelta) -> Iterator[Case]:
    store = FactStore(panels.facts, panels.filings, panels.segments)
    metrics = load_catalog("metrics.json")["metrics"]
    raw: dict[str, tuple[RawBook, SegmentBook]] = {}
    for report in _reports(panels.filings, set(store.symbols) & set(filings.companies), rng):
        symbol, end = report.symbol, report.period_end
        if symbol not in raw:
            facts = filings.companies[symbol].facts
            rows = facts.filter(pl.col("tag").is_in(CANONICAL_TAGS)).iter_rows(named=True)
            filed = dict(panels.filings.filter(pl.col("symbol") == symbol).select("accession", "filed").iter_rows())
            raw[symbol] = RawBook(rows, metrics), SegmentBook(filings.instances.get(symbol, ()), filed, metrics)
        visible = store.visible(symbol, report.filed, end - history)
        book = ledger(visible["facts"], symbol)
        ends = book.ends(Duration.QUARTERLY)
        before, year_before = earlier(end, ends, QUARTER_APART), earlier(end, ends, YEAR_APART)
        quarter, same_quarter = book.compared(end, year_before)
        yield Case(
            report,
            book.statement(end, duration_of(report.form)),
            quarter,
            book.statement(before, Duration.QUARTERLY),
            same_quarter,
            segments_at(visible["segments"], symbol, end),
            {} if before is None else segments_at(visible["segments"], symbol, before),
            _figures(raw[symbol][0], report),
            raw[symbol][1],
        )


def _figures(book: RawBook, report: Report) -> Figures:
    """The second derivation's figures of a report."""
    end, as_of = report.period_end, report.filed
    before, year_before = book.quarter_before(end, as_of), book.year_before(end, as_of)
    quarter, same_quarter = book.compared(end, year_before, as_of)
    return Figures(
        reported=book.year(end, as_of) if report.annual else book.quarter(end, as_of),
        quarter=quarter,
        before={} if before is None else book.quarter(before, as_of),
        before_end=before,
        year_before=same_quarter,
        year_before_end=year_before,
    )


def _reports(filings: pl.DataFrame, symbols: set[str], rng: np.random.Generator) -> list[Report]:
    """The first report of each period of each company, in a random order in which companies take turns."""
    first: dict[tuple[str, date], Report] = {}
    columns = filings.select("symbol", "accession", "form", "period_end", "filed")
    for row in columns.filter(pl.col("form").is_in(_PERIODIC)).drop_nulls().sort("filed", "accession").iter_rows():
        report = Report(*row)
        if report.symbol in symbols and report.filed > report.period_end:
            first.setdefault((report.symbol, report.period_end), report)
    reports = list(first.values())
    turns: Counter[str] = Counter()
    order: list[tuple[int, int, Report]] = []
    for place in rng.permutation(len(reports)):
        report = reports[place]
        order.append((turns[report.symbol], len(order), report))
        turns[report.symbol] += 1
    return [report for *_, report in sorted(order, key=lambda entry: entry[:2])]


class SegmentBook:
    """Revenue by member of an axis, straight from the XBRL instances, read as `RawBook` reads company facts."""

    def __init__(self, instances: Iterable[Instance], filed: Mapping[str, date], metrics: Mapping[str, Any]) -> None:
        ranks = {alias["tag"]: rank for rank, alias in enumerate(metrics["revenue"]["aliases"])}
        rows: list[dict[str, Any]] = []
        self._members: dict[tuple[str, str], set[str]] = {}
        for instance in instances:
            day = filed.get(instance.accession or "")
            for fact in instance.facts:
                tag = f"{fact.taxonomy}:{fact.tag}"
                if day is None or len(fact.dimensions) != 1 or tag not in ranks or fact.start is None:
                    continue
                (axis, member) = fact.dimensions[0]
                kind = next((name for name, axes in _AXES.items() if axis.split(":")[-1] in axes), None)
                if kind is None:
                    continue
                key = f"{axis}|{member}"
                self._members.setdefault((kind, _plain(member.split(":")[-1])), set()).add(key)
                rows.append(
                    {
                        "taxonomy": key,
                        "tag": tag,
                        "unit": fact.unit,
                        "start": fact.start,
                        "end": fact.end,
                        "value": fact.value,
                        "accession": instance.accession,
                        "form": "10-Q",
                        "filed": day,
                    }
                )
        keys = {row["taxonomy"] for row in rows}
        entries = {
            key: {"kind": "flow", "unit": "USD", "aliases": [{"tag": f"{key}:{tag}"} for tag in ranks]} for key in keys
        }
        self._book = RawBook(rows, entries)

    def changes(self, kind: str, segment: str, now: date, before: date, as_of: date) -> list[float]:
        """The change of revenue of each member of that name on an axis of that kind, from quarter to quarter.

        Countries are tagged by their codes: a name that no member has may be that of any country.
        """
        named = self._members.get((kind, _plain(segment)))
        countries = {
            key for (axis, _), keys in self._members.items() for key in keys if axis == kind and "|country:" in key
        }
        found: list[float] = []
        for key in sorted(countries if named is None else named):
            this, that = (self._book.quarter(end, as_of)[key] for end in (now, before))
            if this is not None and that is not None:
                found.append(this - that)
        return found


def _plain(name: str) -> str:
    """Letters and digits of a member's name or label, without what taxonomies append."""
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    for suffix in ("member", "segment", "segments"):
        plain = plain.removesuffix(suffix) or plain
    return plain


def balanced(
    items: Sequence[T], traits: Sequence[tuple[Hashable, ...]], count: int, rng: np.random.Generator
) -> list[T]:
    """Draw `count` items so that the values of each trait come up as evenly as they can; in the order drawn.

    One item at a time, the one whose traits have come up least so far, each in proportion to how many values it has and
    squared (see `risk.drawn`); ties at random.
    """
    if not items:
        return []
    order = rng.permutation(len(items))
    codes = np.empty((len(items), len(traits[0])), dtype=np.intp)
    sizes: list[int] = []
    for column in range(codes.shape[1]):
        known: dict[Hashable, int] = {}
        codes[:, column] = [known.setdefault(traits[i][column], len(known)) + sum(sizes) for i in order]
        sizes.append(len(known))
    weight = np.repeat(np.array(sizes, dtype=float) ** 2, sizes)
    taken = np.zeros(sum(sizes))
    left = np.ones(len(items), dtype=bool)
    chosen: list[T] = []
    for _ in range(min(count, len(items))):
        cost = np.where(left, (taken**2 * weight)[codes].sum(axis=1), np.inf)
        at = int(np.argmin(cost))
        left[at] = False
        taken[codes[at]] += 1
        chosen.append(items[order[at]])
    return chosen


def facts_field(report: Report, history_days: int) -> dict[str, Any]:
    """The facts and segments public on the day of the filing, by reference."""
    return {
        "ref": FACTS_REFERENCE,
        "symbol": report.symbol,
        "as_of": report.filed.isoformat(),
        "since": (report.period_end - timedelta(days=history_days)).isoformat(),
    }


def finished(
    proved: Proved,
    name: str,
    task_id: str,
    fields: JsonObject,
    conventions: JsonObject,
    prompt: Prompt,
    verification: JsonObject,
) -> Task:
    """The task of a proved label; `fields` are its inputs beside the facts and the conventions."""
    label = proved.label
    report = label.report
    task_input = {
        "symbol": report.symbol,
        **fields,
        "form_type": report.form,
        "filing_facts": facts_field(report, load_catalog(CATALOG)["history_days"]),
        "conventions": {**CONVENTIONS, **conventions},
    }
    proof = {
        "kind": "rederived",
        "difference": proved.difference,
        "tolerance": AGREEMENT,
        "numbers": proved.numbers,
        "second": "plain arithmetic from the raw company facts and XBRL instances",
    }
    return Task(
        Episode(
            task_id,
            SKILL,
            name,
            report.filed,
            label.difficulty,
            task_input,
            prompt,
            {"form_type": report.form, "year": str(report.filed.year)},
        ),
        Truth(task_id, name, label.expected, verification, proof),
        {"kind": "rederived", "accession": report.accession, "second": label.second},
    )

"""What the fundamental subtasks share: labels derived twice, the pools they are drawn from, how a number is judged."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Literal, TypeVar

from finskillbench.domains.agreement import AGREEMENT, leaf_by_leaf
from finskillbench.domains.building import BuildContext, Task, conventions, load_catalog
from finskillbench.domains.draws import drawn, shuffled
from finskillbench.domains.fundamental.reports import Case, Report, opened
from finskillbench.domains.proofs import rederived
from finskillbench.engines.accounting.periods import DAYS, YEAR_APART
from finskillbench.episode import Episode, JsonObject, Prompt, Truth
from finskillbench.scoring.measures import closeness

T = TypeVar("T")

SKILL = "fundamental_analysis"
CATALOG = "fundamental.json"
FACTS_REFERENCE = "panels/facts.parquet"
PRECISION = "Give ratios and percentages with at least 6 decimals and amounts in USD, unscaled."
"""Said in every arm: the prompt itself abridges numbers to three significant figures."""

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
    cases = context.shared("fundamental/cases", lambda: _cases(context, catalog))
    if cases is None:
        return []
    pool = Pool()
    for case in cases:
        _prove(pool, derive(case))
        if len(pool.proved) >= catalog["pool"][name]:
            break
    rng = context.generator(name, "draw")
    chosen = drawn(pool.proved, lambda one: one.label.traits, wanted, rng, task)
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
    return shuffled(chosen, rng)


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
    """The widest difference of two answers and how many numbers and verdicts both give; or what differs."""
    leaves = leaf_by_leaf(first, second)
    for leaf in leaves:
        if leaf.absent:
            return f"{leaf.path} is in one derivation only"
        if not leaf.agrees:
            return f"{leaf.path} ({leaf.first!r} and {leaf.second!r})"
    numbers = sum(isinstance(leaf.first, int | float) for leaf in leaves)
    return max((leaf.difference for leaf in leaves), default=0.0), numbers


class _Held(Iterable[T]):
    """An iterable that takes each item from its source once, when it is first asked for, and keeps it."""

    def __init__(self, source: Iterator[T]) -> None:
        self._source, self._items = source, list[T]()

    def __iter__(self) -> Iterator[T]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item


def _cases(context: BuildContext, catalog: Mapping[str, Any]) -> Iterable[Case] | None:
    """The reports of every company with its figures; None, and a note, where a collection has no company facts."""
    if context.filings is None or context.panels.facts.is_empty():
        context.notes.append("Fundamental analysis is left out: the collection has no company facts.")
        return None
    history = timedelta(days=catalog["history_days"])
    return _Held(opened(context.panels, context.filings, context.generator(SKILL), history))


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
    definitions: Mapping[str, str],
    prompt: Prompt,
    verification: JsonObject,
) -> Task:
    """The task of a proved label; `fields` are its inputs beside the facts and the conventions, which
    `definitions` complete."""
    label = proved.label
    report = label.report
    task_input = {
        "symbol": report.symbol,
        **fields,
        "form_type": report.form,
        "filing_facts": facts_field(report, load_catalog(CATALOG)["history_days"]),
        "conventions": conventions(CONVENTIONS, definitions),
    }
    second = "plain arithmetic from the raw company facts and XBRL instances"
    proof = rederived(proved.difference, AGREEMENT, proved.numbers, second)
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

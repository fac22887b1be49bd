"""Fundamental labels a second time: from the raw companyfacts JSON and XBRL instances in plain Python.

Written from the definitions alone (`spec/data.md`, the conventions that the tasks state, Piotroski 2000, Beneish 1999)
and one table that is itself a definition: `catalog/metrics.json`, which tags mean which metric and in what order. Slow
and explicit: every question scans the rows of one company. Nothing of the package is imported.

A figure "as of a day" is that of the latest filing of a periodic report up to and including the day; where one filing
gives a period under several tags of a metric, the earlier alias counts. A weak alias, and a sum of other metrics of the
same filing, fill a gap: they never replace a better figure. A lesser alias replaces none either if its filing gives
any period under a better one than its own: it means something else there. Figures are subtracted under one tag only; a
figure that a filing repeats under a better alias counts under that one from then on.
"""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Statement = dict[str, float | None]

FORMS = tuple(form + suffix for form in ("10-Q", "10-QT", "10-K", "10-KT", "20-F", "40-F") for suffix in ("", "/A"))
WHOLE_EQUITY = "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest"
"""Equity that holds the minority interest already."""
CLASSES = {"quarterly": (70, 125), "half": (150, 200), "nine_months": (235, 290), "annual": (340, 380)}
APART = (70, 125)
"""Days between the ends of two year-to-date periods whose difference is a quarter."""
YEAR_BEFORE = (350, 380)
ADDS_UP = 0.01
TOP = 5
LEAST_PP = 0.005
LOW_PIOTROSKI, MANIPULATION, HIGH_ACCRUALS = 3, -1.78, 0.05
AXES = (
    ("product_segment", ("ProductOrServiceAxis", "StatementBusinessSegmentsAxis")),
    ("geographic_segment", ("StatementGeographicalAxis",)),
)
COUNTRIES = {"US": "United States", "CN": "China", "JP": "Japan", "GB": "United Kingdom", "DE": "Germany"}
NORMALISED = (
    "revenue",
    "operating_income",
    "net_income",
    "eps_diluted",
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "operating_cash_flow",
)
RATIOS = (
    ("operating_margin", "margin", "operating_income"),
    ("gross_margin", "margin", "gross_profit"),
    ("cogs_ratio", "expense_ratio", "cost_of_revenue"),
    ("sga_ratio", "expense_ratio", "sga"),
    ("rnd_ratio", "expense_ratio", "rnd"),
    ("da_ratio", "expense_ratio", "depreciation_amortization"),
    ("interest_ratio", "expense_ratio", "interest_expense"),
    ("tax_ratio", "expense_ratio", "income_tax"),
)
METRICS = (
    *("revenue", "cost_of_revenue", "gross_profit", "operating_income", "net_income", "sga", "rnd"),
    *("depreciation_amortization", "interest_expense", "income_tax", "operating_cash_flow", "capex", "eps_diluted"),
    *("diluted_shares", "total_assets", "total_liabilities", "stockholders_equity", "minority_interest"),
    *("current_assets", "current_liabilities", "receivables", "inventory", "ppe_net", "long_term_debt", "cash"),
)


# --- as filed ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alias:
    """A tag that stands for a metric.

    unless : tags whose presence in a filing makes this one only a part.
    below : tags whose greater figure for the same period of a filing does so.
    """

    taxonomy: str
    tag: str
    weak: bool = False
    unless: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class Concept:
    """One metric of the table: its aliases in order of preference, and the signed sum that stands in for them.

    additive : a year is the sum of its quarters; averages over a period are not.
    """

    unit: str
    instant: bool
    aliases: tuple[Alias, ...]
    additive: bool = True
    terms: Mapping[str, int] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """One figure of one filing; `rank` is the place of its tag in the table, after all of them that of a sum."""

    start: str | None
    end: str
    filed: str
    value: float
    accession: str
    rank: int
    tag: str
    weak: bool


@dataclass
class Filer:
    """A company's figures as filed, by metric, and its XBRL instances.

    answered : questions asked before. differences : of each metric asked for, the quarters by difference it ever had.
    """

    rows: dict[str, list[Row]]
    table: Mapping[str, Concept]
    instances: list[Instance] = field(default_factory=list)
    answered: dict[tuple[str, str], dict[tuple[str | None, str], Row]] = field(default_factory=dict)
    differences: dict[str, list[tuple[str, tuple[str, str], float]]] = field(default_factory=dict)


def concepts(table: Path) -> dict[str, Concept]:
    """The table of metrics, read as data."""
    found = {}
    for metric, entry in json.loads(table.read_text())["metrics"].items():
        aliases = [
            Alias(
                *one["tag"].split(":"),
                one.get("weak", False),
                tuple(tag.split(":")[1] for tag in one.get("unless", ())),
                tuple(tag.split(":")[1] for tag in one.get("below", ())),
            )
            for one in entry["aliases"]
        ]
        sum_of = entry.get("fallback", {})
        found[metric] = Concept(
            unit=entry["unit"],
            instant=entry["kind"] == "instant",
            aliases=tuple(aliases),
            additive=entry.get("additive", True),
            terms=sum_of.get("terms", {}),
            optional=tuple(sum_of.get("optional", ())),
        )
    return found


def read(path: Path) -> Any:
    """JSON of a file, plain or gzipped."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def _units(served: Json, taxonomy: str, tag: str) -> Json:
    return served["facts"].get(taxonomy, {}).get(tag, {}).get("units", {})


def _parts(served: Json, alias: Alias) -> set[str]:
    """Accessions of the filings in which a tag is only a part of the metric."""

    def given(tag: str) -> dict[tuple[str, str | None, str], float]:
        units = _units(served, alias.taxonomy, tag).values()
        return {(raw["accn"], raw.get("start"), raw["end"]): raw["val"] for rows in units for raw in rows}

    found = {accession for tag in alias.unless for accession, _, _ in given(tag)}
    mine = given(alias.tag)
    for tag in alias.below:
        found |= {key[0] for key, value in given(tag).items() if key in mine and value > mine[key]}
    return found


def filer(served: Json, table: Mapping[str, Concept]) -> Filer:
    """The rows of companyfacts JSON that a label may rest on: periodic reports, the metric's own unit, told in time."""
    rows: dict[str, list[Row]] = {metric: [] for metric in table}
    for metric, concept in table.items():
        for rank, alias in enumerate(concept.aliases):
            parts = _parts(served, alias)
            for raw in _units(served, alias.taxonomy, alias.tag).get(concept.unit, ()):
                if raw["form"] not in FORMS or ("start" not in raw) is not concept.instant or raw["accn"] in parts:
                    continue
                if raw["end"] > raw["filed"] or raw.get("start", "") > raw["end"]:
                    continue
                period = (raw.get("start"), raw["end"], raw["filed"])
                rows[metric].append(Row(*period, float(raw["val"]), raw["accn"], rank, alias.tag, alias.weak))
    for metric in {"diluted_shares", "shares_outstanding"} & rows.keys():
        rows[metric] = _in_scale(metric, rows)
    if "total_assets" in rows:
        rows["total_assets"] = [row for row in rows["total_assets"] if row.value > 0]
    sums = {metric: list(_sums(rows, concept)) for metric, concept in table.items() if concept.terms}
    for metric, added in sums.items():
        rows[metric] += added
    return Filer(rows, table)


def _in_scale(metric: str, rows: Mapping[str, list[Row]]) -> list[Row]:
    """Shares without those tagged in thousands or millions, a whole tag of a filing at a time, told in time."""
    kept: list[Row] = []
    counts = [row for row in rows[metric] if row.value > 0]
    for filing in sorted({(row.filed, row.accession, row.tag) for row in counts}):
        filed = filing[0]
        own = [row for row in counts if (row.filed, row.accession, row.tag) == filing]
        told = [_times(row, rows) if metric == "diluted_shares" else (0.0, 0.0) for row in own]
        amiss = any(0.5 < times / scale < 2 for times, _ in told for scale in (1e3, 1e6))
        past = [row for row in kept if row.filed < filed]
        latest = [row.value for row in past if row.filed == past[-1].filed]
        drop = max(latest, default=0.0) / min(row.value for row in own)
        fewer = 300 <= drop <= 3e3 or 3e5 <= drop <= 3e6
        dear = any(dollars > 750 for _, dollars in told)
        if not amiss and (not (fewer or dear) or any(0.8 < times < 1.25 for times, _ in told)):
            kept += own
    return [row for row in counts if row in kept]  # in the order of the aliases


def _times(shares: Row, rows: Mapping[str, list[Row]]) -> tuple[float, float]:
    """How often the shares go into those that earnings per share speak of, and income in dollars a share."""
    filing = (shares.start, shares.end, shares.accession)
    income, per_share = (
        next((row.value for row in rows[metric] if (row.start, row.end, row.accession) == filing), 0.0)
        for metric in ("net_income", "eps_diluted")
    )
    return (income / per_share / shares.value if per_share else 0.0), abs(income) / shares.value


def _sums(rows: Mapping[str, list[Row]], concept: Concept) -> Iterable[Row]:
    """What a metric is by its terms, wherever one filing gives them all for one period."""
    given: dict[tuple[str, str | None, str], dict[str, Row]] = {}
    for term in concept.terms:
        for row in sorted(rows[term], key=lambda r: -r.rank):
            given.setdefault((row.accession, row.start, row.end), {})[term] = row
    for (accession, start, end), terms in given.items():
        if any(term not in terms and term not in concept.optional for term in concept.terms):
            continue
        value = 0.0
        for term, sign in concept.terms.items():
            holds_minority = term == "minority_interest" and terms["stockholders_equity"].tag == WHOLE_EQUITY
            if term in terms and not holds_minority:
                value += sign * terms[term].value
        filed = next(iter(terms.values())).filed
        yield Row(start, end, filed, value, accession, len(concept.aliases), "sum", True)


def days(start: str, end: str) -> int:
    """Days of a period, both ends counted."""
    return (dt.date.fromisoformat(end) - dt.date.fromisoformat(start)).days + 1


def duration(start: str | None, end: str) -> str:
    """Class of a period by its days alone."""
    if start is None:
        return "instant"
    length = days(start, end)
    return next((name for name, (low, high) in CLASSES.items() if low <= length <= high), "other")


def known(company: Filer, metric: str, as_of: str) -> dict[tuple[str | None, str], Row]:
    """The version of every period of a metric that was current on a day, as the first filing to give its value did."""
    if (metric, as_of) in company.answered:
        return company.answered[metric, as_of]
    found: dict[tuple[str | None, str], Row] = {}
    best: dict[tuple[str | None, str], int] = {}
    public = [row for row in company.rows[metric] if row.filed <= as_of]
    of_day: dict[tuple[str | None, str, str], Row] = {}
    first: dict[str, int] = {}
    for row in sorted(public, key=lambda r: (r.filed, -r.rank, r.accession)):
        of_day[row.start, row.end, row.filed] = row
        first[row.accession] = min(row.rank, first.get(row.accession, row.rank))
    for (start, end, _), row in of_day.items():
        held = found.get((start, end))
        lesser = held is not None and row.rank > best[start, end]
        best[start, end] = min(row.rank, best.get((start, end), row.rank))
        if lesser and (row.weak or first[row.accession] < row.rank):
            continue
        if held is None or row.value != held.value:
            found[start, end] = row
        elif row.rank < held.rank:
            found[start, end] = replace(held, rank=row.rank, tag=row.tag)
    company.answered[metric, as_of] = found
    return found


def quarters_by_difference(company: Filer, metric: str, as_of: str) -> dict[tuple[str, str], float]:
    """Quarters that follow from year-to-date figures, by (start, end), as of a day.

    A difference is made on the day on which both sides are first known under one tag, and stands until both have been
    restated. None is made once a quarter that ends on the day has been reported, whichever day it is said to start on.
    """
    if metric not in company.differences:
        company.differences[metric] = list(_differences(company, metric))
    return {period: value for day, period, value in company.differences[metric] if day <= as_of}


def _differences(company: Filer, metric: str) -> Iterable[tuple[str, tuple[str, str], float]]:
    """(day, (start, end), value) of every difference, in the order of the days on which they are made."""
    made: dict[tuple[str | None, str, str], str] = {}
    if not company.table[metric].additive or company.table[metric].instant:
        return
    for day in sorted({row.filed for row in company.rows[metric]}):
        versions = known(company, metric, day)
        reported = {end for start, end in versions if duration(start, end) == "quarterly"}
        for long, short in _year_to_date_pairs(versions):
            pair = (long.start, short.end, long.end)
            if long.end not in reported and min(long.filed, short.filed) > made.get(pair, ""):
                made[pair] = day
                start = (dt.date.fromisoformat(short.end) + dt.timedelta(days=1)).isoformat()
                yield day, (start, long.end), long.value - short.value


def _year_to_date_pairs(versions: Mapping[tuple[str | None, str], Row]) -> Iterable[tuple[Row, Row]]:
    """Current figures of one start and tag whose difference is a quarter: the longer first."""
    by_start: dict[str | None, list[Row]] = {}
    for row in versions.values():
        if duration(row.start, row.end) in CLASSES:
            by_start.setdefault(row.start, []).append(row)
    for rows in by_start.values():
        for long, short in itertools.permutations(rows, 2):
            if long.tag == short.tag and APART[0] <= days(short.end, long.end) - 1 <= APART[1]:
                yield long, short


# --- one figure ----------------------------------------------------------------------------------------------------


def instant(company: Filer, metric: str, end: str, as_of: str) -> float | None:
    """A balance at a day."""
    row = known(company, metric, as_of).get((None, end))
    return None if row is None else row.value


def flow(company: Filer, metric: str, end: str, kind: str, as_of: str) -> float | None:
    """A flow of a class of duration that ends on a day: as reported, else a quarter by difference."""
    versions = known(company, metric, as_of)
    reported = [row for row in versions.values() if row.end == end and duration(row.start, end) == kind]
    if reported:
        return max(reported, key=lambda row: (row.filed, row.start)).value
    if kind != "quarterly":
        return None
    made = {
        start: value for (start, last), value in quarters_by_difference(company, metric, as_of).items() if last == end
    }
    return made[max(made)] if made else None


def statement(company: Filer, end: str, kind: str, as_of: str) -> Statement:
    """Every metric of one period: flows of the class of duration, balances on its last day."""
    found: Statement = {}
    for metric in METRICS:
        balance = metric in METRICS[METRICS.index("total_assets") :]
        found[metric] = instant(company, metric, end, as_of) if balance else flow(company, metric, end, kind, as_of)
    return found


def year_before(company: Filer, end: str, as_of: str) -> str | None:
    """End of the same quarter of the year before: the known quarter that ends 350 to 380 days back, nearest to 365."""
    quarters: set[str] = set()
    for metric in ("revenue", "net_income"):
        reported = known(company, metric, as_of)
        quarters |= {last for start, last in reported if duration(start, last) == "quarterly"}
        quarters |= {last for _, last in quarters_by_difference(company, metric, as_of)}
    ends = [day for day in quarters if YEAR_BEFORE[0] <= days(day, end) - 1 <= YEAR_BEFORE[1]]
    return min(ends, key=lambda day: (abs(days(day, end) - 1 - 365), day), default=None)


# --- labels --------------------------------------------------------------------------------------------------------


def quotient(over: float | None, under: float | None) -> float | None:
    """A ratio, or nothing where a side is missing or the divisor is zero."""
    return None if over is None or under is None or under == 0 else over / under


def plus(*terms: float | None) -> float | None:
    """A sum, or nothing where a term is missing."""
    present = [term for term in terms if term is not None]
    return sum(present) if len(present) == len(terms) else None


def minus(one: float | None, other: float | None) -> float | None:
    """A difference, or nothing where a side is missing."""
    return None if one is None or other is None else one - other


def normalization(company: Filer, end: str, form: str, as_of: str) -> Statement:
    """The ten metrics: the year of an annual report, the quarter of a quarterly one."""
    kind = "quarterly" if form.startswith("10-Q") else "annual"
    s = statement(company, end, kind, as_of)
    found: Statement = {metric: s[metric] for metric in NORMALISED}
    found["operating_margin"] = quotient(s["operating_income"], s["revenue"])
    found["ebitda"] = plus(s["operating_income"], s["depreciation_amortization"])
    return found


def _signal(holds: bool | None) -> int | None:
    return None if holds is None else int(holds)


def _more(one: float | None, other: float | None) -> int | None:
    return _signal(None if one is None or other is None else one > other)


def piotroski(now: Statement, then: Statement) -> dict[str, int | None]:
    """The nine signals of a quarter against the same quarter of the year before."""
    both = (now, then)
    roa = [quotient(s["net_income"], s["total_assets"]) for s in both]
    leverage = [quotient(s["long_term_debt"], s["total_assets"]) for s in both]
    liquidity = [quotient(s["current_assets"], s["current_liabilities"]) for s in both]
    margin = [quotient(s["gross_profit"], s["revenue"]) for s in both]
    turnover = [quotient(s["revenue"], s["total_assets"]) for s in both]
    issued = _more(now["diluted_shares"], then["diluted_shares"])
    return {
        "roa_positive": _more(roa[0], 0.0),
        "cfo_positive": _more(now["operating_cash_flow"], 0.0),
        "delta_roa_positive": _more(*roa),
        "accruals_negative": _more(now["operating_cash_flow"], now["net_income"]),
        "delta_leverage_negative": _more(leverage[1], leverage[0]),
        "delta_current_ratio_positive": _more(*liquidity),
        "no_dilution": None if issued is None else 1 - issued,
        "delta_gross_margin_positive": _more(*margin),
        "delta_asset_turnover_positive": _more(*turnover),
    }


def beneish(now: Statement, then: Statement) -> float | None:
    """The M-score of eight ratios, or nothing where one of them cannot be computed."""

    def share(s: Statement, metric: str) -> float | None:
        return quotient(s[metric], s["revenue"])

    def soft(s: Statement) -> float | None:
        return minus(1.0, quotient(plus(s["current_assets"], s["ppe_net"]), s["total_assets"]))

    def wear(s: Statement) -> float | None:
        used = s["depreciation_amortization"]
        return quotient(used, plus(used, s["ppe_net"]))

    def debt(s: Statement) -> float | None:
        return quotient(plus(s["long_term_debt"], s["current_liabilities"]), s["total_assets"])

    terms = (
        (0.920, quotient(share(now, "receivables"), share(then, "receivables"))),
        (0.528, quotient(share(then, "gross_profit"), share(now, "gross_profit"))),
        (0.404, quotient(soft(now), soft(then))),
        (0.892, quotient(now["revenue"], then["revenue"])),
        (0.115, quotient(wear(then), wear(now))),
        (-0.172, quotient(share(now, "sga"), share(then, "sga"))),
        (4.679, quotient(minus(now["net_income"], now["operating_cash_flow"]), now["total_assets"])),
        (-0.327, quotient(debt(now), debt(then))),
    )
    score = plus(-4.84, *(None if ratio is None else weight * ratio for weight, ratio in terms))
    return score if score is not None and math.isfinite(score) else None


def earnings_quality(company: Filer, end: str, as_of: str, prior_end: str | None = None) -> Json:
    """The answer to earnings quality for the quarter that ends on a day."""
    prior_end = prior_end or year_before(company, end, as_of)
    now = statement(company, end, "quarterly", as_of)
    then: Statement = dict.fromkeys(METRICS)
    if prior_end is not None:
        then = statement(company, prior_end, "quarterly", as_of)
        if now["diluted_shares"] is None or then["diluted_shares"] is None:
            years = [flow(company, "diluted_shares", day, "annual", as_of) for day in (end, prior_end)]
            if None not in years:
                now, then = ({**s, "diluted_shares": year} for s, year in zip((now, then), years, strict=True))
    signals = piotroski(now, then)
    known_signals = [signal for signal in signals.values() if signal is not None]
    score = sum(known_signals) if len(known_signals) == len(signals) else None
    m_score = beneish(now, then)
    accruals = quotient(minus(now["net_income"], now["operating_cash_flow"]), now["total_assets"])
    quality = quotient(now["operating_cash_flow"], now["net_income"])
    raised = {
        "low_piotroski": score is not None and score <= LOW_PIOTROSKI,
        "beneish_manipulation_flag": m_score is not None and m_score > MANIPULATION,
        "high_accruals": accruals is not None and accruals > HIGH_ACCRUALS,
        "negative_income_quality": quality is not None and quality < 0,
    }
    return {
        "piotroski_score": score,
        "piotroski_components": signals,
        "beneish_m_score": m_score,
        "beneish_flag": None if m_score is None else m_score > MANIPULATION,
        "accruals_ratio": accruals,
        "income_quality_ratio": quality,
        "flags": [name for name, stands in raised.items() if stands],
    }


def driver_decomposition(company: Filer, end: str, prior_end: str, as_of: str) -> Json:
    """The answer to driver decomposition for two consecutive quarters."""
    now, then = (statement(company, day, "quarterly", as_of) for day in (end, prior_end))
    delta = minus(now["revenue"], then["revenue"])
    return {
        "revenue_delta": delta,
        "top_revenue_drivers": _revenue_drivers(company, (end, prior_end), as_of, delta),
        "margin_drivers": _margin_drivers(now, then),
    }


def _margin_drivers(now: Statement, then: Statement) -> list[Json]:
    found = []
    for name, kind, metric in RATIOS:
        change = minus(quotient(now[metric], now["revenue"]), quotient(then[metric], then["revenue"]))
        if change is None or abs(100 * change) < LEAST_PP:
            continue
        direction = "increase" if change > 0 else "decrease"
        found.append({"driver": name, "type": kind, "direction": direction, "delta_pp": 100 * change})
    return sorted(found, key=lambda driver: -abs(driver["delta_pp"]))


def _revenue_drivers(company: Filer, ends: Sequence[str], as_of: str, delta: float | None) -> list[Json]:
    if delta is None:
        return []
    for kind, axes in AXES:
        split = _split(company, ends, axes, as_of)
        if split is None:
            continue
        now, then = split
        changes = {name: now[name] - then[name] for name in now}
        ordered = sorted((name for name in changes if changes[name] != 0), key=lambda name: -abs(changes[name]))
        return [
            {
                "driver": name,
                "type": kind,
                "direction": "increase" if changes[name] > 0 else "decrease",
                "magnitude_usd": changes[name],
                "contribution_pct": quotient(100 * changes[name], delta),
            }
            for name in ordered[:TOP]
        ]
    return []


# --- segments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Instance:
    """Revenue by member of one filing: (axis, start, end) to {member label: value}, for contexts of one dimension."""

    accession: str
    filed: str
    revenue: Mapping[tuple[str, str, str], Mapping[str, float]]


def instance(path: Path, filed: str, revenue_tags: Iterable[str]) -> Instance:
    """Read one XBRL instance; which revenue tag comes first in the table wins a context."""
    root = ET.fromstring(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    contexts: dict[str, tuple[str, str, str, str]] = {}
    for context in root.iter("{http://www.xbrl.org/2003/instance}context"):
        members = list(context.iter("{http://xbrl.org/2006/xbrldi}explicitMember"))
        typed = list(context.iter("{http://xbrl.org/2006/xbrldi}typedMember"))
        begin = context.findtext(".//{http://www.xbrl.org/2003/instance}startDate")
        finish = context.findtext(".//{http://www.xbrl.org/2003/instance}endDate")
        if len(members) == 1 and not typed and begin and finish:
            axis = members[0].attrib["dimension"].split(":")[-1]
            contexts[context.attrib["id"]] = (axis, begin.strip(), finish.strip(), str(members[0].text).strip())
    values: dict[tuple[str, str, str], dict[str, tuple[int, float]]] = {}
    for rank, tag in enumerate(revenue_tags):
        for element in root:
            if element.tag.rpartition("}")[2] != tag or not (element.text or "").strip():
                continue
            if element.attrib.get("contextRef") not in contexts:
                continue
            axis, begin, finish, member = contexts[element.attrib["contextRef"]]
            values.setdefault((axis, begin, finish), {}).setdefault(member, (rank, float(str(element.text))))
    revenue = {key: {label(member): value for member, (_, value) in by.items()} for key, by in values.items()}
    return Instance(path.name.partition(".")[0], filed, revenue)


def label(member: str) -> str:
    """The name of a segment for comparison: letters and digits of the member without its prefix and suffix."""
    prefix, _, name = member.rpartition(":")
    if prefix == "country":
        name = COUNTRIES.get(name, name)
    return re.sub("[^a-z0-9]", "", name.removesuffix("Member").lower())


def _split(
    company: Filer, ends: Sequence[str], axes: Sequence[str], as_of: str
) -> tuple[dict[str, float], dict[str, float]] | None:
    """Quarterly revenue by member of the first axis with the same members on both days that add up to revenue."""
    for axis in axes:
        sides = [_quarter_by_member(company, axis, end, as_of) for end in ends]
        now, then = sides
        if now is not None and then is not None and now.keys() == then.keys():
            return now, then
    return None


def _quarter_by_member(company: Filer, axis: str, end: str, as_of: str) -> dict[str, float] | None:
    total = flow(company, "revenue", end, "quarterly", as_of)
    if total is None:
        return None
    filed = [i for i in company.instances if i.filed <= as_of]
    periods: dict[tuple[str, str], Mapping[str, float]] = {}
    for one in sorted(filed, key=lambda i: (i.filed, i.accession)):
        periods |= {(begin, finish): by for (name, begin, finish), by in one.revenue.items() if name == axis}
    candidates: list[Mapping[str, float]] = [
        by for (begin, finish), by in periods.items() if finish == end and duration(begin, finish) == "quarterly"
    ]
    for (begin, finish), by in periods.items():
        if finish != end or duration(begin, finish) not in ("half", "nine_months", "annual"):
            continue
        for (first, middle), short in periods.items():
            if first == begin and APART[0] <= days(middle, end) - 1 <= APART[1] and short.keys() == by.keys():
                candidates.append({name: by[name] - short[name] for name in by})
    for by in candidates:
        kept = parts(by, total)
        if kept is not None:
            return kept
    return None


def parts(by: Mapping[str, float], total: float) -> dict[str, float] | None:
    """The members that add up to the total within 1 %: all of them, or all but sums of others."""

    def adds_up(names: Iterable[str]) -> bool:
        return abs(sum(by[name] for name in names) - total) <= ADDS_UP * abs(total)

    if len(by) > 1 and adds_up(by):
        return dict(by)
    for count in range(1, len(by) - 1):
        for dropped in itertools.combinations(sorted(by, key=lambda name: -abs(by[name])), count):
            rest = [name for name in by if name not in dropped]
            if adds_up(rest):
                return {name: by[name] for name in rest}
    return None

"""Checks of figures and of sums that no filing states: quarters, balance sheets.

Checks of what is covered: episodes of every company and form, and filings by the company that they name.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date, timedelta

import polars as pl

from finskillbench.domains.checks.coverage import episodes_and_files
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.rows import (
    Company,
    Period,
    Row,
    companies,
    current,
    period_end,
    since,
    terms_of,
)
from finskillbench.domains.fundamental.rederive.definitions import FORMS, QUARTER_APART, SHORTER, kind_of
from finskillbench.domains.fundamental.rederive.identities import NOT_NEGATIVE, recast
from finskillbench.findings import Findings
from finskillbench.scoring.values import array, mapping

_PER_STRATUM = 4
_MOST_OF_A_COMPANY = 0.25
_FEW_COMPANIES = 8
"""With fewer companies than this one of them may make up more of the episodes."""
_LEAST_SHARE = 0.15
"""Revenue rises in at least this share of the episodes, and falls in as many."""


def coverage(subject: Subject, findings: Findings) -> None:
    """Every subtask has its episodes, spread over companies, forms and years; revenue rises and falls."""
    episodes_and_files(subject, findings, "fundamental")
    if not subject.built:
        return
    asked = mapping(subject.edition.manifest["parameters"].get("fundamental")).get("episodes")
    reports = _reports(subject)
    for subtask in subject.domain.subtasks:
        if subtask.name not in findings.figures:
            continue  # without episodes, of which enough has been said
        episodes = subject.of(subtask.name)
        wanted = mapping(asked).get(subtask.name)
        if wanted is not None and len(episodes) < wanted:
            findings.warn(subtask.name, f"{len(episodes)} episodes of {wanted}: the filings support no more")
        strata = {
            "companies": Counter(str(episode.input.get("symbol")) for episode in episodes),
            "forms": Counter(str(episode.input.get("form_type")) for episode in episodes),
            "years": Counter(str(episode.as_of_date.year) for episode in episodes),
        }
        for name, seen in strata.items():
            least = min(len(reports[name]), len(episodes) // _PER_STRATUM)
            least = least if name == "forms" else least // 2
            if len(seen) < least:
                # Which companies and forms state enough is the collection's; a draw that leaves years out is ours.
                add = findings.fail if name == "years" else findings.warn
                add(subtask.name, f"shows {len(seen)} {name} of {len(reports[name])}")
            findings.figures[subtask.name][name] = dict(sorted(seen.items())) if name != "companies" else len(seen)
        if len(reports["companies"]) >= _FEW_COMPANIES and episodes:
            company, count = strata["companies"].most_common(1)[0]
            findings.expect(
                count <= max(_PER_STRATUM, _MOST_OF_A_COMPANY * len(episodes)),
                subtask.name,
                f"{count} of {len(episodes)} episodes are of {company}",
            )
    if subject.edition.has_truth:
        _check_directions(subject, findings)


def _reports(subject: Subject) -> dict[str, set[str]]:
    """Companies, forms and years of the reports that episodes can be about."""
    panels = subject.panels(Findings())
    found: dict[str, set[str]] = {"companies": set(), "forms": set(), "years": set()}
    if panels is not None:
        about = panels.filings.filter(pl.col("form").is_in(FORMS))
        if filed := subject.edition.manifest.get("filed"):
            first, last = map(date.fromisoformat, filed)
            about = about.filter(pl.col("filed").is_between(first, last))
        found["companies"], found["forms"] = set(about["symbol"]), set(about["form"])
        found["years"] = {str(year) for year in about["filed"].dt.year().unique()}
    return found


def _check_directions(subject: Subject, findings: Findings) -> None:
    rises: list[bool] = []
    for episode in subject.of("driver_decomposition"):
        with examining(episode.task_id, findings):
            delta = subject.edition.truth(episode.task_id).expected_output.get("revenue_delta")
            if isinstance(delta, int | float):
                rises.append(delta > 0)
    up, least = sum(rises), int(_LEAST_SHARE * len(rises))
    findings.figures["revenue_rises"] = f"{up} of {len(rises)}"
    balanced = least <= up <= len(rises) - least
    findings.expect(balanced, "driver_decomposition", f"revenue rises in {up} of {len(rises)}: one guess does well")


def entities(subject: Subject, findings: Findings) -> None:
    """The CIK of a company's facts is that of its ticker; no filing of one company is told of another.

    An accession number begins with the CIK of whoever submitted the filing: often the company, at times an agent, and
    never another company of the edition unless the two are mixed up or register together.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    known = mapping(subject.edition.manifest["parameters"].get("fundamental_entities"))
    if not known:
        findings.skip("the manifest does not say who the companies are")
        return
    of_cik: dict[int, list[str]] = defaultdict(list)
    for symbol, entity in known.items():
        with examining(symbol, findings):
            of_cik[int(entity["cik"])].append(symbol)
            listed = array(entity["listed"])
            told = f"its facts are of {entity['entity']} (CIK {entity['cik']}), but it is CIK {listed}"
            findings.expect(not listed or entity["cik"] in listed, symbol, told)
    for cik, symbols in of_cik.items():
        findings.expect(len(symbols) == 1, " ".join(symbols), f"have the facts of one company, CIK {cik}")
    filed: dict[str, list[str]] = defaultdict(list)
    for symbol, accession in panels.filings.select("symbol", "accession").unique().sort("symbol").iter_rows():
        filed[accession].append(symbol)
        others = of_cik.get(int(accession[:10]), [symbol])
        findings.expect(
            symbol in others, f"{symbol} {accession}", f"was submitted by {', '.join(others)}, another company"
        )
    for accession, symbols in filed.items():
        if len(symbols) > 1:
            findings.fail(f"{symbols[1]} {accession}", f"is a filing of {symbols[0]} too")
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            findings.expect(episode.input["symbol"] in known, episode.task_id, "is of a company that nobody names")
    findings.figures |= {"companies": len(known), "listed": sum(bool(one["listed"]) for one in known.values())}
    findings.figures["filings"] = len(filed)


PER_SHARE = ("eps_diluted", "diluted_shares")
"""Ratios and averages: a year is not the sum of its quarters."""
_NOT_NEGATIVE = NOT_NEGATIVE | {"revenue"}
_SAME = 1e-9


def derived_quarters(subject: Subject, findings: Findings) -> None:
    """Quarters that nobody states are differences on their dates, remade when both parents are; sums are their terms'.

    One restated parent less one that is not would put the restatement of a year into one quarter, and so would a year
    on another basis than the reports for its parts: none is made of them.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    for company in companies(panels.facts, findings):
        for rows in company.differences.values():
            for row in rows:
                with examining(f"{company.symbol} {row.where}", findings):
                    _check_difference(company, row, findings)
        with examining(company.symbol, findings):
            _check_complete(company, findings)
        check_sums(company, findings, instant=False)


def _check_difference(company: Company, row: Row, findings: Findings) -> None:
    """One derived row against its two parents, as they stood on the day it was filed."""
    where = f"{company.symbol} {row.where}"
    findings.expect(row.metric not in PER_SHARE, where, "is no sum of quarters and cannot be a difference")
    terms = terms_of(row.parents)
    if [term.sign for term in terms] != [1, -1]:
        findings.fail(where, "is no difference of two figures")
        return
    (_, _, (_, start, end)), (_, _, (_, other, stop)) = terms
    least, most, _ = QUARTER_APART
    on_dates = (
        start is not None
        and start == other
        and end == row.end
        and row.start == stop + timedelta(days=1)
        and least <= (end - stop).days <= most
        and SHORTER.get(kind_of(start, end)) == kind_of(start, stop)
    )
    findings.expect(on_dates, where, "its parents do not differ by this quarter")
    known = [company.on(term.period, row.filed) for term in terms]
    if known[0] is None or known[1] is None:
        findings.fail(where, "a parent is not in the panel by then")
        return
    long, short = known[0], known[1]
    days = [company.days.get(term.accession, date.max) for term in terms]
    findings.expect(max(days) == row.filed, where, "was not filed when its last parent was")
    same = (long.accession, short.accession) == (terms[0].accession, terms[1].accession)
    findings.expect(same, where, "a parent is of another filing than it says")
    findings.expect(long.tag == short.tag == row.tag, where, f"subtracts {short.tag} from {long.tag}")
    findings.expect(row.value >= 0 or row.metric not in _NOT_NEGATIVE, where, "is below zero, an expense or a revenue")
    difference = abs(long.value - short.value - row.value)
    findings.widest("greatest_difference", difference / max(1.0, abs(row.value)))
    findings.expect(
        difference <= _SAME * max(1.0, abs(long.value)),
        where,
        f"is {row.value:.12g}, its parents leave {long.value - short.value:.12g}",
    )
    findings.add("differences")


def _check_complete(company: Company, findings: Findings) -> None:
    """On every day on which a parent was filed, the quarter that was current is what the parents left.

    They left it when both were first known, and again when both had been restated since.
    """
    reported: dict[tuple[str, date], date] = {}
    by_start: dict[tuple[str, date], list[date]] = defaultdict(list)
    for (metric, start, end), rows in company.filed.items():
        if start is not None and metric not in PER_SHARE:
            by_start[metric, start].append(end)
            if kind_of(start, end) == "quarterly":
                key = metric, end
                reported[key] = min(reported.get(key, date.max), rows[0].filed)
    pairs: dict[Period, list[tuple[Period, Period]]] = defaultdict(list)
    least, most, _ = QUARTER_APART
    for (metric, start), ends in by_start.items():
        for end in ends:
            shorter = SHORTER.get(kind_of(start, end))
            for stop in ends:
                if least <= (end - stop).days <= most and kind_of(start, stop) == shorter:
                    quarter = metric, stop + timedelta(days=1), end
                    pairs[quarter].append(((metric, start, end), (metric, start, stop)))
    for quarter, parents in pairs.items():
        if len(parents) > 1:  # two calendars meet: which of them is the fiscal year's is the panel's choice
            findings.add("quarters_of_two_calendars")
            continue
        long, short = (company.filed[period] for period in parents[0])
        made, left_over, scale = date.min, math.nan, 1.0
        for day in sorted({row.filed for row in (*long, *short)}):
            left, right = current(long, day), current(short, day)
            if (
                left is None
                or right is None
                or left.tag != right.tag
                or day >= reported.get((quarter[0], quarter[2]), date.max)
            ):
                continue
            if left.value < right.value and quarter[0] in _NOT_NEGATIVE:
                continue
            news = since(long, left), since(short, right)
            if news[1] < news[0] and recast(company.restated(quarter[0]), left.accession, left.start, left.end):
                continue
            if min(news) > made:
                made, left_over, scale = day, left.value - right.value, max(1.0, abs(left.value))
            stands = current(company.differences.get(quarter, ()), day)
            difference = math.inf if stands is None else abs(left_over - stands.value)
            findings.add("days_examined")
            if difference <= _SAME * scale:
                continue
            if stands is not None and stands.value == _of_terms(company, quarter, day):
                # Stated since as revenue less the other part: the same value again is no new row, but it holds.
                findings.add("quarters_that_sums_confirm")
            else:
                stated = "missing" if stands is None else f"{stands.value:.12g}"
                where = f"{company.symbol} {quarter[0]} {quarter[1]}..{quarter[2]} {day}"
                findings.fail(where, f"the quarter is {stated}, its parents left {left_over:.12g} on {made}")


def _of_terms(company: Company, quarter: Period, day: date) -> float:
    """Cost of a quarter, or its gross profit, as what filings by a day state revenue and the other to be, else NaN."""
    other = {"cost_of_revenue": "gross_profit", "gross_profit": "cost_of_revenue"}.get(quarter[0], "")
    revenue, part = (company.on((metric, *quarter[1:]), day) for metric in ("revenue", other))
    return math.nan if revenue is None or part is None else revenue.value - part.value


def check_sums(company: Company, findings: Findings, *, instant: bool) -> None:
    """Figures that a filing does not state but whose terms it does."""
    for row, terms in company.sums:
        if (row.start is None) is not instant:
            continue
        where = f"{company.symbol} {row.where}"
        with examining(where, findings):
            same = all(term.period[1:] == (row.start, row.end) for term in terms)
            findings.expect(same, where, "its terms are of another period")
            known = [company.on(term.period, row.filed) for term in terms]
            stated = [one for one, term in zip(known, terms, strict=True) if one and one.accession == term.accession]
            if len(stated) < len(terms):  # a term that repeats an older filing, or is no metric of its own
                findings.add("sums_of_repeated_figures")
                continue
            total = math.fsum(term.sign * one.value for term, one in zip(terms, stated, strict=True))
            difference = abs(total - row.value)
            findings.expect(
                difference <= _SAME * max(1.0, *(abs(one.value) for one in stated)),
                where,
                f"is {row.value:.12g}, its terms make {total:.12g}",
            )
            findings.add("sums")


_IDENTITY = 0.01
"""Share of total assets by which liabilities and equity may exceed them (rounding, figures of other dates)."""
_REDEEMABLE = 0.05
"""Share of total assets that may lie between liabilities and equity (redeemable interests) without a warning."""


def balance_sheet(subject: Subject, findings: Findings) -> None:
    """Assets are liabilities and equity; parts are not greater than what they are part of.

    Filers contradict themselves now and then: in a real collection it is a warning, unless an episode sees it.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    known = subject.edition.manifest["source"].get("kind") == "synthetic"
    seen: dict[tuple[str, date], date] = {}
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            key = episode.input["symbol"], period_end(episode)
            seen[key] = max(seen.get(key, date.min), episode.as_of_date)
    for company in companies(panels.facts, findings):
        check_sums(company, findings, instant=True)
        for (metric, _, end), rows in company.filed.items():
            if metric == "total_assets":
                for row in rows:
                    with examining(f"{company.symbol} {row.where}", findings):
                        certain = known or row.filed <= seen.get((company.symbol, end), date.min)
                        add = findings.fail if certain else findings.warn
                        _check_identity(company, row, add, findings)
    examined = findings.figures.get("identities", 0)
    findings.figures["exact"] = f"{findings.figures.pop('exact', 0)} of {examined}"


def _check_identity(company: Company, assets: Row, add: Callable[[object, str], None], findings: Findings) -> None:
    """The balance sheet of a day as the filing of its total assets left it; `add` takes what contradicts it."""
    end = assets.end
    where = f"{company.symbol} {end} {assets.filed}"
    total = assets.value
    if total <= 0:
        findings.fail(where, f"total assets are {total:.12g}")
        return
    found = {
        name: row
        for name in (
            *("total_liabilities", "stockholders_equity", "minority_interest"),
            *("current_assets", "current_liabilities", "receivables", "inventory", "ppe_net", "cash"),
        )
        if (row := company.on((name, None, end), assets.filed)) is not None
    }
    slack = _IDENTITY * abs(total)
    for part in ("current_assets", "ppe_net", "cash", "inventory"):
        if part in found and found[part].value > total + slack:
            add(where, f"{part} exceeds total assets")
    liabilities, equity = found.get("total_liabilities"), found.get("stockholders_equity")
    if liabilities is None or equity is None:
        findings.add("without_both_sides")
        return
    minority = found["minority_interest"].value if "minority_interest" in found else 0.0
    # A filer that states only one equity may include the minority interest in it.
    left = total - liabilities.value - equity.value
    gap = min((left, left - minority), key=abs)
    findings.add("identities")
    findings.add("exact", int(abs(gap) <= 1e-6 * abs(total)))
    if gap < -slack:
        add(where, f"liabilities and equity exceed total assets by {-gap:.12g}, {-gap / total:.1%} of them")
    if gap > _REDEEMABLE * abs(total):
        findings.add("wide_mezzanines")
    if "current_liabilities" in found and found["current_liabilities"].value > liabilities.value + slack:
        add(where, "current_liabilities exceed total_liabilities")

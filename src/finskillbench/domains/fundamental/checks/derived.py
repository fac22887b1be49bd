"""Check derived quarters, sums, balance sheets, episode coverage and the companies that filings belong to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date, timedelta

import polars as pl

from finskillbench.domains.checks.coverage import episodes_and_files
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks import rows
from finskillbench.domains.fundamental.rederive.definitions import FORMS, QUARTER_APART, SHORTER, kind_of
from finskillbench.domains.fundamental.rederive.identities import NOT_NEGATIVE, restates_prior_year
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_array, as_object

_PER_STRATUM = 4
_MAX_COMPANY_SHARE = 0.25
_FEW_COMPANIES = 8
"""Number of companies below which one may exceed its share of the episodes."""
_MIN_DIRECTION_SHARE = 0.15
"""Minimum share of episodes in which revenue rises, and in which it falls."""


def check_fundamental_coverage(subject: Subject, findings: Findings) -> None:
    """Check that episodes are complete and spread over companies, forms, years and directions of revenue."""
    episodes_and_files(subject, findings, "fundamental")
    if not subject.built:
        return
    requested = as_object(subject.edition.manifest["parameters"].get("fundamental")).get("episodes")
    reports = _reports(subject)
    for subtask in subject.domain.subtasks:
        if subtask.name not in findings.figures:
            continue  # an earlier check already reports the absence
        episodes = subject.of(subtask.name)
        wanted = as_object(requested).get(subtask.name)
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
                # The collection decides which companies and forms suffice; only the draw can leave years out.
                add = findings.fail if name == "years" else findings.warn
                add(subtask.name, f"shows {len(seen)} {name} of {len(reports[name])}")
            findings.figures[subtask.name][name] = dict(sorted(seen.items())) if name != "companies" else len(seen)
        if len(reports["companies"]) >= _FEW_COMPANIES and episodes:
            company, count = strata["companies"].most_common(1)[0]
            findings.expect(
                count <= max(_PER_STRATUM, _MAX_COMPANY_SHARE * len(episodes)),
                subtask.name,
                f"{count} of {len(episodes)} episodes are of {company}",
            )
    if subject.edition.has_truth:
        _check_directions(subject, findings)


def _reports(subject: Subject) -> dict[str, set[str]]:
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
    up, least = sum(rises), int(_MIN_DIRECTION_SHARE * len(rises))
    findings.figures["revenue_rises"] = f"{up} of {len(rises)}"
    balanced = least <= up <= len(rises) - least
    findings.expect(
        balanced, "driver_decomposition", f"revenue rises in {up} of {len(rises)}: a constant answer would score well"
    )


def check_entities(subject: Subject, findings: Findings) -> None:
    """Check that facts carry the CIK of their ticker, and that each filing belongs to one company.

    An accession number starts with the submitter's CIK: the company, a filing agent, or a company that registers
    jointly.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    known = as_object(subject.edition.manifest["parameters"].get("fundamental_entities"))
    if not known:
        findings.skip("the manifest has no fundamental_entities, so companies cannot be identified")
        return
    by_cik: dict[int, list[str]] = defaultdict(list)
    for symbol, entity in known.items():
        with examining(symbol, findings):
            by_cik[int(entity["cik"])].append(symbol)
            listed = as_array(entity["listed"])
            message = f"its facts are of {entity['entity']} (CIK {entity['cik']}), but it is CIK {listed}"
            findings.expect(not listed or entity["cik"] in listed, symbol, message)
    for cik, symbols in by_cik.items():
        findings.expect(len(symbols) == 1, " ".join(symbols), f"have the facts of one company, CIK {cik}")
    filed: dict[str, list[str]] = defaultdict(list)
    for symbol, accession in panels.filings.select("symbol", "accession").unique().sort("symbol").iter_rows():
        filed[accession].append(symbol)
        owners = by_cik.get(int(accession[:10]), [symbol])
        findings.expect(
            symbol in owners, f"{symbol} {accession}", f"was submitted by {', '.join(owners)}, another company"
        )
    for accession, symbols in filed.items():
        if len(symbols) > 1:
            findings.fail(f"{symbols[1]} {accession}", f"is a filing of {symbols[0]} too")
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            findings.expect(
                episode.input["symbol"] in known,
                episode.task_id,
                "its company is missing in fundamental_entities of the manifest",
            )
    findings.figures |= {"companies": len(known), "listed": sum(bool(one["listed"]) for one in known.values())}
    findings.figures["filings"] = len(filed)


PER_SHARE = ("eps_diluted", "diluted_shares")
"""Ratios and averages, which quarters do not add up to."""
_NOT_NEGATIVE = NOT_NEGATIVE | {"revenue"}
_SAME = 1e-9


def check_derived_quarters(subject: Subject, findings: Findings) -> None:
    """Check that derived quarters equal the difference of their parents, on one basis, and that sums equal their
    operands.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    for company in rows.by_company(panels.facts, findings):
        for figures in company.differences.values():
            for row in figures:
                with examining(f"{company.symbol} {row.where}", findings):
                    _check_difference(company, row, findings)
        with examining(company.symbol, findings):
            _check_complete(company, findings)
        check_sums(company, findings, instant=False)


def _check_difference(company: rows.CompanyRows, row: rows.PanelRow, findings: Findings) -> None:
    where = f"{company.symbol} {row.where}"
    findings.expect(row.metric not in PER_SHARE, where, "is a ratio or average and must not be derived as a difference")
    operands = rows.parse_operands(row.parents)
    if [term.sign for term in operands] != [1, -1]:
        findings.fail(where, "its parents are not two figures with one minus sign")
        return
    (_, _, (_, start, end)), (_, _, (_, other, stop)) = operands
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
    known = [company.known_on(term.period, row.filed) for term in operands]
    if known[0] is None or known[1] is None:
        findings.fail(where, "a parent is not in the panel on its filing date")
        return
    long, short = known[0], known[1]
    days = [company.days.get(term.accession, date.max) for term in operands]
    findings.expect(max(days) == row.filed, where, "was not filed on the day of its last parent")
    same = (long.accession, short.accession) == (operands[0].accession, operands[1].accession)
    findings.expect(same, where, "a parent belongs to another filing than stated")
    findings.expect(long.tag == short.tag == row.tag, where, f"subtracts {short.tag} from {long.tag}")
    findings.expect(row.value >= 0 or row.metric not in _NOT_NEGATIVE, where, "is a negative expense or revenue")
    difference = abs(long.value - short.value - row.value)
    findings.widest("greatest_difference", difference / max(1.0, abs(row.value)))
    findings.expect(
        difference <= _SAME * max(1.0, abs(long.value)),
        where,
        f"is {row.value:.12g}, the difference of its parents is {long.value - short.value:.12g}",
    )
    findings.add("differences")


def _check_complete(company: rows.CompanyRows, findings: Findings) -> None:
    """Check on each filing date that the current quarter is the difference of its parents, once both are new or
    restated.
    """
    reported: dict[tuple[str, date], date] = {}
    by_start: dict[tuple[str, date], list[date]] = defaultdict(list)
    for (metric, start, end), figures in company.filed.items():
        if start is not None and metric not in PER_SHARE:
            by_start[metric, start].append(end)
            if kind_of(start, end) == "quarterly":
                key = metric, end
                reported[key] = min(reported.get(key, date.max), figures[0].filed)
    pairs: dict[rows.Period, list[tuple[rows.Period, rows.Period]]] = defaultdict(list)
    least, most, _ = QUARTER_APART
    for (metric, start), ends in by_start.items():
        for end in ends:
            shorter = SHORTER.get(kind_of(start, end))
            for stop in ends:
                if least <= (end - stop).days <= most and kind_of(start, stop) == shorter:
                    quarter = metric, stop + timedelta(days=1), end
                    pairs[quarter].append(((metric, start, end), (metric, start, stop)))
    for quarter, parents in pairs.items():
        if len(parents) > 1:  # where two calendars meet, the panel chooses the fiscal year's
            findings.add("quarters_of_two_calendars")
            continue
        long, short = (company.filed[period] for period in parents[0])
        made, rest, scale = date.min, math.nan, 1.0
        for day in sorted({row.filed for row in (*long, *short)}):
            left, right = rows.current(long, day), rows.current(short, day)
            if (
                left is None
                or right is None
                or left.tag != right.tag
                or day >= reported.get((quarter[0], quarter[2]), date.max)
            ):
                continue
            if left.value < right.value and quarter[0] in _NOT_NEGATIVE:
                continue
            news = rows.unchanged_since(long, left), rows.unchanged_since(short, right)
            if news[1] < news[0] and restates_prior_year(
                company.restated(quarter[0]), left.accession, left.start, left.end
            ):
                continue
            if min(news) > made:
                made, rest, scale = day, left.value - right.value, max(1.0, abs(left.value))
            served = rows.current(company.differences.get(quarter, ()), day)
            difference = math.inf if served is None else abs(rest - served.value)
            findings.add("days_examined")
            if difference <= _SAME * scale:
                continue
            if served is not None and served.value == _implied_quarter(company, quarter, day):
                # Later filings also state it as revenue less the other part; an unchanged value adds no row.
                findings.add("quarters_that_sums_confirm")
            else:
                stated = "missing" if served is None else f"{served.value:.12g}"
                where = f"{company.symbol} {quarter[0]} {quarter[1]}..{quarter[2]} {day}"
                findings.fail(where, f"the quarter is {stated}, the difference of its parents on {made} is {rest:.12g}")


def _implied_quarter(company: rows.CompanyRows, quarter: rows.Period, day: date) -> float:
    """Return cost of revenue or gross profit implied by revenue and the other one on a day, else NaN."""
    other = {"cost_of_revenue": "gross_profit", "gross_profit": "cost_of_revenue"}.get(quarter[0], "")
    revenue, part = (company.known_on((metric, *quarter[1:]), day) for metric in ("revenue", other))
    return math.nan if revenue is None or part is None else revenue.value - part.value


def check_sums(company: rows.CompanyRows, findings: Findings, *, instant: bool) -> None:
    """Check derived figures that are sums of stated figures of the same filing."""
    for row, operands in company.sums:
        if (row.start is None) is not instant:
            continue
        where = f"{company.symbol} {row.where}"
        with examining(where, findings):
            same = all(term.period[1:] == (row.start, row.end) for term in operands)
            findings.expect(same, where, "its terms belong to another period")
            known = [company.known_on(term.period, row.filed) for term in operands]
            stated = [one for one, term in zip(known, operands, strict=True) if one and one.accession == term.accession]
            if len(stated) < len(operands):  # an operand repeats an older filing, or is not a metric
                findings.add("sums_of_repeated_figures")
                continue
            total = math.fsum(term.sign * one.value for term, one in zip(operands, stated, strict=True))
            difference = abs(total - row.value)
            findings.expect(
                difference <= _SAME * max(1.0, *(abs(one.value) for one in stated)),
                where,
                f"is {row.value:.12g}, its terms sum to {total:.12g}",
            )
            findings.add("sums")


_IDENTITY = 0.01
"""Share of total assets by which liabilities and equity may exceed them: rounding, other dates."""
_REDEEMABLE = 0.05
"""Share of total assets between liabilities and equity (redeemable interests) accepted without a warning."""


def check_balance_sheet(subject: Subject, findings: Findings) -> None:
    """Check that assets equal liabilities and equity, and that parts do not exceed their total.

    In a real collection a violation is a warning unless an episode depends on it.
    """
    panels = subject.panels(findings)
    if panels is None:
        return
    known = subject.edition.manifest["source"].get("kind") == "synthetic"
    seen: dict[tuple[str, date], date] = {}
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            key = episode.input["symbol"], rows.period_end(episode)
            seen[key] = max(seen.get(key, date.min), episode.as_of_date)
    for company in rows.by_company(panels.facts, findings):
        check_sums(company, findings, instant=True)
        for (metric, _, end), figures in company.filed.items():
            if metric == "total_assets":
                for row in figures:
                    with examining(f"{company.symbol} {row.where}", findings):
                        certain = known or row.filed <= seen.get((company.symbol, end), date.min)
                        add = findings.fail if certain else findings.warn
                        _check_identity(company, row, add, findings)
    examined = findings.figures.get("identities", 0)
    findings.figures["exact"] = f"{findings.figures.pop('exact', 0)} of {examined}"


def _check_identity(
    company: rows.CompanyRows, assets: rows.PanelRow, add: Callable[[object, str], None], findings: Findings
) -> None:
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
        if (row := company.known_on((name, None, end), assets.filed)) is not None
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

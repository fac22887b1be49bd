"""Checks of what is covered: episodes of every company and form, and filings by the company that they name."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date

import polars as pl

from finskillbench.domains.checks.coverage import episodes_and_files
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.second.definitions import FORMS
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

"""The check that every company's facts are its own."""

from __future__ import annotations

from collections import defaultdict

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.findings import Findings
from finskillbench.scoring.values import array, mapping


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

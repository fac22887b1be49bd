"""The check of balance sheets: assets are liabilities and equity, and parts are no greater than the whole."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.derived import check_sums
from finskillbench.domains.fundamental.checks.reporting import period_end
from finskillbench.domains.fundamental.checks.rows import Company, Row, companies
from finskillbench.findings import Findings

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

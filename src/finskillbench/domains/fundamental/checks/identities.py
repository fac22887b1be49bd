"""The check that the statements behind every label hold together."""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from typing import cast

import polars as pl

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.fundamental.checks.reporting import period_end
from finskillbench.domains.fundamental.inputs import FundamentalInput, filing_facts
from finskillbench.domains.fundamental.objects.pools import METRICS_OF
from finskillbench.domains.fundamental.second.definitions import YEAR_APART, Kind, periods_of
from finskillbench.domains.fundamental.second.filed import AsFiled, FiledRow
from finskillbench.domains.fundamental.second.identities import IDENTITIES
from finskillbench.domains.fundamental.second.visible import VisibleFacts
from finskillbench.domains.fundamental.second.witness import Witnesses, refuted
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.scoring.values import mapping


def identities(subject: Subject, findings: Findings) -> None:
    """Revenue less cost is gross profit, and so on, of every period of a label, and no other fact refutes a figure.

    The labels that the build left out for breaking one are counted by what they break.
    """
    if subject.episodes and not any("filing_facts" in episode.input for episode in subject.episodes):
        findings.skip("the episodes hold no facts")
        return
    panels = subject.panels(findings)
    if panels is None:
        return
    rows = panels.tables["filed"].select("symbol", *FiledRow._fields)

    @lru_cache(maxsize=32)
    def filed(symbol: str) -> AsFiled:
        return AsFiled(rows.filter(pl.col("symbol") == symbol).drop("symbol").iter_rows())

    for episode in sorted(subject.episodes, key=lambda one: str(one.input.get("symbol"))):
        with examining(episode.task_id, findings):
            facts = VisibleFacts(filing_facts(cast("FundamentalInput", subject.input_of(episode)))[0])
            spans = periods(episode, facts)
            findings.add("statements", len(spans))
            witnesses = Witnesses(filed(str(episode.input["symbol"])), episode.as_of_date)
            broken = list(refuted(facts, witnesses, METRICS_OF[episode.sub_task], spans))
            for fault in broken:
                findings.fail(episode.task_id, f"{fault.identity}: {fault.message}")
            findings.expectations += 1
    findings.figures["companies"] = len({episode.input.get("symbol") for episode in subject.episodes})
    left_out: dict[str, int] = dict.fromkeys(IDENTITIES, 0)
    for pool in mapping(subject.edition.manifest["parameters"].get("fundamental_pools")).values():
        for name, count in mapping(mapping(pool).get("faults")).items():
            left_out[name] = left_out.get(name, 0) + count
    findings.figures["left_out"] = {name: count for name, count in left_out.items() if count}


def periods(episode: Episode, facts: VisibleFacts) -> list[tuple[date, Kind]]:
    """The periods whose statements the label of an episode rests on."""
    end, prior_end = period_end(episode), None
    if episode.sub_task == "driver_decomposition":
        prior_end = date.fromisoformat(episode.input["prior_period_end"])
    elif episode.sub_task == "earnings_quality":
        prior_end = facts.preceding(end, YEAR_APART)
    return periods_of(episode.sub_task, episode.input["form_type"], end, prior_end)

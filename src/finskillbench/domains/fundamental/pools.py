"""The episodes of a fundamental subtask: labels derived twice, pooled, drawn evenly and written down."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from finskillbench.domains.agreement import AGREEMENT, leaf_by_leaf
from finskillbench.domains.building import BuildContext, Task, conventions
from finskillbench.domains.draws import drawn, shuffled
from finskillbench.domains.fundamental.conventions import CONVENTIONS
from finskillbench.domains.fundamental.objects import SKILL, FundamentalObjects
from finskillbench.domains.fundamental.reports import Case, Report
from finskillbench.domains.proofs import rederived
from finskillbench.episode import Episode, JsonObject, Prompt, Truth

FACTS_REFERENCE = "panels/facts.parquet"


@dataclass(frozen=True, slots=True)
class Candidate:
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
    """A label on which both derivations agree: the widest difference of two numbers, and how many numbers it has."""

    label: Candidate
    difference: float
    numbers: int


Derive = Callable[[Case, Mapping[str, int]], Candidate | None]
"""The label of a report for one subtask; None where its filings do not support one.

The second argument is the catalog's `least`: how much of an answer the filings must support.
"""


@dataclass(slots=True)
class Pool:
    """What a subtask draws its episodes from, with the count of what was left out on the way."""

    proved: list[Proved] = field(default_factory=list[Proved])
    examined: int = 0
    unsupported: int = 0
    doubtful: int = 0
    disagreements: list[str] = field(default_factory=list[str])

    def add(self, candidate: Candidate | None) -> None:
        """Take up the label of one report, or count why it is left out."""
        self.examined += 1
        if candidate is None:
            self.unsupported += 1
        elif candidate.doubtful:
            self.doubtful += 1
        else:
            leaves = leaf_by_leaf(
                {"prior_end": str(candidate.prior_end)} | candidate.expected,
                {"prior_end": str(candidate.second_prior_end)} | candidate.second,
            )
            wrong = next((leaf for leaf in leaves if not leaf.agrees), None)
            if wrong is None:
                # A verdict, true or false, counts as a number.
                numbers = sum(isinstance(leaf.first, int | float) for leaf in leaves)
                self.proved.append(Proved(candidate, max(leaf.difference for leaf in leaves), numbers))
            else:
                sides = f"({wrong.first!r} and {wrong.second!r})"
                what = "is in one derivation only" if wrong.absent else sides
                report = candidate.report
                self.disagreements.append(f"{report.symbol} {report.period_end} {wrong.path} {what}")

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


def build_tasks(
    context: BuildContext,
    objects: FundamentalObjects,
    name: str,
    derive: Derive,
    task: Callable[[Proved], Task],
) -> list[Task]:
    """The episodes of one subtask: as many of the proved labels as the catalog asks for, drawn evenly by their traits.

    Reports are examined in their random order until there are enough or none is left.
    """
    if objects.cases is None:
        return []
    wanted = objects.catalog["episodes"][name]
    pool = Pool()
    for case in objects.cases:
        pool.add(derive(case, objects.catalog["least"]))
        if len(pool.proved) >= objects.catalog["pool"][name]:
            break
    rng = context.generator(name, "draw")
    chosen = drawn(pool.proved, lambda proved: proved.label.traits, wanted, rng, task)
    objects.pools[name] = pool.figures(len(chosen))
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
        "filing_facts": {
            "ref": FACTS_REFERENCE,
            "symbol": report.symbol,
            "as_of": report.filed.isoformat(),
            "since": report.since.isoformat(),
        },
        "conventions": conventions(CONVENTIONS, definitions),
    }
    second = "plain arithmetic from the raw company facts and XBRL instances"
    proof = rederived(proved.difference, AGREEMENT, proved.numbers, second)
    metadata = {"form_type": report.form, "year": str(report.filed.year)}
    return Task(
        Episode(task_id, SKILL, name, report.filed, label.difficulty, task_input, prompt, metadata),
        Truth(task_id, name, label.expected, verification, proof),
        {"kind": "rederived", "accession": report.accession, "second": label.second},
    )

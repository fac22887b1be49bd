"""The episodes of a fundamental subtask: labels that the raw files bear out, pooled, drawn evenly and written down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from finskillbench.domains.building import BuildContext, Task, conventions, drawn, shuffled
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.fundamental.inputs import CONVENTIONS
from finskillbench.domains.fundamental.objects.reports import SKILL, Case, FundamentalObjects, Report
from finskillbench.domains.fundamental.objects.work import difficulty, of_segments
from finskillbench.domains.fundamental.rederive.definitions import periods_of
from finskillbench.domains.fundamental.rederive.identities import Fault
from finskillbench.domains.fundamental.rederive.witness import refuted
from finskillbench.engines.accounting import drivers, quality
from finskillbench.engines.accounting.statements import NORMALISED
from finskillbench.episode import Episode, JsonObject, Prompt, Truth
from finskillbench.scoring.values import is_object, share
from finskillbench.sources.edgar.numerals import CANONICAL

FACTS_REFERENCE = "panels/facts.parquet"
_WITHOUT_OPERATING_INCOME = "earnings_quality"
METRICS_OF: Mapping[str, tuple[str, ...]] = {
    "normalization": (*(name for name in NORMALISED if name in CANONICAL), "depreciation_amortization"),
    "earnings_quality": quality.METRICS,
    "driver_decomposition": drivers.METRICS,
}
"""Subtask to the metrics that its labels are made of."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A label as derived from the panels, and as derived a second time from the raw files.

    prior_end, second_prior_end : the end of the quarter compared with, None where there is none.
    traits : what the draw keeps even.
    decisions : how many of its figures filings do not simply state, see `work`.
    whole : whether it leaves nothing of weight unknown; the catalog says what share of the episodes must be.
    doubtful : whether a verdict hangs on rounding; then the label is no episode.
    meaningful : whether an analyst would sign every figure, see `meaning`; else it is no episode either.
    """

    report: Report
    expected: dict[str, Any]
    second: dict[str, Any]
    traits: tuple[Hashable, ...]
    decisions: int
    whole: bool
    prior_end: date | None = None
    second_prior_end: date | None = None
    doubtful: bool = False
    meaningful: bool = True


Derive = Callable[[Case, Mapping[str, int]], Candidate | None]
"""The label of a report for one subtask; None where its filings do not support one.

The second argument is the catalog's `least`: how much of an answer the filings must support.
"""


@dataclass(slots=True)
class Pool:
    """What a subtask draws its episodes from, with the count of what was left out on the way."""

    proved: list[Candidate] = field(default_factory=list[Candidate])
    examined: int = 0
    unsupported: int = 0
    doubtful: int = 0
    meaningless: int = 0
    faulty: int = 0
    faults: Counter[str] = field(default_factory=Counter[str])
    broken: list[str] = field(default_factory=list[str])
    disagreements: list[str] = field(default_factory=list[str])

    def add(self, candidate: Candidate | None, faults: Iterable[Fault] = ()) -> None:
        """Take up the label of one report, or count why it is left out.

        faults : the identities that the statements behind the label break; then it is no episode.
        """
        self.examined += 1
        if candidate is None:
            self.unsupported += 1
        elif candidate.doubtful:
            self.doubtful += 1
        elif not candidate.meaningful:
            self.meaningless += 1
        elif found := list(faults):
            report = candidate.report
            self.faulty += 1
            self.faults.update({fault.identity for fault in found})
            self.broken.append(f"{report.symbol} {report.accession} {found[0].identity}: {found[0].message}")
        else:
            leaves = leaf_by_leaf(
                {"prior_end": str(candidate.prior_end)} | candidate.expected,
                {"prior_end": str(candidate.second_prior_end)} | candidate.second,
            )
            wrong = next((leaf for leaf in leaves if not leaf.agrees), None)
            if wrong is None:
                self.proved.append(candidate)
            else:
                sides = f"({wrong.first!r} and {wrong.second!r})"
                what = "is in one derivation only" if wrong.absent else sides
                report = candidate.report
                self.disagreements.append(f"{report.symbol} {report.period_end} {wrong.path} {what}")

    @property
    def whole(self) -> list[Candidate]:
        """Those that leave nothing of weight unknown."""
        return [label for label in self.proved if label.whole]

    def drawn(self, wanted: int, whole: float, rng: np.random.Generator) -> list[Candidate]:
        """As many as are wanted, evenly by their traits; fewer where labels that are whole are too few for their share.

        whole : the least share of those that are whole.
        """

        def some(of: Sequence[Candidate], count: int) -> list[Candidate]:
            return drawn(of, lambda label: label.traits, count, rng, lambda label: label)

        first = some(self.whole, math.ceil(whole * wanted))
        taken = set(map(id, first))
        rest = [label for label in self.proved if id(label) not in taken]
        return first + some(rest, min(wanted, int(len(first) / whole)) - len(first))

    def figures(self, labels: Sequence[Candidate]) -> dict[str, Any]:
        """Counts for the manifest of a pool from which `labels` were drawn.

        agreement : the share of the labels derived twice that agree. whole : the share of the episodes that are, see
        `Candidate`. decided : the share with a figure that filings do not simply state. nulls : the share of the parts
        of the labels that are null.
        """
        parts = [part for label in labels for part in _parts(label.expected)]
        compared = len(self.proved) + len(self.disagreements)
        return {
            "filings": self.examined,
            "supported": self.examined - self.unsupported,
            "doubtful": self.doubtful,
            "meaningless": self.meaningless,
            "faulty": self.faulty,
            "faults": dict(sorted(self.faults.items())),
            "compared": compared,
            "agreed": len(self.proved),
            "agreement": len(self.proved) / compared if compared else None,
            "drawn": len(labels),
            "whole": share(sum(label.whole for label in labels), len(labels)),
            "decided": share(sum(label.decisions > 0 for label in labels), len(labels)),
            "nulls": share(sum(part is None for part in parts), len(parts)),
        }


def _parts(value: object) -> Iterator[object]:
    """The leaves of a label."""
    if is_object(value):
        for item in value.values():
            yield from _parts(item)
    else:
        yield value


def build_tasks(
    context: BuildContext,
    objects: FundamentalObjects,
    name: str,
    derive: Derive,
    task: Callable[[Candidate, str], Task],
) -> list[Task]:
    """The episodes of one subtask: as many of the proved labels as the catalog asks for, drawn evenly by their traits.

    Reports are examined in their random order until there are enough or none is left. The catalog says how large a
    share of the episodes must be whole; their difficulty is their number of decisions.
    """
    wanted, whole = objects.catalog["episodes"][name], objects.catalog["whole"][name]
    pool = Pool()
    for case in objects.cases:
        label = derive(case, objects.catalog["least"])
        pool.add(label, () if label is None else _faults(case, name, label))
        if len(pool.proved) >= objects.catalog["pool"][name] and len(pool.whole) >= whole * wanted:
            break
    rng = context.generator(name, "draw")
    chosen = pool.drawn(wanted, whole, rng)
    objects.pools[name] = pool.figures(chosen)
    if pool.faulty:
        context.notes.append(
            f"{name}: {pool.faulty} labels are left out because their statements do not add up, first {pool.broken[0]}."
        )
    if pool.disagreements:
        context.notes.append(
            f"{name}: {len(pool.disagreements)} labels are left out because a second derivation from the raw company "
            f"facts differs, first {pool.disagreements[0]}."
        )
    if len(chosen) < wanted:
        context.notes.append(
            f"{name}: {len(chosen)} episodes instead of {wanted}: of {pool.examined} filings {pool.unsupported} lack "
            f"figures that the answer needs, {pool.doubtful} hang on rounding, {pool.meaningless} mean nothing, "
            f"{pool.faulty} do not add up and {len(pool.disagreements)} were derived differently a second time; "
            f"{len(pool.whole)} labels are whole, and {whole:.0%} of the episodes must be."
        )
    bounds = objects.catalog["difficulty"][name]
    return shuffled([task(label, difficulty(label.decisions, bounds)) for label in chosen], rng)


def _faults(case: Case, name: str, label: Candidate) -> Iterator[Fault]:
    """Yield what refutes the statements behind a label."""
    periods = periods_of(name, label.report.form, label.report.period_end, label.prior_end)
    yield from refuted(case.source, case.witnesses, METRICS_OF[name], periods)
    if name != _WITHOUT_OPERATING_INCOME:
        for statement in (case.reported, case.quarter, case.before):
            if of_segments(case.said, statement):
                yield Fault("operating_income", f"{statement.end}: operating income is not that of the statement")


def finished(
    label: Candidate,
    level: str,
    name: str,
    task_id: str,
    fields: JsonObject,
    definitions: Mapping[str, str],
    prompt: Prompt,
) -> Task:
    """The task of a label; `fields` are its inputs beside the facts and the conventions, which
    `definitions` complete."""
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
    metadata = {"form_type": report.form, "year": str(report.filed.year)}
    return Task(
        Episode(task_id, SKILL, name, report.filed, level, task_input, prompt, metadata),
        Truth(task_id, name, label.expected, {}),
        {"kind": "rederived", "accession": report.accession, "decisions": label.decisions, "second": label.second},
    )

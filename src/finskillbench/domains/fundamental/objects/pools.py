"""Build the episodes of a fundamental subtask: prove, pool and draw labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from finskillbench.domains.building import BuildContext, BuiltTask, draw_evenly, merge_conventions, shuffled
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.fundamental.inputs import CONVENTIONS
from finskillbench.domains.fundamental.objects.reports import SKILL, FundamentalObjects, PeriodicReport, ReportCase
from finskillbench.domains.fundamental.objects.work import difficulty_level, is_segment_total
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


@dataclass(frozen=True, slots=True)
class Candidate:
    """Label derived from the panels, and rederived from the raw files.

    prior_end, rederived_prior_end : end of the comparison quarter. traits : balanced by the draw. whole : no important
    value is unknown. Labels that are doubtful (rounding decides) or not meaningful (see `work`) are excluded.
    """

    report: PeriodicReport
    expected: dict[str, Any]
    rederived: dict[str, Any]
    traits: tuple[Hashable, ...]
    decisions: int
    whole: bool
    prior_end: date | None = None
    rederived_prior_end: date | None = None
    doubtful: bool = False
    meaningful: bool = True


Derive = Callable[[ReportCase, Mapping[str, int]], Candidate | None]
"""Derive the label of a report, given the catalog's minimum support; None if its filings do not suffice."""


@dataclass(slots=True)
class Pool:
    """Labels available to a subtask, with counts of excluded ones."""

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
        """Add the label of one report, or count why it is excluded, such as for `faults` of its statements."""
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
                {"prior_end": str(candidate.rederived_prior_end)} | candidate.rederived,
            )
            wrong = next((leaf for leaf in leaves if not leaf.agrees), None)
            if wrong is None:
                self.proved.append(candidate)
            else:
                sides = f"({wrong.left!r} and {wrong.right!r})"
                what = "is in one derivation only" if wrong.absent else sides
                report = candidate.report
                self.disagreements.append(f"{report.symbol} {report.period_end} {wrong.path} {what}")

    @property
    def whole(self) -> list[Candidate]:
        return [label for label in self.proved if label.whole]

    def drawn(self, wanted: int, whole: float, rng: np.random.Generator) -> list[Candidate]:
        """Draw labels evenly by traits, with at least a share `whole` of whole ones; fewer than wanted if these are
        rare.
        """

        def some(of: Sequence[Candidate], count: int) -> list[Candidate]:
            return draw_evenly(of, lambda label: label.traits, count, rng, lambda label: label)

        first = some(self.whole, math.ceil(whole * wanted))
        taken = set(map(id, first))
        rest = [label for label in self.proved if id(label) not in taken]
        return first + some(rest, min(wanted, int(len(first) / whole)) - len(first))

    def figures(self, labels: Sequence[Candidate]) -> dict[str, Any]:
        """Return pool statistics for the manifest; `labels` are the ones drawn.

        agreement : share of rederived labels that agree. decided : share of drawn labels with a figure needing a
            decision.
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
    task: Callable[[Candidate, str], BuiltTask],
) -> list[BuiltTask]:
    """Build the episodes of one subtask from proved labels, examining reports at random until the pool suffices."""
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
            f"{name}: {len(pool.disagreements)} labels are left out because the independent derivation from the raw "
            f"company facts differs, first {pool.disagreements[0]}."
        )
    if len(chosen) < wanted:
        context.notes.append(
            f"{name}: {len(chosen)} episodes instead of {wanted}: of {pool.examined} filings {pool.unsupported} lack "
            f"figures that the answer needs, {pool.doubtful} depend on rounding, {pool.meaningless} are not "
            f"meaningful, {pool.faulty} do not add up and {len(pool.disagreements)} differ in the independent "
            f"derivation; {len(pool.whole)} labels are whole, and {whole:.0%} of the episodes must be."
        )
    bounds = objects.catalog["difficulty"][name]
    return shuffled([task(label, difficulty_level(label.decisions, bounds)) for label in chosen], rng)


def _faults(case: ReportCase, name: str, label: Candidate) -> Iterator[Fault]:
    periods = periods_of(name, label.report.form, label.report.period_end, label.prior_end)
    yield from refuted(case.source, case.witnesses, METRICS_OF[name], periods)
    if name != _WITHOUT_OPERATING_INCOME:
        for statement in (case.reported, case.quarter, case.before):
            if is_segment_total(case.filed_values, statement):
                yield Fault("operating_income", f"{statement.end}: operating income is not that of the statement")


def assemble_task(
    label: Candidate,
    level: str,
    name: str,
    task_id: str,
    fields: JsonObject,
    definitions: Mapping[str, str],
    prompt: Prompt,
) -> BuiltTask:
    """Return the task of a label; `fields` and `definitions` complete the common inputs and conventions."""
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
        "conventions": merge_conventions(CONVENTIONS, definitions),
    }
    metadata = {"form_type": report.form, "year": str(report.filed.year)}
    return BuiltTask(
        Episode(task_id, SKILL, name, report.filed, level, task_input, prompt, metadata),
        Truth(task_id, name, label.expected, {}),
        {"kind": "rederived", "accession": report.accession, "decisions": label.decisions, "second": label.rederived},
    )

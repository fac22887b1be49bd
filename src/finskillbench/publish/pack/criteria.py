"""Acceptance criteria of the user: `--criteria FILE`, and the table of which are met."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from finskillbench.domains.base import HEADLINE
from finskillbench.errors import InputError
from finskillbench.publish.pack.chapters import Chapter, captioned
from finskillbench.publish.pack.evidence import read_bounded
from finskillbench.reports.compare.gates import OF_ROWS, Threshold, ThresholdMeasure, ThresholdResult
from finskillbench.reports.tables.base import Column, Kind, Table

_LARGEST = 2**18
_REMEDY = "docs/validation-pack.md has an example"
_NAMES = {
    ThresholdMeasure.MEAN: "Mean score, at least",
    ThresholdMeasure.LOWER_BOUND: "Lower 95 % bound of the mean score, at least",
    ThresholdMeasure.COVERAGE: "Share of rows with a verdict, at least",
    ThresholdMeasure.INCIDENTS: "Share of rows with an incident, at most",
}
_Share: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]


class _Criterion(Struct, forbid_unknown_fields=True):
    part: str = HEADLINE
    condition: str | None = None
    model: str | None = None
    mean: _Share | None = None
    lower_bound: _Share | None = None
    coverage: _Share | None = None
    incidents: _Share | None = None


class _File(Struct, forbid_unknown_fields=True):
    criterion: Annotated[tuple[_Criterion, ...], Meta(min_length=1)]


def read_criteria(path: Path) -> list[Threshold]:
    """Read a TOML file of acceptance criteria, a `[[criterion]]` each.

    Raises
    ------
    InputError : the file cannot be read, or a field is missing, unknown or out of range; in one line.
    """
    content = read_bounded(path, _LARGEST, _REMEDY)
    try:
        file = msgspec.convert(tomllib.loads(content.decode()), _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not TOML ({error}); {_REMEDY}") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}; {_REMEDY}") from None
    return [
        threshold
        for number, each in enumerate(file.criterion, start=1)
        for threshold in _thresholds(each, f"{path}, criterion {number}")
    ]


def _thresholds(criterion: _Criterion, where: str) -> list[Threshold]:
    limits = {measure: getattr(criterion, measure.value) for measure in ThresholdMeasure}
    found = [
        Threshold(criterion.part, criterion.condition, limit, measure, criterion.model, where)
        for measure, limit in limits.items()
        if limit is not None
    ]
    if not found:
        raise InputError(f"{where}: has no limit; give one of {', '.join(ThresholdMeasure)}")
    return found


def criteria_chapter(judged: Sequence[ThresholdResult] | None) -> Chapter:
    """Acceptance criteria and which of them are met; None where none were supplied."""
    if judged is None:
        words = (
            "No acceptance criteria were supplied (--criteria FILE). This pack states no pass or fail of the models."
        )
        return Chapter("criteria", "Acceptance criteria", (words,))
    words = (
        f"{criteria_met(judged)} The firm supplied the criteria. A criterion on a mean or its bound is met only if "
        "it would also be met had every episode without a verdict scored 0. A value that cannot be computed fails."
    )
    rows = tuple(
        (
            each.threshold.part,
            each.model,
            each.condition,
            _NAMES[each.threshold.measure],
            each.threshold.limit,
            each.value,
            "PASS" if each.outcome.holds else "FAIL",
            _remark(each),
        )
        for each in judged
    )
    columns = (
        Column("part", "Part"),
        Column("model", "Model"),
        Column("condition", "Condition"),
        Column("measure", "Measure"),
        Column("limit", "Limit", Kind.NUMBER, digits=4),
        Column("value", "Measured", Kind.NUMBER, digits=4),
        Column("outcome", "Outcome"),
        Column("remark", "Remark"),
    )
    population = "episodes (means, bounds) or rows (shares) of the part, model and condition; unit: fraction, 0 to 1"
    table = Table("criteria", "", columns, rows)
    return Chapter(
        "criteria", "Acceptance criteria", (words,), tables=captioned(table, "Criteria and outcomes", population)
    )


def criteria_met(judged: Sequence[ThresholdResult] | None) -> str:
    """Number of criteria that are met, in a sentence."""
    if judged is None:
        return "None supplied."
    met = sum(each.outcome.holds for each in judged)
    return f"{'PASS' if met == len(judged) else 'FAIL'}: {met} of {len(judged)} criteria are met."


def _remark(judged: ThresholdResult) -> str:
    """The reason of a failure that the measured value does not show."""
    if judged.value is not None and judged.threshold.measure in OF_ROWS:
        return ""
    shown = judged.value is not None and judged.value < judged.threshold.limit
    return "" if judged.outcome.holds or shown else judged.outcome.reason

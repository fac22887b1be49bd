"""Driver decomposition: which segments moved revenue, and what moved the margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import mean, ramp, share
from finskillbench.scoring.values import number, objects, text
from finskillbench.subtasks.base import Answer, Subtask

_TOP = 5
_TOLERANCE = 0.15

_Driver = Mapping[str, Any]
_Direction = Literal["increase", "decrease"]


class RevenueDriver(Answer):
    """One segment's part in the change of revenue."""

    driver: str = Field(description="Segment name, as filed.")
    type: Literal["product_segment", "geographic_segment"] = Field(description="Which axis the segment is on.")
    direction: _Direction = Field(description="Direction of the segment's revenue.")
    magnitude_usd: float = Field(description="Change of the segment's revenue, USD (unscaled); a fall is negative.")
    contribution_pct: float = Field(
        description="The segment's change as a percentage of the change of total revenue (36.35 is 36.35 %), signed."
    )


class MarginDriver(Answer):
    """One margin or expense ratio, each over revenue."""

    driver: Literal[
        "operating_margin",
        "gross_margin",
        "cogs_ratio",
        "sga_ratio",
        "rnd_ratio",
        "da_ratio",
        "interest_ratio",
        "tax_ratio",
    ] = Field(description="Name of the ratio.")
    type: Literal["margin", "expense_ratio"] = Field(description="Whether it is a margin or an expense.")
    direction: _Direction = Field(description="Direction of the ratio.")
    delta_pp: float = Field(description="Change of the ratio in percentage points (-2.94 is -2.94 pp), signed.")


class DriverDecomposition(Answer):
    """Answer: the change of revenue and its drivers."""

    revenue_delta: float = Field(description="Current minus prior revenue, USD (unscaled); a fall is negative.")
    top_revenue_drivers: list[RevenueDriver] = Field(
        description="At most 5 segments in descending order of absolute change."
    )
    margin_drivers: list[MarginDriver] = Field(description="The ratios that changed.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """driver_f1_and_direction: mean of the active terms, k = 5.

    (a) half recall, half precision of revenue-driver names among the first k, 0 if none is expected; (b) share of
    right directions over matched drivers, if any; (c) mean ramp (0.15) of `magnitude_usd` and `contribution_pct` of
    matched drivers, if any; (d) half margin-driver recall, half directions of matched ones, if any is expected;
    (e) mean ramp (0.15) of matched `delta_pp`, if any; (f) max(0, 1 - relerr) of `revenue_delta`, if both give one
    and the expected is not 0. Names are lower-cased and stripped.
    """
    del task_input
    expected = truth.expected_output
    terms: dict[str, float] = {}

    predicted, labelled = _drivers(answer, "top_revenue_drivers")[:_TOP], _by_name(_top(expected))
    names = {_name(driver) for driver in predicted} - {None}
    matched = [(driver, labelled[_name(driver)]) for driver in predicted if _name(driver) in labelled]
    shared = len(names & labelled.keys())
    terms["revenue_drivers"] = 0.5 * share(shared, len(labelled)) + 0.5 * share(shared, len(names))
    if matched:
        terms["revenue_direction"] = _direction_accuracy(matched)
        sizes = _ramps(matched, "magnitude_usd") + _ramps(matched, "contribution_pct")
        if sizes:
            terms["revenue_magnitude"] = mean(sizes)

    ratios = _by_name(_drivers(expected, "margin_drivers"))
    if ratios:
        given = _drivers(answer, "margin_drivers")
        found = [(driver, ratios[_name(driver)]) for driver in given if _name(driver) in ratios]
        recall = share(len({_name(driver) for driver, _ in found}), len(ratios))
        terms["margin_drivers"] = 0.5 * recall + 0.5 * _direction_accuracy(found)
        changes = _ramps(found, "delta_pp")
        if changes:
            terms["margin_delta"] = mean(changes)

    delta, wanted = number(answer.get("revenue_delta")), number(expected.get("revenue_delta"))
    if delta is not None and wanted:
        terms["revenue_delta"] = max(0.0, 1.0 - abs(delta - wanted) / abs(wanted))
    return Score(mean(list(terms.values())), terms)


def _drivers(source: JsonObject, key: str) -> list[_Driver]:
    return objects(source.get(key))


def _top(expected: JsonObject) -> list[_Driver]:
    return _drivers(expected, "top_revenue_drivers")[:_TOP]


def _name(driver: _Driver) -> str | None:
    name = text(driver.get("driver"))
    return None if name is None else name.lower().strip()


def _by_name(drivers: Sequence[_Driver]) -> dict[str | None, _Driver]:
    """Labelled drivers by name; of equal names the last one counts."""
    return {name: driver for driver in drivers if (name := _name(driver)) is not None}


def _direction_accuracy(matched: Sequence[tuple[_Driver, _Driver]]) -> float:
    right = 0
    for given, wanted in matched:
        direction = text(given.get("direction"))
        right += direction is not None and direction == text(wanted.get("direction"))
    return share(right, len(matched))


def _ramps(matched: Sequence[tuple[_Driver, _Driver]], field: str) -> list[float]:
    """Ramps of one field over the matched drivers whose label has it; absent from the answer is 0."""
    return [
        ramp(number(given.get(field)), amount, tolerance=_TOLERANCE)
        for given, wanted in matched
        if (amount := number(wanted.get(field))) is not None
    ]


SUBTASK = Subtask(
    name="driver_decomposition",
    skill="fundamental_analysis",
    prefix="fa_dd",
    method="driver_f1_and_direction",
    answer=DriverDecomposition,
    scorers={Profile.PAPER: paper, Profile.STRICT: paper},
)

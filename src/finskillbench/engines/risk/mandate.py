"""Risk mandates: constraints of distinct, exactly defined kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.engines.fields import describe_value, list_of, listed, number, table_of
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.errors import InputError


class ConstraintKind(StrEnum):
    """Kinds of constraints, in canonical order."""

    LONG_ONLY = "long_only"
    POSITION_LIMIT_MAX = "position_limit_max"
    POSITION_LIMIT_MIN = "position_limit_min"
    SECTOR_LIMIT_MAX = "sector_limit_max"
    TRACKING_ERROR_MAX = "tracking_error_max"
    BETA_RANGE = "beta_range"
    FACTOR_EXPOSURE_MAX = "factor_exposure_max"
    TURNOVER_MAX_MONTHLY = "turnover_max_monthly"
    CASH_MAX = "cash_max"
    GROSS_EXPOSURE_MAX = "gross_exposure_max"
    HHI_MAX = "hhi_max"
    NAME_COUNT = "name_count"


COLUMN: Mapping[ConstraintKind, int] = {kind: column for column, kind in enumerate(ConstraintKind)}
"""Column of each kind in arrays over all kinds."""
COMPLIANCE_TOLERANCE = 1e-5
"""Maximum excess over a kept limit, in the limit's unit.

A tenth of a basis point of NAV: the error of weights with six decimals, or of a solver. Monitoring, remediation and all
checks use it.
"""
RANGES = frozenset({ConstraintKind.BETA_RANGE, ConstraintKind.NAME_COUNT})

DEFINITIONS: Mapping[ConstraintKind, str] = {
    ConstraintKind.LONG_ONLY: "no short positions: the least weight other than 0 is >= 0",
    ConstraintKind.POSITION_LIMIT_MAX: "the greatest weight is <= value",
    ConstraintKind.POSITION_LIMIT_MIN: "every weight is 0 or at least value in size: the least |weight| other than 0 "
    "is >= value",
    ConstraintKind.SECTOR_LIMIT_MAX: "the greatest total weight of a sector (sum of its signed weights, by "
    "sector_mapping) is <= value",
    ConstraintKind.TRACKING_ERROR_MAX: "sqrt((w - b)'S(w - b)) <= value, a decimal per year: w the weights and b the "
    "benchmark_weights of all names, S the covariance_matrix, which is annualised; cash carries no risk",
    ConstraintKind.BETA_RANGE: "min <= sum of weight x mkt_rf beta <= max, betas by factor_exposures; cash has beta 0",
    ConstraintKind.FACTOR_EXPOSURE_MAX: "the greatest |sum of weight x beta| over the listed factors, betas by "
    "factor_exposures, is <= value",
    ConstraintKind.TURNOVER_MAX_MONTHLY: "one-way turnover of the month <= value: (sum of |t| + |sum of t|) / 2 over "
    "the signed weight changes t of trades_this_month (the second term is the cash)",
    ConstraintKind.CASH_MAX: "cash_weight <= value",
    ConstraintKind.GROSS_EXPOSURE_MAX: "sum of |weight| of the holdings, without cash, <= value",
    ConstraintKind.HHI_MAX: "Herfindahl index, sum of squared weights of the holdings (fractions, without cash), "
    "<= value",
    ConstraintKind.NAME_COUNT: f"min <= number of holdings, |weight| >= {HOLDING_THRESHOLD}, <= max; an end that is "
    "null does not bind",
}
"""Definitions of the kinds, shown to agents; weights are signed fractions of NAV."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One limit: `value`, or the ends of a range (name_count may omit one).

    long_only has value 0, its least weight; only factor_exposure_max has `factors`.
    """

    kind: ConstraintKind
    value: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    factors: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest admissible value, infinite for a missing end."""
        if self.kind in (ConstraintKind.LONG_ONLY, ConstraintKind.POSITION_LIMIT_MIN):
            return (-math.inf if self.value is None else self.value), math.inf
        highest = self.maximum if self.value is None else self.value
        return (-math.inf if self.minimum is None else self.minimum, math.inf if highest is None else highest)

    def to_json(self) -> dict[str, Any]:
        """Return the task's JSON with the definition."""
        shown_as: dict[str, Any] = {"type": self.kind.value}
        if self.kind in RANGES:
            whole = self.kind is ConstraintKind.NAME_COUNT
            for name, end in (("min", self.minimum), ("max", self.maximum)):
                shown_as[name] = int(end) if whole and end is not None else end
        else:
            shown_as |= {"factors": list(self.factors)} if self.factors else {}
            shown_as["value"] = True if self.kind is ConstraintKind.LONG_ONLY else self.value
        return shown_as | {"definition": DEFINITIONS[self.kind]}


@dataclass(frozen=True)
class RiskMandate:
    """Constraints of distinct kinds, in the mandate's order."""

    mandate_id: str
    name: str
    constraints: tuple[Constraint, ...]

    def get(self, kind: ConstraintKind) -> Constraint | None:
        return next((constraint for constraint in self.constraints if constraint.kind is kind), None)

    def limit(self, kind: ConstraintKind) -> float | None:
        constraint = self.get(kind)
        return None if constraint is None else constraint.value

    def without(self, *kinds: ConstraintKind) -> RiskMandate:
        return replace(self, constraints=tuple(one for one in self.constraints if one.kind not in kinds))

    @cached_property
    def columns(self) -> Integers:
        """(c,) `COLUMN` of each constraint."""
        return np.array([COLUMN[constraint.kind] for constraint in self.constraints], dtype=int)

    @cached_property
    def limits(self) -> Floats:
        """(2 x kinds,) Least values in the order of `COLUMN`, then greatest; nan without a limit."""
        found = np.full((2, len(ConstraintKind)), np.nan)
        for column, constraint in zip(self.columns, self.constraints, strict=True):
            found[:, column] = constraint.bounds
        return found.ravel()

    @cached_property
    def limited_factors(self) -> Floats:
        """(6,) 1 for the `FACTORS` of factor_exposure_max, else 0."""
        constraint = self.get(ConstraintKind.FACTOR_EXPOSURE_MAX)
        listed_factors = () if constraint is None else constraint.factors
        return np.array([float(factor in listed_factors) for factor in FACTORS])

    def to_json(self) -> dict[str, Any]:
        """Return the task's JSON, with definitions."""
        constraints = [constraint.to_json() for constraint in self.constraints]
        return {"mandate_id": self.mandate_id, "name": self.name, "constraints": constraints}

    def check(self, names: int) -> None:
        """Raise `InputError` for pairs of limits that conflict in any market of `names` names (a necessary test)."""
        for problem in _contradictions(self, names):
            raise InputError(f"mandate {self.mandate_id}: {problem}; change one of them")


def _contradictions(mandate: RiskMandate, names: int) -> list[str]:
    """Describe pairs of limits that no portfolio satisfies; cash is never negative."""
    cap, floor = mandate.limit(ConstraintKind.POSITION_LIMIT_MAX), mandate.limit(ConstraintKind.POSITION_LIMIT_MIN)
    gross, hhi = mandate.limit(ConstraintKind.GROSS_EXPOSURE_MAX), mandate.limit(ConstraintKind.HHI_MAX)
    cash = mandate.limit(ConstraintKind.CASH_MAX)
    count, beta = mandate.get(ConstraintKind.NAME_COUNT), mandate.get(ConstraintKind.BETA_RANGE)
    fewest = 0.0 if count is None or count.minimum is None else count.minimum
    most = float(names) if count is None or count.maximum is None else min(count.maximum, names)
    invested = 0.0 if cash is None else max(0.0, 1.0 - cash)
    # Maximum weight in uncounted names; none with a least position above the threshold.
    dust = 0.0 if (floor or 0.0) >= HOLDING_THRESHOLD else HOLDING_THRESHOLD * (names - most)
    smallest = max(floor or 0.0, HOLDING_THRESHOLD)
    available = gross if mandate.get(ConstraintKind.LONG_ONLY) is None else min(1.0, 1.0 if gross is None else gross)
    found: list[str] = []

    def clash(left: ConstraintKind, right: ConstraintKind, why: str) -> None:
        found.append(f"{left} and {right} exclude each other ({why})")

    if cap is not None and floor is not None and floor > cap + _SLACK:
        clash(
            ConstraintKind.POSITION_LIMIT_MIN,
            ConstraintKind.POSITION_LIMIT_MAX,
            f"a holding of at least {floor:g} and at most {cap:g}",
        )
    if fewest > names:
        found.append(f"name_count requires {fewest:g} holdings of a universe of {names} names")
    if available is not None and fewest * smallest > available + _SLACK:
        other = ConstraintKind.POSITION_LIMIT_MIN if floor else ConstraintKind.GROSS_EXPOSURE_MAX
        clash(ConstraintKind.NAME_COUNT, other, f"{fewest:g} holdings of at least {smallest:g} exceed {available:g}")
    if hhi is not None and fewest * smallest**2 > hhi + _SLACK:
        clash(ConstraintKind.NAME_COUNT, ConstraintKind.HHI_MAX, f"{fewest:g} holdings of at least {smallest:g}")
    if cap is not None and cash is not None and most * cap + min(dust, cap * (names - most)) < invested - _SLACK:
        clash(
            ConstraintKind.POSITION_LIMIT_MAX,
            ConstraintKind.CASH_MAX,
            f"{most:g} names of at most {cap:g} leave more cash than {cash:g}",
        )
    if gross is not None and gross < invested - _SLACK:
        clash(ConstraintKind.GROSS_EXPOSURE_MAX, ConstraintKind.CASH_MAX, f"at least {invested:g} must be invested")
    if hhi is not None and most > 0 and max(0.0, invested - dust) ** 2 / most > hhi + _SLACK:
        clash(
            ConstraintKind.HHI_MAX, ConstraintKind.CASH_MAX, f"{invested:g} spread over {most:g} names exceeds {hhi:g}"
        )
    neutral = mandate.get(ConstraintKind.FACTOR_EXPOSURE_MAX)
    if beta is not None and neutral is not None and FACTORS[0] in neutral.factors:
        widest = neutral.value or 0.0
        if (beta.minimum or 0.0) > widest + _SLACK or (beta.maximum or 0.0) < -widest - _SLACK:
            clash(
                ConstraintKind.BETA_RANGE, ConstraintKind.FACTOR_EXPOSURE_MAX, f"|{FACTORS[0]}| of at most {widest:g}"
            )
    return found


_SLACK = 1e-9
"""Tolerance for touching limits."""
_ANY_UNIVERSE = 10**9
"""Universe size for conflicts that hold in every universe."""
_ZERO_ALLOWED = frozenset({ConstraintKind.CASH_MAX, ConstraintKind.TURNOVER_MAX_MONTHLY})
"""Kinds with an admissible limit of 0; other zero limits leave at most one portfolio."""


def mandate_from(data: object) -> RiskMandate:
    """Read a mandate: `mandate_id`, `name` and `constraints`.

    Raises `InputError` for unknown or repeated types, unknown fields or factors, invalid numbers, and limits that
    conflict in every universe (`RiskMandate.check` tests a given size).
    """
    if (table := table_of(data)) is None:
        raise InputError("mandate must be an object with mandate_id and constraints; inject it from the task data")
    rows = list_of(table.get("constraints"))
    if not rows:
        raise InputError("mandate: constraints must be a list of objects, at least one")
    identity = table.get("mandate_id", "")
    name = table.get("name", identity)
    if not isinstance(identity, str) or not isinstance(name, str):
        raise InputError("mandate: mandate_id and name must be text")
    constraints = tuple(_constraint(row, index) for index, row in enumerate(rows))
    kinds = [constraint.kind for constraint in constraints]
    for kind in kinds:
        if kinds.count(kind) > 1:
            raise InputError(f"mandate: constraint {kind} is given {kinds.count(kind)} times; give each type once")
    mandate = RiskMandate(identity, name, constraints)
    mandate.check(_ANY_UNIVERSE)
    return mandate


def _constraint(data: object, index: int) -> Constraint:
    row = table_of(data) or {}
    kind = row.get("type")
    if not isinstance(kind, str) or kind not in set(ConstraintKind):
        raise InputError(
            f"mandate: constraints[{index}].type {describe_value(kind)} is unknown; "
            f"choose one of {', '.join(ConstraintKind)}"
        )
    kind = ConstraintKind(kind)
    where = f"mandate: constraint {kind}"
    known = {"min", "max"} if kind in RANGES else {"value"}
    if kind is ConstraintKind.FACTOR_EXPOSURE_MAX:
        known.add("factors")
    unknown = sorted(str(field) for field in set(row) - known - {"type", "definition", "description"})
    if unknown:
        raise InputError(f"{where} has unknown fields {listed(unknown)}; known: {', '.join(sorted(known))}")
    if kind is ConstraintKind.LONG_ONLY:
        if row.get("value") is not True:
            raise InputError(f"{where}: value must be true; leave the constraint out where shorts are allowed")
        return Constraint(kind, value=0.0)
    if kind in RANGES:
        return _range(kind, row, where)
    value = number(row, "value", where)
    if value < 0 or (value == 0 and kind not in _ZERO_ALLOWED):
        raise InputError(
            f"{where}: value must be {'>= 0' if kind in _ZERO_ALLOWED else '> 0'}, not {describe_value(value)}"
        )
    factors = _factors(row.get("factors"), where) if kind is ConstraintKind.FACTOR_EXPOSURE_MAX else ()
    return Constraint(kind, value=value, factors=factors)


def _range(kind: ConstraintKind, row: Mapping[str, Any], where: str) -> Constraint:
    ends: list[float | None] = [None, None]
    for place, end in enumerate(("min", "max")):
        if kind is ConstraintKind.NAME_COUNT and row.get(end) is None:
            continue
        ends[place] = number(row, end, where)
    low, high = ends
    if low is None and high is None:
        raise InputError(f"{where} has neither min nor max; give one of them")
    if kind is ConstraintKind.NAME_COUNT and any(end is not None and (end < 0 or end != int(end)) for end in ends):
        raise InputError(
            f"{where}: min and max must be whole numbers, not {describe_value(row.get('min'))} and "
            f"{describe_value(row.get('max'))}"
        )
    if low is not None and high is not None and low > high:
        raise InputError(f"{where}: min {low:g} is greater than max {high:g}; exchange them")
    return Constraint(kind, minimum=low, maximum=high)


def _factors(data: object, where: str) -> tuple[str, ...]:
    if not (factors := list_of(data)):
        raise InputError(f"{where}: factors must be a list of factor names, at least one of {', '.join(FACTORS)}")
    for factor in factors:
        if factor not in FACTORS:
            raise InputError(f"{where}: factor {describe_value(factor)} is unknown; choose from {', '.join(FACTORS)}")
    if len(set(factors)) != len(factors):
        raise InputError(f"{where}: factors names a factor twice; name each once")
    return tuple(factors)

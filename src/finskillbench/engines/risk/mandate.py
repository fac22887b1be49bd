"""A risk mandate: constraints of distinct kinds, each with one exact definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from finskillbench.arrays import FACTORS, Floats, Integers
from finskillbench.engines.fields import list_of, listed, number, shown, table_of
from finskillbench.engines.holdings import HOLDING_THRESHOLD
from finskillbench.errors import InputError


class Kind(StrEnum):
    """The kinds of constraint, in canonical order."""

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


COLUMN: Mapping[Kind, int] = {kind: column for column, kind in enumerate(Kind)}
"""Place of each kind in an array over all kinds."""
COMPLIANCE_TOLERANCE = 1e-5
"""A limit is kept where the measured value lies beyond it by no more than this, in the unit of the limit.

A tenth of a basis point of NAV: what rounding to six decimals leaves in a sum over a portfolio, and a solver in an
optimum. It is the one definition of compliance: of what is monitored, of what is remedied, and of every check.
"""
RANGES = frozenset({Kind.BETA_RANGE, Kind.NAME_COUNT})
"""The kinds that have two ends."""

DEFINITIONS: Mapping[Kind, str] = {
    Kind.LONG_ONLY: "no short positions: the least weight other than 0 is >= 0",
    Kind.POSITION_LIMIT_MAX: "the greatest weight is <= value",
    Kind.POSITION_LIMIT_MIN: "every weight is 0 or at least value in size: the least |weight| other than 0 is >= value",
    Kind.SECTOR_LIMIT_MAX: "the greatest total weight of a sector (sum of its signed weights, by sector_mapping) is "
    "<= value",
    Kind.TRACKING_ERROR_MAX: "sqrt((w - b)'S(w - b)) <= value, a decimal per year: w the weights and b the "
    "benchmark_weights of all names, S the covariance_matrix, which is annualised; cash carries no risk",
    Kind.BETA_RANGE: "min <= sum of weight x mkt_rf beta <= max, betas by factor_exposures; cash has beta 0",
    Kind.FACTOR_EXPOSURE_MAX: "the greatest |sum of weight x beta| over the listed factors, betas by "
    "factor_exposures, is <= value",
    Kind.TURNOVER_MAX_MONTHLY: "one-way turnover of the month <= value: (sum of |t| + |sum of t|) / 2 over the signed "
    "weight changes t of trades_this_month (the second term is the cash)",
    Kind.CASH_MAX: "cash_weight <= value",
    Kind.GROSS_EXPOSURE_MAX: "sum of |weight| of the holdings, without cash, <= value",
    Kind.HHI_MAX: "Herfindahl index, sum of squared weights of the holdings (fractions, without cash), <= value",
    Kind.NAME_COUNT: f"min <= number of holdings, |weight| >= {HOLDING_THRESHOLD}, <= max; an end that is null does "
    "not bind",
}
"""What each kind measures and when it is kept, as the agent reads it; weights are signed fractions of NAV."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One limit: `value`, or the ends of a range, of which name_count may leave one None.

    long_only has value 0, the least weight that it allows; `factors` only factor_exposure_max has.
    """

    kind: Kind
    value: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    factors: tuple[str, ...] = ()

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and greatest measured value that keeps the constraint; infinite where there is no such end."""
        if self.kind in (Kind.LONG_ONLY, Kind.POSITION_LIMIT_MIN):
            return (-math.inf if self.value is None else self.value), math.inf
        highest = self.maximum if self.value is None else self.value
        return (
            -math.inf if self.minimum is None else self.minimum,
            math.inf if highest is None else highest,
        )

    def to_json(self) -> dict[str, Any]:
        """As a task shows it, with the definition."""
        shown_as: dict[str, Any] = {"type": self.kind.value}
        if self.kind in RANGES:
            whole = self.kind is Kind.NAME_COUNT
            for name, end in (("min", self.minimum), ("max", self.maximum)):
                shown_as[name] = int(end) if whole and end is not None else end
        else:
            shown_as |= {"factors": list(self.factors)} if self.factors else {}
            shown_as["value"] = True if self.kind is Kind.LONG_ONLY else self.value
        return shown_as | {"definition": DEFINITIONS[self.kind]}


@dataclass(frozen=True)
class Mandate:
    """Constraints of distinct kinds, in the order in which the mandate lists them."""

    mandate_id: str
    name: str
    constraints: tuple[Constraint, ...]

    def get(self, kind: Kind) -> Constraint | None:
        """The constraint of a kind, or None."""
        return next((constraint for constraint in self.constraints if constraint.kind is kind), None)

    def limit(self, kind: Kind) -> float | None:
        """The value of a constraint of a kind, or None where the mandate has none."""
        constraint = self.get(kind)
        return None if constraint is None else constraint.value

    def without(self, *kinds: Kind) -> Mandate:
        """The mandate without the constraints of some kinds."""
        return replace(self, constraints=tuple(one for one in self.constraints if one.kind not in kinds))

    @cached_property
    def columns(self) -> Integers:
        """(c,) `COLUMN` of each constraint."""
        return np.array([COLUMN[constraint.kind] for constraint in self.constraints], dtype=int)

    @cached_property
    def limits(self) -> Floats:
        """(2 x kinds,) least value of each kind in the order of `COLUMN`, then the greatest; nan without a limit."""
        found = np.full((2, len(Kind)), np.nan)
        for column, constraint in zip(self.columns, self.constraints, strict=True):
            found[:, column] = constraint.bounds
        return found.ravel()

    @cached_property
    def limited_factors(self) -> Floats:
        """(6,) 1 for each of the `FACTORS` that factor_exposure_max lists, else 0."""
        constraint = self.get(Kind.FACTOR_EXPOSURE_MAX)
        listed_here = () if constraint is None else constraint.factors
        return np.array([float(factor in listed_here) for factor in FACTORS])

    def to_json(self) -> dict[str, Any]:
        """The mandate as a task shows it, every constraint with its definition."""
        constraints = [constraint.to_json() for constraint in self.constraints]
        return {"mandate_id": self.mandate_id, "name": self.name, "constraints": constraints}

    def check(self, names: int) -> None:
        """Refuse limits that contradict each other by themselves, whatever the market of `names` names is.

        A necessary test: limits that pass may still exclude each other through betas, covariance or sectors.

        Raises
        ------
        InputError : naming the constraints that exclude each other.
        """
        for problem in _contradictions(self, names):
            raise InputError(f"mandate {self.mandate_id}: {problem}; change one of them")


def _contradictions(mandate: Mandate, names: int) -> list[str]:
    """Pairs of limits that no portfolio keeps; cash is never below 0."""
    cap, floor = mandate.limit(Kind.POSITION_LIMIT_MAX), mandate.limit(Kind.POSITION_LIMIT_MIN)
    gross, hhi = mandate.limit(Kind.GROSS_EXPOSURE_MAX), mandate.limit(Kind.HHI_MAX)
    cash = mandate.limit(Kind.CASH_MAX)
    count, beta = mandate.get(Kind.NAME_COUNT), mandate.get(Kind.BETA_RANGE)
    fewest = 0.0 if count is None or count.minimum is None else count.minimum
    most = float(names) if count is None or count.maximum is None else min(count.maximum, names)
    invested = 0.0 if cash is None else max(0.0, 1.0 - cash)
    # What names too small to be counted may hold; with a least position above the threshold there are none.
    dust = 0.0 if (floor or 0.0) >= HOLDING_THRESHOLD else HOLDING_THRESHOLD * (names - most)
    smallest = max(floor or 0.0, HOLDING_THRESHOLD)
    available = gross if mandate.get(Kind.LONG_ONLY) is None else min(1.0, 1.0 if gross is None else gross)
    found: list[str] = []

    def clash(first: Kind, second: Kind, why: str) -> None:
        found.append(f"{first} and {second} exclude each other ({why})")

    if cap is not None and floor is not None and floor > cap + _SLACK:
        clash(Kind.POSITION_LIMIT_MIN, Kind.POSITION_LIMIT_MAX, f"a holding of at least {floor:g} and at most {cap:g}")
    if fewest > names:
        found.append(f"name_count asks for {fewest:g} holdings of a universe of {names} names")
    if available is not None and fewest * smallest > available + _SLACK:
        other = Kind.POSITION_LIMIT_MIN if floor else Kind.GROSS_EXPOSURE_MAX
        clash(Kind.NAME_COUNT, other, f"{fewest:g} holdings of at least {smallest:g} exceed {available:g}")
    if hhi is not None and fewest * smallest**2 > hhi + _SLACK:
        clash(Kind.NAME_COUNT, Kind.HHI_MAX, f"{fewest:g} holdings of at least {smallest:g}")
    if cap is not None and cash is not None and most * cap + min(dust, cap * (names - most)) < invested - _SLACK:
        clash(
            Kind.POSITION_LIMIT_MAX, Kind.CASH_MAX, f"{most:g} names of at most {cap:g} leave more cash than {cash:g}"
        )
    if gross is not None and gross < invested - _SLACK:
        clash(Kind.GROSS_EXPOSURE_MAX, Kind.CASH_MAX, f"at least {invested:g} must be invested")
    if hhi is not None and most > 0 and max(0.0, invested - dust) ** 2 / most > hhi + _SLACK:
        clash(Kind.HHI_MAX, Kind.CASH_MAX, f"{invested:g} spread over {most:g} names exceeds {hhi:g}")
    neutral = mandate.get(Kind.FACTOR_EXPOSURE_MAX)
    if beta is not None and neutral is not None and FACTORS[0] in neutral.factors:
        widest = neutral.value or 0.0
        if (beta.minimum or 0.0) > widest + _SLACK or (beta.maximum or 0.0) < -widest - _SLACK:
            clash(Kind.BETA_RANGE, Kind.FACTOR_EXPOSURE_MAX, f"|{FACTORS[0]}| of at most {widest:g}")
    return found


_SLACK = 1e-9
"""Limits that just touch do not contradict each other."""
_ANY_UNIVERSE = 10**9
"""Names of a universe so large that only limits which contradict each other on every universe are refused."""
_ZERO_ALLOWED = frozenset({Kind.CASH_MAX, Kind.TURNOVER_MAX_MONTHLY})
"""The kinds whose limit may be 0: no cash, no trade. Elsewhere a limit of 0 leaves no portfolio, or only one."""


def mandate_from(data: object) -> Mandate:
    """Read a mandate: `mandate_id`, `name`, and `constraints`, each a type with its numbers.

    Raises
    ------
    InputError : an unknown or repeated type, an unknown field or factor, a number that is missing or of the wrong kind,
        limits that exclude each other on every universe (`Mandate.check` knows the size of one).
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
    mandate = Mandate(identity, name, constraints)
    mandate.check(_ANY_UNIVERSE)
    return mandate


def _constraint(data: object, index: int) -> Constraint:
    row = table_of(data) or {}
    kind = row.get("type")
    if not isinstance(kind, str) or kind not in set(Kind):
        raise InputError(
            f"mandate: constraints[{index}].type {shown(kind)} is unknown; choose one of {', '.join(Kind)}"
        )
    kind = Kind(kind)
    where = f"mandate: constraint {kind}"
    known = {"min", "max"} if kind in RANGES else {"value"}
    if kind is Kind.FACTOR_EXPOSURE_MAX:
        known.add("factors")
    unknown = sorted(str(field) for field in set(row) - known - {"type", "definition", "description"})
    if unknown:
        raise InputError(f"{where} has unknown fields {listed(unknown)}; known: {', '.join(sorted(known))}")
    if kind is Kind.LONG_ONLY:
        if row.get("value") is not True:
            raise InputError(f"{where}: value must be true; leave the constraint out where shorts are allowed")
        return Constraint(kind, value=0.0)
    if kind in RANGES:
        return _range(kind, row, where)
    value = number(row, "value", where)
    if value < 0 or (value == 0 and kind not in _ZERO_ALLOWED):
        raise InputError(f"{where}: value must be {'>= 0' if kind in _ZERO_ALLOWED else '> 0'}, not {shown(value)}")
    factors = _factors(row.get("factors"), where) if kind is Kind.FACTOR_EXPOSURE_MAX else ()
    return Constraint(kind, value=value, factors=factors)


def _range(kind: Kind, row: Mapping[str, Any], where: str) -> Constraint:
    ends: list[float | None] = [None, None]
    for place, end in enumerate(("min", "max")):
        if kind is Kind.NAME_COUNT and row.get(end) is None:
            continue
        ends[place] = number(row, end, where)
    low, high = ends
    if low is None and high is None:
        raise InputError(f"{where} has neither min nor max; give one of them")
    if kind is Kind.NAME_COUNT and any(end is not None and (end < 0 or end != int(end)) for end in ends):
        raise InputError(
            f"{where}: min and max must be whole numbers, not {shown(row.get('min'))} and {shown(row.get('max'))}"
        )
    if low is not None and high is not None and low > high:
        raise InputError(f"{where}: min {low:g} is greater than max {high:g}; exchange them")
    return Constraint(kind, minimum=low, maximum=high)


def _factors(data: object, where: str) -> tuple[str, ...]:
    if not (factors := list_of(data)):
        raise InputError(f"{where}: factors must be a list of factor names, at least one of {', '.join(FACTORS)}")
    for factor in factors:
        if factor not in FACTORS:
            raise InputError(f"{where}: factor {shown(factor)} is unknown; choose from {', '.join(FACTORS)}")
    if len(set(factors)) != len(factors):
        raise InputError(f"{where}: factors names a factor twice; name each once")
    return tuple(factors)

"""Constraint monitoring: find the limits of a mandate that a portfolio breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification, by_input
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.examples import Examples, Shortcuts
from finskillbench.domains.risk import no_skill_baseline, shared
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.constraint_monitoring import graded_examples, shortcuts
from finskillbench.domains.risk.inputs import MonitoringInput
from finskillbench.domains.risk.objects.construct import RiskObjects
from finskillbench.domains.risk.objects.monitoring import GREY_BAND, MODEL_BASED, MonitoringPair
from finskillbench.domains.risk.rederive import measure_mandate, monitoring_answer
from finskillbench.domains.risk.user_catalogs.books import left_out
from finskillbench.engines.risk.mandate import Constraint, ConstraintKind, mandate_from
from finskillbench.engines.risk.monitor import constraint_report
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT
from finskillbench.episode import JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.values import as_array, as_boolean, as_number, as_text, closeness, mean, objects, share

NAME = "constraint_monitoring"
METHOD = "exact_match"
MODEL_WEIGHT = 5.0
"""Weight of limits that need betas or a covariance, the core of a risk system."""
SENT_BACK, MISSED, CONTRADICTION = 0.3, 0.4, 0.5
"""Credit left by a wrong line, credit left by a missed breach, and penalty of a contradiction."""
FLOOD = 10
"""Entries per constraint above which an answer scores 0."""
TIE = 1e-9
"""Tolerance for tied worst names or sectors."""
_VALUE_OF = {
    "beta_range": "of beta_range the value that is compared with both ends",
    "name_count": "of name_count the number of holdings",
    "position_limit_max": "of a maximum over names or sectors that maximum",
    "factor_exposure_max": "of factor_exposure_max the greatest absolute exposure",
}


def _definitions(task_input: MonitoringInput) -> dict[str, str]:
    """Return the conventions for the constraints of the mandate."""
    kinds = {limit["type"] for limit in task_input["mandate"]["constraints"]}
    value_rules = ["the measured value of the definition", *(rule for kind, rule in _VALUE_OF.items() if kind in kinds)]
    names = " (whole names for name_count)" if "name_count" in kinds else ""
    field_rules = {
        "status": "PASS where the limit is kept, else FAIL",
        "value": "; ".join(value_rules),
        "violation_magnitude": f"distance of the value beyond the limit, in its unit{names}; only for FAIL",
        "summary": "overall_compliant: every status is PASS; violations_count: number of FAIL",
    }
    return shared.mandate_conventions(task_input, field_rules)


_ALIASES = {
    alias: name
    for name, aliases in {
        "position_limit": ("position_limit_max max_position max_single_position_weight max_weight max_position_weight"),
        "sector_limit": "sector_limit_max max_sector max_sector_concentration sector_concentration",
        "beta_range": "beta portfolio_beta",
        "long_only": "no_short",
        "turnover": "turnover_max_monthly turnover_max max_turnover",
    }.items()
    for alias in aliases.split()
}
_PASS = frozenset({"pass", "true", "compliant", "ok", "satisfied"})
_FAIL = frozenset({"fail", "false", "violation", "violated", "breach", "breached", "non-compliant"})


class MonitoredConstraint(Answer):
    """One constraint of the mandate, checked."""

    type: str = Field(description="The constraint's type, as the mandate names it.")
    status: Literal["PASS", "FAIL"] = Field(description="PASS if the portfolio meets the constraint, else FAIL.")
    value: float = Field(
        description="The portfolio's own measured value, in the unit of the limit: weights, cash, turnover, gross "
        "exposure and tracking error (annualised) as fractions (0.05 is 5 %), beta as a signed ratio, a factor "
        "exposure as its absolute value, HHI as a sum of squares, name_count as a number of holdings; for long_only "
        "the least weight other than 0, signed."
    )
    limit: float | bool | None = Field(
        None, description="The mandate's limit, in its own unit, 0 for long_only; absent for a range."
    )
    min: float | None = Field(None, description="Lower end of a range, in its own unit.")
    max: float | None = Field(None, description="Upper end of a range, in its own unit.")
    worst_symbol: str | None = Field(
        None, description="Ticker nearest to or furthest beyond a position limit; any of those that tie."
    )
    worst_sector: str | None = Field(
        None, description="Sector nearest to or furthest beyond a sector limit; any of those that tie."
    )
    violation_magnitude: float | None = Field(
        None, description="Distance beyond the limit, in the unit of the limit, > 0; only for FAIL."
    )


class ConstraintMonitoring(Answer):
    """Answer: the mandate's constraints, each with its verdict."""

    overall_compliant: bool = Field(description="true if every constraint passes.")
    violations_count: int = Field(description="Number of constraints that fail, >= 0.")
    constraints: list[MonitoredConstraint] = Field(
        description="Exactly one entry per constraint of the mandate, in the mandate's order."
    )


def normal_type(name: str) -> str:
    """Normalise case and separators, then apply the aliases of the specification."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    return _ALIASES.get(plain, plain)


def normal_status(status: str | None) -> str | None:
    """Return PASS or FAIL for known synonyms, other statuses in upper case, None if absent."""
    if status is None:
        return None
    lowered = status.lower()
    if lowered in _PASS:
        return "PASS"
    return "FAIL" if lowered in _FAIL else status.upper()


def _paper(answer: JsonObject, truth: Truth, task_input: MonitoringInput) -> Score:
    """exact_match: 0.4 [overall_compliant equal] + 0.6 x share of expected types with equal status (last duplicate)."""
    del task_input
    statuses = {kind: reported[-1] for kind, reported in _by_type(answer).items()}
    return _score(_compliance_agrees(answer, truth), statuses, truth)


def _strict(answer: JsonObject, truth: Truth, task_input: MonitoringInput) -> Score:
    """Variant of `paper`: compliance needs a constraint list, and contradictory duplicates are wrong."""
    del task_input
    by_type = _by_type(answer)
    statuses = {kind: reported[0] if len(set(reported)) == 1 else None for kind, reported in by_type.items()}
    return _score(bool(by_type) and _compliance_agrees(answer, truth), statuses, truth)


def _certified(answer: JsonObject, truth: Truth, task_input: MonitoringInput) -> Score:
    """Score verdicts with their values, reduced for wrong lines and missed breaches.

    A constraint earns its status times the ramp of its value: full within 0.2 % or 5e-5, nothing from 2 % or 5e-4.
    Constraints that need betas or a covariance count five times. Optional fields cost nothing if absent. A
    violation_magnitude or worst name that contradicts the portfolio costs half of the constraint; a wrong limit costs
    all. Surplus distinct entries divide the score, and more than ten entries per constraint score 0. Among
    contradictory entries of one type the worst counts.

    The sum is multiplied by 0.3 x mean + 0.7 x minimum of line credits, then by 0.4 x mean + 0.6 x minimum of how far
    breaches are found. A found breach needs FAIL and a value within 0.5 %; credit ends at 2.5 %. The last factor is
    0.8 + 0.2 [overall_compliant and violations_count both right].
    """
    expected = {kind: items[0] for kind, items in _entries(truth.expected_output).items()}
    if len(as_array(answer.get("constraints"))) > FLOOD * len(expected):
        return Score(0.0, {"constraints": f"more than {FLOOD * len(expected)} entries"})
    rows = _entries(answer)
    entries = sum(map(len, rows.values()))
    limits = {normal_type(limit.kind): limit for limit in mandate_from(task_input["mandate"]).constraints}
    worst = _worst(task_input)
    credit: dict[str, float] = {}
    for kind, wanted in expected.items():
        earned = [_credit(one, wanted, limits[kind]) * _agrees(one, limits[kind], worst) for one in rows.get(kind, ())]
        credit[kind] = min(earned, default=0.0)
    weights = {kind: MODEL_WEIGHT if limits[kind].kind in MODEL_BASED else 1.0 for kind in expected}
    broken = [kind for kind, wanted in expected.items() if wanted.status == "FAIL"]
    shown = [_shown(rows.get(kind, ()), expected[kind]) for kind in broken]
    value = math.fsum(weights[kind] * earned for kind, earned in credit.items()) / math.fsum(weights.values())
    value *= share(len(expected), max(len(expected), entries))
    lines = [min((_line(one, wanted) for one in rows.get(kind, ())), default=0.0) for kind, wanted in expected.items()]
    value *= SENT_BACK * mean(lines) + (1.0 - SENT_BACK) * min(lines)
    value *= MISSED * mean(shown) + (1.0 - MISSED) * min(shown) if shown else 1.0
    count = as_number(truth.expected_output.get("violations_count"))
    summary = _compliance_agrees(answer, truth) and as_number(answer.get("violations_count")) == count
    details = {"credit": credit, "entries": entries, "found": mean(shown), "summary": summary}
    return Score(value * (0.8 + 0.2 * summary), details)


class _Entry(NamedTuple):
    """Constraint of an answer; `stated` repeats fields of the mandate and the portfolio."""

    status: str | None
    value: float | None
    beyond: float | None
    stated: Mapping[str, Any]


_STATED = ("limit", "min", "max", "worst_symbol", "worst_sector")
_NOTHING = frozenset({"", "-", "--", "n/a", "na", "nil", "none", "null", "not applicable"})
"""Texts that count as an absent field."""


def _entries(source: JsonObject) -> dict[str, list[_Entry]]:
    """Return the distinct entries per normalised type; exact repetitions count once."""
    found: dict[str, dict[tuple[object, ...], _Entry]] = {}
    for item in objects(source.get("constraints")):
        kind = as_text(item.get("type"))
        if kind is not None:
            status, value = normal_status(as_text(item.get("status"))), as_number(item.get("value"))
            stated = {name: item[name] for name in _STATED if not _absent(item.get(name))}
            entry = _Entry(status, value, as_number(item.get("violation_magnitude")), stated)
            identity = (status, value, entry.beyond, *((name, _plain(one)) for name, one in stated.items()))
            found.setdefault(normal_type(kind), {}).setdefault(identity, entry)
    return {kind: list(entries.values()) for kind, entries in found.items()}


def _plain(value: object) -> float | str:
    """Return a hashable key under which 1 and 1.0 are equal."""
    counted, named = as_number(value), as_text(value)
    return counted if counted is not None else repr(value) if named is None else named


def _absent(value: object) -> bool:
    named = as_text(value)
    return value is None or (named is not None and named.strip().lower() in _NOTHING)


def _line(entry: _Entry, wanted: _Entry) -> float:
    if wanted.status is None or wanted.value is None or entry.status != wanted.status:
        return 0.0
    return _near(entry.value, wanted.value)


def _credit(entry: _Entry, wanted: _Entry, limit: Constraint) -> float:
    credit = _line(entry, wanted)
    if wanted.value is None or entry.beyond is None or (wanted.beyond is None and entry.beyond == 0):
        return credit  # for a kept limit, null, 0 and headroom are equivalent
    low, high = limit.bounds
    beyond = max(low - wanted.value, wanted.value - high)  # negative headroom for a kept limit
    return credit * (1.0 - CONTRADICTION * (1.0 - _near(abs(entry.beyond), abs(beyond))))


def _shown(entries: Sequence[_Entry], wanted: _Entry) -> float:
    """Return how far a breach is found: FAIL without PASS, and a close value."""
    if wanted.value is None or {one.status for one in entries} != {"FAIL"}:
        return 0.0
    return min(
        closeness(one.value, wanted.value, full=0.005, full_floor=5e-4, zero=0.025, zero_floor=2e-3) for one in entries
    )


def _near(value: float | None, wanted: float) -> float:
    return closeness(value, wanted, full=0.002, full_floor=5e-5, zero=0.02, zero_floor=5e-4)


_WorstOf = Mapping[ConstraintKind | None, set[str]]


def _worst(task_input: MonitoringInput) -> _WorstOf:
    """Return the tied names or sectors nearest to breaking each constraint; key None holds all."""
    mapped = task_input["sector_mapping"]
    holdings = {row["symbol"]: row["weight"] for row in task_input["portfolio"]["holdings"]}
    held = {symbol: weight for symbol, weight in holdings.items() if abs(weight) > ZERO_WEIGHT}
    sectors = dict.fromkeys(mapped.values(), 0.0)
    for symbol, weight in held.items():
        sectors[mapped[symbol]] += weight
    return {
        ConstraintKind.LONG_ONLY: _least(held),
        ConstraintKind.POSITION_LIMIT_MAX: _least({symbol: -weight for symbol, weight in held.items()}),
        ConstraintKind.POSITION_LIMIT_MIN: _least({symbol: abs(weight) for symbol, weight in held.items()}),
        ConstraintKind.SECTOR_LIMIT_MAX: _least({sector: -weight for sector, weight in sectors.items()}),
        None: set(held) | set(sectors),
    }


def _least(sizes: Mapping[str, float]) -> set[str]:
    least = min(sizes.values(), default=0.0)
    return {name for name, size in sizes.items() if size <= least + TIE}


def _agrees(entry: _Entry, limit: Constraint, worst: _WorstOf) -> float:
    """Return 1 if repeated fields match, 0 for a wrong limit (three significant figures suffice), else part credit."""
    stated, (low, high) = entry.stated, limit.bounds
    for field, ends in {"limit": (low, high), "min": (low,), "max": (high,)}.items():
        flag = (
            field == "limit" and limit.kind is ConstraintKind.LONG_ONLY and stated.get(field) is True
        )  # same form as in the mandate
        if field in stated and not flag and not any(_rounded(as_number(stated[field]), end) for end in ends):
            return 0.0
    worst_field = "worst_sector" if limit.kind is ConstraintKind.SECTOR_LIMIT_MAX else "worst_symbol"
    names = {"worst_symbol": worst[None], "worst_sector": worst[None], worst_field: worst.get(limit.kind, worst[None])}
    right = all(_names(stated[field], known) for field, known in names.items() if field in stated)
    return 1.0 if right else 1.0 - CONTRADICTION


def _names(stated: object, known: set[str]) -> bool:
    named = (as_text(stated) or "").strip().lower()
    return any(named == name.lower() for name in known)


def _rounded(value: float | None, end: float) -> bool:
    return value is not None and math.isfinite(end) and abs(value - end) <= max(5e-5, 0.005 * abs(end))


def _score(compliant: bool, statuses: dict[str, str | None], truth: Truth) -> Score:
    expected = {kind: reported[-1] for kind, reported in _by_type(truth.expected_output).items()}
    right = {kind: status is not None and statuses.get(kind) == status for kind, status in sorted(expected.items())}
    accuracy = share(sum(right.values()), len(right))
    return Score(0.4 * compliant + 0.6 * accuracy, {"compliant": compliant, "accuracy": accuracy, "right": right})


def _compliance_agrees(answer: JsonObject, truth: Truth) -> bool:
    stated = as_boolean(answer.get("overall_compliant"))
    return stated is not None and stated == as_boolean(truth.expected_output.get("overall_compliant"))


def _by_type(source: JsonObject) -> dict[str, Sequence[str | None]]:
    """Return statuses in order per normalised type, without malformed entries."""
    found: dict[str, list[str | None]] = {}
    for item in objects(source.get("constraints")):
        kind = as_text(item.get("type"))
        if kind is not None:
            found.setdefault(normal_type(kind), []).append(normal_status(as_text(item.get("status"))))
    return dict(found)


def _build(context: BuildContext, objects: RiskObjects) -> list[BuiltTask]:
    """Build tasks from the user's books and the drawn pairs."""
    user_pairs = [pair for pair in objects.user_pools.monitored if pair.margin >= GREY_BAND]
    why = "rounding decides a status"
    context.notes.extend(left_out(NAME, objects.user_pools.books, [pair.case for pair in user_pairs], why))
    return [_task(pair) for pair in (*user_pairs, *objects.monitored)]


def _task(pair: MonitoringPair) -> BuiltTask:
    case, mandate, market = pair.case, pair.mandate, pair.case.market
    prompt = Prompt(
        f"Check the portfolio as of {case.as_of} against every constraint of its mandate. Measure each on the data of "
        "the task by its definition, compare it with its limit, and state whether the whole portfolio complies.",
        "Submit a JSON object with overall_compliant, violations_count and constraints (one entry per constraint of "
        f"the mandate: type, status and value; the other fields are optional). {shared.PRECISION}",
    )
    task_input = shared.mandate_input(pair)
    task_input["conventions"] = _definitions(task_input)
    resolved: MonitoringInput = {**task_input, "covariance_matrix": shared.resolved_covariance(market)}
    episode = shared.mandate_episode(NAME, SUBTASK.prefix, pair, prompt, task_input)
    report = constraint_report(case.portfolio, mandate, market)
    rederived = {kind: {"value": item.value, "excess": item.excess} for kind, item in measure_mandate(resolved).items()}
    truth = Truth(episode.task_id, NAME, report, shared.planted_facts(case))
    return BuiltTask(episode, truth, {"kind": "rederived", "second": rederived})


def _all_kept(data: Mapping[str, Any]) -> JsonObject:
    """Report every kind of limit as kept."""
    del data
    entries = [{"type": kind.value, "status": "PASS"} for kind in ConstraintKind]
    return {"overall_compliant": True, "violations_count": 0, "constraints": entries}


SUBTASK: Subtask[MonitoringInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_cm",
    input=MonitoringInput,
    answer=ConstraintMonitoring,
    definitions=_definitions,
    cluster=by_input("mandate", "mandate_id"),
    build=_build,
    rederive=monitoring_answer,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _strict, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={"metrics": ["constraint_accuracy", "violation_detection_recall"]},
        proved=shared.PLANTED,
    ),
    baselines=Baselines(
        no_skill=Naive(("portfolio", "mandate", "sector_mapping"), no_skill_baseline.monitor_by_weights),
        trivial=Naive((), _all_kept),
        heuristic="weights and trades, the rest like these",
    ),
    examples=Examples(graded=graded_examples, exploits=exploits.monitoring_exploits, shortcuts=Shortcuts(shortcuts)),
)

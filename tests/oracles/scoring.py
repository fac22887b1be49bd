"""The thirteen scoring methods under the `paper` and `strict` profiles, written from the specification alone.

Entry point: `score(method, profile, answer, expected, verification)`. `submission.parse` reads the answer's text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.oracles.values import (
    Json,
    clip,
    entries,
    f1,
    first_numbers,
    flag,
    items,
    l2,
    mae,
    map_of,
    mean,
    num,
    numbers,
    positive,
    ramp,
    relative,
    same,
    setting,
    signal,
    text,
)


def unconstrained(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """l2_distance_and_objective."""
    weights = numbers(answer.get("weights"))
    if not weights:
        return 0.0
    distance = l2(weights, numbers(expected.get("weights")))
    return clip(1.0 - distance / (4.0 * setting(verification, "weight_l2_threshold", 0.05)))


def constrained(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """constraint_satisfaction_and_objective."""
    said = map_of(answer.get("constraint_satisfaction"))
    for name, wanted in map_of(expected.get("constraint_satisfaction")).items():
        if name not in said or not same(said[name], wanted):
            return 0.0
    return unconstrained(answer, expected, verification, strict)


_ABSENT = object()


def _leaves(p: Any, e: Any, tolerance: float) -> tuple[int, int]:
    """(matches, leaves) of the union of two trees; what one side lacks is one leaf, and so are two empty objects."""
    if isinstance(p, dict) and isinstance(e, dict) and (p or e):
        pairs = [_leaves(p.get(k, _ABSENT), e.get(k, _ABSENT), tolerance) for k in {*p, *e}]
        return sum(m for m, _ in pairs), sum(n for _, n in pairs)
    if p is _ABSENT or e is _ABSENT:
        return 0, 1
    given, wanted = num(p), num(e)
    if given is not None and wanted is not None:
        return int(relative(given, wanted, 1e-6) < tolerance), 1
    return int(same(p, e)), 1


def parameters(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """parameter_match."""
    matches, leaves = _leaves(answer, expected, setting(verification, "relative_tolerance", 0.2))
    return matches / leaves


def rebalancing(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """turnover_compliance_and_objective."""
    weights = first_numbers(answer, "new_weights", "weights")
    if not weights:
        return 0.0
    w, t, r = (
        setting(verification, f"{name}_component_weight", default)
        for name, default in (("weight_l2", 0.5), ("turnover", 0.25), ("trade_list", 0.25))
    )
    total = w * clip(1.0 - l2(weights, first_numbers(expected, "new_weights", "weights")) / 0.2)
    turnover = num(expected.get("turnover"))
    if turnover is not None:
        total += t * ramp(num(answer.get("turnover")), turnover, 1.0, 1e-9)
    trades, wanted = numbers(answer.get("trade_list")), numbers(expected.get("trade_list"))
    return clip(total + r * (mean(ramp(trades.get(n), x, 1.0, 1e-9) for n, x in wanted.items()) if wanted else 1.0))


def views(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """view_specification_and_weights."""
    active = []
    p, e = numbers(answer.get("posterior_returns")), numbers(expected.get("posterior_returns"))
    if p and e:
        active.append(max(0.0, 1.0 - mae(p, e) / 0.05))
    names = ("optimal_weights", "posterior_weights")
    p, e = first_numbers(answer, *names), first_numbers(expected, *names)
    if p and e:
        active.append(clip(1.0 - l2(p, e) / (4.0 * setting(verification, "weight_l2_threshold", 0.10))))
    return mean(active)


_TYPES = {
    "position_limit": "position_limit_max max_position max_single_position_weight max_weight max_position_weight",
    "sector_limit": "sector_limit_max max_sector max_sector_concentration sector_concentration",
    "beta_range": "beta portfolio_beta",
    "long_only": "no_short",
    "turnover": "turnover_max_monthly turnover_max max_turnover",
}
_TYPE_OF = {alias: name for name, aliases in _TYPES.items() for alias in aliases.split()}
_PASS = {"pass", "true", "compliant", "ok", "satisfied"}
_FAIL = {"fail", "false", "violation", "violated", "breach", "breached", "non-compliant"}


def _statuses(listed: Any) -> list[tuple[str, str | None]]:
    """(type, status) of each entry that names a type; a status of the wrong JSON type is None."""
    found = []
    for entry in entries(listed):
        kind, status = text(entry.get("type")), text(entry.get("status"))
        if kind is None:
            continue
        kind = kind.lower().replace("-", "_").replace(" ", "_")
        if status is not None:
            low = status.lower()
            status = "PASS" if low in _PASS else "FAIL" if low in _FAIL else status.upper()
        found.append((_TYPE_OF.get(kind, kind), status))
    return found


def monitoring(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """exact_match."""
    given, wanted = _statuses(answer.get("constraints")), dict(_statuses(expected.get("constraints")))
    right = 0
    for kind, status in wanted.items():
        said = [s for k, s in given if k == kind]
        right += bool(said) and said[-1] == status and not (strict and len(set(said)) > 1)
    compliant = flag(answer.get("overall_compliant"))
    credit = compliant is not None and compliant is expected.get("overall_compliant")
    if strict and not given:
        credit = False
    return 0.4 * credit + 0.6 * (right / len(wanted) if wanted else 0.0)


def ranking(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """ranked_list_recall."""
    k = int(setting(verification, "top_k", 5))
    given, wanted = (
        (entries(side.get("top_risk_exposures")) or entries(side.get("risks")))[:k] for side in (answer, expected)
    )
    if not given or not wanted:
        return 0.0
    said = [text(x.get("type")) for x in given]
    truth = [(text(x.get("type")), num(x.get("magnitude")) or 0.0) for x in wanted]
    left = Counter(kind for kind, _ in truth if kind is not None)
    overlap = (Counter(kind for kind in said if kind is not None) & left).total()
    if strict:
        pool = list(truth)
        gains = []
        for kind in said:
            hit = next((item for item in pool if kind is not None and item[0] == kind), None)
            if hit is not None:
                pool.remove(hit)
            gains.append(hit[1] if hit else 0.0)
        ideal = [m for _, m in truth]
    else:
        best: dict[Any, float] = {}
        for kind, magnitude in truth:
            best[kind] = max(best.get(kind, magnitude), magnitude)
        best.pop(None, None)
        gains, ideal = [best.get(kind, 0.0) for kind in said], list(best.values())
    dcg, idcg = (
        math.fsum(gain / math.log2(place + 2) for place, gain in enumerate(gains_))
        for gains_ in (gains, sorted(ideal, reverse=True))
    )
    ndcg = dcg / idcg if idcg > 0.0 else 0.0
    return 0.4 * overlap / len(wanted) + 0.3 * overlap / len(given) + 0.3 * ndcg


def _by_sector(side: Json) -> dict[str, float]:
    found = {}
    for entry in entries(map_of(side.get("attribution")).get("by_sector")):
        name, value = text(entry.get("sector")), num(entry.get("contribution_pct"))
        if name is not None and value is not None:
            found[name] = value
    return found


def stress(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """absolute_error."""
    tolerance = setting(verification, "tolerance_pct", 1.0) / 100.0
    y_hat, y = num(answer.get("estimated_pnl_pct")), num(expected.get("estimated_pnl_pct"))
    if y_hat is None:
        return 0.0
    s = clip(1.0 - (abs(y_hat - y) - 0.1 * tolerance) / (3.0 * tolerance)) if y is not None else 0.0
    given, wanted = _by_sector(answer), _by_sector(expected)
    if not wanted or (strict and "sector_attribution_mae" not in items(verification.get("metrics"))):
        return s
    first = setting(verification, "pnl_score_weight", 0.7)
    second = setting(verification, "attribution_score_weight", 0.3)
    if strict:
        return clip(first * s + second * max(0.0, 1.0 - mae(given, wanted) / tolerance))
    sectors = positive(verification, "attribution_tolerance_pct", 5.0) / 100.0
    return clip(first * s + second * mean(ramp(given.get(name), e, sectors, 1e-8) for name, e in wanted.items()))


def remediation(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """constraint_satisfaction_plus_cost."""
    excess = setting(map_of(verification.get("tolerance")), "turnover_excess_pct", 50.0) / 100.0
    t_hat, t = num(answer.get("total_turnover")) or 0.0, num(expected.get("total_turnover")) or 0.0
    said = flag(answer.get("post_trade_compliant"))
    credit = said is not None and said is expected.get("post_trade_compliant")
    pairs = []
    for side in (answer, expected):
        trades = Counter()
        for entry in entries(side.get("trades")):
            # A trade that lacks its symbol or action is still a trade submitted: it costs precision.
            trades[(text(entry.get("symbol")) or "").upper(), (text(entry.get("action")) or "").lower()] += 1
        pairs.append(Counter(set(trades)) if strict else trades)
    return 0.3 * credit + 0.3 * (abs(t_hat - t) <= excess * max(t, 0.01)) + 0.4 * f1(*pairs)


_NO_METRIC = {"source", "confidence", "tier", "xbrl_fmp_agreement"}


def normalisation(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """metric_absolute_error."""
    if len(expected) == 1:
        (key,) = expected
        if isinstance(expected[key], dict) and isinstance(answer.get(key), dict):
            answer, expected = answer[key], expected[key]
    own, default = map_of(verification.get("metric_tolerances")), setting(verification, "tolerance_pct", 5.0) / 100.0
    hits = []
    for key, wanted in expected.items():
        if key in _NO_METRIC:
            continue
        p, e = num(answer.get(key)), num(wanted)
        hits.append(p is not None and e is not None and relative(p, e, 1e-8) <= setting(own, key, default))
    return mean(hits)


_RATIOS = {"beneish_m_score": 0.05, "accruals_ratio": 0.25, "income_quality_ratio": 0.05}


def earnings(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """earnings_quality_composite."""
    terms: list[tuple[float, float]] = []
    wanted = map_of(expected.get("piotroski_components"))
    if wanted:
        said = map_of(answer.get("piotroski_components"))
        weight = setting(verification, "piotroski_weight", setting(verification, "component_weight", 0.4))
        hits = [
            said.get(k) is None if v is None else k in said and signal(said[k]) == signal(v) for k, v in wanted.items()
        ]
        terms.append((weight, mean(hits)))
    said, truth = flag(answer.get("beneish_flag")), flag(expected.get("beneish_flag"))
    if said is not None and truth is not None:
        terms.append((setting(verification, "beneish_flag_weight", 0.3), float(said is truth)))
    flags = [Counter({f for f in items(side.get("flags")) if isinstance(f, str)}) for side in (answer, expected)]
    terms.append((setting(verification, "flag_f1_weight", 0.3), f1(*flags)))
    weight = 0.3 if strict else setting(verification, "numeric_ratio_weight", 0.0)
    widths = map_of(verification.get("numeric_tolerances"))
    ratios = [
        (p, e, positive(widths, n, tol))
        for n, tol in _RATIOS.items()
        if (e := num(expected.get(n))) is not None and (p := num(answer.get(n))) is not None
    ]
    if weight > 0.0 and ratios:
        terms.append((weight, mean(ramp(p, e, tol, 1e-8) for p, e, tol in ratios)))
    total = math.fsum(w for w, _ in terms)  # a plain sum puts .70625 on one side or the other, by the order of terms
    return round(math.fsum(w * x for w, x in terms) / total, 4) if total else 0.0


def _word(entry: Json, field: str) -> str:
    return (text(entry.get(field)) or "").lower().strip()


def _drivers(listed: list[Json]) -> list[tuple[str, Json]]:
    return [(_word(entry, "driver"), entry) for entry in listed]


def drivers(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """driver_f1_and_direction."""
    terms = []
    given = _drivers(entries(answer.get("top_revenue_drivers"))[:5])
    wanted = dict(_drivers(entries(expected.get("top_revenue_drivers"))[:5]))
    names = {name for name, _ in given}
    common = len(names & wanted.keys())
    terms.append(0.5 * common / len(wanted) + 0.5 * common / len(names) if names and wanted else 0.0)
    matched = [(entry, wanted[name]) for name, entry in given if name in wanted]
    if matched:
        terms.append(_directions(matched))
        terms += _sizes(matched, verification, "magnitude_usd", "contribution_pct")
    given, wanted = (
        _drivers(entries(answer.get("margin_drivers"))),
        dict(_drivers(entries(expected.get("margin_drivers")))),
    )
    matched = [(entry, wanted[name]) for name, entry in given if name in wanted]
    if wanted:
        recall = len({name for name, _ in given} & wanted.keys()) / len(wanted)
        terms.append(0.5 * recall + 0.5 * _directions(matched))
    terms += _sizes(matched, verification, "delta_pp")
    p, e = num(answer.get("revenue_delta")), num(expected.get("revenue_delta"))
    if p is not None and e:
        terms.append(max(0.0, 1.0 - abs(p - e) / abs(e)))
    return mean(terms)


def _directions(matched: list[tuple[Json, Json]]) -> float:
    return mean(_word(p, "direction") == _word(e, "direction") != "" for p, e in matched)


_SIZES = {
    "magnitude_usd": "revenue_magnitude_rel_tol",
    "contribution_pct": "revenue_contribution_rel_tol",
    "delta_pp": "margin_delta_pp_tol",
}


def _sizes(matched: list[tuple[Json, Json]], verification: Json, *fields: str) -> list[float]:
    """Mean ramp, tolerance 0.15 unless another is named, as a term of the mean where there is anything to compare."""
    if verification.get("include_driver_numeric_terms") is False:
        return []
    ramps = [
        ramp(num(p.get(f)), e, positive(verification, _SIZES[f], 0.15), 1e-8)
        for p, x in matched
        for f in fields
        if (e := num(x.get(f))) is not None
    ]
    return [mean(ramps)] if ramps else []


def feasibility(answer: Json, expected: Json, verification: Json, strict: bool) -> float:
    """infeasibility_detection."""
    said = flag(answer.get("feasible"))
    return float(said is not None and said is expected.get("feasible"))


METHODS: dict[str, Callable[[Json, Json, Json, bool], float]] = {
    "l2_distance_and_objective": unconstrained,
    "constraint_satisfaction_and_objective": constrained,
    "parameter_match": parameters,
    "turnover_compliance_and_objective": rebalancing,
    "view_specification_and_weights": views,
    "exact_match": monitoring,
    "ranked_list_recall": ranking,
    "absolute_error": stress,
    "constraint_satisfaction_plus_cost": remediation,
    "metric_absolute_error": normalisation,
    "earnings_quality_composite": earnings,
    "driver_f1_and_direction": drivers,
    "infeasibility_detection": feasibility,
}


def score(method: str, profile: str, answer: Json, expected: Json, verification: Json) -> float:
    """The score of a parsed answer under `profile` ("paper" or "strict")."""
    return METHODS[method](answer, expected, verification, {"paper": False, "strict": True}[profile])

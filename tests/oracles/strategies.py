"""Plausible truths of each subtask, and answers that are hurt copies of the truth."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

Json = dict[str, Any]

TICKERS = ["AIG", "BAX", "BF-B", "BR", "C", "CMG", "DHR", "ZBRA"]
SECTORS = ["Technology", "Financial Services", "Energy", "Utilities", "Real Estate"]
SIGNALS = ["roa_positive", "cfo_positive", "delta_roa_positive", "accruals_negative", "no_dilution"]
METRICS = ["revenue", "net_income", "eps_diluted", "total_assets", "operating_margin", "ebitda"]
FLAGS = ["low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality"]
RISKS = ["factor_tilt", "factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk"]
LIMITS = ["position_limit_max", "position_limit_min", "sector_limit_max", "tracking_error_max", "beta_range"]
LIMITS += ["long_only", "turnover_max_monthly"]
# Words that the scorers read in more than one spelling.
WORDS = ["Pass", "TRUE", "Compliant", "ok", "Satisfied", "fail", "False", "Violation", "Breached", "non-compliant"]
WORDS += ["Max Position", "max-weight", "MAX_SECTOR", "Portfolio-Beta", "no_short", "Turnover Max", "position_limit"]
WORDS += ["factor_tilt", "single_name", "increase", "decrease", "AIG", "bax", "SELL", "buy", "", " ", "élan"]
KEYS = {"new_weights": "weights", "optimal_weights": "posterior_weights", "top_risk_exposures": "risks"}
JUNK: list[Any] = [None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 10**308, 5e-324, [], {}, [[]], [None], {"a": {}}]
JUNK += ["", "0.05", "true", "null", "NaN", "Infinity", "-Infinity"]
RETYPED: list[Callable[[Any], Any]] = [
    lambda leaf: int(leaf) if isinstance(leaf, bool) else leaf,
    lambda leaf: bool(leaf) if leaf in (0, 1) else leaf,
    lambda leaf: json.dumps(leaf) if isinstance(leaf, (bool, int, float)) else leaf,
]
"""Leaves in a JSON type that is almost theirs."""
SPELLINGS = [str.upper, str.lower, str.title, " {} ".format, "\t{}\n".format, lambda text: text.replace("_", "-")]
"""Other spellings of a text: those that a scorer takes for the same, and those that it does not."""


def _weights(r: Random, tickers: list[str]) -> dict[str, float]:
    chosen = r.sample(tickers, r.randint(1, len(tickers)))
    raw = {t: r.choice([0.0, r.random(), r.random()]) for t in chosen}
    total = sum(raw.values()) or 1.0
    return {t: x / total for t, x in raw.items()}


def _driver(r: Random, name: str) -> Json:
    size = r.uniform(-3e9, 3e9)
    return {
        "driver": name,
        "type": "product_segment",
        "direction": "increase" if size > 0 else "decrease",
        "magnitude_usd": round(size, -6),
        "contribution_pct": round(size / 2e7, 2),
    }


def _margin(r: Random, name: str) -> Json:
    delta = round(r.uniform(-9, 9), 2)
    return {"driver": name, "type": "margin", "direction": "increase" if delta > 0 else "decrease", "delta_pp": delta}


WEIGHTS = (0, 0.1, 0.4, 0.9)
WIDTHS = (0, 0.02, 0.3, 7.5)
THRESHOLDS = (0.05, 0.1, 0.2)
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "l2_distance_and_objective": {"weight_l2_threshold": THRESHOLDS},
    "constraint_satisfaction_and_objective": {"weight_l2_threshold": THRESHOLDS},
    "view_specification_and_weights": {"weight_l2_threshold": THRESHOLDS},
    "constraint_satisfaction_plus_cost": {"tolerance": ({}, {"turnover_excess_pct": 1}, {"turnover_excess_pct": 10})},
    "metric_absolute_error": {"tolerance_pct": (0, 5.0, 20.0), "metric_tolerances": ({"ebitda": 0.2, "revenue": 0},)},
    "parameter_match": {"relative_tolerance": WIDTHS},
    "turnover_compliance_and_objective": {
        "weight_l2_component_weight": WEIGHTS,
        "turnover_component_weight": WEIGHTS,
        "trade_list_component_weight": WEIGHTS,
    },
    "absolute_error": {
        "pnl_score_weight": WEIGHTS,
        "attribution_score_weight": WEIGHTS,
        "attribution_tolerance_pct": WIDTHS,
    },
    "earnings_quality_composite": {
        "piotroski_weight": WEIGHTS,
        "component_weight": WEIGHTS,
        "numeric_ratio_weight": WEIGHTS,
        "beneish_flag_weight": WEIGHTS,
        "flag_f1_weight": WEIGHTS,
        "numeric_tolerances": ({"accruals_ratio": 0.5}, {"beneish_m_score": 0, "income_quality_ratio": 0.01}),
    },
    "driver_f1_and_direction": {
        "revenue_magnitude_rel_tol": WIDTHS,
        "revenue_contribution_rel_tol": WIDTHS,
        "margin_delta_pp_tol": WIDTHS,
        "include_driver_numeric_terms": (True, False),
    },
}
"""Weights and tolerances that a verification may name in place of the defaults."""


def truth(r: Random, method: str) -> tuple[Json, Json]:
    """(expected_output, verification) of a plausible episode scored by `method`."""
    verification: Json = {"method": method}
    expected: Json
    match method:
        case "l2_distance_and_objective":
            expected = {"weights": _weights(r, TICKERS), "expected_return": 0.07}
        case "constraint_satisfaction_and_objective":
            names = r.sample(["long_only", "max_weight", "min_names", "max_turnover"], r.randint(0, 4))
            expected = {
                "weights": _weights(r, TICKERS),
                "constraint_satisfaction": {n: r.random() < 0.8 for n in names},
            }
        case "parameter_match":
            limits = {"long_only": True, "max_weight_per_name": 0.05, "min_names": 15, "min_weight": 0.0}
            limits["sector_limits"] = r.choice([{}, {"Technology": 0.2, "Energy": 0.1}])
            limits["factor_neutrality"] = r.choice([[], ["mkt_rf", "smb"]])
            kept = {k: limits[k] for k in r.sample(list(limits), r.randint(0, len(limits)))}
            expected = {"optimizer_call": {"objective": "max_sharpe", "constraints": kept}}
        case "turnover_compliance_and_objective":
            new = _weights(r, TICKERS)
            trades = {t: r.uniform(-0.2, 0.2) for t in r.sample(TICKERS, r.randint(0, 6))}
            expected = {
                r.choice(["new_weights", "weights"]): new,
                "trade_list": trades,
                "turnover": r.choice([0.0, r.random()]),
            }
        case "view_specification_and_weights":
            expected = {
                "posterior_returns": {t: r.uniform(-0.05, 0.1) for t in TICKERS},
                "optimal_weights": _weights(r, TICKERS),
            }
        case "exact_match":
            limits_ = [{"type": t, "status": r.choice(["PASS", "FAIL"])} for t in r.sample(LIMITS, r.randint(1, 7))]
            fails = sum(x["status"] == "FAIL" for x in limits_)
            expected = {"overall_compliant": not fails, "violations_count": fails, "constraints": limits_}
        case "ranked_list_recall":
            sizes = sorted((round(r.random(), 4) for _ in range(r.randint(1, 7))), reverse=True)
            ranked = [{"rank": i + 1, "type": r.choice(RISKS), "magnitude": x} for i, x in enumerate(sizes)]
            expected = {"top_risk_exposures": ranked}
            verification |= r.choice([{}, {"top_k": 5}, {"top_k": 3}])
        case "absolute_error":
            sectors = r.sample(SECTORS, r.randint(0, 5))
            parts = [{"sector": s, "contribution_pct": round(r.uniform(-0.05, 0.05), 6)} for s in sectors]
            expected = {"estimated_pnl_pct": round(r.uniform(-0.4, 0.2), 6), "attribution": {"by_sector": parts}}
            named = r.choice([["pnl_absolute_error"], ["pnl_absolute_error", "sector_attribution_mae"]])
            verification |= {"metrics": named} | r.choice([{}, {"tolerance_pct": 1.0}, {"tolerance_pct": 2.5}])
        case "constraint_satisfaction_plus_cost":
            trades_ = [
                {"symbol": r.choice(TICKERS), "action": r.choice(["sell", "buy"])} for _ in range(r.randint(1, 6))
            ]
            turnover = r.choice([0.0, 0.005, r.random()])
            expected = {"trades": trades_, "total_turnover": turnover, "post_trade_compliant": r.random() < 0.9}
        case "metric_absolute_error":
            values = {m: r.choice([0, r.randint(-(10**10), 10**11), r.uniform(-1, 25)]) for m in METRICS}
            expected = {
                "metrics": values
                | r.choice([{}, {"source": "xbrl", "confidence": 0.9, "tier": 1, "xbrl_fmp_agreement": True}])
            }
        case "earnings_quality_composite":
            expected = {
                "piotroski_components": {s: r.choice([0, 1, 0, 1, None]) for s in SIGNALS},
                "beneish_m_score": r.uniform(-4, 0),
                "beneish_flag": r.random() < 0.5,
                "accruals_ratio": r.uniform(-0.1, 0.1),
                "income_quality_ratio": r.uniform(-4, 4),
                "flags": r.sample(FLAGS, r.randint(0, 4)),
            }
        case "driver_f1_and_direction":
            names = r.sample(
                ["United States", "Non-US", "Botox", "Mavyret", "Japan", "Europe", "Other"], r.randint(0, 7)
            )
            ratios = r.sample(["operating_margin", "gross_margin", "sga_ratio", "rnd_ratio"], r.randint(0, 4))
            expected = {
                "revenue_delta": r.choice([0, round(r.uniform(-9e9, 9e9), -6)]),
                "top_revenue_drivers": [_driver(r, n) for n in names],
                "margin_drivers": [_margin(r, n) for n in ratios],
            }
            verification["top_k"] = 5
        case "infeasibility_detection":
            expected = {"feasible": r.random() < 0.5, "least_attainable": r.random()}
        case _:
            raise ValueError(f"no truths for {method!r}")
    return expected, verification | {
        name: r.choice(values) for name, values in SETTINGS.get(method, {}).items() if r.random() < 0.3
    }


def _hurt_leaf(r: Random, leaf: Any, *, hostile: bool) -> Any:
    if hostile and r.random() < 0.4:
        return r.choice(RETYPED)(leaf) if r.random() < 0.4 else copy.deepcopy(r.choice(JUNK))
    if isinstance(leaf, bool):
        return r.choice([not leaf, leaf])
    if isinstance(leaf, (int, float)):
        step = r.choice([1e-9, 1e-3, 0.013, 0.049, 0.051, 0.13, 0.19, 0.21, 0.6, 3.0])
        near = [0, 0, 0, 1e-3, 0.02] if leaf else [4e-10, 2e-9, 1e-6, 0.02]
        return leaf * (1 + r.choice([-1, 1]) * step) + r.choice(near)
    if isinstance(leaf, str):
        return r.choice([*(spelled(leaf) for spelled in SPELLINGS), r.choice(WORDS)])
    return leaf


def hurt(r: Random, node: Any, rate: float, *, hostile: bool) -> Any:
    """A copy of a JSON tree with about `rate` of its nodes changed; only a hostile one changes JSON types."""
    if hostile and r.random() < rate / 4:
        return copy.deepcopy(r.choice(JUNK))
    if isinstance(node, dict):
        pairs = []
        for key, value in node.items():
            if r.random() < rate / 2:
                continue
            name = r.choice([KEYS.get(key, key), r.choice(SPELLINGS)(key)]) if r.random() < rate else key
            pairs.append((name, hurt(r, value, rate, hostile=hostile)))
            if key in KEYS and r.random() < rate:
                pairs.append((KEYS[key], hurt(r, value, rate, hostile=hostile)))
        if r.random() < rate:
            pairs.append((r.choice([*TICKERS, *SECTORS, "extra"]), copy.deepcopy(r.choice(JUNK)) if hostile else 0.01))
        if r.random() < rate:
            r.shuffle(pairs)
        return dict(pairs)
    if isinstance(node, list):
        if r.random() < rate / 8:
            return []
        items = [hurt(r, x, rate, hostile=hostile) for x in node if r.random() >= rate / 2]
        if items and r.random() < 2 * rate:
            items += [copy.deepcopy(r.choice(items)) for _ in range(r.randint(1, 3))]
        if r.random() < rate:
            r.shuffle(items)
        if hostile and r.random() < rate:
            items.insert(r.randint(0, len(items)), copy.deepcopy(r.choice(JUNK)))
        return items
    return _hurt_leaf(r, node, hostile=hostile) if r.random() < rate else node


ALIASES = {
    "position_limit_max": [
        "position_limit_max",
        "max_position",
        "Max Single-Position Weight",
        "max_weight",
        "MAX_POSITION_WEIGHT",
    ],
    "sector_limit_max": ["sector_limit_max", "MAX SECTOR", "max_sector_concentration", "sector-concentration"],
    "beta_range": ["beta", "Portfolio Beta", "beta-range"],
    "long_only": ["no_short", "Long-Only"],
    "turnover_max_monthly": ["turnover", "max turnover", "turnover_max"],
}
SAID = {
    "PASS": ["pass", "True", "compliant", "OK", "satisfied", "passed"],
    "FAIL": ["fail", "false", "Violation", "violated", "breach", "BREACHED", "non-compliant", "non compliant"],
}


def _respell(r: Random, found: Json) -> None:
    """Monitored constraints in other words, and said twice, rightly or not."""
    listed = [x for x in found["constraints"] if isinstance(x, dict)]
    for entry in r.sample(listed, len(listed) // 2):
        twice = entry | {"status": r.choice(["PASS", "FAIL"])}
        found["constraints"].insert(r.randint(0, len(found["constraints"])), twice)
        listed.append(twice)
    for entry in listed:
        for key, words in (("type", ALIASES), ("status", SAID)):
            word = entry.get(key)
            if isinstance(word, str) and word in words:
                entry[key] = r.choice(words[word])


def throughout(change: Callable[[Any], Any], node: Any) -> Any:
    """A copy of a JSON tree with every leaf changed."""
    if isinstance(node, dict):
        return {key: throughout(change, value) for key, value in node.items()}
    return [throughout(change, item) for item in node] if isinstance(node, list) else change(node)


def answer(r: Random, expected: Json, *, hostile: bool) -> Json:
    """An object that an agent might submit for this truth."""
    found = hurt(r, expected, r.choice([0.0, 0.05, 0.15, 0.4]), hostile=hostile)
    if not isinstance(found, dict):
        return {}
    if isinstance(found.get("constraints"), list) and r.random() < 0.4:
        _respell(r, found)
    spelled = r.choice(SPELLINGS)
    changes = [lambda leaf: spelled(leaf) if isinstance(leaf, str) else leaf, *(RETYPED if hostile else ())]
    return throughout(r.choice(changes), found) if r.random() < 0.2 else found


def text(r: Random, found: Json) -> str:
    """The text of a submission, sometimes in a fence, in prose or malformed."""
    plain = json.dumps(found, ensure_ascii=r.random() < 0.5, indent=r.choice([None, 2]))
    deep = r.choice([62, 63, 64, 200])
    return r.choice(
        [
            plain,
            f"\n {plain}\t",
            f"```json\n{plain}\n```",
            f"```\n{plain}\n```\n",
            f"Here it is: {plain} - done.",
            plain[:-1],
            plain[1:],
            plain.replace("0.", "0", 1),
            *(plain.replace("{", f'{{"x": {number}, ', 1) for number in ("NaN", "-Infinity", "1e999", 10**400)),
            plain.replace("{", '{"x": 1, "x": 1, ', 1),
            f"[{plain}]",
            '{"x": ' + "[" * deep + "]" * deep + "}",
            "",
            "null",
        ]
    )

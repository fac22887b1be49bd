"""How programs play a case through the tools: the reference, the textbook, and somebody who falls for everything.

The reference does empirical Bayes with the primitives: mends the data, measures the usable cases, matches their
signatures with an unknown start and size, and lets the base rate speak. It retypes results as an agent would.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

from finskillbench.domains.interactive import Ask
from finskillbench.episode import JsonObject

PACKAGE = "account-screening"
_TABLES = ["statements", "companies", "industry_paths", "seasons"]
_TRUST = 0.8
"""Part of the evidence that is believed, since level and volatility are estimates (references/desk-screening.md)."""
Playing = Generator[tuple[Ask, ...], list[JsonObject], JsonObject]


def reference() -> Playing:
    """Read the documents, mend the data, measure the usable archive, match, calibrate."""
    return _screen(careful=True)


def trapped() -> Playing:
    """The same without a word of the documents: nothing mended, every case used, even odds."""
    return _screen(careful=False)


def textbook() -> Playing:
    """Thresholds on raw ratios: a company whose window is restless is suspect, and of the commonest kind."""
    (_, model) = yield (_load(), Ask("get_task_data", {"field": "model"}))
    ratios = [_plain(ratio) for ratio in model["value"]["ratios"]]
    looked, cases = yield (
        _run("ratio_innovations", {"ratios": ratios, "versions": "first", "window": 12}, ["statements"]),
        _run("case_effects", _effects(model["value"]), ["archive"]),
    )
    groups = cases["output"]["groups"]
    commonest = max(groups, key=lambda name: groups[name]["cases"])
    restless = looked["output"]["mean_square_in_window"]
    return {
        "assessments": [
            {"company": name, "probability": 0.7 if value > 1.5 else 0.05, "kind": commonest}
            for name, value in restless.items()
        ]
    }


def _screen(careful: bool) -> Playing:
    _, memo, model, layout, events = yield (
        _load(),
        Ask("get_task_data", {"field": "documents.memo"}),
        Ask("get_task_data", {"field": "model"}),
        Ask("get_task_data", {"field": "layout"}),
        Ask("read_table", {"table": "events", "rows": 200}),
    )
    words, numbers = str(memo["value"]), model["value"]
    usable = {"keep": {"basis": ["court judgment", "regulator's order"]}, "drop": {"industry": ["Financials"]}}
    checked, cases = yield (
        _run("statement_checks", {}, ["statements", "layout"]),
        _run("case_effects", _effects(numbers) | (usable if careful else {}), ["archive"]),
    )
    base_rate = _said(r"base rate of ([\d.]+) per cent", words) / 100.0 if careful else 0.5
    stated = _signatures(numbers, cases["output"]["groups"])
    if careful:
        material = _said(r"at least ([\d.]+) per cent of the buyer", words)
        stated |= _corrections(numbers, layout["value"], checked["output"], _rows(events), material)
    else:
        stated |= {"ratios": [_plain(ratio) for ratio in numbers["ratios"]], "versions": "first", "table_unit": 1e-4}
    (matched,) = yield (_run("signature_match", stated, _TABLES),)
    rows = matched["output"]["rows"]
    factors = {company: factor for company, factor, _, _ in rows}
    trust = _TRUST if careful else 1.0
    (found,) = yield (_run("calibrate", {"log_bayes_factors": factors, "base_rate": base_rate, "weight": trust}, []),)
    calibrated = found["output"]["calibrated"]
    return {
        "assessments": [
            {"company": company, "probability": calibrated[company], "kind": kind} for company, _, kind, _ in rows
        ]
    }


def _load() -> Ask:
    return Ask("load_skill", {"skill_name": PACKAGE})


def _run(script: str, payload: dict[str, Any], fields: list[str]) -> Ask:
    path = f"{PACKAGE}/scripts/{script}.py"
    return Ask("run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": fields})


def _said(pattern: str, words: str) -> float:
    found = re.search(pattern, words)
    return float(found[1]) if found else 0.0


def _rows(page: JsonObject) -> list[dict[str, Any]]:
    return [dict(zip(page["columns"], row, strict=True)) for row in page["rows"]]


def _plain(ratio: JsonObject) -> dict[str, Any]:
    return {key: ratio[key] for key in ("name", "numerator", "denominator", "persistence")}


def _effects(numbers: JsonObject) -> dict[str, Any]:
    return {
        "values": [ratio["name"] for ratio in numbers["ratios"]],
        "profiles": {kind["name"]: kind["profile"] for kind in numbers["kinds"]},
        "unit": 0.01,
    }


def _signatures(numbers: JsonObject, groups: JsonObject) -> dict[str, Any]:
    """What is stated of management: every kind's mean shift as measured, and how much sizes differ."""
    return {
        "window": numbers["possible_starts"],
        "freedom": numbers["volatility_degrees_of_freedom"],
        "signatures": [
            {
                "name": kind["name"],
                "weight": kind["share"],
                "profile": kind["profile"],
                "shifts": groups[kind["name"]]["mean_shift"],
                "size_spread": groups[kind["name"]]["size_spread"],
            }
            for kind in numbers["kinds"]
        ],
    }


def _corrections(
    numbers: JsonObject, layout: JsonObject, checked: JsonObject, events: list[dict[str, Any]], material: float
) -> dict[str, Any]:
    """What the documents say of the data, as arguments of the scripts."""
    wanted = ("name", "numerator", "denominator", "persistence", "innovation_sd", "growth_effect")
    sheet = set(layout["balance_sheet"])
    used = {ratio[side] for ratio in numbers["ratios"] for side in ("numerator", "denominator")}
    slips = [each for each in checked["broken"] if each["total"] == "cash" and each["stated_over_added_up"] == 1000.0]
    effects = {ratio["name"]: ratio["lease_effect"] for ratio in numbers["ratios"]}

    def told(event: str) -> list[dict[str, Any]]:
        return [each for each in events if each["event"] == event]

    return {
        "ratios": [{key: ratio[key] for key in wanted} for ratio in numbers["ratios"]],
        "growth_line": "net_revenue",
        "versions": "last",
        "table_unit": 1e-4,
        "divide": [
            {"company": each["company"], "quarter": each["quarter"], "lines": sorted(used & sheet), "by": 1000}
            for each in slips
        ],
        "known_changes": [
            {"company": each["company"], "quarter": each["quarter"], "effects": effects}
            for each in told("lease standard adopted")
        ],
        "new_levels": [
            {"company": each["company"], "quarter": each["quarter"]}
            for each in told("acquisition completed")
            if each["value"] >= material
        ],
        "year_ends": [
            {"company": each["company"], "quarter": each["quarter"], "month": each["value"]}
            for each in told("year end changed")
        ],
    }

"""Baseline programs for a case (reference, textbook, trapped) and the texts that an agent reads.

The reference does empirical Bayes with the skill scripts: it corrects the data, measures usable cases, matches their
signatures and calibrates by the base rate. It copies results between calls as an agent would. If the law is not
disclosed, it takes usual persistences, and lasting shifts of the sizes that all cases of the archive show.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any

import numpy as np

from finskillbench.domains.interactive import ProcedureCall
from finskillbench.episode import JsonObject, Prompt
from finskillbench_desk.engines.posterior.model import RatioModel
from finskillbench_desk.forensic_screen.difficulty import FLOOR, INDUSTRIES, KINDS, RATIOS, WINDOW
from finskillbench_desk.forensic_screen.generator.draws import USABLE
from finskillbench_desk.forensic_screen.reading import ACQUISITION, IDENTITIES, LAYOUT, LEASE, SLIP, YEAR_END, Rules


def disclosed(model: RatioModel) -> dict[str, Any]:
    """Return the disclosed parameters by ratio and kind, as in the task input."""
    ratios = [
        {
            "name": ratio.name,
            "numerator": ratio.numerator,
            "denominator": ratio.denominator,
            "persistence": float(model.persistence[place]),
            "innovation_sd": float(model.deviation[place]),
            "growth_effect": float(model.growth[place]),
            "lease_effect": float(model.lease[place]),
        }
        for place, ratio in enumerate(RATIOS)
    ]
    kinds = [
        {
            "name": kind.name,
            "what": kind.description,
            "share": float(model.shares[place]),
            "profile": np.trim_zeros(model.profiles[place], "b").tolist(),
        }
        for place, kind in enumerate(KINDS)
    ]
    return {
        "ratios": ratios,
        "correlation_of_innovations": model.correlation.tolist(),
        "kinds": kinds,
        "volatility_degrees_of_freedom": model.freedom,
        "own_level_sds": float(model.level_deviation[0] / model.deviation[0]),
        "acquired_level_sds": float(model.acquired[0] / model.deviation[0]),
        "case_spread_sds": model.spread,
        "prior_mean_sds": model.prior,
        "possible_starts": model.starts,
    }


def documents(model: RatioModel, rules: Rules) -> dict[str, str]:
    return {"memo": _memo(model, rules), "data_notes": _notes()}


def _memo(model: RatioModel, rules: Rules) -> str:
    return f"""Memo: screening for managed accounts

1. Base rate. Of companies like those in the list, {100 * model.base_rate:g} per cent managed their accounts at \
some time in the last {model.starts} quarters: use a base rate of {100 * model.base_rate:g} per cent. \
It is the same in every industry. Management began in one of the last {model.starts} quarters, each equally \
likely, and a company is managed in one way only; `model.kinds` gives each kind's share among managed \
companies. The archive's mix of kinds reflects what courts had time for and is no evidence of today's mix.

2. How ratios move. Take natural logarithms. A log ratio is the sum of its industry's path (table \
`industry_paths`), the industry's season for the fiscal quarter (table `seasons`), its growth effect times the \
quarter's growth, that is the change of log net_revenue over the quarter (0 in the first quarter), announced \
changes (4), the company's own level, and a deviation. The deviation is autoregressive with the ratio's \
persistence. Innovations are normal with the ratio's innovation_sd and `correlation_of_innovations`, times the \
company's volatility: its variance factor v is inverse gamma with shape and scale both half of \
volatility_degrees_of_freedom, so that companies differ considerably. The first quarter's deviation has the \
stationary distribution. The own level is normal about 0 with a standard deviation of own_level_sds \
innovation_sds times the company's volatility, independently by ratio.

3. Effect of management. From the first managed quarter on, a managed company's innovations are shifted by its \
shift, one number per ratio, times the kind's profile. The profile's first entry belongs to that first quarter; past \
its end there is no shift, though by its persistence the deviation stays moved for a while. Shifts of cases of one \
kind are normal about the kind's mean with a standard deviation of case_spread_sds innovation_sds per ratio, \
independently by ratio. The mean must be estimated from the archive; its prior is normal about 0 for each ratio, with \
a standard deviation of prior_mean_sds innovation_sds. For a company of today the shift is drawn, independently of \
other companies, from the prediction of the usable archive. It is normal about the mean's posterior \
expectation, which is not scaled by the company's volatility, with a covariance of (the mean's posterior covariance \
plus that of cases) times the company's variance factor v: both covariances are multiplied by v.

4. Announced changes (table `events`). The event "{LEASE}" moves every log ratio of the company by \
that ratio's lease_effect from its quarter on. After "{ACQUISITION}" of a target of at least {rules.material:g} per \
cent of the buyer's total assets (column value, in per cent), the company's own levels change from that quarter on by \
a normal amount about 0 with a standard deviation of acquired_level_sds innovation_sds times its volatility, \
independently by ratio; that is blending, not management. Smaller targets change nothing. "{YEAR_END}" means that \
from that quarter on the fiscal year ends in the month in column value. All other events, including proposals and \
deferrals, change no ratio and are no evidence of management.

5. The archive. Table `archive` has 300 resolved cases, in quarters counted from the first managed one (0). Each \
ratio's innovation is in hundredths of its innovation_sd, with everything of section 2 removed, the own level \
too, but for the correlation of innovations, which remains in them; \
the volatility of archived companies is 1. A case may be used if {USABLE[0]} or {USABLE[1]} found what was \
done. Settlements and the press name what was easiest to allege, often another kind than what \
was done: such cases are not used. Nor are financial companies, whose ratios have another meaning."""


def _notes() -> str:
    return f"""Data notes

- Table `statements` has a row for each company, quarter and version, with the lines of `layout`, in the unit of \
column `unit`; the unit of a company never changes. `layout.identities` states how lines add up.
- A restated quarter has two rows. The later version is right. Restatements in this collection corrected \
clerical errors: a restatement is no evidence of management, and the first figures are not to be \
used.
- Occasionally a whole balance sheet is entered in single dollars where the rest of the row is in \
thousands: all its lines are then {SLIP} times too high, and `cash` no longer equals `closing_cash`. Dividing them \
by {SLIP} corrects it exactly.
- Table `companies` has each company's industry and the month in which its fiscal year ends at the beginning of \
the data. Quarters such as 2019Q2 are calendar quarters. Fiscal quarter 1 is the first of the fiscal year: with \
a year end in month 12 it is Q1, with one in month 3 it is Q2.
- Tables `industry_paths` and `seasons` are in ten-thousandths of a natural logarithm. The path includes the \
usual level of the ratio, but not the season.
- Rounding to whole thousands moves no log ratio by more than a thousandth and can be ignored."""


def layout() -> dict[str, Any]:
    """Return line names by statement, and identities: total to its parts with their signs."""
    return {**LAYOUT, "identities": IDENTITIES}


def prompt(quarters: list[str]) -> Prompt:
    """Return the request; the harness adds the compacted input, the answer's schema and the budget."""
    names = ", ".join(kind.name for kind in KINDS)
    return Prompt(
        f"Screen 200 companies of {len(INDUSTRIES)} industries for managed accounts in the last quarters up to "
        f"{quarters[-1]}. You have forty quarters of statements for each (table statements), the archive of resolved "
        "cases, events, industry tables, a memo (documents.memo) and data notes (documents.data_notes): read both"
        " first. State for each company how probable it is that it managed its accounts, and the kind that is likeliest"
        " if it did.",
        'Submit a JSON object {"assessments": [{"company": ..., "probability": ..., "kind": ...}, ...]} with one entry '
        f"per company. probability is between 0 and 1, three decimals are enough; kind is one of {names}. Seven tenths "
        "of the score are the expected logarithmic score of the probabilities given the data that you see, between "
        "the base rate for all (0) and the best attainable (1); probabilities are clipped to "
        f"between {FLOOR} and {1 - FLOOR}, and a company left out counts as the base rate. Three tenths are the "
        "expected number of managed companies whose kind you name, between naming for all companies the one kind "
        "that earns most that way (0) and the best attainable (1); a company left out has no kind named and "
        "earns nothing of it.",
    )


PACKAGE = "account-screening"
_TABLES = ["statements", "companies", "industry_paths", "seasons"]
_TRUST = 0.8
"""Weight of the evidence, as level and volatility are estimates (references/screening.md)."""
_TRUST_IN_GUESSES = 0.2
"""As `_TRUST`, where persistences and profiles are guesses; it earns most of those from 0.1 to 0.8."""
_MATERIAL = r"at least ([\d.]+) per cent of the buyer"
_USUAL_PERSISTENCE, _USUAL_FREEDOM = 0.7, 6.0
_USUAL = [
    {
        "name": ratio.name,
        "numerator": ratio.numerator,
        "denominator": ratio.denominator,
        "persistence": _USUAL_PERSISTENCE,
    }
    for ratio in RATIOS
]
"""Ratios as a user states them who does not know their parameters."""
Playing = Generator[tuple[ProcedureCall, ...], list[JsonObject], JsonObject]


def reference() -> Playing:
    """Read the documents, correct the data, measure the usable archive, match signatures and calibrate."""
    return _screen(careful=True)


def trapped() -> Playing:
    """Run the reference without the documents: no corrections, every case used, even odds."""
    return _screen(careful=False)


def textbook() -> Playing:
    """Suspect companies with large innovations on raw ratios, and name the commonest kind."""
    _, documents_ = yield (_load(), ProcedureCall("get_task_data", {"field": "documents"}))
    ratios, effects = _USUAL, _levels()
    if _disclosed(documents_):
        (model,) = yield (ProcedureCall("get_task_data", {"field": "model"}),)
        ratios, effects = [_plain(ratio) for ratio in model["value"]["ratios"]], _effects(model["value"])
    looked, cases = yield (
        _run("ratio_innovations", {"ratios": ratios, "versions": "first", "window": WINDOW}, ["statements"]),
        _run("case_effects", effects, ["archive"]),
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
    _, texts, layout, events = yield (
        _load(),
        ProcedureCall("get_task_data", {"field": "documents"}),
        ProcedureCall("get_task_data", {"field": "layout"}),
        ProcedureCall("read_table", {"table": "events", "rows": 200}),
    )
    if not _disclosed(texts):
        return (yield from _screen_undisclosed(careful, texts["value"], layout["value"], _rows(events)))
    (model,) = yield (ProcedureCall("get_task_data", {"field": "model"}),)
    memo_text, numbers = str(texts["value"]["memo"]), model["value"]
    usable = {"keep": {"basis": ["court judgment", "regulator's order"]}, "drop": {"industry": ["Financials"]}}
    checked, cases = yield (
        _run("statement_checks", {}, ["statements", "layout"]),
        _run("case_effects", _effects(numbers) | (usable if careful else {}), ["archive"]),
    )
    base_rate = _number_in(r"base rate of ([\d.]+) per cent", memo_text) / 100.0 if careful else 0.5
    stated = _signatures(numbers, cases["output"]["groups"])
    if careful:
        material = _number_in(_MATERIAL, memo_text)
        stated |= _corrections(numbers, layout["value"], checked["output"], _rows(events), material)
    else:
        stated |= {"ratios": [_plain(ratio) for ratio in numbers["ratios"]], "versions": "first", "table_unit": 1e-4}
    return (yield from _match(stated, base_rate, _TRUST if careful else 1.0))


def _match(stated: dict[str, Any], base_rate: float, trust: float) -> Playing:
    """Match the signatures, calibrate, and return the answer."""
    (matched,) = yield (_run("signature_match", stated, _TABLES),)
    rows = matched["output"]["rows"]
    factors = {company: factor for company, factor, _, _ in rows}
    (found,) = yield (_run("calibrate", {"log_bayes_factors": factors, "base_rate": base_rate, "weight": trust}, []),)
    calibrated = found["output"]["calibrated"]
    return {
        "assessments": [
            {"company": company, "probability": calibrated[company], "kind": kind} for company, _, kind, _ in rows
        ]
    }


def _screen_undisclosed(careful: bool, texts: JsonObject, layout: JsonObject, events: list[dict[str, Any]]) -> Playing:
    checked, cases, examined = yield (
        _run("statement_checks", {}, ["statements", "layout"]),
        _run("case_effects", _levels(), ["archive"]),
        ProcedureCall("read_table", {"table": "examinations", "rows": 200}),
    )
    stated: dict[str, Any] = {
        "ratios": _USUAL,
        "versions": "first",
        "table_unit": 1e-4,
        "window": WINDOW,
        "freedom": _USUAL_FREEDOM,
    }
    base_rate = 0.5
    if careful:
        material = _number_in(_MATERIAL, str(texts["data_notes"]))
        stated |= _corrections({"ratios": _USUAL}, layout, checked["output"], events, material)
        counts = _rows(examined)
        base_rate = sum(each["found"] for each in counts) / sum(each["examined"] for each in counts)
    (seen,) = yield (_run("ratio_innovations", stated, _TABLES),)
    deviation = seen["output"]["innovation_sd"]
    groups = {name: group for name, group in cases["output"]["groups"].items() if "mean_shift" in group}
    stated["signatures"] = [
        {
            "name": name,
            "weight": group["cases"],
            "profile": [1] * WINDOW,
            "shifts": {
                ratio: (1.0 - _USUAL_PERSISTENCE) * level / deviation[ratio]
                for ratio, level in group["mean_shift"].items()
            },
            "size_spread": group["size_spread"],
        }
        for name, group in groups.items()
    ]
    return (yield from _match(stated, base_rate, _TRUST_IN_GUESSES if careful else 1.0))


def _load() -> ProcedureCall:
    return ProcedureCall("load_skill", {"skill_name": PACKAGE})


def _run(script: str, payload: dict[str, Any], fields: list[str]) -> ProcedureCall:
    path = f"{PACKAGE}/scripts/{script}.py"
    return ProcedureCall("run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": fields})


def _disclosed(texts: JsonObject) -> bool:
    return "base rate of" in texts["value"].get("memo", "")


def _levels() -> dict[str, Any]:
    """Return the arguments that measure levels of log ratios in an archive of undisclosed law."""
    return {
        "values": [ratio.name for ratio in RATIOS],
        "profiles": {kind.name: [1] * WINDOW for kind in KINDS},
        "unit": 1e-4,
    }


def _number_in(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
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
    """Return the signature arguments: each kind's measured mean shift and spread of sizes."""
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
    """Return the corrections that the documents demand, as script arguments."""
    wanted = ("name", "numerator", "denominator", "persistence", "innovation_sd", "growth_effect")
    sheet = set(layout["balance_sheet"])
    used = {ratio[side] for ratio in numbers["ratios"] for side in ("numerator", "denominator")}
    slips = [each for each in checked["broken"] if each["total"] == "cash" and each["stated_over_added_up"] == 1000.0]
    effects = {ratio["name"]: ratio["lease_effect"] for ratio in numbers["ratios"] if "lease_effect" in ratio}

    def named_events(event: str) -> list[dict[str, Any]]:
        return [each for each in events if each["event"] == event]

    return {
        "ratios": [{key: ratio[key] for key in wanted if key in ratio} for ratio in numbers["ratios"]],
        **({"growth_line": "net_revenue"} if effects else {}),
        "versions": "last",
        "table_unit": 1e-4,
        "divide": [
            {"company": each["company"], "quarter": each["quarter"], "lines": sorted(used & sheet), "by": 1000}
            for each in slips
        ],
        "known_changes": [
            {"company": each["company"], "quarter": each["quarter"], "effects": effects}
            for each in named_events("lease standard adopted")
            if effects
        ],
        "new_levels": [
            {"company": each["company"], "quarter": each["quarter"]}
            for each in (
                *(each for each in named_events("acquisition completed") if each["value"] >= material),
                *([] if effects else named_events("lease standard adopted")),
            )
        ],
        "year_ends": [
            {"company": each["company"], "quarter": each["quarter"], "month": each["value"]}
            for each in named_events("year end changed")
        ],
    }

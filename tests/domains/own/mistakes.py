"""Mistakes that people make in files of their own: what is written, and what is said of it."""

from __future__ import annotations

import json
from typing import NamedTuple

MANDATE = """{
  "mandates": [
    {"mandate_id": "core", "name": "Core Equity", "tier": "easy", "constraints": [
      {"type": "long_only", "value": true},
      {"type": "position_limit_max", "value": 0.08},
      {"type": "beta_range", "min": 0.8, "max": 1.2},
      {"type": "cash_max", "value": 0.05}
    ]}
  ]
}
"""
"""A file of one mandate, its constraints on the lines 4 to 7."""

SECTORS = (
    "Technology",
    "Financial Services",
    "Industrials",
    "Healthcare",
    "Consumer Cyclical",
    "Consumer Defensive",
    "Energy",
    "Real Estate",
    "Basic Materials",
    "Utilities",
    "Communication Services",
)
SCENARIO = f"""{{
  "extends": true,
  "replays": [
    {{"scenario_id": "replay_own", "name": "Own", "start": "2018-10-01", "end": "2018-12-24", "market_pct": -20.4}}
  ],
  "hypothetical": [
    {{"scenario_id": "bank_run",
     "name": "Bank run of {{equity_change_pct:+.0f}} %",
     "description": "Deposits leave: equities move {{equity_change_pct:+.1f}} %.",
     "market_shocks": {{"equity_change_pct": -12.0, "credit_spread_change_bp": 150.0}},
     "factor_shocks": {{"mkt_rf": -0.12, "smb": -0.03, "hml": -0.04, "rmw": 0.0, "cma": 0.0, "mom": 0.0}},
     "sector_sensitivities": {json.dumps({name: -0.08 if "Fin" in name else -0.01 for name in SECTORS})}
    }}
  ]
}}
"""
"""A file of one replay (line 4) and one story (lines 7 to 12)."""


class Mistake(NamedTuple):
    """A text put in place of another in a file, and the line that is said about it."""

    old: str
    new: str
    told: str


OF_MANDATES = [
    Mistake("0.08", "8", "line 5: mandates[0].constraints[1].value: is 8, not from 0.0001 to 1; write a fraction"),
    Mistake("0.08", '"8 %"', 'line 5: mandates[0].constraints[1].value: is "8 %", not a number; correct it'),
    Mistake("0.08", '"0,08"', 'line 5: mandates[0].constraints[1].value: is "0,08", not a number; correct it'),
    Mistake("0.08", "-0.08", "line 5: mandates[0].constraints[1].value: is -0.08, not from 0.0001 to 1"),
    Mistake("0.08", "0", "line 5: mandates[0].constraints[1].value: is 0, not from 0.0001 to 1"),
    Mistake("0.08", "NaN", "line 5: not valid JSON"),
    Mistake("0.08", "null", "line 5: mandates[0].constraints[1].value: is null, not a number; correct it"),
    Mistake("0.08},", "0.08}", "line 6: not valid JSON"),
    Mistake("0.05}\n", "0.05},\n", "line 7: not valid JSON (trailing comma is not allowed)"),
    Mistake('"tier": "easy"', "'tier': 'easy'", "line 3: not valid JSON"),
    Mistake('"tier": "easy"', '"tier": "simple"', """tier: is "simple"; choose 'easy', 'medium' or 'hard'"""),
    Mistake('"tier": "easy", ', "", "line 3: mandates[0].tier: is missing; add it"),
    Mistake('"core"', '"core fund"', 'mandate_id: is "core fund", no name; use up to 40 letters, digits, _ and -'),
    Mistake('"core"', '"../core"', 'mandate_id: is "../core", no name; use up to 40'),
    Mistake('"core"', "7", "line 3: mandates[0].mandate_id: is 7, not text in quotes; correct it"),
    Mistake('"name"', '"title"', "line 3: mandates[0].title: is an unknown field; remove it, or correct its name"),
    Mistake("cash_max", "cash_limit", 'line 7: mandates[0].constraints[3].type: is "cash_limit"; choose one of'),
    Mistake('"cash_max", ', '"cash_max", "unit": "%", ', "line 7: mandates[0].constraints[3].unit: is an unknown"),
    Mistake("cash_max", "position_limit_max", "constraint position_limit_max is given 2 times; give each type once"),
    Mistake('"min": 0.8, ', "", "line 6: mandates[0].constraints[2].min: is missing; add it"),
    Mistake('"min": 0.8', '"mim": 0.8', "line 6: mandates[0].constraints[2].mim: is an unknown field; write min"),
    Mistake("0.8,", "1.8,", "line 3: mandates[0].constraints: constraint beta_range: min 1.8 is greater than max 1.2"),
    Mistake("0.8,", "80,", "line 6: mandates[0].constraints[2].min: is 80, not from -5 to 5; write a beta"),
    Mistake('"value": true', '"value": false', "line 4: mandates[0].constraints[0].value: is false; choose True"),
    Mistake('"cash_max", "value": 0.05', '"hhi_max", "value": 0.05, "value": 0.06', "[3].value: is given twice"),
    Mistake(
        '"cash_max", "value": 0.05',
        '"tracking_error_max", "value": 3',
        "is 3, not from 0.0001 to 1; write a decimal per year, 0.03 for 3 %",
    ),
    Mistake(
        '"cash_max", "value": 0.05',
        '"factor_exposure_max", "factors": ["size"], "value": 0.3',
        """factors[0]: is "size"; choose 'mkt_rf', 'smb', 'hml', 'rmw', 'cma' or 'mom'""",
    ),
    Mistake('"cash_max", "value": 0.05', '"name_count", "min": 20.5', "line 7: mandates[0].constraints[3].min: is 20"),
    Mistake(
        '"cash_max", "value": 0.05',
        '"name_count"',
        "line 3: mandates[0].constraints: constraint name_count has neither min nor max; give one of them",
    ),
    Mistake(
        '{"type": "cash_max", "value": 0.05}',
        '{"type": "position_limit_min", "value": 0.09}',
        "position_limit_min and position_limit_max exclude each other (a holding of at least 0.09 and at most 0.08)",
    ),
    Mistake(
        ',\n      {"type": "cash_max", "value": 0.05}',
        "",
        "line 2: mandates: no mandate has more than 3 constraints, of which drawn portfolios break so many; add one "
        'with more, or "extends": true to keep the built-in ones',
    ),
    Mistake(
        "    ]}\n",
        '    ]},\n    {"mandate_id": "core", "name": "Other", "tier": "hard", "constraints": [\n'
        '      {"type": "long_only", "value": true}]}\n',
        "line 9: mandates[1].mandate_id: core is also mandates[0]; give it one of its own",
    ),
    Mistake('  "mandates"', '  "room": {"cash_max": 0.1},\n  "mandates"', "line 2: room.cash_max: is an unknown field"),
    Mistake(
        '  "mandates"',
        '  "benchmark": {"largest": 0.1, "times_equal": 2.4},\n  "mandates"',
        "line 2: benchmark: is not the rule that every task prints; leave it out; it cannot be changed",
    ),
    Mistake(MANDATE, '{"mandates": []}', "line 1: mandates: is empty; add at least one"),
    Mistake(MANDATE, '{"mandate": []}', "line 1: mandate: is an unknown field; write mandates"),
    Mistake(MANDATE, "[]", "line 1: not a JSON object"),
    Mistake(MANDATE, " \n", "line 1: the file is empty; fill it, or remove it to keep what is built in"),
    Mistake("Core Equity", "Core\\u0007", 'line 3: mandates[0].name: is "Core\\u0007", no name; use up to 200'),
]

OF_SCENARIOS = [
    Mistake("-0.03", "-3", "line 11: hypothetical[0].factor_shocks.smb: is -3, not from -0.9 to 0.9; write a decimal"),
    Mistake("-12.0", "-0.12", "line 10: hypothetical[0].market_shocks.equity_change_pct: is -0.12, not from"),
    Mistake("-12.0", "-10.0", "line 10: hypothetical[0].market_shocks.equity_change_pct: is -10 per cent, and factor_"),
    Mistake("-12.0", "12.0", "line 10: hypothetical[0].market_shocks.equity_change_pct: is 12, not from -60 to -0.5"),
    Mistake('"equity_change_pct": -12.0, ', "", "line 10: hypothetical[0].market_shocks.equity_change_pct: is missing"),
    Mistake('"hml": -0.04, ', "", "line 11: hypothetical[0].factor_shocks.hml: is missing; add it; 0 where it"),
    Mistake('"hml"', '"HML"', "line 11: hypothetical[0].factor_shocks.HML: is an unknown field; remove it"),
    Mistake('"Energy"', '"Oil & Gas"', "line 12: hypothetical[0].sector_sensitivities.Oil & Gas: is an unknown field"),
    Mistake('"Utilities"', '"Utility"', "sector_sensitivities.Utility: is an unknown field; write Utilities"),
    Mistake("equity_change_pct:+.1f", "equities:+.1f", "line 9: hypothetical[0].description: names equities in braces"),
    Mistake("equity_change_pct:+.0f", "equity_change_pct:d", "line 8: hypothetical[0].name: has braces that cannot be"),
    Mistake("Deposits leave", "Deposits {leave", "line 9: hypothetical[0].description: has braces that"),
    Mistake('"bank_run"', '"replay_own"', "line 7: hypothetical[0].scenario_id: replay_own is given twice; rename one"),
    Mistake("2018-12-24", "24.12.2018", 'line 4: replays[0].end: is "24.12.2018", no date; write YYYY-MM-DD'),
    Mistake("2018-12-24", "2018-09-24", "line 4: replays[0].end: is -7 days after start, not 1 to 400"),
    Mistake("-20.4", "20.4", "line 4: replays[0].market_pct: is 20.4, not from -95 to -0.5; write the market's fall"),
    Mistake('"extends"', '"severity": 2.0,\n  "extends"', "line 2: severity: is not what tasks print; leave it out"),
    Mistake('"credit_spread_change_bp": 150.0', '"value_change_pct": 5.0', "technology_change_pct: is missing"),
    Mistake(SCENARIO, "{}", 'line 1: hypothetical: is empty; add a scenario, or "extends": true to keep'),
]

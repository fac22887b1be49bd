"""Mistakes that people make in files of their own: what is written, and what is said of it."""

from __future__ import annotations

import json
from typing import NamedTuple

from finskillbench.arrays import SECTORS

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

SCENARIO = f"""{{
  "extends": true,
  "replays": [
    {{"scenario_id": "replay_own", "name": "Own", "start": "2018-10-01", "end": "2018-12-24", "market_pct": -20.4}}
  ],
  "hypothetical": [
    {{"scenario_id": "bank_run",
     "name": "Bank run of {{equity_change_pct:+.0f}} %",
     "description": "Deposits leave: equities move {{equity_change_pct:+.1f}} %.",
     "market_shocks": {{"equity_change_pct": -12.0, "credit_spread_change_bp": 150.0}}, "correlation_shift": 0.3,
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
    Mistake(
        '"core"',
        '"core fund"',
        'mandate_id: is "core fund", not a valid name; use up to 40 characters of A-Z, a-z, 0-9, _ and -',
    ),
    Mistake('"core"', '"../core"', 'mandate_id: is "../core", not a valid name; use up to 40'),
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
        "line 2: mandates: no mandate has more than 3 constraints, the number that a drawn portfolio "
        'breaks; add one with more, or "extends": true to keep the built-in ones',
    ),
    Mistake(
        "    ]}\n",
        '    ]},\n    {"mandate_id": "core", "name": "Other", "tier": "hard", "constraints": [\n'
        '      {"type": "long_only", "value": true}]}\n',
        "line 9: mandates[1].mandate_id: core is also mandates[0]; use a different id",
    ),
    Mistake('  "mandates"', '  "room": {"cash_max": 0.1},\n  "mandates"', "line 2: room.cash_max: is an unknown field"),
    Mistake(MANDATE, '{"mandates": []}', "line 1: mandates: is empty; add at least one"),
    Mistake(MANDATE, '{"mandate": []}', "line 1: mandate: is an unknown field; write mandates"),
    Mistake(MANDATE, "[]", "line 1: not a JSON object"),
    Mistake(MANDATE, " \n", "line 1: the file is empty; fill it, or remove it to keep what is built in"),
    Mistake(
        "Core Equity", "Core\\u0007", 'line 3: mandates[0].name: is "Core\\u0007", not a valid name; use up to 200'
    ),
]

OF_SCENARIOS = [
    Mistake("-0.03", "-3", "line 11: hypothetical[0].factor_shocks.smb: is -3, not from -0.9 to 0.9; write a decimal"),
    Mistake("-12.0", "-0.12", "line 10: hypothetical[0].market_shocks.equity_change_pct: is -0.12, not from"),
    Mistake("-12.0", "-10.0", "line 10: hypothetical[0].market_shocks.equity_change_pct: is -10 per cent, but factor_"),
    Mistake("-12.0", "12.0", "line 10: hypothetical[0].market_shocks.equity_change_pct: is 12, not from -60 to -0.5"),
    Mistake("0.3,", "0.7,", "line 10: hypothetical[0].correlation_shift: is 0.7, not from 0 to 0.6; write the part of"),
    Mistake('"equity_change_pct": -12.0, ', "", "line 10: hypothetical[0].market_shocks.equity_change_pct: is missing"),
    Mistake('"hml": -0.04, ', "", "line 11: hypothetical[0].factor_shocks.hml: is missing; add it; 0 where it"),
    Mistake('"hml"', '"HML"', "line 11: hypothetical[0].factor_shocks.HML: is an unknown field; remove it"),
    Mistake('"Energy"', '"Oil & Gas"', "line 12: hypothetical[0].sector_sensitivities.Oil & Gas: is an unknown field"),
    Mistake('"Utilities"', '"Utility"', "sector_sensitivities.Utility: is an unknown field; write Utilities"),
    Mistake(
        "equity_change_pct:+.1f",
        "equities:+.1f",
        "line 9: hypothetical[0].description: has the unknown placeholder {equities}",
    ),
    Mistake("equity_change_pct:+.0f", "equity_change_pct:d", "line 8: hypothetical[0].name: has braces that cannot be"),
    Mistake("Deposits leave", "Deposits {leave", "line 9: hypothetical[0].description: has braces that"),
    Mistake('"bank_run"', '"replay_own"', "line 7: hypothetical[0].scenario_id: replay_own is given twice; rename one"),
    Mistake("2018-12-24", "24.12.2018", 'line 4: replays[0].end: is "24.12.2018", no date; write YYYY-MM-DD'),
    Mistake("2018-12-24", "2018-09-24", "line 4: replays[0].end: is -7 days after start, not 1 to 400"),
    Mistake("-20.4", "20.4", "line 4: replays[0].market_pct: is 20.4, not from -95 to -0.5; write the market's fall"),
    Mistake(
        '"extends"', '"severity": 2.0,\n  "extends"', "line 2: severity: differs from the built-in value; leave it out"
    ),
    Mistake('"credit_spread_change_bp": 150.0', '"value_change_pct": 5.0', "technology_change_pct: is missing"),
    Mistake(SCENARIO, "{}", 'line 1: hypothetical: is empty; add a scenario, or "extends": true to keep'),
]

WEIGHTS = """date,symbol,weight,nav,mandate
2024-03-28,AAA,0.5,2500000,core
2024-03-28,BBB,0.3,,
2024-03-28,CCC,0.15,,
2024-03-28,CASH,0.05,,
"""
QUANTITIES = """date,symbol,quantity
2024-03-28,AAA,1000
2024-03-28,BBB,-250.5
2024-03-28,CCC,40000
2024-03-28,CASH,125000
"""

OF_WEIGHTS = [
    Mistake("0.5,", "50,", "line 2: weight: those of 2024-03-28 sum to 50.5, not 1; correct them"),
    Mistake("0.05,,", "0.02,,", "line 2: weight: those of 2024-03-28 sum to 0.97, not 1; correct them"),
    Mistake("2024-03-28,CASH,0.05,,\n", "", "line 2: weight: those of 2024-03-28 sum to 0.95, not 1; add a row CASH"),
    Mistake("0.15,", "15%,", "line 4: weight: is '15%'; write a fraction, 0.05 for 5 %"),
    Mistake("0.15,", '"0,15",', "line 4: weight: is '0,15'; write 0.15, with a decimal point"),
    Mistake("0.15,", '"0,150",', "line 4: weight: is '0,150'; write 0.150, with a decimal point"),
    Mistake("2500000", '"2.500.000,50"', "line 2: nav: is '2.500.000,50'; write 2500000.50, with a decimal point"),
    Mistake("0.15,", "0,15,", "line 4: 6 fields where the header names 5; write numbers without commas"),
    Mistake("0.15,", "(0.15),", "line 4: weight: is '(0.15)'; write a short position with a minus sign"),
    Mistake("0.15,", "n/a,", "line 4: weight: is 'n/a', not a number; correct it"),
    Mistake("0.15,", "nan,", "line 4: weight: is 'nan', not a number; correct it"),
    Mistake("0.15,", "1e400,", "line 4: weight: is '1e400', not a number; correct it"),
    Mistake("0.15,", ",", "line 4: weight: is empty; write the number, or delete the row"),
    Mistake(",0.15,,", ",0.15", "line 4: 3 fields where the header names 5"),
    Mistake("CASH,0.05", "CASH,-0.05", "line 5: weight: cash is -0.05; cash must not be negative; correct it"),
    Mistake("28,BBB", "28,AAA", "line 3: symbol: AAA is in line 2 of 2024-03-28 too; combine the rows"),
    Mistake("28,BBB", "28,", "line 3: symbol: is empty; write a ticker, or CASH"),
    Mistake("28,BBB", "28,US0378331005 EQ", "line 3: symbol: is 'US0378331005 EQ'; write a ticker, or CASH"),
    Mistake("2024-03-28,BBB", "28.03.2024,BBB", "line 3: date: is '28.03.2024'; write YYYY-MM-DD"),
    Mistake("2024-03-28,BBB", "03/28/2024,BBB", "line 3: date: is '03/28/2024'; write YYYY-MM-DD"),
    Mistake("2024-03-28,BBB", "45379,BBB", "line 3: date: is '45379'; write YYYY-MM-DD"),
    Mistake("2024-03-28,BBB", "2024-02-30,BBB", "line 3: date: there is no 2024-02-30; correct it"),
    Mistake("2024-03-28,BBB", ",BBB", "line 3: date: is empty; write YYYY-MM-DD"),
    Mistake("2500000", '"2,500,000"', "line 2: nav: is '2,500,000'; write 2500000, without thousands separators"),
    Mistake("2500000", "2.5", "line 2: nav: is 2.5; write US dollars, 10,000 at least, without separators"),
    Mistake("BBB,0.3,,", "BBB,0.3,3000000,", "line 3: nav: is '3000000', and '2500000' in line 2 of 2024-03-28"),
    Mistake("BBB,0.3,,", "BBB,0.3,,other", "line 3: mandate: is 'other', and 'core' in line 2 of 2024-03-28"),
    Mistake("date,", "Datum,", "line 1: 'datum' is an unknown column; call it date, or remove it"),
    Mistake("weight,", "weights,", "line 1: 'weights' is an unknown column; call it weight, or remove it"),
    Mistake("symbol,", "isin,", "line 1: there is no column symbol; name the columns date, symbol, weight"),
    Mistake("nav,", "weight,", "line 1: the column weight is given twice; keep one of them"),
    Mistake("nav,", "quantity,", "line 1: there are both weights and quantities; keep one of the two columns"),
    Mistake(WEIGHTS, WEIGHTS.replace(",", ";"), "line 1: fields are separated by semicolons; save as CSV with commas"),
    Mistake(WEIGHTS, WEIGHTS.replace(",", "\t"), "line 1: fields are separated by tabs; save as CSV with commas"),
    Mistake(
        WEIGHTS, WEIGHTS.split("\n", 1)[1], "line 1: there is no column date; name the columns date, symbol, weight"
    ),
    Mistake(WEIGHTS, WEIGHTS.split("\n", 1)[0], "line 2: no rows under the header; add the holdings"),
    Mistake(WEIGHTS, "\n", "line 1: the file is empty; fill it, or remove it to keep what is built in"),
    Mistake(
        WEIGHTS,
        "date,symbol,weight\n2024-03-28,AAA,50\n2024-03-28,BBB,30\n2024-03-28,CCC,20\n",
        "line 2: weight: those of 2024-03-28 sum to 100; write fractions, 0.05 for 5 %",
    ),
    Mistake(
        WEIGHTS,
        "date,symbol,weight\n2024-03-28,AAA,0.5\n2024-03-28,BBB,0.5\n",
        "line 2: 2024-03-28 has 2 holdings; a book has 3 at least",
    ),
]

OF_QUANTITIES = [
    Mistake("40000", '"40,000"', "line 4: quantity: is '40,000'; write 40000 without a thousands separator, or 40.000"),
    Mistake("40000", "40 000", "line 4: quantity: is '40 000'; write 40000, without thousands separators"),
    Mistake("40000", "40'000", 'line 4: quantity: is "40\'000"; write 40000, without thousands separators'),
    Mistake("40000", "1e14", "line 4: quantity: is '1e14', not a number; correct it"),
    Mistake("125000", "-125000", "line 5: quantity: cash is -125000; cash must not be negative; correct it"),
    Mistake(
        "quantity\n", "quantity,nav\n", "line 1: the NAV follows from quantities and prices; remove the column nav"
    ),
    Mistake("quantity\n", "shares\n", "line 1: 'shares' is an unknown column; call it one of date, symbol, weight,"),
]

TIERS = """{
  "extends": true,
  "tiers": {
    "hard": {
      "max_weight": 0.08, "sector_room": 0.02, "min_position": 0.01,
      "max_turnover": 0.25, "max_tracking_error": 0.05, "neutral_factors": ["smb", "hml"],
      "neutrality_tolerance": 0.1, "risk_aversion": 0.75, "listed": 0.8
    }
  }
}
"""

OF_TIERS = [
    Mistake('"max_weight": 0.08', '"max_weight": 8', "line 5: tiers.hard.max_weight: is 8, not from 0.01 to 1"),
    Mistake('"sector_room": 0.02, ', "", "line 4: tiers.hard.sector_room: is missing; add it"),
    Mistake('"sector_room"', '"sector_rooms"', "line 5: tiers.hard.sector_rooms: is an unknown field; write"),
    Mistake('"hard"', '"extreme"', "line 4: tiers.extreme: is an unknown field; remove it, or correct its name"),
    Mistake('"max_weight": 0.08', '"max_weight": 0.01', "line 5: tiers.hard.min_position: is not less than max"),
    Mistake('"min_position": 0.01', '"min_position": 1', "line 5: tiers.hard.min_position: is 1, not from 0.001"),
    Mistake('"smb", "hml"', '"smb", "smb"', "line 6: tiers.hard.neutral_factors: names a factor twice; name each once"),
    Mistake('"smb", "hml"', '"momentum"', """line 6: tiers.hard.neutral_factors[0]: is "momentum"; choose 'mkt_rf',"""),
    Mistake('  "extends": true,\n', "", 'tiers.easy: is missing; add it, or "extends": true to keep the built-in one'),
    Mistake('"listed": 0.8', '"listed": 80', "line 7: tiers.hard.listed: is 80, not from 0.2 to 1; write a share"),
]

TEXTS = """{
  "extends": true,
  "openings": ["A family trust hires the desk."],
  "objectives": {"min_variance": ["The lowest volatility is asked for."]},
  "limits": {
    "max_weight": ["House policy allows {x} in a single name at most."],
    "excluded_sectors": ["The deed excludes {sectors}."]
  },
  "barred": ["The house does not sell short."],
  "allowed": ["The trust may sell short."],
  "asides": ["USD {n} million are managed so far."]
}
"""

OF_TEXTS = [
    Mistake("allows {x} in", "wants at least {x} in", "line 6: limits.max_weight[0]: is not understood as intended (m"),
    Mistake("{x} in a single name", "{y} in a single name", "line 6: limits.max_weight[0]: has braces that cannot be"),
    Mistake("{x} in a single name at most", "little in a name", "max_weight[0]: is not understood as intended (max_w"),
    Mistake("{x} in a single name", "{x in a single name", "line 6: limits.max_weight[0]: has braces that"),
    Mistake("at most.", "at most", "line 6: limits.max_weight[0]: does not end with a full stop; end it with one"),
    Mistake("max_weight", "max_weights", "line 6: limits.max_weights: is an unknown field; write max_weight"),
    Mistake("min_variance", "least_risk", "line 4: objectives.least_risk: is an unknown field; remove it"),
    Mistake("lowest volatility", "best portfolio", "line 4: objectives.min_variance[0]: is not understood as intended"),
    Mistake(
        "excludes", "dislikes", "line 7: limits.excluded_sectors[0]: is not understood as intended (sector_limits)"
    ),
    Mistake("does not sell short", "may sell short", "line 9: barred[0]: is not understood as intended (long_only)"),
    Mistake("may sell short", "is free in all", "line 10: allowed[0]: is not understood as intended (long_only)"),
    Mistake("USD {n} million are managed so far", "At most {x} in a name", "line 11: asides[0]: is not understood as"),
    Mistake("hires the desk", "caps names at 5%", "line 3: openings[0]: is not understood as intended (max_weight)"),
    Mistake('["A family', '[7, "A family', "line 3: openings[0]: is 7, not text in quotes; correct it"),
    Mistake('  "extends": true,\n', "", 'limits.min_weight: has no sentence; add one, or "extends": true to keep the'),
]

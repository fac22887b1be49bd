"""Read the mandate of tool_use_parameterization by keywords: one sentence, one limit, the last one stated holds.

Written from the printed texts of a few seeds, independent of the grammar that composes them and of `finskillbench`. A
sentence that matches no rule raises `UnreadError` with its text.
"""

import math
import re
from typing import Any

Json = dict[str, Any]
FACTORS = {
    "the market": "mkt_rf",
    "size": "smb",
    "value": "hml",
    "profitability": "rmw",
    "investment": "cma",
    "momentum": "mom",
}
FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
UNITS = {"basis point": 1e4, "percent": 1e2, "%": 1e2, "of NAV": 1.0}
PAST = r"\b(until now|previously|last year|in the past|at the last review|formerly|used to)\b"
BANNED_SHORTS = r"no short position|not sell short|short sales are barred|shorting is not permitted|long-only"
COUNTED = r"\d+ (?:names|positions|holdings)\b"
AMOUNT = re.compile(r"(\d[\d,]*(?:\.\d+)?)\s*(basis points?|percentage points?|percent|%|of NAV)|one (\w+)")


class UnreadError(ValueError):
    """A sentence that no rule reads."""


def amounts(text: str) -> list[float]:
    """Fractions of NAV in the order of a sentence."""
    found: list[float] = []
    for number, unit, part in AMOUNT.findall(text):
        if part:
            found += [1 / FRACTIONS[part]] if part in FRACTIONS else []
        else:
            scale = next(scale for name, scale in UNITS.items() if unit.startswith(name))
            found.append(float(number.replace(",", "")) / scale)
    return found


def read(task_input: Json) -> tuple[Json, float]:
    """The call that the mandate asks for; its second value says that no number lies near a limit."""
    sentences = re.split(r"(?<=[.:])\s+(?=[A-Za-z])", task_input["scenario_description"])
    sizes = re.findall(r"holds USD ([\d,.]*\d) million", task_input["scenario_description"])
    size = float(sizes[0].replace(",", "")) if sizes else math.inf
    call: Json = {"objective": None, "constraints": {}}
    applies = True
    for place, sentence in enumerate(sentences):
        tier = re.search(r"has reached USD ([\d,.]*\d) million:", sentence)
        if tier:
            if not sizes:
                raise UnreadError(f"size of the account: {sentence}")
            applies = size >= float(tier[1].replace(",", ""))
            continue
        silent = not applies or _background(sentence, place) or re.search(PAST, sentence, re.IGNORECASE)
        if not silent and not _limit(sentence, task_input["sectors"], call["constraints"]):
            _objective(sentence, call)
        applies = True
    if call["objective"] is None:
        raise UnreadError("no sentence states the objective")
    return {"optimizer_call": call}, math.inf


def _background(sentence: str, place: int) -> bool:
    """An opening, the size of the account, the head of an amendment, or the first half of an objective."""
    heads = r"amendment, replacing .* set above:$|holds USD .* million\.$|:$|i\.e\.$"
    return place == 0 or re.search(heads, sentence) is not None


def _objective(sentence: str, call: Json) -> None:
    """Enter the objective that a sentence states."""
    words = sentence.lower()
    if "inverse-variance" in words or "inverse proportion" in words:
        call["objective"] = "risk_parity"
    elif "risk aversion" in words:
        call["objective"] = "max_sharpe"
        call["risk_aversion"] = float(re.findall(r"\d+(?:\.\d+)?", sentence)[0])
    elif re.search(r"(lowest|minimum|least) variance|calmest|lowest volatility", words):
        call["objective"] = "min_variance"
    elif re.search(r"(highest|most|maximise|only the) expected return", words):
        call["objective"] = "max_return"
    else:
        raise UnreadError(sentence)


def _limit(sentence: str, sectors: list[str], limits: Json) -> bool:
    """Enter the limit that a sentence states; False if it states none."""
    words, found = sentence.lower(), amounts(sentence)
    named = [sector for sector in sectors if sector in sentence]
    if re.search(BANNED_SHORTS, words):
        limits["long_only"] = True
    elif re.search(r"(may|allowed to) sell short", words):
        limits["long_only"] = False
    elif named and re.search(r"exclude|forbid|prohibit|nothing in", words):
        limits["excluded_sectors"] = sorted([*limits.get("excluded_sectors", []), *named])
    elif named and "of the benchmark" in words:
        limits.setdefault("sector_limits", {})[named[0]] = round(found[0] + found[1], 6)
    elif named and found:
        limits.setdefault("sector_limits", {})[named[0]] = found[0]
    elif "two-way" in words or "purchases plus sales" in words:
        limits["max_turnover"] = found[0] / 2
    elif re.search(r"one[- ]way", words):
        limits["max_turnover"] = found[0]
    elif "tracking error" in words and found:
        limits["max_tracking_error"] = round(found[0] * (math.sqrt(12) if "month" in words else 1.0), 6)
    elif re.search(r"exposures? to|active beta|neutral", words):
        limits["neutral_factors"] = [code for name, code in FACTORS.items() if re.search(rf"\b{name}\b", words)]
        width = re.findall(r"\d*\.\d+", sentence)
        if width:
            limits["neutrality_tolerance"] = float(width[0])
    elif re.search(COUNTED, words) or re.search(r"\d+ and \d+ names", words):
        _count(words, limits)
    elif re.search(r"minimum of|no less than", words) and re.search(r"every|each", words):
        limits["min_weight"] = found[0]
    elif "sector" in words and found:
        limits["max_sector_weight"] = found[0]
    elif re.search(r"position|name|stock", words) and found:
        limits["max_weight"] = found[0]
    else:
        return False
    return True


def _count(words: str, limits: Json) -> None:
    """Enter a least or greatest number of holdings, or both."""
    numbers = [int(number) for number in re.findall(r"\d+", words)]
    if "between" in words:
        limits["min_names"], limits["max_names"] = numbers
    elif re.search(r"at least|or more|no fewer", words):
        limits["min_names"] = numbers[0]
    else:
        limits["max_names"] = numbers[0]

"""Rule-based parser of English mandates: quantities, their limits, and the objective.

Text is cut into clauses. Words near a quantity select the limit, its unit (percent, basis points, a fraction in words,
a bare number) the value. Unmatched quantities are reported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_FRACTIONS = {"tenth": 0.1, "fifth": 0.2, "quarter": 0.25, "third": 1 / 3, "half": 0.5}
_QUANTITY = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|percent\b|percentage points?\b|basis points\b|bps?\b|of NAV\b)?"
    r"|one[ -](?P<fraction>tenth|fifth|quarter|third|half)\b"
)
_FACTORS = {
    "mkt_rf": r"\bmarket\b|\bmkt_rf\b",
    "smb": r"\bsize\b|\bsmb\b",
    "hml": r"\bvalue\b|\bhml\b",
    "rmw": r"\bprofitability\b|\brmw\b",
    "cma": r"\binvestment\b|\bcma\b",
    "mom": r"\bmomentum\b|\bmom\b",
}
_OBJECTIVES = (
    ("risk_parity", r"inverse[- ]variance|risk[- ]balanced|risk parity|weighted by risk|risk spread"),
    ("max_sharpe", r"risk aversion|risk-adjusted|sharpe|net of risk"),
    ("min_variance", r"variance|calmest|volatility|lowest risk"),
    ("max_return", r"expected return|highest return"),
)
_LOWER = re.compile(r"at least|no fewer than|or more|minimum of|not less than", re.I)
_NEUTRAL = re.compile(r"exposure|beta\b|neutral|factors?\b", re.I)
_SHORT_ALLOWED = re.compile(r"\b(?:may|can|is allowed to) (?:sell short|short)\b", re.I)
_TWO_WAY = re.compile(r"\btwo-way\b|\bpurchases (?:and|plus) sales\b", re.I)
_DEFAULT_NEUTRAL = re.compile(r"\bneutral\b.*\bdefault tolerance\b", re.I)
_ASIDE = re.compile(
    r"\b(?:last (?:year|quarter|month|review)|until now|so far|previous(?:ly)?|formerly|used to|in the past|USD)\b",
    re.I,
)
"""Sentences about the past, or about money, set no limit."""
_AMENDMENT = re.compile(r"^\w+ amendment\b[^:]*: ", re.I)
_CONDITION = re.compile(r"^Once the account has reached USD (\d+) million: ", re.I)
_ACCOUNT = re.compile(r"\baccount holds USD (\d+) million", re.I)
_RELATIVE = re.compile(r"\bof the benchmark\b.*\bmay exceed that by\b", re.I)
_MONTHLY = re.compile(r"\ba month\b|\bby month\b|\bmonthly\b", re.I)
_EXCLUSION = re.compile(r"\b(?:forbids?|excludes?|prohibits?)\b", re.I)


@dataclass
class MandateReading:
    """Parsed optimiser call, with the source words of each limit."""

    objective: str | None = None
    risk_aversion: float | None = None
    constraints: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def call(self) -> dict[str, Any]:
        """Return the arguments of optimize_portfolio."""
        aversion = {} if self.risk_aversion is None else {"risk_aversion": self.risk_aversion}
        return {"objective": self.objective, **aversion, "constraints": self.constraints}


def read_mandate(text: str, sectors: Sequence[str]) -> MandateReading:
    """Parse objective and limits of a mandate.

    Parameters
    ----------
    text : the mandate in English.
    sectors : the universe's sector names, matched in any case.
    """
    reading = MandateReading()
    reading.objective = next((name for name, cue in _OBJECTIVES if re.search(cue, text, re.I)), None)
    reading.constraints["long_only"] = not _SHORT_ALLOWED.search(text)
    for sentence in _in_force(reading, re.split(r"(?<=[.])\s+(?=[A-Z])", text)):
        if _ASIDE.search(sentence):
            reading.left_out.append(sentence)
            continue
        if _read_relative(reading, sentence, sectors):
            continue
        _read_exclusions(reading, sentence, sectors)
        if _DEFAULT_NEUTRAL.search(sentence):
            reading.constraints["neutral_factors"] = _factors(sentence)
            reading.evidence["neutral_factors"] = sentence
        sentence = _read_range(reading, sentence)
        # A sentence with one quantity is one clause, regardless of punctuation.
        whole = len(_QUANTITY.findall(sentence)) == 1
        for clause in [sentence] if whole else re.split(r"[;:,]\s+|\band\b", sentence):
            _read_clause(reading, clause.strip(), sentence, sectors)
    return reading


def _in_force(reading: MandateReading, sentences: Sequence[str]) -> list[str]:
    """Order sentences by precedence: plain ones, conditions that are met, amendments."""
    account = next((int(found[1]) for sentence in sentences if (found := _ACCOUNT.search(sentence))), None)
    plain, met, amended = list[str](), list[str](), list[str]()
    for sentence in sentences:
        if condition := _CONDITION.search(sentence):
            if account is not None and account >= int(condition[1]):
                met.append(sentence[condition.end() :])
            else:
                reading.left_out.append(sentence)
        elif amendment := _AMENDMENT.search(sentence):
            amended.append(sentence[amendment.end() :])
        else:
            plain.append(sentence)
    return plain + met + amended


def _read_relative(reading: MandateReading, sentence: str, sectors: Sequence[str]) -> bool:
    """Parse `Energy weighs 4% of the benchmark and may exceed that by 2%`: the sector's cap is the sum."""
    quantities = list(_QUANTITY.finditer(sentence))
    named = [name for name in sectors if re.search(re.escape(name), sentence, re.I)]
    if not (_RELATIVE.search(sentence) and len(quantities) == 2 and named):
        return False
    cap = round(_value(quantities[0])[0] + _value(quantities[1])[0], 12)
    reading.constraints.setdefault("sector_limits", {})[named[0]] = cap
    reading.evidence[f"sector_limits.{named[0]}"] = sentence
    return True


def _factors(sentence: str) -> list[str]:
    return [factor for factor, cue in _FACTORS.items() if re.search(cue, sentence, re.I)]


def _read_exclusions(reading: MandateReading, sentence: str, sectors: Sequence[str]) -> None:
    if _EXCLUSION.search(sentence):
        named = [name for name in sectors if re.search(re.escape(name), sentence, re.I)]
        if named:
            reading.constraints["excluded_sectors"] = named
            reading.evidence["excluded_sectors"] = sentence


def _read_range(reading: MandateReading, sentence: str) -> str:
    """Parse `between 12 and 16 holdings` as both counts; return the remaining sentence."""
    found = re.search(r"between (\d+) and (\d+) (?:holdings|names|positions)", sentence, re.I)
    if not found:
        return sentence
    for name, value in zip(("min_names", "max_names"), found.groups(), strict=True):
        reading.constraints[name] = int(value)
        reading.evidence[name] = found[0]
    return sentence.replace(found[0], "")


def _read_clause(reading: MandateReading, clause: str, sentence: str, sectors: Sequence[str]) -> None:
    for match in _QUANTITY.finditer(clause):
        value, unit = _value(match)
        name = _limit_of(clause, unit)
        if name == "risk_aversion":
            reading.risk_aversion = value
        elif name == "neutrality_tolerance":
            reading.constraints["neutral_factors"] = _factors(sentence)
            reading.constraints[name] = value
        elif name in ("min_names", "max_names"):
            reading.constraints[name] = int(value)
        elif name == "weight":
            name = _place_weight(reading, clause, value, sectors)
        elif name == "max_turnover":
            reading.constraints[name] = round(value / 2, 12) if _TWO_WAY.search(clause) else value
        elif name == "max_tracking_error" and _MONTHLY.search(sentence):
            reading.constraints[name] = round(value * math.sqrt(12), 6)
        elif name is None:
            reading.unread.append(clause)
            continue
        else:
            reading.constraints[name] = value
        reading.evidence[name] = clause


def _value(match: re.Match[str]) -> tuple[float, str]:
    """Return the decimal value and unit: 'share' for percents, basis points and fractions, 'plain' for bare numbers."""
    if match["fraction"]:
        return _FRACTIONS[match["fraction"]], "share"
    number = float(match["number"])
    if match["unit"] is None:
        return number, "plain"
    unit = match["unit"].lower()
    if unit == "of nav":
        return number, "share"
    return round(number / (100 if unit.startswith(("%", "percent")) else 10_000), 12), "share"


def _limit_of(clause: str, unit: str) -> str | None:
    lowered = clause.lower()
    if "risk aversion" in lowered:
        return "risk_aversion"
    if unit == "share":
        if "tracking error" in lowered:
            return "max_tracking_error"
        return "max_turnover" if "turnover" in lowered or _TWO_WAY.search(clause) else "weight"
    if re.search(r"holdings|names|positions", lowered):
        return "min_names" if _LOWER.search(clause) else "max_names"
    return "neutrality_tolerance" if _NEUTRAL.search(clause) else None


def _place_weight(reading: MandateReading, clause: str, value: float, sectors: Sequence[str]) -> str:
    """Assign a share of NAV to a named sector, all sectors, or all names (a minimum with "at least")."""
    named = [name for name in sectors if re.search(re.escape(name), clause, re.I)]
    if named:
        reading.constraints.setdefault("sector_limits", {})[named[0]] = value
        return f"sector_limits.{named[0]}"
    if re.search(r"sector", clause, re.I):
        reading.constraints["max_sector_weight"] = value
        return "max_sector_weight"
    name = "min_weight" if _LOWER.search(clause) else "max_weight"
    reading.constraints[name] = value
    return name

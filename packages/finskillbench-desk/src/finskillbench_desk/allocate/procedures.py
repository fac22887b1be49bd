"""Baseline programs for a case: a careful reference, a textbook method, and one that falls into every trap.

The reference reads memo and log, checks columns and regresses in windows between seven dates. It weighs the strongest
sources by empirical Bayes, sums over starts of the present regime and optimises, all through skill scripts. If the memo
does not state the law, it assumes effects of unknown sign and usual size.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import prod

from finskillbench.domains.interactive import Procedure, ProcedureCall
from finskillbench.episode import JsonObject

_SKILL = "signal-trading"
_LAST = 44
_STARTS = (1, 9, 17, 25, 31, 37)
"""Possible first quarters of a regime in the reference; the memo allows every other quarter."""
_NOW = len(_STARTS)
_SPANS = list(combinations(range(_NOW + 1), 2))
"""Windows: from one start to the quarter before another, or to the last quarter."""
_WORTH_LISTING = 2.5
"""Least |t| of a listed hypothesis; the others count towards no effect."""
_TEXTBOOK_T = 2.0
_ASSUMED: Mapping[str, float] = {
    "nothing": 0.5,
    "analyst_share": 0.4,
    "signal_mean": 0.0,
    "signal_deviation": 0.02,
    "analyst_mean": 0.0,
    "analyst_deviation": 0.02,
    "change": 0.1,
}
"""Family that the programs assume where none is disclosed."""
_NEGLIGIBLE = 1e-4
_SMALLEST = 1e-9
"""Floor for probabilities, which scripts return with ten decimals."""

Span = tuple[int, int]
Listed = tuple[str, Span, JsonObject]
"""A group of mutually exclusive hypotheses (an industry), the window, and the hypothesis."""

Play = Generator[tuple[ProcedureCall, ...], list[JsonObject], JsonObject]


def _reference() -> Play:
    begun = yield _opening()
    log, rows = begun[1]["value"]["notes"], begun[2]["rows"]
    family = yield from _family(begun[1]["value"]["memo"])
    (checked,) = yield (_script("panel_checks", {}, "panel", "today", "names", "sources"),)
    found = checked["output"]
    repairs = [
        {"source": jump["source"], "first": jump["quarter"], "multiply": 0.1}
        for jump in found["jumps"]
        if jump["ratio"] > 5 and jump["quarter"] <= _LAST
    ]
    repairs_today = [{"source": repair["source"], "multiply": 0.1} for repair in repairs]
    repairs += [{"source": source, "last": quarter - 1, "multiply": -1} for source, quarter in _turned(log)]
    valid = set(_valid(log))
    start = {
        source: since
        for source, _, vendor, since, _ in rows
        if since > 1 and source not in valid and vendor not in valid
    }
    listed = yield from _listed(family, {"repairs": repairs, "start": start}, separate=False)
    gone = set(found["not_delivered"]) - set(_delivered(log))
    return (yield from _decided(listed, family["change"], gone, repairs_today))


def _textbook() -> Play:
    """Take the source with the largest |t| over all quarters in each industry, at its estimate."""
    yield (ProcedureCall("load_skill", {"skill_name": _SKILL}),)
    (fits,) = yield (_regress({"top": 1}),)
    effects = [
        {"industry": industry, "source": entry["source"], "effect": entry["estimate"][0]}
        for industry, entries in fits["output"]["industries"].items()
        for entry in entries
        if abs(entry["t"][0]) > _TEXTBOOK_T
    ]
    (placed,) = yield (_optimise(effects, []),)
    return _answer(placed)


def _trapped() -> Play:
    """Run the reference's arithmetic on raw columns, each source separately."""
    begun = yield _opening()
    family = yield from _family(begun[1]["value"]["memo"])
    listed = yield from _listed(family, {}, separate=True)
    return (yield from _decided(listed, family["change"], set(), []))


PROCEDURES: Mapping[str, Procedure] = {"reference": _reference, "textbook": _textbook, "trapped": _trapped}


def _opening() -> tuple[ProcedureCall, ...]:
    return (
        ProcedureCall("load_skill", {"skill_name": _SKILL}),
        ProcedureCall("get_task_data", {"field": "documents"}),
        ProcedureCall("read_table", {"table": "sources"}),
    )


def _family(memo: str) -> Generator[tuple[ProcedureCall, ...], list[JsonObject], Mapping[str, float]]:
    """Read the family if the memo states one."""
    if "with probability" not in memo:
        return _ASSUMED
    (read,) = yield (ProcedureCall("get_task_data", {"field": "family"}),)
    return read["value"]


def _listed(
    family: Mapping[str, float], read: JsonObject, *, separate: bool
) -> Generator[tuple[ProcedureCall, ...], list[JsonObject], list[Listed]]:
    listed: list[Listed] = []
    for now in (True, False):
        spans = [span for span in _SPANS if (span[1] == _NOW) == now]
        windows = [_quarters(span) for span in spans]
        (fits,) = yield (_regress({"windows": windows, "top": 4, **read}),)
        for industry, entries in fits["output"]["industries"].items():
            for entry in entries:
                kind = "analyst" if entry["source"].startswith("A") else "signal"
                share = family["analyst_share"] / 40 if kind == "analyst" else (1 - family["analyst_share"]) / 150
                rows = zip(spans, entry["estimate"], entry["standard_error"], entry["t"], strict=True)
                for span, estimate, error, t in rows:
                    if estimate is None or abs(t) < _WORTH_LISTING:
                        continue
                    row = {
                        "name": entry["source"],
                        "estimate": estimate,
                        "standard_error": error,
                        "probability": (1 - family["nothing"]) * share,
                        "mean": family[f"{kind}_mean"],
                        "deviation": family[f"{kind}_deviation"],
                    }
                    listed.append((f"{industry}|{entry['source']}" if separate else industry, span, row))
    return listed


def _quarters(span: Span) -> list[int]:
    return [_STARTS[span[0]], (*_STARTS, _LAST + 1)[span[1]] - 1]


def _decided(listed: Sequence[Listed], change: float, gone: set[str], repairs: Sequence[JsonObject]) -> Play:
    """Weigh hypotheses window by window, sum over windows that end now, and optimise."""
    rows = [{"group": f"{what}|{first}|{last}", **row} for what, (first, last), row in listed]
    (weighed,) = yield (_script("shrink", {"hypotheses": rows}),)
    found = weighed["output"]["groups"]
    listed_chances: dict[str, dict[Span, list[float]]] = {}
    for what, span, row in listed:
        listed_chances.setdefault(what, {}).setdefault(span, []).append(row["probability"])
    effects: list[JsonObject] = []
    for what, by_span in listed_chances.items():
        evidence = dict.fromkeys(_SPANS, 1.0)
        for span, chances in by_span.items():
            none = max(found[f"{what}|{span[0]}|{span[1]}"]["none"], _SMALLEST)
            evidence[span] = (1 - math.fsum(chances)) / none
        now: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for first, chance in enumerate(chances_of_starts(evidence, change)):
            parts = found.get(f"{what}|{first}|{_NOW}", {"expected": {}})["expected"]
            for name, part in parts.items():
                now[name][0] += chance * part["effect"]
                now[name][1] += chance * (part["variance"] + part["effect"] ** 2)
        effects += [
            {"industry": what.partition("|")[0], "source": name, "effect": mean, "variance": max(square - mean**2, 0.0)}
            for name, (mean, square) in now.items()
            if abs(mean) > _NEGLIGIBLE and name not in gone
        ]
    (placed,) = yield (_optimise(effects, repairs),)
    return _answer(placed)


def chances_of_starts(evidence: Mapping[Span, float], change: float) -> list[float]:
    """Return the probability that each start began the present regime; evidence is relative to no effect."""
    turn = _turns(change)

    def under(span: Span) -> float:
        return evidence[span] * prod(1 - turn[middle] for middle in range(span[0] + 1, span[1]))

    before = [1.0]
    for start in range(1, _NOW):
        before.append(turn[start] * math.fsum(before[first] * under((first, start)) for first in range(start)))
    chances = [before[first] * under((first, _NOW)) for first in range(_NOW)]
    return [chance / math.fsum(chances) for chance in chances]


def _turns(change: float) -> list[float]:
    """Return the probability that a regime begins near each start, at any half-year closer to it than to another."""
    halves = [(start - 1) // 2 for start in _STARTS]
    edges = [1, *((a + b) // 2 + 1 for a, b in pairwise(halves[1:])), _LAST // 2]
    return [1.0, *(1 - (1 - change) ** (after - first) for first, after in pairwise(edges))]


def _turned(log: str) -> Iterator[tuple[str, int]]:
    """Yield sources whose sign was reversed without restating the history, with the first quarter of the new sign."""
    for line in log.splitlines():
        turned = re.search(r"scale was reversed|highest value|opposite sign", line)
        if turned and not re.search(r"was restated|, restated", line):
            yield re.findall(r"[SA]\d+", line)[0], max(int(each) for each in re.findall(r"[Qq]uarter (\d+)", line))


def _valid(log: str) -> Iterator[str]:
    for line in log.splitlines():
        if re.search(r"pilot client|trial|same person|one person", line):
            named = re.findall(r"\bA\d\d\b", line)
            yield from named or re.findall(r"\b[A-Z][a-z]+\b", line)


def _delivered(log: str) -> Iterator[str]:
    for line in log.splitlines():
        if "new delivery" in line:
            yield from re.findall(r"[SA]\d+", line)


def _script(name: str, payload: JsonObject, *fields: str) -> ProcedureCall:
    path = f"{_SKILL}/scripts/{name}.py"
    return ProcedureCall(
        "run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": list(fields)}
    )


def _regress(payload: JsonObject) -> ProcedureCall:
    return _script("panel_regress", payload, "panel", "names", "factor_returns", "sources")


def _optimise(effects: Sequence[JsonObject], repairs: Sequence[JsonObject]) -> ProcedureCall:
    fields = ("names", "today", "sources", "factor_covariance", "limits", "risk_aversion")
    return _script("optimize_net_of_costs", {"effects": effects, "repairs": repairs}, *fields)


def _answer(placed: JsonObject) -> JsonObject:
    return {"weights": {name: weight for name, weight in placed["output"]["holdings"].items() if weight > 0}}

"""How programs play a case, call by call: a careful analyst, a textbook, and one who falls for every trap.

The reference reads memo and log, checks the columns, regresses in ten windows, weighs what stands out by empirical
Bayes with breaks on a coarse grid, and optimises net of costs. All arithmetic is done by scripts that an agent has too.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from finskillbench.domains.playing import Ask, Procedure
from finskillbench.episode import JsonObject

_SKILL = "portfolio-construction"
_LAST = 44
_STARTS = (1, 9, 17, 25, 31, 37)
_ENDS = (8, 16, 24, 32, 38)
_WINDOWS = [[first, _LAST] for first in _STARTS] + [[1, last] for last in _ENDS]
_WORTH_LISTING = 2.5
"""Hypotheses with a smaller t are left to the chance that nothing moves the industry."""
_TEXTBOOK_T = 2.0
_NEGLIGIBLE = 1e-4
_LIKELY, _OVERLAP = 0.5, 4
"""A regime is taken for ended from this chance on; the next may have begun some quarters before its last."""

Listed = tuple[JsonObject, list[int]]
"""A hypothesis and the window of quarters that it is about."""

Play = Generator[tuple[Ask, ...], list[JsonObject], JsonObject]


def reference() -> Play:
    """Empirical Bayes on rightly read data."""
    begun = yield _opening()
    family, log, rows = begun[1]["value"], begun[2]["value"], begun[3]["rows"]
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
    (fits,) = yield (_regress({"windows": _WINDOWS, "top": 4, "repairs": repairs, "start": start}),)
    hypotheses = list(_hypotheses(fits["output"]["industries"], family, separate=False))
    gone = set(found["not_delivered"]) - set(_delivered(log))
    return (yield from _decided(hypotheses, gone, repairs_today))


def textbook() -> Play:
    """In each industry the source with the largest t over all quarters, taken at its estimate."""
    yield (Ask("load_skill", {"skill_name": _SKILL}),)
    (fits,) = yield (_regress({"top": 1}),)
    effects = [
        {"industry": industry, "source": entry["source"], "effect": entry["estimate"][0]}
        for industry, entries in fits["output"]["industries"].items()
        for entry in entries
        if abs(entry["t"][0]) > _TEXTBOOK_T
    ]
    (placed,) = yield (_optimise(effects, []),)
    return _answer(placed)


def trapped() -> Play:
    """The reference's arithmetic on columns as they come, each source for itself: it falls for every trap."""
    begun = yield _opening()
    (fits,) = yield (_regress({"windows": _WINDOWS, "top": 4}),)
    hypotheses = list(_hypotheses(fits["output"]["industries"], begun[1]["value"], separate=True))
    return (yield from _decided(hypotheses, set(), []))


PROCEDURES: Mapping[str, Procedure] = {"reference": reference, "textbook": textbook, "trapped": trapped}


def _opening() -> tuple[Ask, ...]:
    return (
        Ask("load_skill", {"skill_name": _SKILL}),
        Ask("get_task_data", {"field": "family"}),
        Ask("get_task_data", {"field": "documents.notes"}),
        Ask("read_table", {"table": "sources"}),
    )


def _decided(listed: Sequence[Listed], gone: set[str], repairs: Sequence[JsonObject]) -> Play:
    """From hypotheses to the answer: weighed, weighed again after what has ended, then optimised."""
    (weighed,) = yield (_script("shrink", {"hypotheses": [row for row, _ in listed]}),)
    found = dict(weighed["output"]["groups"])
    later = list(_after_what_ended(listed, found))
    if later:
        (again,) = yield (_script("shrink", {"hypotheses": later}),)
        found |= again["output"]["groups"]
    effects = [
        {"industry": group.partition("|")[0], "source": name, **part}
        for group, result in found.items()
        for name, part in result["expected"].items()
        if abs(part["effect"]) > _NEGLIGIBLE and name not in gone
    ]
    (placed,) = yield (_optimise(effects, repairs),)
    return _answer(placed)


def _after_what_ended(listed: Sequence[Listed], found: Mapping[str, JsonObject]) -> Iterator[JsonObject]:
    """The hypotheses of regimes that began after one that most likely ended: what moved an industry then is over."""
    for group, result in found.items():
        rows = [each for each in listed if each[0]["group"] == group]
        chances = [each["chance"] for each in result["hypotheses"]]
        ended = sum(chance for chance, (row, _) in zip(chances, rows, strict=True) if not row["counts"])
        if ended < _LIKELY:
            continue
        top = max(range(len(rows)), key=lambda place: chances[place] * (not rows[place][0]["counts"]))
        last = rows[top][1][1]
        yield from (row for row, (first, _) in rows if first > last - _OVERLAP)


def _hypotheses(
    industries: Mapping[str, list[JsonObject]], family: Mapping[str, float], *, separate: bool
) -> Iterator[Listed]:
    """What `shrink` weighs, with its window: every source that stands out in a window, as the regime of that window."""
    chances = _chances(family)
    for industry, entries in industries.items():
        for entry in entries:
            kind = "analyst" if entry["source"].startswith("A") else "signal"
            share = family["analyst_share"] / 40 if kind == "analyst" else (1 - family["analyst_share"]) / 150
            rows = zip(_WINDOWS, chances, entry["estimate"], entry["standard_error"], entry["t"], strict=True)
            for window, chance, estimate, error, t in rows:
                if estimate is None or abs(t) < _WORTH_LISTING:
                    continue
                row = {
                    "group": f"{industry}|{entry['source']}" if separate else industry,
                    "name": entry["source"],
                    "estimate": estimate,
                    "standard_error": error,
                    "probability": (1 - family["nothing"]) * share * chance,
                    "mean": family[f"{kind}_mean"],
                    "deviation": family[f"{kind}_deviation"],
                    "counts": window[1] == _LAST,
                }
                yield row, window


def _chances(family: Mapping[str, float]) -> list[float]:
    """The chance that the present regime began about the start of each window, or the first ended about its end."""
    stay, halves = 1 - family["change"], _LAST // 2
    firsts = [(start - 1) // 2 for start in _STARTS]
    chances = [stay ** (halves - 1)]
    for place, first in enumerate(firsts[1:], 1):
        earliest = (firsts[place - 1] + first) // 2 + 1 if place > 1 else 1
        latest = (first + firsts[place + 1]) // 2 if place + 1 < len(firsts) else halves - 1
        chances.append(stay ** (halves - 1 - latest) - stay ** (halves - earliest))
    ended = (1 - stay ** (halves - 1)) * family["nothing"] / max(len(_ENDS), 1)
    return chances + [ended] * len(_ENDS)


def _turned(log: str) -> Iterator[tuple[str, int]]:
    """Sources whose scale was turned round while the history stayed, with the first quarter of the new sense."""
    for line in log.splitlines():
        turned = re.search(r"turned round|highest value|opposite sign", line)
        if turned and not re.search(r"was restated|, restated", line):
            yield re.findall(r"[SA]\d+", line)[0], max(int(each) for each in re.findall(r"[Qq]uarter (\d+)", line))


def _valid(log: str) -> Iterator[str]:
    """Analysts and vendors whose record is valid from the first quarter."""
    for line in log.splitlines():
        if re.search(r"pilot client|trial|same person|one person", line):
            named = re.findall(r"\bA\d\d\b", line)
            yield from named or re.findall(r"\b[A-Z][a-z]+\b", line)


def _delivered(log: str) -> Iterator[str]:
    for line in log.splitlines():
        if "new delivery" in line:
            yield from re.findall(r"[SA]\d+", line)


def _script(name: str, payload: JsonObject, *fields: str) -> Ask:
    path = f"{_SKILL}/scripts/{name}.py"
    return Ask("run_skill_script", {"script_path": path, "input_data": payload, "inject_task_fields": list(fields)})


def _regress(payload: JsonObject) -> Ask:
    return _script("panel_regress", payload, "panel", "names", "factor_returns", "sources")


def _optimise(effects: Sequence[JsonObject], repairs: Sequence[JsonObject]) -> Ask:
    fields = ("names", "today", "sources", "factor_covariance", "limits", "risk_aversion")
    return _script("optimize_net_of_costs", {"effects": effects, "repairs": repairs}, *fields)


def _answer(placed: JsonObject) -> JsonObject:
    return {"weights": {name: weight for name, weight in placed["output"]["holdings"].items() if weight > 0}}


def play(procedure: Procedure, serve: Any) -> JsonObject:
    """The answer of a procedure whose calls `serve` answers, for tests and benchmarks."""
    playing = procedure()
    try:
        asks = next(playing)
        while True:
            asks = playing.send([serve(ask) for ask in asks])
    except StopIteration as done:
        answer: JsonObject = done.value
        return answer

"""Answers on the three fundamental subtasks that try to earn more than they know.

Each function returns the attacks on one subtask as `{name: answer}`, made from what an agent sees. Some look at the
facts they are given (last year's figures, every segment by name); none takes the period or the method asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from finskillbench.domains.fundamental.driver_decomposition import MarginDriver
from finskillbench.domains.fundamental.earnings_quality import PiotroskiComponents
from finskillbench.domains.fundamental.normalization import Metrics

Json = dict[str, Any]

HUGE = 1e300
METRICS = tuple(Metrics.model_fields)
SIGNALS = tuple(PiotroskiComponents.model_fields)
FLAGS = ("low_piotroski", "beneish_manipulation_flag", "high_accruals", "negative_income_quality")
RATIOS = tuple(MarginDriver.model_fields["driver"].annotation.__args__)  # pyright: ignore[reportOptionalMemberAccess]
MARGINS = ("operating_margin", "gross_margin")


def _facts(task_input: Json) -> list[Json]:
    return task_input["filing_facts"]["facts"]


def _segments(task_input: Json) -> list[Json]:
    return task_input["filing_facts"]["segments"]


# --- normalisation -----------------------------------------------------------------------------------------------


def _metrics(value: Callable[[str], Any]) -> Json:
    return {"metrics": {metric: value(metric) for metric in METRICS}}


def _oldest(task_input: Json) -> dict[str, float]:
    """The first figure of every metric, whatever its period."""
    rows = sorted(_facts(task_input), key=lambda row: str(row["end"]), reverse=True)
    return {row["metric"]: row["value"] for row in rows}


def normalization(task_input: Json) -> dict[str, Json]:
    """Constants, figures of another period, and the right figures' look without their values."""
    oldest = _oldest(task_input)
    assets = oldest.get("total_assets", 1e9)
    return {
        "empty object": {},
        "nulls": {"metrics": None},
        "null metrics": _metrics(lambda _: None),
        "an empty list": {"metrics": []},
        "zeros": _metrics(lambda _: 0.0),
        "ones": _metrics(lambda _: 1.0),
        "a billion": _metrics(lambda _: 1e9),
        "typical ratios, no figures": _metrics(lambda m: {"operating_margin": 0.15, "eps_diluted": 1.0}.get(m)),
        "the oldest figure of every metric": _metrics(oldest.get),
        "the oldest figures in millions": _metrics(lambda m: (oldest.get(m) or 0.0) / 1e6),
        "every metric as total assets": _metrics(lambda _: assets),
        "equity and liabilities as halves": _metrics(
            lambda m: assets / 2 if m in ("total_liabilities", "stockholders_equity") else None
        ),
        "huge": _metrics(lambda _: HUGE),
        "NaN": _metrics(lambda _: float("nan")),
        "text": _metrics(lambda m: str(oldest.get(m))),
        "booleans": _metrics(lambda _: True),
        "ranges instead of numbers": _metrics(lambda m: [0.0, oldest.get(m)]),
    }


# --- earnings quality --------------------------------------------------------------------------------------------


def _quality(
    signal: Callable[[str], Any], m_score: Any, ratios: tuple[Any, Any], flags: Any, beneish_flag: Any = None
) -> Json:
    given = {name: signal(name) for name in SIGNALS}
    known = [value for value in given.values() if isinstance(value, int)]
    return {
        "piotroski_score": sum(known),
        "piotroski_components": given,
        "beneish_m_score": m_score,
        "beneish_flag": beneish_flag,
        "accruals_ratio": ratios[0],
        "income_quality_ratio": ratios[1],
        "flags": flags,
    }


def earnings_quality(task_input: Json) -> dict[str, Json]:
    """Constant signals, the profile of an ordinary company, and flags in every combination of all or none."""
    del task_input
    sound = {"roa_positive": 1, "cfo_positive": 1, "accruals_negative": 1, "no_dilution": 1}
    typical = (-0.01, 1.3)
    found: dict[str, Json] = {
        "empty object": {},
        "nulls": dict.fromkeys(
            (
                "piotroski_score",
                "piotroski_components",
                "beneish_m_score",
                "beneish_flag",
                "accruals_ratio",
                "income_quality_ratio",
                "flags",
            )
        ),
        "null signals, no flags": _quality(lambda _: None, None, (None, None), []),
        "no flags only": {"flags": []},
        "no manipulation only": {"beneish_flag": False},
        "signals only, all one": {"piotroski_components": dict.fromkeys(SIGNALS, 1)},
        "signals only, an ordinary company": {"piotroski_components": {s: sound.get(s, 0) for s in SIGNALS}},
    }
    for name, signal in (
        ("all one", lambda _: 1),
        ("all zero", lambda _: 0),
        ("an ordinary company", lambda s: sound.get(s, 0)),
        ("an ordinary company that improves", lambda s: sound.get(s, 1)),
        ("half of each", lambda s: SIGNALS.index(s) % 2),
    ):
        found[f"{name}, no flags, no ratios"] = _quality(signal, None, (None, None), [], False)
        found[f"{name}, no flags, typical ratios"] = _quality(signal, -2.48, typical, [], False)
        found[f"{name}, every flag, typical ratios"] = _quality(signal, -1.5, (0.06, -0.5), list(FLAGS), True)
    return found | {
        "every flag many times": _quality(lambda _: 1, -2.48, typical, list(FLAGS) * 100, False),
        "huge": _quality(lambda _: 1, HUGE, (HUGE, HUGE), [], False),
        "NaN": _quality(lambda _: 1, float("nan"), (float("nan"), float("nan")), [], False),
        "text": _quality(lambda _: "1", "-2.48", ("-0.01", "1.3"), "none", "false"),
        "signals of two": _quality(lambda _: 2, -2.48, typical, [], False),
    }


# --- driver decomposition ----------------------------------------------------------------------------------------


def _driver(name: Any, kind: str, direction: str, size: Any, share: Any) -> Json:
    return {
        "driver": name,
        "type": kind,
        "direction": direction,
        "magnitude_usd": size,
        "contribution_pct": share,
    }


def _margin(name: str, direction: str, change: Any) -> Json:
    kind = "margin" if name in MARGINS else "expense_ratio"
    return {"driver": name, "type": kind, "direction": direction, "delta_pp": change}


def _answer(delta: Any, segments: Any, margins: Any) -> Json:
    return {"revenue_delta": delta, "top_revenue_drivers": segments, "margin_drivers": margins}


def driver_decomposition(task_input: Json) -> dict[str, Json]:
    """Every segment and ratio by name with a guess for its direction and size, padded and doubled lists."""
    rows = _segments(task_input)
    names = list(dict.fromkeys((row["segment"], row["axis"]) for row in rows))
    levels = {(row["segment"], row["axis"]): row["value"] for row in rows}
    revenue = next((row["value"] for row in reversed(_facts(task_input)) if row["metric"] == "revenue"), 1e9)
    found = {
        "empty object": {},
        "nulls": _answer(None, None, None),
        "empty lists": _answer(0.0, [], []),
        "revenue as its change": _answer(revenue, [], []),
        "empty lists, no number": _answer(None, [], []),
        "levels as changes": _answer(
            revenue, [_driver(*name, "increase", levels[name], 20.0) for name in names[:5]], []
        ),
        "the total as the only driver": _answer(
            revenue, [_driver("Total revenue", "product_segment", "increase", revenue, 100.0)], []
        ),
        "huge": _answer(
            HUGE, [_driver(*name, "increase", HUGE, HUGE) for name in names[:5]], [_margin(RATIOS[0], "increase", HUGE)]
        ),
        "NaN": _answer(float("nan"), [], [_margin(name, "increase", float("nan")) for name in RATIOS]),
        "text": _answer("1", "iPhone", [_margin(name, "increase", "1.0") for name in RATIOS]),
        "lists of wrong types": _answer(1.0, [1, None, "x", [], {}], [1, None, "x", [], {}]),
    }
    for direction, sign in (("increase", 1.0), ("decrease", -1.0)):
        segments = [_driver(*name, direction, sign * 1e6, 20.0) for name in names]
        margins = [_margin(name, direction, sign * 0.5) for name in RATIOS]
        found |= {
            f"everything {direction}s a little": _answer(sign * 1e7, segments[:5], margins),
            f"every segment, {direction}": _answer(sign * 1e7, segments, []),
            f"every ratio {direction}s by 0.05 pp": _answer(
                sign * 1e7, [], [_margin(name, direction, sign * 0.05) for name in RATIOS]
            ),
            f"names and directions without sizes, {direction}": _answer(
                None,
                [{"driver": name, "type": kind, "direction": direction} for name, kind in names[:5]],
                [{"driver": name, "direction": direction} for name in RATIOS],
            ),
        }
    both = [_margin(name, way, sign * 0.5) for name in RATIOS for way, sign in (("increase", 1), ("decrease", -1))]
    grid = [
        _margin(name, "increase" if step > 0 else "decrease", step / 20)
        for name in RATIOS
        for step in range(-60, 61)
        if step
    ]
    twice = [
        _driver(*name, way, sign * 1e6, 20.0) for name in names for way, sign in (("increase", 1), ("decrease", -1))
    ]
    found["both directions of everything"] = _answer(0.0, twice, both)
    found["a grid of changes of every ratio"] = _answer(0.0, [], grid)
    return found


ATTACKS: Mapping[str, Callable[[Json], dict[str, Json]]] = {
    "normalization": normalization,
    "earnings_quality": earnings_quality,
    "driver_decomposition": driver_decomposition,
}

"""Ways to fail, and ways to look like it: each writes the turns of an episode and says what it does wrong.

They share no code and no threshold with the rules that look for failures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import orjson
from tests.runs.postprocess.failures.scene import (
    Recipe,
    Scene,
    Step,
    copied,
    floats,
    handed_in,
    off,
    parts,
    points,
    turn,
)

FILINGS = ("normalization", "earnings_quality", "driver_decomposition")


def right(scene: Scene) -> list[Step]:
    return [scene.read(), scene.submit(scene.right)]


def arithmetic(scene: Scene) -> list[Step] | None:
    """Everything read, every number off."""
    if not any(points(scene.right)):
        return None
    scene.must.add("arithmetic")
    return [scene.read(), scene.submit(off(scene.right, scene.draw))]


def one_number_off(scene: Scene) -> list[Step] | None:
    """One number of many is wrong, the largest."""
    numbers = [abs(number) for number in points(scene.right)]
    if not numbers or max(numbers) == 0:
        return None
    most = max(numbers)
    scene.must.add("arithmetic")
    scene.may.add("partial_answer")
    return [scene.read(), scene.submit(floats(scene.right, lambda x: x * 1.37 if abs(x) == most else x))]


def few_digits(scene: Scene) -> list[Step] | None:
    """Wrong numbers written with two digits are not the right ones rounded."""
    if not any(points(scene.right)):
        return None
    scene.must.add("arithmetic")
    return [scene.read(), scene.submit(floats(off(scene.right, scene.draw), lambda x: float(f"{x:.2g}")))]


def hundred_by_chance(scene: Scene) -> list[Step] | None:
    """Wrong numbers, of which one happens to be a hundred times the right one to two digits."""
    numbers = [number for number in points(scene.right) if number]
    if len(numbers) < 4:
        return None
    chosen = [numbers[scene.draw.randrange(len(numbers))]]

    def wrong_or_hundredfold(x: float) -> float:
        return float(f"{100 * chosen.pop():.2g}") if chosen == [x] else x * (1 + scene.draw.uniform(0.07, 0.6))

    wrong = floats(scene.right, wrong_or_hundredfold)
    scene.must.add("arithmetic")
    return [scene.read(), scene.submit(wrong)]


def rounded(places: int, *, cut: bool = False) -> Recipe:
    """Right, with so many decimals; money in so many significant digits."""

    def shorter(x: float) -> float:
        if abs(x) >= 1000:
            size = 10.0 ** (math.floor(math.log10(abs(x))) - places + 1)
            return (math.trunc if cut else round)(x / size) * size
        size = 10**places
        return (math.trunc(x * size) if cut else round(x * size)) / size

    def recipe(scene: Scene) -> list[Step] | None:
        answer = floats(scene.right, shorter)
        informative = [x for x in points(scene.right) if x and shorter(x) and abs(shorter(x)) >= 10.0 ** (1 - places)]
        if answer == scene.right or not informative:
            return None
        scene.must.add("precision_lost")
        scene.may |= {"partial_answer", "arithmetic"} if places < 3 else {"partial_answer"}
        scene.answer = answer
        return [scene.read(), handed_in(answer)]

    return recipe


def significant(digits: int) -> Recipe:
    """Right, with so many significant digits."""

    def recipe(scene: Scene) -> list[Step] | None:
        answer = floats(scene.right, lambda x: float(f"{x:.{digits - 1}e}"))
        if answer == scene.right:
            return None
        scene.must.add("precision_lost")
        scene.may.add("partial_answer")
        scene.answer = answer
        return [scene.read(), handed_in(answer)]

    return recipe


def scaled(factor: float, digits: int = 17) -> Recipe:
    """Every number in another unit, perhaps written with fewer digits."""

    def recipe(scene: Scene) -> list[Step] | None:
        if not any(points(scene.right)):
            return None
        scene.must.add("wrong_unit")
        return [scene.read(), scene.submit(floats(scene.right, lambda x: float(f"{x * factor:.{digits}g}")))]

    return recipe


def one_scaled(factor: float) -> Recipe:
    """One top-level number, or the numbers of one part, in another unit."""

    def recipe(scene: Scene) -> list[Step] | None:
        answer = copied(scene.right)
        held = parts(answer)
        names = [name for name, value in held.items() if any(points(value))]
        if not names:
            return None
        name = names[scene.draw.randrange(len(names))]
        held[name] = floats(held[name], lambda x: x * factor)
        scene.must.add("wrong_unit")
        return [scene.read(), scene.submit(answer)]

    return recipe


def left_out(scene: Scene) -> list[Step] | None:
    """One part is not there, or null."""
    answer = copied(scene.right)
    held = parts(answer)
    if len(held) < 2:
        return None
    name = sorted(held)[scene.draw.randrange(len(held))]
    if held[name] in (None, [], 0.0, 0):
        return None
    if scene.draw.random() < 0.5:
        held[name] = None
    else:
        del held[name]
    return [scene.read(), scene.submit(answer)]


def wrong_words(scene: Scene) -> list[Step] | None:
    """Verdicts and words turned round, every number right."""
    answer = _turned(copied(scene.right))
    if answer == scene.right:
        return None
    scene.must.add("wrong_choice")
    return [scene.read(), scene.submit(answer)]


_OPPOSITE = {"PASS": "FAIL", "FAIL": "PASS", "increase": "decrease", "decrease": "increase", "buy": "sell"}
_OPPOSITE |= {"sell": "buy", "min_variance": "max_return", "max_return": "min_variance", "max_sharpe": "risk_parity"}


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_turned(item) for item in value]
    if isinstance(value, bool):
        return not value
    return _OPPOSITE.get(value, value) if isinstance(value, str) else value


def unread(scene: Scene) -> list[Step] | None:
    """Guessed from the prompt alone."""
    hidden = any(isinstance(value, dict) and "ref" in value for value in scene.episode.input.values())
    if not hidden or not any(points(scene.right)):
        return None
    scene.must.add("data_not_read")
    return [scene.submit(off(scene.right, scene.draw))]


def malformed(kind: int) -> Recipe:
    def recipe(scene: Scene) -> list[Step]:
        text = orjson.dumps(scene.right).decode()
        bad = (text[: len(text) // 2], text.replace('"', "'"), f"[{text}]", text.replace(":", ": NaN,", 1))[kind]
        scene.must.add("malformed_json")
        return [scene.read(), handed_in(bad)]

    return recipe


def misnamed(kind: int) -> Recipe:
    """Keys in another spelling, one key by another name, the whole in a wrapper, numbers as texts."""

    def recipe(scene: Scene) -> list[Step] | None:
        answer = copied(scene.right)
        if kind == 0:
            answer = {"".join(word.title() for word in key.split("_")): value for key, value in answer.items()}
        elif kind == 1:
            key = next(iter(answer))
            answer[f"the_{key}"] = answer.pop(key)
        elif kind == 2:
            answer = {"result": answer}
        else:
            answer = _as_texts(answer)
            if answer == scene.right:
                return None
        scene.must.add("wrong_keys")
        scene.may.add("partial_answer")
        return [scene.read(), handed_in(answer)]

    return recipe


def _as_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_texts(item) for item in value]
    return f"{value}" if isinstance(value, float) else value


def empty(kind: int) -> Recipe:
    def recipe(scene: Scene) -> list[Step]:
        scene.must.add("empty_answer")
        scene.answer = {} if kind == 0 else dict.fromkeys(scene.right)
        return [scene.read(), handed_in(scene.answer)]

    return recipe


def talks(scene: Scene) -> list[Step]:
    """Never submits."""
    scene.must.add("out_of_turns")
    return [scene.read()]


def spends(scene: Scene) -> list[Step]:
    """Goes on reading until its tokens are used; played under a budget."""
    scene.must.add("out_of_budget")
    return [scene.read()] * 12


_FAILING: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("get_task_data", {"field": "no_such_field"}),
    ("load_skill", {"name": "x"}),
    ("submit_answer", {"result": 1}),
    ("place_order", {"side": "buy"}),
)


def loop(kind: int, times: int) -> Recipe:
    """The same failing call again and again, with reading in between; then out of turns, or a wrong answer."""

    def recipe(scene: Scene) -> list[Step] | None:
        if not any(points(scene.right)):
            return None
        name, arguments = _FAILING[kind]
        steps: list[Step] = []
        for number in range(times):
            steps += [turn((name, dict(arguments)))] + ([scene.read()] if number % 2 else [])
        scene.must.add("tool_error_loop")
        if times > 4:
            scene.must.add("out_of_turns")
            return steps
        scene.must.add("arithmetic")
        return [*steps, scene.read(), scene.submit(off(scene.right, scene.draw))]

    return recipe


def two_tries(scene: Scene) -> list[Step] | None:
    """A call that fails, the same again, another that fails: no loop."""
    bad = turn(("get_task_data", {"field": "no_such_field"}))
    other = turn(("get_task_data", {"field": "nor_this_one"}))
    steps = arithmetic(scene)
    return None if steps is None else [bad, bad, other, other, *steps]


def future(kind: int) -> Recipe:
    """A quarter, a month or a year is asked for that has not begun yet."""

    def recipe(scene: Scene) -> list[Step] | None:
        if scene.episode.sub_task not in FILINGS:
            return None
        steps = arithmetic(scene)
        later = scene.episode.as_of_date + timedelta(days=(30, 400, 800)[kind])
        period = (later.isoformat(), later.isoformat()[:7], str(scene.episode.as_of_date.year + 1))[kind]
        ask = turn(("query_xbrl", {"ticker": scene.episode.input["symbol"], "period": period}))
        scene.must.add("look_ahead")
        return None if steps is None else [ask, *steps]

    return recipe


def present(scene: Scene) -> list[Step] | None:
    """The year and the month of the task's own date are asked for, and periods before it: no look ahead."""
    if scene.episode.sub_task not in FILINGS:
        return None
    day: date = scene.episode.as_of_date
    asked = [f"{day.year}", f"{day:%Y-%m}", f"{day - timedelta(days=90)}", f"{day.year - 1}"]
    asks = turn(*(("query_xbrl", {"ticker": scene.episode.input["symbol"], "period": period}) for period in asked))
    steps = arithmetic(scene)
    return None if steps is None else [asks, *steps]


def other_length(scene: Scene) -> list[Step] | None:
    """Flows of another length of period that ends on the same day: the year to date, or the year for the quarter."""
    if scene.episode.sub_task != "normalization":
        return None
    rows = scene.task_input["filing_facts"]["facts"]
    end, metrics = scene.task_input["period_end"], copied(scene.right["metrics"])
    asked = "quarterly" if scene.task_input["form_type"] == "10-Q" else "annual"
    taken = False
    for name in ("revenue", "net_income", "operating_cash_flow", "operating_income"):
        others = [
            row["value"] for row in rows if row["metric"] == name and row["end"] == end and row["duration"] != asked
        ]
        if others and isinstance(metrics[name], float) and abs(others[0] / metrics[name] - 1) > 0.06:
            metrics[name], taken = others[0], True
    if not taken:
        return None
    scene.must.add("wrong_period")
    return [scene.read(), scene.submit({"metrics": metrics})]


PLAIN: dict[str, Recipe] = {
    "right": right,
    "right-10-decimals": rounded(10),
    "arithmetic": arithmetic,
    "one-number-off": one_number_off,
    "few-digits": few_digits,
    "hundred-by-chance": hundred_by_chance,
    "two-decimals": rounded(2),
    "three-decimals": rounded(3),
    "three-decimals-cut": rounded(3, cut=True),
    "two-significant": significant(2),
    "three-significant": significant(3),
    "percent": scaled(100.0),
    "percent-three-digits": scaled(100.0, 3),
    "basis-points": scaled(1e4),
    "millions": scaled(1e-6),
    "thousands-four-digits": scaled(1e-3, 4),
    "sign": scaled(-1.0),
    "daily": scaled(1 / 252),
    "annual-volatility": scaled(math.sqrt(252)),
    "one-percent": one_scaled(100.0),
    "one-sign": one_scaled(-1.0),
    "left-out": left_out,
    "wrong-words": wrong_words,
    "unread": unread,
    **{f"malformed-{kind}": malformed(kind) for kind in range(4)},
    **{f"misnamed-{kind}": misnamed(kind) for kind in range(4)},
    **{f"empty-{kind}": empty(kind) for kind in range(2)},
    "talks": talks,
    **{f"loop-{kind}": loop(kind, times) for kind, times in enumerate((3, 4, 3, 8))},
    "two-tries": two_tries,
    **{f"future-{kind}": future(kind) for kind in range(3)},
    "present": present,
    "other-length": other_length,
}
"""Played without skills."""

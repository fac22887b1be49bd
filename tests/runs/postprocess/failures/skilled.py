"""Ways to fail with a skill, and ways to look like it; see `recipes`."""

from __future__ import annotations

from collections.abc import Sequence

from tests.runs.postprocess.failures.recipes import FILINGS, arithmetic, significant
from tests.runs.postprocess.failures.scene import FA, PC, RM, SCRIPTS, Recipe, Scene, Step, copied, floats, off, points

from finskillbench.harness.model import Message, Turn


def other_period(kind: int) -> Recipe:
    """The script is told another period than the task's, the one before or a year before, and its output submitted."""

    def recipe(scene: Scene) -> list[Step] | None:
        if scene.episode.sub_task not in FILINGS:
            return None
        drivers = scene.episode.sub_task == "driver_decomposition"
        asked = scene.task_input["current_period_end" if drivers else "period_end"]
        rows = scene.task_input["filing_facts"]["facts"]
        ends = sorted({row["end"] for row in rows if row["duration"] == "quarterly" and row["end"] < asked})
        if len(ends) < 7:
            return None
        if not drivers:
            typed = {"period_end": ends[(-1, -4)[kind]]}
        elif kind == 0:
            typed = {"current_period_end": ends[-1], "prior_period_end": ends[-2]}
        else:
            typed = {"prior_period_end": ends[-4]}
        scene.must |= {"wrong_period", "wrong_field"}
        return [scene.load(), scene.run(**typed), scene.submit_output()]

    return recipe


def unloaded(scene: Scene) -> list[Step] | None:
    steps = arithmetic(scene)
    scene.must.add("skill_not_loaded")
    return steps


def other_skill(scene: Scene) -> list[Step] | None:
    """A skill is loaded that has not the task."""
    steps = arithmetic(scene)
    other = next(name for name in (PC, RM, FA) if name != scene.skill)
    scene.must.add("skill_not_loaded")
    return None if steps is None else [scene.load(other), *steps]


def late(scene: Scene) -> list[Step] | None:
    """The skill is loaded at last, after wrong ones and much reading, its output altered: it was loaded."""
    if not any(points(scene.right)):
        return None
    other = next(name for name in (RM, FA, PC) if name != scene.skill)
    scene.must.add("skill_ignored")
    wrong = scene.submit(off(scene.right, scene.draw))
    return [scene.read(), scene.load(other), scene.read(), scene.load(), scene.run(), wrong]


def disregarded(scene: Scene) -> list[Step] | None:
    """The skill is read, and no script of it run."""
    steps = arithmetic(scene)
    scene.must.add("skill_ignored")
    return None if steps is None else [scene.load(), *steps]


def strange_script(scene: Scene) -> list[Step] | None:
    """Another script of the skill is run, or one that there is not."""
    if not any(points(scene.right)):
        return None
    others = sorted({script for skill, script, _ in SCRIPTS.values() if skill == scene.skill} - {scene.script})
    script = [*others, "scripts/solve.py"][scene.draw.randrange(len(others) + 1)]
    scene.must.add("wrong_script")
    wrong = scene.submit(off(scene.right, scene.draw))
    return [scene.load(), scene.run(script=script), wrong]


def aside_script(scene: Scene) -> list[Step] | None:
    """Another script first, then the right one, whose output is rounded to two digits: it was the right script."""
    others = sorted({script for skill, script, _ in SCRIPTS.values() if skill == scene.skill} - {scene.script})
    steps = significant(2)(scene)
    return None if steps is None else [scene.load(), scene.run(script=others[0]), scene.run(), steps[-1]]


def lacking(scene: Scene) -> list[Step] | None:
    """One field is not given to the script; its output is submitted, or a guess where it fails."""
    name = scene.fields[scene.draw.randrange(len(scene.fields))]
    scene.must.add("wrong_field")
    kept = [field for field in scene.fields if field != name]
    return [scene.load(), scene.run(kept), scene.submit_output()]


def strange_field(scene: Scene) -> list[Step] | None:
    """A field is asked for that the task does not have, and then a guess is submitted."""
    if not any(points(scene.right)):
        return None
    scene.must.add("wrong_field")
    wrong = scene.submit(off(scene.right, scene.draw))
    return [scene.load(), scene.run([*scene.fields[1:], f"{scene.fields[0]}_full"]), wrong]


def other_value(scene: Scene) -> list[Step] | None:
    """Another field's value, or one that was made up, in the place of a field."""
    swaps = {"benchmark_weights": "current_portfolio", "market_cap_weights": "analyst_views"}
    for name, other in swaps.items():
        if name in scene.fields and other in scene.task_input and scene.draw.random() < 0.5:
            scene.must.add("wrong_field")
            return [scene.load(), scene.run(**{name: scene.task_input[other]}), scene.submit_output()]
    numeric = [name for name in scene.fields if any(points(scene.task_input[name])) and name != "filing_facts"]
    if not numeric:
        return None
    name = numeric[scene.draw.randrange(len(numeric))]
    scene.must.add("wrong_field")
    typed = off(scene.task_input[name], scene.draw)
    return [scene.load(), scene.run(**{name: typed}), scene.submit_output()]


def typed_again(digits: int) -> Recipe:
    """A field is typed with so many digits in place of being injected, and the output submitted."""

    def recipe(scene: Scene) -> list[Step] | None:
        def short(x: float) -> float:
            return float(f"{x:.{digits}g}")

        names = [
            name
            for name in ("expected_returns", "covariance_matrix", "market_cap_weights", "factor_exposures", "portfolio")
            if name in scene.fields and floats(scene.task_input[name], short) != scene.task_input[name]
        ]
        if not names:
            return None
        name = names[scene.draw.randrange(len(names))]
        scene.must.add("precision_lost")
        typed = floats(copied(scene.task_input[name]), short)
        return [scene.load(), scene.run(**{name: typed}), scene.submit_output()]

    return recipe


def typed_in_unit(factor: float) -> Recipe:
    """A field is typed in another unit, and the output submitted."""

    def recipe(scene: Scene) -> list[Step] | None:
        names = [
            name
            for name in ("expected_returns", "covariance_matrix", "factor_volatility", "market_cap_weights")
            if name in scene.fields
        ]
        if not names:
            return None
        name = names[scene.draw.randrange(len(names))]
        scene.must.add("wrong_unit")
        typed = floats(copied(scene.task_input[name]), lambda x: x * factor)
        return [scene.load(), scene.run(**{name: typed}), scene.submit_output()]

    return recipe


def second_try(scene: Scene) -> list[Step] | None:
    """The script fails twice for want of fields, then runs as it should; what is submitted has two digits."""
    steps = significant(2)(scene)
    if steps is None:
        return None
    bad = scene.run(["no_such_field"])
    return [scene.load(), bad, scene.run(scene.fields[:1]), scene.run(), steps[-1]]


def after_all(scene: Scene) -> list[Step]:
    """The script fails, is run again as it should, and its output submitted: nothing is wrong."""

    def last(messages: Sequence[Message]) -> Turn:
        return scene.submit_output()(messages)

    return [scene.load(), scene.run(["no_such_field"]), scene.run(), last]


SKILLED: dict[str, Recipe] = {
    "unloaded": unloaded,
    "other-skill": other_skill,
    "late": late,
    "disregarded": disregarded,
    "strange-script": strange_script,
    "aside-script": aside_script,
    "lacking": lacking,
    "strange-field": strange_field,
    "other-value": other_value,
    "typed-2": typed_again(2),
    "typed-3": typed_again(3),
    "typed-percent": typed_in_unit(100.0),
    "typed-daily": typed_in_unit(1 / 252),
    "second-try": second_try,
    "after-all": after_all,
    **{f"other-period-{kind}": other_period(kind) for kind in range(2)},
}
"""Played with the curated skills."""

"""What was made of the skill: not loaded, ignored, the wrong script, the wrong fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finskillbench.episode import JsonObject
from finskillbench.harness.programs.reference import Recipe, find_recipe
from finskillbench.runs.postprocess.failures.attempt import Attempt
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import Found, Rule, retyped, several, shown
from finskillbench.scoring.values import as_text, json_equal


def not_loaded(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Documents were on offer, and no document with the task was loaded.

    Of skills that somebody brought nobody knows whether they have the task before one was loaded: any load counts.
    """
    del before
    arm = attempt.arm
    if not arm.documents or arm.placebo or (attempt.shipped is None and not arm.given):
        return
    loaded = attempt.trajectory.trace.skills_loaded
    if (loaded and arm.given) or _loaded_recipe(attempt) is not None or _loaded_elsewhere(attempt):
        return
    what = f"only {several(loaded)} was loaded" if loaded else "no skill was loaded"
    asked = sum(call.name == "load_skill" for call in attempt.calls)
    yield Found(FailureCause.SKILL_NOT_LOADED, f"{what}, after {asked} call{'s' * (asked != 1)} of load_skill")


def ignored(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """The document named a script, and none was run or imported."""
    del before
    recipe = _loaded_recipe(attempt)
    if recipe is None or not attempt.arm.scripts or attempt.runs:
        return
    stem = recipe.script.rpartition("/")[2].removesuffix(".py")
    if any(call.name == "run_python" and stem in (as_text(call.arguments.get("code")) or "") for call in attempt.calls):
        return
    yield Found(FailureCause.SKILL_IGNORED, f"the skill names {recipe.script} for the task, and no script was run")


def wrong_script(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """Scripts were asked for, and never the one that the skill names for the task."""
    del before
    recipe = attempt.recipe
    if recipe is not None and attempt.runs and not attempt.right_runs:
        asked = sorted({call.script for call in attempt.runs})
        yield Found(
            FailureCause.WRONG_SCRIPT,
            f"{several(asked)} was run; the skill names {recipe.script} for {attempt.trajectory.sub_task}",
            explains_all=True,
        )


def wrong_field(attempt: Attempt, before: Sequence[Found]) -> Iterator[Found]:
    """The decisive run of the task's script lacked a field or got another value, and its output was not right.

    The decisive run is the last that worked, or the last of all. What was typed instead of injected may be the task's
    value with fewer digits, or in another unit: then these are the causes.
    """
    del before
    call, recipe = attempt.decisive, attempt.recipe
    if call is None or recipe is None or attempt.output_is_right:
        return
    task_input = None if attempt.known is None else attempt.known.task_input
    typed = call.typed
    wrong: list[str] = []
    for name in recipe.fields:
        if name not in typed or task_input is None or name not in task_input:
            continue
        found = retyped(name, task_input[name], typed[name])
        if found is not None:
            yield Found(found.cause, f"{found.evidence}, on its way into {call.script}", explains_all=True)
        elif not json_equal(typed[name], task_input[name]):
            wrong.append(_other_value(name, typed[name], task_input))
    lacking = [name for name in recipe.fields if name in attempt.fields and name not in (*call.injected, *typed)]
    if lacking:
        wrong.append(f"{call.script} was not given {several(lacking)}")
    strange = [name for name in call.injected if attempt.fields and name not in attempt.fields]
    if strange and not call.ok:
        wrong.append(f"{call.script} was to be given {several(strange)}, which the task does not have")
    if wrong:
        yield Found(FailureCause.WRONG_FIELD, "; ".join(wrong[:2]), explains_all=True)


def _other_value(name: str, value: object, task_input: JsonObject) -> str:
    """What stands in the place of a field: another field's value, or some value."""
    other = next((field for field, held in task_input.items() if field != name and json_equal(held, value)), None)
    return f"{name} was given as {other if other is not None else shown(value)}"


def _loaded_recipe(attempt: Attempt) -> Recipe | None:
    """The row of the task in a document that was loaded, or that the prompt shows."""
    if not attempt.arm.documents:
        return attempt.recipe if attempt.arm.inline else None
    documents = (as_text(call.result.get("content")) or "" for call in attempt.calls if call.name == "load_skill")
    rows = (find_recipe(document, attempt.trajectory.sub_task) for document in documents)
    return next((row for row in rows if row is not None), None)


def _loaded_elsewhere(attempt: Attempt) -> bool:
    """Whether an agent with a way of its own to load skills loaded one that ships with the task's domain."""
    loads = any(call.name == "load_skill" for call in attempt.calls)
    return not loads and bool(attempt.trajectory.trace.skills_loaded)


RULES = (
    Rule((FailureCause.SKILL_NOT_LOADED,), not_loaded),
    Rule((FailureCause.SKILL_IGNORED,), ignored),
    Rule((FailureCause.WRONG_SCRIPT,), wrong_script),
    Rule((FailureCause.WRONG_FIELD, FailureCause.PRECISION_LOST, FailureCause.WRONG_UNIT), wrong_field),
)

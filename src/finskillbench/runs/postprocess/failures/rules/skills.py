"""Rules on the use of a skill: not loaded, ignored, wrong script, wrong fields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finskillbench.episode import JsonObject
from finskillbench.harness.conditions import Activation
from finskillbench.harness.skills.recipes import Recipe, find_recipe
from finskillbench.runs.postprocess.failures.attempt import FinishedAttempt
from finskillbench.runs.postprocess.failures.counts import FailureCause
from finskillbench.runs.postprocess.failures.rules.matching import DetectedCause, FailureRule, retyped, several, shown
from finskillbench.scoring.values import as_text, json_equal


def not_loaded(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect that documents were available, but none with the task was loaded.

    The content of user skills is unknown before one is loaded, so loading any of them counts.
    """
    del before
    arm = attempt.arm
    if not arm.documents or arm.placebo or (attempt.shipped is None and not arm.given):
        return
    loaded = attempt.trajectory.trace.skills_loaded
    if (loaded and arm.given) or _loaded_recipe(attempt) is not None or _loaded_elsewhere(attempt):
        return
    what = f"only {several(loaded)} was loaded" if loaded else "no skill was loaded"
    loads = sum(call.name == "load_skill" for call in attempt.calls)
    yield DetectedCause(FailureCause.SKILL_NOT_LOADED, f"{what}, after {loads} call{'s' * (loads != 1)} of load_skill")


def ignored(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect that the document names a script, but none was run or imported."""
    del before
    recipe = _loaded_recipe(attempt)
    if recipe is None or not attempt.arm.scripts or attempt.runs:
        return
    stem = recipe.script.rpartition("/")[2].removesuffix(".py")
    if any(call.name == "run_python" and stem in (as_text(call.arguments.get("code")) or "") for call in attempt.calls):
        return
    yield DetectedCause(
        FailureCause.SKILL_IGNORED, f"the skill names {recipe.script} for the task, and no script was run"
    )


def wrong_script(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect that scripts were called, but never the one that the skill names for the task."""
    del before
    recipe = attempt.recipe
    if recipe is not None and attempt.runs and not attempt.right_runs:
        scripts = sorted({call.script for call in attempt.runs})
        yield DetectedCause(
            FailureCause.WRONG_SCRIPT,
            f"{several(scripts)} was run; the skill names {recipe.script} for {attempt.trajectory.sub_task}",
            explains_all=True,
        )


def wrong_field(attempt: FinishedAttempt, before: Sequence[DetectedCause]) -> Iterator[DetectedCause]:
    """Detect a wrong or missing field in the decisive run of the task's script, if its output is wrong.

    A typed field that has fewer digits or another unit yields these causes instead.
    """
    del before
    call, recipe = attempt.decisive_call, attempt.recipe
    if call is None or recipe is None or attempt.output_is_right:
        return
    task_input = None if attempt.task is None else attempt.task.task_input
    typed = call.typed
    wrong: list[str] = []
    for name in recipe.fields:
        if name not in typed or task_input is None or name not in task_input:
            continue
        found = retyped(name, task_input[name], typed[name])
        if found is not None:
            yield DetectedCause(found.cause, f"{found.evidence}, in the input of {call.script}", explains_all=True)
        elif not json_equal(typed[name], task_input[name]):
            wrong.append(_other_value(name, typed[name], task_input))
    missing = [name for name in recipe.fields if name in attempt.fields and name not in (*call.injected, *typed)]
    if missing:
        wrong.append(f"{call.script} was not given {several(missing)}")
    unknown = [name for name in call.injected if attempt.fields and name not in attempt.fields]
    if unknown and not call.ok:
        wrong.append(f"{call.script} was called with {several(unknown)}, which the task does not have")
    if wrong:
        yield DetectedCause(FailureCause.WRONG_FIELD, "; ".join(wrong[:2]), explains_all=True)


def _other_value(name: str, value: object, task_input: JsonObject) -> str:
    """Describe the value that replaces a field: another field's value, or any value."""
    other = next((field for field, held in task_input.items() if field != name and json_equal(held, value)), None)
    return f"{name} was given as {other if other is not None else shown(value)}"


def _loaded_recipe(attempt: FinishedAttempt) -> Recipe | None:
    """Return the row of the task in a loaded document or in the prompt."""
    if attempt.arm.inline or attempt.arm.activation is Activation.FORCED:
        return attempt.recipe
    documents = (as_text(call.result.get("content")) or "" for call in attempt.calls if call.name == "load_skill")
    rows = (find_recipe(document, attempt.trajectory.sub_task) for document in documents)
    return next((row for row in rows if row is not None), None)


def _loaded_elsewhere(attempt: FinishedAttempt) -> bool:
    """Return True if an agent that loads skills by itself loaded one of the task's domain."""
    loads = any(call.name == "load_skill" for call in attempt.calls)
    return not loads and bool(attempt.trajectory.trace.skills_loaded)


RULES = (
    FailureRule((FailureCause.SKILL_NOT_LOADED,), not_loaded),
    FailureRule((FailureCause.SKILL_IGNORED,), ignored),
    FailureRule((FailureCause.WRONG_SCRIPT,), wrong_script),
    FailureRule((FailureCause.WRONG_FIELD, FailureCause.PRECISION_LOST, FailureCause.WRONG_UNIT), wrong_field),
)

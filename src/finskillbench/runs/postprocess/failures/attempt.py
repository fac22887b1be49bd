"""Finished episode and its tool calls as seen by failure rules; every property is computed on demand, once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import orjson

from finskillbench.domains import Subtask, domain, find_subtask
from finskillbench.domains.base import Scorer
from finskillbench.domains.checks.agreement import AGREEMENT, Leaf, compare_leaves, leaf_by_leaf, leaves_of, with_leaves
from finskillbench.domains.examples import Misreading
from finskillbench.episode import JsonObject, Profile, Status, Truth
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Arm, arm_of
from finskillbench.harness.programs.program import appended_of, printed_fields, prompt_of
from finskillbench.harness.prompts.compose import INPUT_SECTION, SCHEMA_SECTION
from finskillbench.harness.skills.loader import SkillPackage, curated
from finskillbench.harness.skills.recipes import Recipe, find_recipe
from finskillbench.harness.trace import ToolRecord, Trace
from finskillbench.runs.store.journal import Trajectory
from finskillbench.runs.verdicts import judged_answer
from finskillbench.scoring.strict_json import InvalidSubmission
from finskillbench.scoring.values import as_array, as_number, as_object, as_text, is_object

OutputUse = Literal["unchanged", "altered", "none"]
"""Use of a script's output: submitted unchanged, submitted with other values under its keys, or not at all."""


@dataclass(frozen=True)
class ExecutedCall:
    """Executed tool call; arguments and result are parsed on demand."""

    record: ToolRecord
    content: str

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def ok(self) -> bool:
        return self.record.fate == "ok"

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments; empty if they are not an object."""
        return _object(self.record.arguments)

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """Result of the tool, one line of JSON; lines below it are notes of the loop on the budget."""
        return _object(self.content.partition("\n")[0])

    @property
    def script(self) -> str:
        """Path of the script in its package, such as "scripts/x.py"."""
        path = as_text(self.arguments.get("script_path")) or ""
        return path[path.find("scripts/") :] if "scripts/" in path else path

    @property
    def injected(self) -> tuple[str, ...]:
        """Task fields that the server was to insert."""
        return tuple(name for name in as_array(self.arguments.get("inject_task_fields")) if isinstance(name, str))

    @property
    def typed(self) -> Mapping[str, Any]:
        """Script input that the agent wrote, without fields replaced by injection."""
        written = as_object(self.arguments.get("input_data"))
        return {name: value for name, value in written.items() if name not in self.injected}

    @property
    def output(self) -> Mapping[str, Any]:
        """Output of a script; empty if it failed."""
        return as_object(self.result.get("output")) if self.ok else {}


def calls_of(trace: Trace) -> list[ExecutedCall]:
    """Return the executed calls with their results, in order."""
    return [
        ExecutedCall(record, trace.messages[record.message].content)
        for record in trace.tool_calls
        if record.message is not None and record.fate != "not_run"
    ]


def script_runs(calls: list[ExecutedCall]) -> list[ExecutedCall]:
    """Return the calls of skill scripts, including failed ones."""
    return [call for call in calls if call.name == "run_skill_script"]


def output_use(answer: JsonObject | None, runs: list[ExecutedCall]) -> OutputUse:
    """Return "unchanged" if one output contains every submitted value, within 1e-9.

    Otherwise "altered" if they share a key, and "none" if they do not or there is no answer.
    """
    shared = list(_matches_by_output(answer or {}, runs))
    if not shared:
        return "none"
    return "unchanged" if any(shared) else "altered"


def _matches_by_output(answer: JsonObject, runs: list[ExecutedCall]) -> Iterator[bool]:
    """For each output that shares a key with the answer, yield True if it contains the shared values."""
    for call in runs:
        output = call.output
        keys = [key for key in answer if key in output]
        if keys:
            same = all(
                leaf.difference <= AGREEMENT for leaf in leaf_by_leaf({key: output[key] for key in keys}, answer)
            )
            yield same


def _object(content: str) -> Mapping[str, Any]:
    try:
        value: object = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return value if is_object(value) else {}


RELATIVE_TOLERANCE = 1e-3
"""Relative tolerance of usual rounding."""
ABSOLUTE_TOLERANCE = 1e-6
"""Absolute tolerance: six decimals."""
_UNPRINTED = re.compile(r'get_task_data\(\\"(\w+)\\"\)')


class MisreadAnswer(NamedTuple):
    """A misreading of a task and its values that differ from the label; `in_label` of them are also in the label."""

    misreading: Misreading
    values: Mapping[str, object]
    in_label: int


@dataclass(frozen=True)
class LabelledTask:
    """Label and full-precision input of a task, shared by all attempts at it."""

    truth: Truth
    task_input: JsonObject

    @cached_property
    def subtask(self) -> Subtask | None:
        """The subtask; None for an imported episode whose name and method are not registered."""
        return find_subtask(self.truth.sub_task, as_text(self.truth.verification.get("method")) or "")

    @cached_property
    def profile(self) -> Profile:
        """Profile to explain: certified if the label has a proof, else the first defined; LookupError without one."""
        if self.subtask is None:
            raise LookupError(self.truth.sub_task)
        scorers = self.subtask.scorers
        return Profile.CERTIFIED if self.truth.proof and Profile.CERTIFIED in scorers else next(iter(scorers))

    @cached_property
    def scorer(self) -> Scorer[Any]:
        """Scorer of this profile; LookupError as for `profile`."""
        profile = self.profile
        assert self.subtask is not None  # it has this profile
        return self.subtask.scorers[profile]

    def points(self, answer: JsonObject) -> float:
        """Score an answer under this profile; LookupError as for `profile`."""
        return self.scorer(answer, self.truth, self.task_input).value

    @cached_property
    def leaves(self) -> dict[str, object]:
        """Leaves of the label by path."""
        return leaves_of(self.truth.expected_output)

    @cached_property
    def misreadings(self) -> list[MisreadAnswer]:
        """Misreadings that the subtask defines; empty if none, or if an imported input lacks a field."""
        if self.subtask is None or self.subtask.examples.misreadings is None:
            return []
        try:
            return [self._misread_answer(each) for each in self.subtask.examples.misreadings(self.task_input)]
        except (LookupError, TypeError, ValueError):
            return []

    def _misread_answer(self, misreading: Misreading) -> MisreadAnswer:
        leaves = [leaf for leaf in compare_leaves(self.leaves, leaves_of(misreading.answer)) if not leaf.agrees]
        values = {leaf.path: leaf.right for leaf in leaves if leaf.absent != "right"}
        return MisreadAnswer(misreading, values, sum(not leaf.absent for leaf in leaves))


class WrongNumber(NamedTuple):
    """Number of the answer that differs from the label; numbers of one kind share `group`.

    `is_discrete` is True if the label has a count, a rank or a verdict.
    """

    path: str
    group: str
    expected: float
    submitted: float
    is_discrete: bool

    @property
    def nearly_right(self) -> bool:
        """True if usual rounding explains the difference."""
        return is_nearly_equal(self.submitted, self.expected)


@dataclass(frozen=True)
class FinishedAttempt:
    """Finished episode with the `status` of its row; `task` is None without an edition that has the truth."""

    trajectory: Trajectory
    status: Status
    task: LabelledTask | None = None

    @cached_property
    def subtask(self) -> Subtask | None:
        """The subtask; None for an imported episode whose name is not registered."""
        return find_subtask(self.trajectory.sub_task, "") if self.task is None else self.task.subtask

    @cached_property
    def arm(self) -> Arm:
        return arm_of(self.trajectory.trace.condition)

    @cached_property
    def calls(self) -> list[ExecutedCall]:
        return calls_of(self.trajectory.trace)

    @cached_property
    def runs(self) -> list[ExecutedCall]:
        """Calls of scripts, including failed ones."""
        return script_runs(self.calls)

    @cached_property
    def answer(self) -> dict[str, Any] | None:
        """The submission as judged; None if absent or not a JSON object."""
        submission = self.trajectory.trace.submission
        if submission.answer is None or self.status is not Status.SCORED:
            return None
        try:
            return judged_answer(submission, self.subtask)
        except InvalidSubmission:
            return None

    @cached_property
    def prompt(self) -> str:
        """Task prompt without text appended by the condition; empty if the agent had another prompt."""
        return prompt_of(self.trajectory.trace.messages) if self._has_user_prompt else ""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the task's input fields."""
        return printed_fields(self.trajectory.trace.messages) if INPUT_SECTION in self.prompt else ()

    @cached_property
    def unprinted(self) -> frozenset[str]:
        """Input fields that the prompt only refers to."""
        section = self.prompt.partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
        return frozenset(_UNPRINTED.findall(section)) & frozenset(self.fields)

    @cached_property
    def recipe(self) -> Recipe | None:
        """Script and fields that the task's skill names, from documents the agent read, else from shipped packages."""
        documents = [as_text(call.result.get("content")) or "" for call in self.calls if call.name == "load_skill"]
        if self._has_user_prompt:
            documents.append(appended_of(self.trajectory.trace.messages))
        found = (find_recipe(document, self.trajectory.sub_task) for document in documents)
        return next((recipe for recipe in found if recipe is not None), None) or self.shipped

    @property
    def shipped(self) -> Recipe | None:
        return shipped_recipe(self.trajectory.domain, self.trajectory.sub_task)

    @cached_property
    def right_runs(self) -> list[ExecutedCall]:
        """Calls of the script that the task's skill names."""
        return [] if self.recipe is None else [call for call in self.runs if call.script == self.recipe.script]

    @cached_property
    def decisive_call(self) -> ExecutedCall | None:
        """The last successful call of that script, else the last one."""
        worked = [call for call in self.right_runs if call.ok]
        return (worked or self.right_runs or [None])[-1]

    @cached_property
    def output_is_right(self) -> bool:
        """True if the decisive output has the label's values; False without label."""
        call, recipe = self.decisive_call, self.recipe
        if call is None or recipe is None or self.task is None or not call.output:
            return False
        expected = {key: self.expected[key] for key in recipe.keys if key in self.expected}
        output = {key: call.output[key] for key in expected if key in call.output}
        return bool(expected) and all(leaf.difference <= ABSOLUTE_TOLERANCE for leaf in leaf_by_leaf(expected, output))

    @property
    def _has_user_prompt(self) -> bool:
        return any(message.role == "user" for message in self.trajectory.trace.messages)

    @property
    def expected(self) -> JsonObject:
        """The label; empty if unknown."""
        return {} if self.task is None else self.task.truth.expected_output

    @cached_property
    def leaves(self) -> list[Leaf]:
        """Leaves in which label and answer differ, with the label's first; empty without either."""
        if self.task is None or self.answer is None:
            return []
        return [leaf for leaf in compare_leaves(self.task.leaves, leaves_of(self.answer)) if not leaf.agrees]

    @cached_property
    def wrong_numbers(self) -> list[WrongNumber]:
        """Numbers that label and answer both have and that differ."""
        found: list[WrongNumber] = []
        for leaf in self.leaves:
            expected, submitted = as_number(leaf.left), as_number(leaf.right)
            if expected is not None and submitted is not None:
                is_discrete = isinstance(leaf.left, int)
                found.append(WrongNumber(leaf.path, _group(leaf.path), expected, submitted, is_discrete))
        return found

    def costs(self, values: Mapping[str, object]) -> bool:
        """Return True if the label with some leaves replaced, by path, scores less than the label."""
        if self.subtask is None or self.task is None:
            return False
        return self.task.points(with_leaves(self.expected, values)) < self.task.points(self.expected) - 1e-9


def is_nearly_equal(submitted: float, expected: float) -> bool:
    """Return True if usual rounding explains the difference."""
    return abs(submitted - expected) <= max(RELATIVE_TOLERANCE * abs(expected), ABSOLUTE_TOLERANCE)


@cache
def shipped_recipe(domain_name: str, sub_task: str) -> Recipe | None:
    """Return the row of a subtask in the documents of its domain's packages."""
    try:
        names = [folder.name for folder in domain(domain_name).skills]
    except InputError:
        return None
    found = (find_recipe(_packages()[name].body, sub_task) for name in names)
    return next((recipe for recipe in found if recipe is not None), None)


@cache
def _packages() -> Mapping[str, SkillPackage]:
    return curated()


def _group(path: str) -> str:
    """Return the top-level key, with the field for entries of lists."""
    top = re.split(r"[.\[]", path, maxsplit=1)[0]
    return f"{top}[].{path.rpartition('].')[2]}" if "]." in path else top

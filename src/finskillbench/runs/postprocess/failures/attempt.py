"""One episode that was played, with all that rules of failure ask of it, each computed once and when it is needed.

The tool calls of a trajectory as rules look at them, and how the output of a script was used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import orjson

from finskillbench.domains import Subtask, by_method, domain, subtask_named
from finskillbench.domains.base import Scorer
from finskillbench.domains.checks.agreement import AGREEMENT, Leaf, compare_leaves, leaf_by_leaf, leaves_of, with_leaves
from finskillbench.domains.examples import Misreading
from finskillbench.episode import JsonObject, Profile, Status, Truth
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Arm, arm_of
from finskillbench.harness.programs.program import appended_of, printed_fields, prompt_of
from finskillbench.harness.programs.reference import Recipe, find_recipe
from finskillbench.harness.prompts.compose import INPUT_SECTION, SCHEMA_SECTION
from finskillbench.harness.skills.loader import SkillPackage, curated
from finskillbench.harness.trace import ToolRecord, Trace
from finskillbench.runs.store.journal import Trajectory
from finskillbench.runs.verdicts import judged_answer
from finskillbench.scoring.strict_json import InvalidSubmission
from finskillbench.scoring.values import as_array, as_number, as_object, as_text, is_object

OutputUse = Literal["unchanged", "altered", "none"]
"""What of a script's output was submitted: all of it as it was, something else under its keys, or nothing."""


@dataclass(frozen=True)
class Call:
    """One call that was run: its arguments and its result are parsed when somebody asks."""

    record: ToolRecord
    content: str

    @property
    def name(self) -> str:
        """The tool."""
        return self.record.name

    @property
    def ok(self) -> bool:
        """Whether the tool did what was asked."""
        return self.record.fate == "ok"

    @cached_property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments; empty where they are no object."""
        return _object(self.record.arguments)

    @cached_property
    def result(self) -> Mapping[str, Any]:
        """What the tool answered, JSON in one line; what the loop says of the budget comes below it."""
        return _object(self.content.partition("\n")[0])

    @property
    def script(self) -> str:
        """The name of the script in its package, such as "scripts/x.py"."""
        path = as_text(self.arguments.get("script_path")) or ""
        return path[path.find("scripts/") :] if "scripts/" in path else path

    @property
    def injected(self) -> tuple[str, ...]:
        """The fields of the task that the server was to put in."""
        return tuple(name for name in as_array(self.arguments.get("inject_task_fields")) if isinstance(name, str))

    @property
    def typed(self) -> Mapping[str, Any]:
        """What the agent wrote into the script's input and no injected field replaced."""
        written = as_object(self.arguments.get("input_data"))
        return {name: value for name, value in written.items() if name not in self.injected}

    @property
    def output(self) -> Mapping[str, Any]:
        """The output of a script; empty where it failed."""
        return as_object(self.result.get("output")) if self.ok else {}


def calls_of(trace: Trace) -> list[Call]:
    """The calls that were run, in order, with their results."""
    return [
        Call(record, trace.messages[record.message].content)
        for record in trace.tool_calls
        if record.message is not None and record.fate != "not_run"
    ]


def script_runs(calls: list[Call]) -> list[Call]:
    """The calls of scripts of skills, failed ones among them."""
    return [call for call in calls if call.name == "run_skill_script"]


def output_use(answer: JsonObject | None, runs: list[Call]) -> OutputUse:
    """What was submitted of the scripts' outputs.

    Parameters
    ----------
    answer : the submission; None where there is none that can be read.
    runs : the calls of scripts.

    Returns
    -------
    "unchanged" if every submitted value stands so in one output, to the last digit but for 1e-9; "altered" if some key
    of the answer is an output's and its value another; "none" if no key is.
    """
    shared = list(_shared(answer or {}, runs))
    if not shared:
        return "none"
    return "unchanged" if any(shared) else "altered"


def _shared(answer: JsonObject, runs: list[Call]) -> Iterator[bool]:
    """Of each output that shares a key with the answer, whether the whole answer stands in it."""
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


NEARLY = 1e-3
"""Two numbers are nearly the same up to this share of the expected one."""
NOTHING = 1e-6
"""Or up to this in their own unit: what six decimals leave."""
_ELIDED = re.compile(r'get_task_data\(\\"(\w+)\\"\)')


class Told(NamedTuple):
    """A misreading of a task, and the values in which it differs from the label; so many of them are `in_label`."""

    misreading: Misreading
    values: Mapping[str, object]
    in_label: int


@dataclass(frozen=True)
class Known:
    """What an edition knows of a task: its label, and its input at full precision. One serves all attempts at it."""

    truth: Truth
    task_input: JsonObject

    @cached_property
    def subtask(self) -> Subtask | None:
        """The subtask; None for an imported episode under a name, and with a method, that are not registered."""
        return subtask_called(self.truth.sub_task, as_text(self.truth.verification.get("method")) or "")

    @cached_property
    def profile(self) -> Profile:
        """The profile that is explained: certified where the label is proved, else the first that is defined.

        Raises
        ------
        LookupError : the subtask is not registered.
        """
        if self.subtask is None:
            raise LookupError(self.truth.sub_task)
        scorers = self.subtask.scorers
        return Profile.CERTIFIED if self.truth.proof and Profile.CERTIFIED in scorers else next(iter(scorers))

    @cached_property
    def scorer(self) -> Scorer[Any]:
        """The scorer of this profile; LookupError as for `profile`."""
        profile = self.profile
        assert self.subtask is not None  # it has this profile
        return self.subtask.scorers[profile]

    def points(self, answer: JsonObject) -> float:
        """The score of an answer under this profile; LookupError as for `profile`."""
        return self.scorer(answer, self.truth, self.task_input).value

    @cached_property
    def leaves(self) -> dict[str, object]:
        """The leaves of the label by path."""
        return leaves_of(self.truth.expected_output)

    @cached_property
    def misreadings(self) -> list[Told]:
        """The subtask's misreadings of the task; none where it has none, or an imported input lacks what it needs."""
        if self.subtask is None or self.subtask.examples.misreadings is None:
            return []
        try:
            return [self._told(each) for each in self.subtask.examples.misreadings(self.task_input)]
        except (LookupError, TypeError, ValueError):
            return []

    def _told(self, each: Misreading) -> Told:
        leaves = [leaf for leaf in compare_leaves(self.leaves, leaves_of(each.answer)) if not leaf.agrees]
        values = {leaf.path: leaf.right for leaf in leaves if leaf.absent != "right"}
        return Told(each, values, sum(not leaf.absent for leaf in leaves))


class WrongNumber(NamedTuple):
    """A number of the answer that is not the label's; `group` is what numbers of one kind share.

    `whole` says that the label's is a count, a rank or a verdict.
    """

    path: str
    group: str
    expected: float
    given: float
    whole: bool

    @property
    def nearly_right(self) -> bool:
        """Whether it is off by no more than usual rounding."""
        return nearly(self.given, self.expected)


@dataclass(frozen=True)
class Attempt:
    """One episode that was played.

    status : how its row says it came out.
    known : what its edition knows of the task; None where no edition with its truth is at hand.
    """

    trajectory: Trajectory
    status: Status
    known: Known | None = None

    @cached_property
    def subtask(self) -> Subtask | None:
        """The subtask; None for an imported episode under a name that is not registered."""
        return subtask_called(self.trajectory.sub_task, "") if self.known is None else self.known.subtask

    @cached_property
    def arm(self) -> Arm:
        """The switches of its condition."""
        return arm_of(self.trajectory.trace.condition)

    @cached_property
    def calls(self) -> list[Call]:
        """The tool calls that were run."""
        return calls_of(self.trajectory.trace)

    @cached_property
    def runs(self) -> list[Call]:
        """Those of scripts, failed ones among them."""
        return script_runs(self.calls)

    @cached_property
    def answer(self) -> dict[str, Any] | None:
        """The submission as it is judged; None where there is none, or it is no JSON object."""
        submission = self.trajectory.trace.submission
        if submission.answer is None or self.status is not Status.SCORED:
            return None
        try:
            return judged_answer(submission, self.subtask)
        except InvalidSubmission:
            return None

    @cached_property
    def prompt(self) -> str:
        """The task prompt without what an arm appended; empty where the agent was not asked in our words."""
        return prompt_of(self.trajectory.trace.messages) if self._is_asked else ""

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the task's input fields."""
        return printed_fields(self.trajectory.trace.messages) if INPUT_SECTION in self.prompt else ()

    @cached_property
    def unprinted(self) -> frozenset[str]:
        """Input fields of which the prompt says only where they are to be had."""
        section = self.prompt.partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
        return frozenset(_ELIDED.findall(section)) & frozenset(self.fields)

    @cached_property
    def recipe(self) -> Recipe | None:
        """Which script the task's skill names, and for which fields: by what the agent read, else by what ships."""
        documents = [as_text(call.result.get("content")) or "" for call in self.calls if call.name == "load_skill"]
        if self._is_asked:
            documents.append(appended_of(self.trajectory.trace.messages))
        found = (find_recipe(document, self.trajectory.sub_task) for document in documents)
        return next((recipe for recipe in found if recipe is not None), None) or self.shipped

    @property
    def shipped(self) -> Recipe | None:
        """The same by the packages that ship."""
        return shipped_recipe(self.trajectory.domain, self.trajectory.sub_task)

    @cached_property
    def right_runs(self) -> list[Call]:
        """Calls of the script that the task's skill names."""
        return [] if self.recipe is None else [call for call in self.runs if call.script == self.recipe.script]

    @cached_property
    def decisive(self) -> Call | None:
        """The last of them that worked, else the last."""
        worked = [call for call in self.right_runs if call.ok]
        return (worked or self.right_runs or [None])[-1]

    @cached_property
    def output_is_right(self) -> bool:
        """Whether the decisive output has the label's values; False where nobody knows them."""
        call, recipe = self.decisive, self.recipe
        if call is None or recipe is None or self.known is None or not call.output:
            return False
        expected = {key: self.expected[key] for key in recipe.keys if key in self.expected}
        output = {key: call.output[key] for key in expected if key in call.output}
        return bool(expected) and all(leaf.difference <= NOTHING for leaf in leaf_by_leaf(expected, output))

    @property
    def _is_asked(self) -> bool:
        return any(message.role == "user" for message in self.trajectory.trace.messages)

    @property
    def expected(self) -> JsonObject:
        """The label; empty where nobody knows it."""
        return {} if self.known is None else self.known.truth.expected_output

    @cached_property
    def leaves(self) -> list[Leaf]:
        """The leaves in which label and answer differ, the label's first; none without either."""
        if self.known is None or self.answer is None:
            return []
        return [leaf for leaf in compare_leaves(self.known.leaves, leaves_of(self.answer)) if not leaf.agrees]

    @cached_property
    def wrong_numbers(self) -> list[WrongNumber]:
        """The numbers that both have and that differ."""
        found: list[WrongNumber] = []
        for leaf in self.leaves:
            first, second = as_number(leaf.left), as_number(leaf.right)
            if first is not None and second is not None:
                whole = isinstance(leaf.left, int)
                found.append(WrongNumber(leaf.path, _group(leaf.path), first, second, whole))
        return found

    def costs(self, values: Mapping[str, object]) -> bool:
        """Whether the label with some leaves altered, by their paths, scores less than the label itself."""
        if self.subtask is None or self.known is None:
            return False
        return self.known.points(with_leaves(self.expected, values)) < self.known.points(self.expected) - 1e-9


def nearly(given: float, expected: float) -> bool:
    """Whether a number is off by no more than usual rounding."""
    return abs(given - expected) <= max(NEARLY * abs(expected), NOTHING)


@cache
def subtask_called(name: str, method: str) -> Subtask | None:
    """The subtask of a name, or of a method of verification; None where neither is known."""
    for find, what in ((subtask_named, name), (by_method, method)):
        try:
            return find(what)
        except InputError:
            continue
    return None


@cache
def shipped_recipe(domain_name: str, sub_task: str) -> Recipe | None:
    """The row of a subtask in the documents of its domain's packages."""
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
    """The top-level key, and the field for entries of lists: numbers of one kind."""
    top = re.split(r"[.\[]", path, maxsplit=1)[0]
    return f"{top}[].{path.rpartition('].')[2]}" if "]." in path else top

"""What a domain and a subtask must say: read this file and you know how to write either.

A `Domain` holds what its subtasks are built from, what is checked of an edition beside their labels, and the skill
packages that its agents can load. A `Subtask` is one kind of episode. Both are plain values; see
`finskillbench.domains`.

How to write a subtask. It is one file, read from top to bottom:

1. a `TypedDict` of what the agent is given, the type of every episode's `input`;
2. an `Answer` type of what it must return; the schema in the prompt is rendered from it;
3. `build(context, objects)`, which draws the episodes and returns a `Task` of each: the `Episode`, its `Truth`, and a
   certificate, a JSON object that lets anybody recheck the truth. `objects` is what the domain's `prepare` returned;
   randomness comes from `context.generator(name, ...)` and from nowhere else. The truth's `verification` states only
   what differs by label (`proved`); whoever builds an edition adds the method and the `parameters`;
4. `second(task_input)`, which derives the expected output again from what the agent sees, from the definitions and
   without the code that `build` used. A subtask only states it: whoever builds an edition runs it once for every task,
   refuses one on which the two differ by more than rounding, and writes into the truth's `proof` that they agreed;
   `data validate` derives every label of an edition again. Where an answer is an optimum, and many answers may be as
   good, `proof(label, findings)` takes its place: it rechecks the label's certificate, and `build` sums that up in the
   truth's `proof`. A subtask has at least one;
5. a scorer for each profile, `(answer, truth, task_input) -> Score`. It takes any JSON object for an answer, however
   absurd, never raises on one, and returns a finite value between 0 and 1;
6. `trivial`, the best answer that needs no thought, `heuristic`, the fixed recipe that earns most, and `by_hand`, what
   arithmetic without a skill answers: the floors and the yardstick of a report. Each may be left out;
7. where an episode is more than one question: its `budget`, `tools` of its own with the `stage` that serves them, and
   `procedures`, which say call by call how programs play it (`finskillbench.domains.playing`). Tables that are too
   long for a prompt go into the task's `tables` (`finskillbench.domains.tables`);
8. `SUBTASK = Subtask(...)`, which names all of these.

It also takes a line in the domain's list of subtasks (or an `Extension`), a row in a SKILL.md, and the row's script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.catalog import CatalogFile
from finskillbench.domains.checks.agreement import Leaf, leaf_by_leaf
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.playing import Ask, Budget, OpenStage, Procedure, Stage, StageError, ToolContract
from finskillbench.episode import PAPER_SUITE, Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InputError
from finskillbench.findings import Findings
from finskillbench.panels.tables import Half
from finskillbench.scoring.values import is_object

__all__ = [
    "HEADLINE",
    "Answer",
    "Ask",
    "Budget",
    "Build",
    "Domain",
    "DomainCheck",
    "Exploits",
    "Extension",
    "Label",
    "Ladder",
    "Misreading",
    "Misreadings",
    "Naive",
    "OpenStage",
    "Procedure",
    "Proof",
    "Released",
    "Rung",
    "Scorer",
    "Second",
    "Shortcuts",
    "Stage",
    "StageError",
    "Subtask",
    "ToolContract",
    "by_date",
    "by_input",
]

I = TypeVar("I", default=Any)  # noqa: E741 - the input of a task, as a TypedDict
"""The type of a task's input."""
O = TypeVar("O", default=Any)  # noqa: E741 - what a domain prepares for its subtasks
"""The type of what a domain prepares for its subtasks."""

Scorer: TypeAlias = Callable[[JsonObject, Truth, I], Score]
"""`(answer, truth, task_input) -> Score`: never raises on any JSON object and returns a finite value."""

Second: TypeAlias = Callable[[I], JsonObject]
"""`task_input -> expected output`, from the input at full precision by code that shares nothing with `build`."""

Build: TypeAlias = Callable[[BuildContext, O], Iterable[Task]]
"""`(context, objects) -> tasks`: draws the episodes of a subtask and proves their truth, as a generator where long."""


class Answer(BaseModel):
    """Base of the answer types.

    An answer type is what the agent is shown: every key with its type, unit, sign and vocabulary. No scorer uses it,
    and it never depends on an episode's data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class Label(Generic[I]):
    """One label under examination: the episode, its input at full precision, the truth and its certificate.

    `certificate` is empty in an edition without certificates, `hidden` without stages or in a subtask without them.
    `built` is True for an edition built here; a label of an imported release lacks what only a build writes.
    """

    episode: Episode
    task_input: I
    truth: Truth
    certificate: JsonObject
    built: bool = True
    hidden: JsonObject = field(default_factory=dict[str, Any])


Proof: TypeAlias = Callable[[Label[I], Findings], None]
"""Rechecks one label from what an agent sees and from the stored certificate; adds what does not hold.

It states what it rechecks by `findings.expect` (or `findings.fail`): a label of which nothing was expected counts as
unchecked.
"""


@dataclass(frozen=True, slots=True)
class Naive:
    """What a program without any skill answers: `answer` of the input fields named in `fields`.

    `answer` takes the fields by name and returns the answer; a KeyError says that they were not all there.
    """

    fields: tuple[str, ...]
    answer: Callable[[Mapping[str, Any]], JsonObject]


@dataclass(frozen=True, slots=True)
class Misreading:
    """A mistake that has a name, and what whoever makes it answers: a wrong quarter, a trap of a document.

    `cause` is the name under which reports count it, `words` say in one phrase what was taken for what. The answer may
    leave out what the mistake does not touch.
    """

    cause: str
    words: str
    answer: JsonObject


Misreadings: TypeAlias = Callable[[I], Iterable[Misreading]]
"""`task_input -> misreadings`, from the input at full precision: answers that a report of failures recognises."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One answer of a ladder: what a professional would call it, and the band its certified score must lie in."""

    name: str
    answer: JsonObject
    least: float
    most: float


Ladder: TypeAlias = Callable[[Label[I]], Sequence[Rung]]
"""Answers to one label from right to wrong as a professional ranks them.

Their certified scores must not rise along the ladder, and each must lie in its band. A rung that an episode cannot
have (a missed breach where nothing is breached) is left out.
"""

Exploits: TypeAlias = Callable[[I], Mapping[str, JsonObject]]
"""`task_input -> name -> answer`: answers that cheat, made without the truth and without doing the work."""


@dataclass(frozen=True, slots=True)
class Shortcuts(Generic[I]):
    """Answers that leave out a part of the work or make a known mistake, and bounds of their mean certified scores.

    `answers` leaves out a name that an episode cannot have; `most_hard` is the bound of the tier "hard".
    """

    answers: Exploits[I]
    most: float = 0.5
    most_hard: float = 0.35

    def bound(self, tier: str) -> float:
        """Return the bound of a tier."""
        return self.most_hard if tier == "hard" else self.most


def by_date(episode: Episode) -> str:
    """The market date, which episodes of one subtask share with others unless the subtask says otherwise."""
    return episode.as_of_date.isoformat()


def by_input(*path: str) -> Callable[[Episode], str]:
    """Cluster episodes by one field of their input, by their market date where it is absent."""

    def cluster(episode: Episode) -> str:
        value: object = episode.input
        for name in path:
            value = value.get(name) if is_object(value) else None
        return value if isinstance(value, str) else by_date(episode)

    return cluster


@dataclass(frozen=True, slots=True)
class Subtask(Generic[I, O]):
    """One subtask of the benchmark.

    Attributes
    ----------
    name : the episode's `sub_task`.
    prefix : what its task ids begin with.
    method : the `verification.method` that truths name for it.
    parameters : what every verification states beside its method, by which answers are scored: the build writes it into
        every truth, and `data validate` holds every label of a built edition to it.
    proved : the keys of a verification that differ by label, or a function that gives those of an expected output;
        `build` states them, and `proof` or a check of the domain derives each again.
    answer : pydantic type describing the answer to the agent.
    input : TypedDict of what the agent is given; every input of an edition is checked against it.
    scorers : one scorer per profile that is defined for it.
    build : draws its episodes and proves their truth; None while only imported releases carry it.
    second : derives the expected output again; the build refuses a task on which the two differ, and so does
        `data validate`. None where an optimum is proved instead.
    in_words : keys of the label that say in rounded words what others say in full; they are not derived again.
    proof : rechecks what leaf-by-leaf agreement cannot say: optima, ties, certificates.
    by_hand : arithmetic without a skill, the no-skill side of `baseline/reference`; None where the definitions that the
        prompt prints are followed to the letter instead, by `second`.
    trivial : the best answer that needs no thought, `baseline/trivial`.
    heuristic : which of `exploits` earned most on another seed, `baseline/heuristic`; empty where none is fitted.
    appointed : table to column to calendar days: dates of what was agreed or announced by the day of the episode and
        is to happen at most so many days later (settlement, payment). All other dates lie on or before that day.
    definitions : the exact `conventions` of every episode, or a function that gives those of a task input.
    headline : whether it counts towards headline tables.
    cluster : what an episode shares with others, so that intervals count it once: a mandate, a company.
    ladder : answers from right to wrong whose scores `audit` checks for order.
    exploits : cheating answers that `audit` holds down to the floor.
    shortcuts : shortcuts and mistakes that `audit` holds below bounds by tier, and `data info --shortcuts` prints.
    misreadings : mistakes with a name, which a report of failures recognises in wrong answers.
    synthetic_only : whether its episodes need a market that was made, since how its numbers came about must be known.
    ceiling : the mean score that the reference program reaches at least with skills, where nobody can be sure of full
        marks; None where it earns them on every episode.
    budget : what an episode may cost; None for twelve turns and no other limit.
    tools : tools that its episodes offer beside those of the domain.
    stage : opens the state of an episode that `tools` move on.
    filled : fields of the input that may begin empty, since the stage fills them.
    procedures : program ("reference", "textbook", "trapped") to how it plays an episode, call by call.
    """

    name: str
    prefix: str
    method: str
    answer: type[Answer]
    scorers: Mapping[Profile, Scorer[I]] = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    proved: tuple[str, ...] | Callable[[JsonObject], tuple[str, ...]] = field(default=(), repr=False)
    build: Build[O] | None = field(default=None, repr=False)
    second: Second[I] | None = field(default=None, repr=False)
    in_words: tuple[str, ...] = ()
    proof: Proof[I] | None = field(default=None, repr=False)
    by_hand: Naive | None = field(default=None, repr=False)
    trivial: Naive | None = field(default=None, repr=False)
    heuristic: str = field(default="", repr=False)
    input: type[I] | None = field(default=None, repr=False)
    appointed: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]], repr=False)
    definitions: Mapping[str, str] | Callable[[I], Mapping[str, str]] | None = field(default=None, repr=False)
    headline: bool = True
    cluster: Callable[[Episode], str] = field(default=by_date, repr=False)
    ladder: Ladder[I] | None = field(default=None, repr=False)
    exploits: Exploits[I] | None = field(default=None, repr=False)
    shortcuts: Shortcuts[I] | None = field(default=None, repr=False)
    misreadings: Misreadings[I] | None = field(default=None, repr=False)
    synthetic_only: bool = False
    ceiling: float | None = None
    budget: Budget | None = None
    tools: tuple[ToolContract, ...] = field(default=(), repr=False)
    stage: OpenStage | None = field(default=None, repr=False)
    filled: tuple[str, ...] = ()
    procedures: Mapping[str, Procedure] = field(default_factory=dict[str, Procedure], repr=False)

    def __post_init__(self) -> None:
        """Refuse a subtask whose labels nothing could check: InputError says what to add."""
        if self.second is None and self.proof is None:
            raise InputError(
                f"subtask {self.name} has neither `second` nor `proof`, so that no check would look at its labels; "
                "give it a second derivation"
            )
        if bool(self.tools) != (self.stage is not None):
            raise InputError(f"subtask {self.name} needs a stage that serves its tools, and tools for its stage")

    def verification(self, proved: JsonObject) -> JsonObject:
        """The verification of a truth that the build writes: the method, the parameters, and what differs by label."""
        return {"method": self.method, **self.parameters, **proved}

    def derived_again(self, expected_output: JsonObject, task_input: I) -> list[Leaf]:
        """A label held against its second derivation, leaf by leaf; nothing for a subtask without one."""
        if self.second is None:
            return []
        leaves = leaf_by_leaf(expected_output, self.second(task_input))
        return [leaf for leaf in leaves if leaf.path.rpartition(".")[2] not in self.in_words]


@dataclass(frozen=True, slots=True)
class Released:
    """How the published release carries a subtask.

    Attributes
    ----------
    required : `input -> fields` that the answer depends on; what is absent or empty of them is reported.
    folder : what the release calls the subtask where it abbreviates its name.
    prompt : the words for an episode that was published without any: the published harness wrote them.
    defined : fields that may be given by an id alone: the key of the id, and the folder below the domain's
        `constructed` that holds what it stands for.
    """

    required: Callable[[JsonObject], tuple[str, ...]]
    folder: str | None = None
    prompt: Prompt | None = None
    defined: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


DomainCheck: TypeAlias = Callable[[Subject, Findings], None]
"""A check of an edition that is not about single labels: its panels, the objects that episodes share, coverage."""


def _no_parameters(objects: object) -> dict[str, Any]:
    del objects
    return {}


HEADLINE = "headline"
"""Name of the table row that sums up the paper's subtasks."""


@dataclass(frozen=True, slots=True)
class Domain(Generic[O]):
    """One domain of the benchmark.

    Attributes
    ----------
    name : the episodes' `skill`, such as "risk_management".
    skills : folders of skill packages; in cases of its suite an agent of the curated arm can load them.
    placebos : folders of irrelevant packages of like size, which the placebo arm mounts in cases of its suite.
    subtasks : in the order of tables.
    prepare : `context -> objects`, what its subtasks share, built once per edition and handed to each `build`.
    checks : name to check, in the order in which `data validate` runs and prints them, before the labels.
    audits : name to check, what `audit` asks of this domain beside what it asks of every domain.
    tools : further tools of its episodes, `query_xbrl` or `read_table`; any other name is refused.
    needs : what its panels are built from; a build without one of these leaves the domain out, and a note says so.
    suite : the part of an edition that it belongs to; tables sum up each suite by itself.
    divisible : whether each subtask can be built in its own process, since what they share is quick to prepare.
    protocol_episodes : how many episodes of each subtask the full-run protocol takes.
    parameters : what the manifest records of a build, from the prepared objects after all subtasks were built.
    released : how the published release carries each subtask that it has.
    catalog : the files that a user may bring in place of what is built in; `prepare` finds them in its context.
    warm_up : "module:function" that the process of scripts calls before the first of them; it starts no thread.
    """

    name: str
    skills: tuple[Path, ...]
    subtasks: tuple[Subtask[Any, O], ...]
    prepare: Callable[[BuildContext], O] = field(repr=False)
    checks: Mapping[str, DomainCheck] = field(repr=False)
    tools: tuple[str, ...] = ()
    needs: tuple[Half, ...] = ("prices",)
    suite: str = PAPER_SUITE
    divisible: bool = False
    protocol_episodes: int = 40
    parameters: Callable[[O], dict[str, Any]] = field(default=_no_parameters, repr=False)
    warm_up: str | None = None
    released: Mapping[str, Released] = field(default_factory=dict[str, Released], repr=False)
    audits: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)
    placebos: tuple[Path, ...] = ()
    catalog: tuple[CatalogFile[Any], ...] = field(default=(), repr=False)

    @property
    def title(self) -> str:
        """The name as words."""
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Extension:
    """What a package adds to a domain that exists: subtasks, the skill packages they need, checks, audits."""

    domain: str
    subtasks: tuple[Subtask, ...] = ()
    skills: tuple[Path, ...] = ()
    checks: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)
    audits: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)

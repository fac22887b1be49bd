"""Types of a domain and of a subtask, and how to write a subtask.

A `Domain` holds what its subtasks share: objects, checks of an edition, skill packages. A `Subtask` is one kind of
episode. Both are frozen values; `finskillbench.domains` registers them.

Write a subtask as one file, in this order:

1. A `TypedDict` for `input`, the fields that the agent gets.
2. An `Answer` type, the fields that it must return. The prompt prints its schema.
3. `build(context, objects)`, which yields a `Task` for each episode: the `Episode`, its `Truth`, and a certificate, a
   JSON object from which anybody can recheck the truth. `objects` is the return value of the domain's `prepare`. Draw
   random numbers only from `context.generator(name, ...)`. In the truth's `verification` state only what differs by
   label; the build adds the method and the parameters of `Verification`.
4. `second(task_input)`, which derives the expected output again from the input, by the definitions and without the code
   of `build`. Only state it: the build runs it for every task, refuses a task on which the two differ by more than
   rounding, and records the agreement in the truth's `proof`; `data validate` derives every label of an edition again.
   Where the answer is an optimum, and many answers may be as good, write `proof(label, findings)` instead. It rechecks
   the label's certificate, which `build` summarises in the truth's `proof`. A subtask needs one of the two.
5. A scorer for each profile, `(answer, truth, task_input) -> Score`. It accepts any JSON object for an answer, never
   raises, and returns a finite value between 0 and 1.
6. `Baselines`: what programs answer without a skill. Reports use them as floors and yardstick. Each may be left out.
7. `Examples`: answers of known quality, by which `audit` tests the scorers (`finskillbench.domains.examples`).
8. `InteractiveCase`, if an episode takes many tool calls (`finskillbench.domains.interactive`). Put tables that are too
   long for a prompt into the task's `tables` (`finskillbench.domains.tables`).
9. `SUBTASK = Subtask(...)`, which names all of these.

Then add a line to the domain's list of subtasks (or an `Extension`), a row to a SKILL.md, and the script of that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from finskillbench.domains.building import BuildContext, Task
from finskillbench.domains.catalog import CatalogFile
from finskillbench.domains.checks.agreement import Leaf, leaf_by_leaf
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.examples import Examples, I, Label
from finskillbench.domains.interactive import InteractiveCase, OpenState
from finskillbench.episode import PAPER_SUITE, Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InputError
from finskillbench.findings import Findings
from finskillbench.panels.tables import Half
from finskillbench.scoring.values import is_object

O = TypeVar("O", default=Any)  # noqa: E741 - what a domain prepares for its subtasks
"""The type of what a domain prepares for its subtasks."""

Scorer: TypeAlias = Callable[[JsonObject, Truth, I], Score]
"""`(answer, truth, task_input) -> Score`: never raises on any JSON object and returns a finite value."""

Rederivation: TypeAlias = Callable[[I], JsonObject]
"""`task_input -> expected output`, from the input at full precision by code that shares nothing with `build`."""

Build: TypeAlias = Callable[[BuildContext, O], Iterable[Task]]
"""`(context, objects) -> tasks`: draws the episodes of a subtask and proves their truth, as a generator where long."""


class Answer(BaseModel):
    """Base of the answer types.

    An answer type is what the agent is shown: every key with its type, unit, sign and vocabulary. No scorer uses it,
    and it never depends on an episode's data.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


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
class Baselines:
    """Answers of programs without a model, and the least that the reference earns.

    Attributes
    ----------
    no_skill : arithmetic without a skill, the no-skill side of `baseline/reference`; None where `second` stands in,
        since the prompt prints every definition.
    trivial : the best answer that needs no thought, `baseline/trivial`.
    heuristic : which of `Examples.exploits` earned most on another seed, `baseline/heuristic`; empty where none is
        fitted.
    ceiling : the mean score that `baseline/reference` reaches at least with skills, where nobody can be sure of full
        marks; None where it earns them on every episode.
    """

    no_skill: Naive | None = None
    trivial: Naive | None = None
    heuristic: str = ""
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """Verification of the labels of a subtask.

    Attributes
    ----------
    method : the `verification.method` of every truth.
    parameters : what every truth states in addition to the method, by which answers are scored: the build writes it,
        and `data validate` holds every label of a built edition to it.
    proved : the keys that differ by label, or a function that gives those of an expected output. `build` states them,
        and `proof` or a check of the domain derives each again.
    in_words : keys of the label that state in rounded words what others state in full; they are not derived again.
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    proved: tuple[str, ...] | Callable[[JsonObject], tuple[str, ...]] = ()
    description: tuple[str, ...] = ()

    def for_label(self, proved: JsonObject) -> JsonObject:
        """Return the verification of one truth: the method, the parameters, and what differs by label."""
        return {"method": self.method, **self.parameters, **proved}


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
    answer : pydantic type describing the answer to the agent.
    scorers : one scorer per profile that is defined for it.
    verification : how its labels are verified.
    input : TypedDict of the fields that the agent gets; every input of an edition is checked against it.
    build : draws its episodes and proves their truth; None while only imported releases carry it.
    second : derives the expected output again; the build refuses a task on which the two differ, and so does
        `data validate`. None where an optimum is proved instead.
    proof : rechecks what leaf-by-leaf agreement cannot cover: optima, ties, certificates.
    baselines : what programs answer without a skill.
    examples : answers of known quality, by which `audit` tests the scorers.
    interactive : how its episodes are played; None where an episode is one question, for twelve turns and no other
        limit.
    definitions : the exact `conventions` of every episode, or a function that gives those of a task input.
    headline : whether it counts towards headline tables.
    cluster : what an episode shares with others, so that intervals count it once: a mandate, a company.
    """

    name: str
    prefix: str
    answer: type[Answer]
    scorers: Mapping[Profile, Scorer[I]] = field(repr=False)
    verification: Verification
    input: type[I] | None = field(default=None, repr=False)
    build: Build[O] | None = field(default=None, repr=False)
    rederive: Rederivation[I] | None = field(default=None, repr=False)
    proof: Proof[I] | None = field(default=None, repr=False)
    baselines: Baselines = field(default=Baselines(), repr=False)
    examples: Examples[I] = field(default=Examples(), repr=False)
    interactive: InteractiveCase | None = None
    definitions: Mapping[str, str] | Callable[[I], Mapping[str, str]] | None = field(default=None, repr=False)
    headline: bool = True
    cluster: Callable[[Episode], str] = field(default=by_date, repr=False)

    def __post_init__(self) -> None:
        """Refuse a subtask whose labels nothing could check: InputError says what to add."""
        if self.rederive is None and self.proof is None:
            raise InputError(
                f"subtask {self.name} has neither `second` nor `proof`, so that no check would look at its labels; "
                "give it a second derivation"
            )
        if self.interactive is not None and bool(self.interactive.tools) != (self.open_interactive_state is not None):
            raise InputError(f"subtask {self.name} needs `open_stage` to serve its tools, and tools for its stage")

    @property
    def open_interactive_state(self) -> OpenState | None:
        """Opener of the state that its own tools change; None where it has no such tools."""
        return None if self.interactive is None else self.interactive.open_state

    def derived_again(self, expected_output: JsonObject, task_input: I) -> list[Leaf]:
        """Compare a label with its second derivation, leaf by leaf; return nothing for a subtask without one."""
        if self.rederive is None:
            return []
        leaves = leaf_by_leaf(expected_output, self.rederive(task_input))
        return [leaf for leaf in leaves if leaf.path.rpartition(".")[2] not in self.verification.description]


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

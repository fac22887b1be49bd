"""Types of domains and subtasks, and instructions for writing a subtask.

A `Domain` holds what its subtasks share: objects, checks of an edition, skill packages. A `Subtask` is one kind of
episode. Both are frozen; `finskillbench.domains` registers them.

Write a subtask as one file, in this order:

1. A `TypedDict` for `input`: the fields that the agent receives.
2. An `Answer` type: the fields that the agent returns. The prompt prints its schema.
3. `build(context, objects)` yields a `BuiltTask` per episode: the `Episode`, its `Truth`, and a certificate (JSON) to
   recheck the truth with. `objects` comes from the domain's `prepare`. Draw random numbers only from
   `context.generator(name, ...)`. State in `verification` only keys that differ by label.
4. `rederive(task_input)` derives the expected output from the input, independently of `build`. The build rejects a
   task on which the two differ by more than rounding; `data validate` repeats the derivation for every label.
   If several optima are equally good, write `proof(label, findings)` instead, which rechecks the certificate.
5. A scorer for each profile, `(answer, truth, task_input) -> Score`. It accepts any JSON object, never raises, and
   returns a finite value between 0 and 1.
6. `Baselines`: optional answers of programs without a model, used by reports as floors and reference points.
7. `Examples`: answers of known quality, with which `audit` tests the scorers (`finskillbench.domains.examples`).
8. `InteractiveCase`, if an episode takes many tool calls (`finskillbench.domains.interactive`). Put tables that are
   too long for a prompt into the task's `tables` (`finskillbench.domains.tables`).
9. `SUBTASK = Subtask(...)`, which refers to all of these.

Then add it to the domain's subtasks (or to an `Extension`), with a row in a SKILL.md and the script of that row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeAlias

from pydantic import BaseModel, ConfigDict
from typing_extensions import TypeVar

from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.catalog import CatalogFile
from finskillbench.domains.checks.agreement import Leaf, leaf_by_leaf
from finskillbench.domains.checks.examination import Subject
from finskillbench.domains.examples import Examples, I, Label
from finskillbench.domains.faults import Accepts, Fault, Loss
from finskillbench.domains.interactive import InteractiveCase, OpenState
from finskillbench.episode import PAPER_SUITE, Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.errors import InputError
from finskillbench.findings import Findings
from finskillbench.panels.tables import DataKind
from finskillbench.scoring.values import is_object

O = TypeVar("O", default=Any)  # noqa: E741 - what a domain prepares for its subtasks
"""Type of the objects that a domain prepares for its subtasks."""

Scorer: TypeAlias = Callable[[JsonObject, Truth, I], Score]
"""`(answer, truth, task_input) -> Score`: never raises on a JSON object and returns a finite value."""

Rederivation: TypeAlias = Callable[[I], JsonObject]
"""`task_input -> expected output`, from the full-precision input by code independent of `build`."""

Build: TypeAlias = Callable[[BuildContext, O], Iterable[BuiltTask]]
"""`(context, objects) -> tasks`: draws the episodes of a subtask and proves their truth."""


class Answer(BaseModel):
    """Base of the answer types: the schema that agents read. It does not depend on an episode, and scorers do not use
    it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


Proof: TypeAlias = Callable[[Label[I], Findings], None]
"""Recheck a label from the agent's view and its certificate; a label without any `findings.expect` counts as unchecked.
"""


@dataclass(frozen=True, slots=True)
class Naive:
    """Baseline without a skill: `answer` maps the input `fields` to an answer; KeyError if one is missing."""

    fields: tuple[str, ...]
    answer: Callable[[Mapping[str, Any]], JsonObject]


@dataclass(frozen=True, slots=True)
class Baselines:
    """Answers of programs without a model, and the minimum score of the reference.

    no_skill : no-skill side of `baseline/reference`; None to use `rederive`, since the prompt prints every definition.
    trivial : best answer that needs no reasoning, `baseline/trivial`.
    heuristic : exploit with the highest score on another seed, `baseline/heuristic`; empty if none is fitted.
    ceiling : minimum mean score of `baseline/reference` with skills; None if it earns full marks on every episode.
        Episodes whose truth has a `law`, which is not disclosed, do not count.
    """

    no_skill: Naive | None = None
    trivial: Naive | None = None
    heuristic: str = ""
    ceiling: float | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """Verification of the labels of a subtask.

    method : the `verification.method` of every truth.
    parameters : scoring parameters stated in every truth; the build writes and `data validate` checks them.
    proved : keys that differ by label, or a function of the expected output; `proof` or a check derives them again.
    description : keys of the label that restate others in rounded words; they are not derived again.
    """

    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    proved: tuple[str, ...] | Callable[[JsonObject], tuple[str, ...]] = ()
    description: tuple[str, ...] = ()

    def for_label(self, proved: JsonObject) -> JsonObject:
        """Return the verification of one truth: method, parameters, and the keys that differ by label."""
        return {"method": self.method, **self.parameters, **proved}


def by_date(episode: Episode) -> str:
    """Return the market date, the default cluster of an episode."""
    return episode.as_of_date.isoformat()


def by_input(*path: str) -> Callable[[Episode], str]:
    """Cluster episodes by one input field, or by market date where the field is absent."""

    def cluster(episode: Episode) -> str:
        value: object = episode.input
        for name in path:
            value = value.get(name) if is_object(value) else None
        return value if isinstance(value, str) else by_date(episode)

    return cluster


@dataclass(frozen=True, slots=True)
class Subtask(Generic[I, O]):
    """One subtask of the benchmark.

    name, prefix : the episode's `sub_task`, and the prefix of its task ids.
    answer : pydantic type that describes the answer to the agent.
    scorers : one scorer per supported profile.
    input : TypedDict of the fields that the agent receives; every input of an edition is checked against it.
    build : draws the episodes and proves their truth; None if only imported releases contain the subtask.
    rederive : derives the expected output independently; build and `data validate` reject a label on which the two
        differ. None if an optimum is proved instead.
    proof : rechecks what leaf-by-leaf agreement cannot cover: optima, ties, certificates.
    interactive : tools and limits of multi-turn episodes; None for single questions with twelve turns and no other
        limit.
    definitions : exact `conventions` of every episode, or a function that returns those of a task input.
    headline : whether it counts towards headline tables.
    cluster : resampling unit of an episode for intervals, such as a mandate or a company.
    template_of : `(episode, certificate) -> template`, see `finskillbench.splits`; None for the cluster.
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
    template_of: Callable[[Episode, JsonObject], str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.rederive is None and self.proof is None:
            raise InputError(
                f"subtask {self.name} has neither `rederive` nor `proof`, so its labels cannot be checked; "
                "add one of them"
            )
        if self.interactive is not None and bool(self.interactive.tools) != (self.open_interactive_state is not None):
            raise InputError(f"subtask {self.name}: set `open_state` and `tools` of its interactive case together")

    def template(self, episode: Episode, certificate: JsonObject) -> str:
        """Return what an episode shares with others, of which some are reserved for tests."""
        return self.cluster(episode) if self.template_of is None else self.template_of(episode, certificate)

    @property
    def open_interactive_state(self) -> OpenState | None:
        """Function that opens the state changed by the subtask's tools; None without such tools."""
        return None if self.interactive is None else self.interactive.open_state

    def derived_again(self, expected_output: JsonObject, task_input: I) -> list[Leaf]:
        """Compare a label with its independent derivation, leaf by leaf; return an empty list if there is none."""
        if self.rederive is None:
            return []
        leaves = leaf_by_leaf(expected_output, self.rederive(task_input))
        return [leaf for leaf in leaves if leaf.path.rpartition(".")[2] not in self.verification.description]


@dataclass(frozen=True, slots=True)
class Released:
    """Location and form of a subtask in the published release.

    required : `input -> fields` that the answer depends on; absent or empty ones are reported.
    folder : folder name in the release, if it abbreviates the subtask's name.
    prompt : the published harness's prompt, for episodes published without one.
    defined : fields that may hold only an id: its key, and the folder below the domain's `constructed` that defines it.
    """

    required: Callable[[JsonObject], tuple[str, ...]]
    folder: str | None = None
    prompt: Prompt | None = None
    defined: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])


DomainCheck: TypeAlias = Callable[[Subject, Findings], None]
"""Check of an edition beyond single labels: panels, shared objects, coverage."""


def _no_parameters(objects: object) -> dict[str, Any]:
    del objects
    return {}


HEADLINE = "headline"
"""Name of the table row that aggregates the paper's subtasks."""


@dataclass(frozen=True, slots=True)
class Domain(Generic[O]):
    """One domain of the benchmark.

    name : the episodes' `skill`, such as "risk_management".
    skills, placebos : folders of skill packages for the curated arm, and of irrelevant ones for the placebo arm.
    subtasks : in table order.
    prepare : `context -> objects`, shared by its subtasks: built once per edition and passed to each `build`.
    checks, audits : name to check, run by `data validate` before the labels, and by `audit`.
    tools : further tools of its episodes, `query_xbrl` or `read_table`; other names are rejected.
    needs : data that its panels are built from; a build without one of them skips the domain with a note.
    suite : part of an edition that it belongs to; tables aggregate each suite separately.
    divisible : whether each subtask can be built in a separate process, since `prepare` is fast.
    protocol_episodes : episodes of each subtask in the full-run protocol.
    parameters : build parameters for the manifest, from the prepared objects after all subtasks were built.
    released : location of each subtask in the published release.
    catalog : files with which a user can replace built-in data; `prepare` reads them from its context.
    withheld : folders of its code that scripts and agents' code cannot read, because they state what cases do not.
    faults : planted faults of its packages; `accepts` checks answers by subtask, `losses` prices them.
    warm_up : "module:function" that the script process calls before the first script; it must not start a thread.
    """

    name: str
    skills: tuple[Path, ...]
    subtasks: tuple[Subtask[Any, O], ...]
    prepare: Callable[[BuildContext], O] = field(repr=False)
    checks: Mapping[str, DomainCheck] = field(repr=False)
    tools: tuple[str, ...] = ()
    needs: tuple[DataKind, ...] = ("prices",)
    suite: str = PAPER_SUITE
    divisible: bool = False
    protocol_episodes: int = 40
    parameters: Callable[[O], dict[str, Any]] = field(default=_no_parameters, repr=False)
    warm_up: str | None = None
    released: Mapping[str, Released] = field(default_factory=dict[str, Released], repr=False)
    audits: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)
    placebos: tuple[Path, ...] = ()
    catalog: tuple[CatalogFile[Any], ...] = field(default=(), repr=False)
    withheld: tuple[Path, ...] = field(default=(), repr=False)
    faults: tuple[Fault, ...] = field(default=(), repr=False)
    accepts: Mapping[str, Accepts] = field(default_factory=dict[str, Accepts], repr=False)
    losses: Mapping[str, Loss] = field(default_factory=dict[str, Loss], repr=False)

    @property
    def title(self) -> str:
        """The name with spaces."""
        return self.name.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Extension:
    """Subtasks, skill packages, checks and audits that a package adds to an existing domain."""

    domain: str
    subtasks: tuple[Subtask, ...] = ()
    skills: tuple[Path, ...] = ()
    checks: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)
    audits: Mapping[str, DomainCheck] = field(default_factory=dict[str, DomainCheck], repr=False)

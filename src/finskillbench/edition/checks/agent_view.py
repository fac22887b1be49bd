"""One episode as an agent sees it: rendered prompt, results of the real tools, answers of programs."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import fsum, isclose
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from finskillbench.domains import by_method, domain, domains, subtask_named
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.checks.examination import Shared
from finskillbench.domains.examples import Label
from finskillbench.domains.interactive import RECORD
from finskillbench.domains.tables import MOST_ROWS, EpisodeTable
from finskillbench.edition import Edition
from finskillbench.edition.checks.reads import FlatValues, flatten
from finskillbench.edition.store import read_manifest
from finskillbench.episode import Episode, JsonObject, Profile
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.model import ToolCall, ToolSpec
from finskillbench.harness.models import get_model
from finskillbench.harness.prompts.compaction import refers_to_facts
from finskillbench.harness.prompts.compose import INPUT_SECTION, SCHEMA_SECTION, system_prompt, task_prompt
from finskillbench.harness.skills.faults import followed, script_output
from finskillbench.harness.skills.loader import curated
from finskillbench.harness.tools.contracts import subtask_tools, tool_specs
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices
from finskillbench.harness.trace import Trace
from finskillbench.panels.filings.query import AXES, LARGEST_LIMIT
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission
from finskillbench.scoring.values import as_array, as_object, as_text, is_object

T = TypeVar("T")
_PERIOD = ("unit", "start", "end")
"""Fields that match a figure with the as-filed facts behind it, in addition to tags."""
REFERENCE, TRIVIAL, NOP = "baseline/reference", "baseline/trivial", "baseline/nop"


@dataclass(frozen=True, slots=True)
class AuditSources:
    """Inputs of an audit in addition to the edition.

    other : an edition of another seed, for checks that learn on one edition and test on the other.
    raw_dir : a collection of raw files, as evidence for published labels.
    """

    other: Edition | None = None
    raw_dir: Path | None = None


def _opened(folder: Path) -> Edition:
    return Edition(folder, read_manifest(folder))


class CheckContext:
    """Edition, tools, skill packages and programs that checks share, opened once per process."""

    def __init__(self, edition: Edition, sources: AuditSources) -> None:
        self.edition = edition
        self.other = sources.other
        self.shared = Shared(edition, sources.raw_dir)
        packages = curated()
        self.mounts: dict[str, Mount] = {
            condition: mount(condition, packages, {}) for condition in (Condition.NO_SKILL, Condition.CURATED)
        }
        self.loop = asyncio.new_event_loop()
        self._documents: dict[str, dict[str, str]] = {}
        self._made: dict[Hashable, object] = {}

    @classmethod
    def reopened(cls, edition: Path, other: Path | None, raw_dir: Path | None) -> CheckContext:
        """Open the context in another process; the caller of `load_edition` has verified the files."""
        return cls(_opened(edition), AuditSources(None if other is None else _opened(other), raw_dir))

    @cached_property
    def resources(self) -> Resources:
        return Resources(runner=Scripts(), filings=self.edition.filings)

    def cached(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of `make`, computed once per key in this process."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    def documents(self, skill: str) -> dict[str, str]:
        """Return the texts shared by every episode of a domain: skill documents, tools, system prompt."""
        if skill not in self._documents:
            mounted = self.mounts[Condition.CURATED].for_domain(skill)
            packages = mounted.packages_of(skill)
            found = {"system prompt": system_prompt(mounted.arm)}
            found |= {
                f"tool {tool.name}": f"{tool.description} {tool.parameters}" for tool in tool_specs(mounted, skill)
            }
            for name, package in packages.items():
                found[f"{name}/SKILL.md"] = package.body
                found |= {f"{name}/{reference}": text for reference, text in package.references.items()}
            self._documents[skill] = found
        return self._documents[skill]

    def close(self) -> None:
        self.loop.close()


def _subtask_of(episode: Episode) -> Subtask | None:
    """Return the subtask of an episode; None if an imported one has an unregistered name."""
    for find in (subtask_named, by_method):
        try:
            return find(episode.sub_task)
        except InputError:
            continue
    return None


def domain_by_name(name: str) -> Domain | None:
    return domain(name) if any(one.name == name for one in domains()) else None


class EpisodeView:
    """Everything visible in one episode; each part is computed on first access."""

    def __init__(self, context: CheckContext, episode: Episode, certificate: JsonObject) -> None:
        self.context = context
        self.episode = episode
        self.task_id = episode.task_id
        self.subtask = _subtask_of(episode)
        self.domain = domain_by_name(episode.skill)
        self._certificate = certificate
        self.returned: dict[str, str] = {}
        """Tool results so far, as the texts that an agent gets, by query."""
        self._traces: dict[tuple[str, str], Trace] = {}

    @cached_property
    def full_input(self) -> dict[str, Any]:
        return self.context.edition.full_input(self.episode)

    @cached_property
    def label(self) -> Label:
        truth = self.context.edition.truth(self.task_id)
        return Label(self.episode, self.full_input, truth, self._certificate, self.context.shared.built)

    @cached_property
    def prompt(self) -> str:
        return task_prompt(self.episode, self.subtask.answer if self.subtask is not None else None)

    @cached_property
    def printed(self) -> dict[str, Any]:
        """The input as printed in the prompt: every field by name, abridged."""
        section = self.prompt.partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
        return orjson.loads(section[section.index("{") :])

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Every field that the prompt names, as `get_task_data` returns it; for facts see `_injected`."""
        return {name: self._read(name) for name in self.printed}

    def _read(self, field: str) -> Any:
        reference, filings = self.episode.input.get(field), self.context.edition.filings
        if filings is not None and refers_to_facts(reference):
            return self._injected(field, self._shown(field, filings.as_filed(reference)))
        held = self.full_input.get(field)
        return self._table(field, held) if isinstance(held, EpisodeTable) else self._shown(field, held)

    def _shown(self, field: str, held: object) -> Any:
        """Return one field as `get_task_data` returns it, or its parts if it is too long for one result."""
        found = self.call_tool("get_task_data", field=field)
        if "value" in found:
            return found["value"]
        whole = as_object(held)
        if not whole or "the limit is" not in str(found.get("error")):
            raise InputError(f"get_task_data refuses {field}: {found.get('error')}")
        return {key: self._read_part(f"{field}.{key}", part) for key, part in whole.items()}

    def _table(self, field: str, table: EpisodeTable) -> EpisodeTable:
        """Return a table after comparing its first and last pages in the tool with its content."""
        for first in {0, max(table.rows - MOST_ROWS, 0)}:
            shown = self.call_tool("read_table", table=field, first=first)
            if shown != orjson.loads(orjson.dumps(table.page(first))):
                raise InputError(f"read_table shows other rows of {field} than it holds")
        return table

    def _injected(self, field: str, filed: Mapping[str, Any]) -> Any:
        """Return facts by metric, as skill scripts get them.

        Raises `InputError` if a reported figure is neither an as-filed fact nor the sum that its tag names.
        """
        stated: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
        for row in filed["facts"]:
            stated[row["tag"], *(row[name] for name in _PERIOD)].append(row["value"])
        injected = self.full_input[field]
        for row in injected["facts"]:
            reported = [stated[tag, *(row[name] for name in _PERIOD)] for tag in row["tag"].split("+")]
            if not row["derived"] and not any(isclose(fsum(one), row["value"]) for one in product(*reported)):
                raise InputError(f"{field}: no tool shows the {row['metric']} of {row['end']} that scripts get")
        return injected

    def _read_part(self, path: str, part: object) -> Any:
        found = self.call_tool("get_task_data", field=path)
        if "value" in found:
            return found["value"]
        return [self.call_tool("get_task_data", field=f"{path}.{i}")["value"] for i in range(len(as_array(part)))]

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        subtask_specs = subtask_tools(self.episode.sub_task)
        return tool_specs(self.context.mounts[Condition.NO_SKILL], self.episode.skill, subtask_specs)

    def call_tool(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a harness tool and parse the text that an agent gets."""
        return orjson.loads(self._tool_answer(tool, arguments))

    def _tool_answer(self, tool: str, arguments: Mapping[str, Any]) -> str:
        call = ToolCall("1", tool, orjson.dumps(arguments).decode())
        answered, _ = self.context.loop.run_until_complete(self._toolbox.call(call, self.tools))
        self.returned[f"{tool}({', '.join(map(str, arguments.values()))})"] = answered
        return answered

    @cached_property
    def flat(self) -> FlatValues:
        """Leaves of `fields` by kind, without definitions and tables."""
        return flatten(
            {
                name: value
                for name, value in self.fields.items()
                if name != "conventions" and not isinstance(value, EpisodeTable)
            }
        )

    @cached_property
    def _toolbox(self) -> Toolbox:
        filings = self.context.edition.filings
        mounted = self.context.mounts[Condition.NO_SKILL]
        state = self.context.edition.open_interactive_state(self.episode)
        return Toolbox(self.episode, lambda: self.full_input, mounted, ToolServices(filings=filings), state=state)

    def queried(self) -> dict[str, str]:
        """Query facts of the episode's company, without filters and for the following year."""
        symbol = as_text(self.episode.input.get("symbol"))
        if symbol is None or self.domain is None or "query_xbrl" not in self.domain.tools:
            return {}
        first, *remaining = AXES
        queries = [
            {"axis": first, "limit": LARGEST_LIMIT},
            *({"axis": axis, "metrics": ["Revenues"], "limit": LARGEST_LIMIT} for axis in remaining),
            {"period": str(self.episode.as_of_date.year + 1)},
        ]
        tool = "query_xbrl"
        return {str(arguments): self._tool_answer(tool, {"ticker": symbol, **arguments}) for arguments in queries}

    def trace(self, program: str, condition: str = Condition.NO_SKILL) -> Trace:
        """Run a program on the episode through the real loop."""
        key = program, condition
        if key not in self._traces:
            spec = EpisodeSpec(
                self.episode,
                self.prompt,
                lambda: self.full_input,
                self.context.mounts[condition],
                open_state=lambda: self.context.edition.open_interactive_state(self.episode),
            )
            play = run_episode(get_model(program), spec, self.context.resources)
            self._traces[key] = self.context.loop.run_until_complete(play)
        return self._traces[key]

    def replayed(self, task_input: Mapping[str, Any]) -> dict[str, Any]:
        """Run the skill's script for the subtask on another input; raises `InputError` without a script or result."""
        packages = self.context.mounts[Condition.CURATED].packages_of(self.episode.skill)
        return followed(packages.values(), self.episode.sub_task, task_input)

    @property
    def profile(self) -> Profile:
        """The scoring profile: `certified`, or `paper` if a label carries no proof."""
        return Profile.CERTIFIED if self.label.truth.proof else Profile.PAPER

    def score(self, answer: object, profile: Profile | None = None) -> float:
        """Score an answer, given as JSON text or as a JSON value; invalid text scores 0."""
        return self.score_parsed(parse_answer(answer), profile or self.profile)

    def score_parsed(self, submission: JsonObject | None, profile: Profile) -> float:
        assert self.subtask is not None
        if submission is None:
            return 0.0
        return self.subtask.scorers[profile](submission, self.label.truth, self.full_input).value

    def scores(self, submission: JsonObject | None, profiles: Iterable[Profile]) -> dict[Profile, float]:
        """Score a submission under several profiles; profiles with the same scorer are evaluated once."""
        assert self.subtask is not None
        scorers = {profile: self.subtask.scorers[profile] for profile in profiles}
        one_of = {scorer: profile for profile, scorer in scorers.items()}
        found = {scorer: self.score_parsed(submission, profile) for scorer, profile in one_of.items()}
        return {profile: found[scorer] for profile, scorer in scorers.items()}

    def earned(self, program: str, condition: str = Condition.NO_SKILL) -> float:
        """Score a program's submission, with its action record in interactive episodes."""
        trace = self.trace(program, condition)
        submitted = parse_answer(trace.answer or "")
        if submitted is not None and trace.record is not None:
            submitted = {**submitted, RECORD: trace.record}
        return self.score_parsed(submitted, self.profile)


def parse_answer(answer: object) -> JsonObject | None:
    """Parse an answer, given as JSON text or as a JSON value; None if it is no submission."""
    return _parse_answer(answer if isinstance(answer, str) else orjson.dumps(answer).decode())


@lru_cache(maxsize=64)  # many cheats repeat across episodes, some with a thousand entries
def _parse_answer(answer: str) -> JsonObject | None:
    try:
        return parse_submission(answer)
    except InvalidSubmission:
        return None


def unresolved(value: object) -> str | None:
    """Return the unresolved reference in a field; None if the field holds its data."""
    return as_text(value.get("ref")) if is_object(value) else None


@dataclass(frozen=True, slots=True)
class _Outcome:
    ok: bool
    output: dict[str, Any] | None
    error: str | None


class Scripts:
    """A `finskillbench.harness.tools.toolbox.Runner`; each script is loaded once."""

    async def run(self, script: Path, payload: bytes) -> _Outcome:
        """Run `main` of a script on a JSON object; exceptions become the outcome's error."""
        try:
            return _Outcome(True, script_output(script, payload), None)
        except Exception as error:  # noqa: BLE001 - a script may raise anything, and the agent gets it as an error
            return _Outcome(False, None, f"{type(error).__name__}: {error}")

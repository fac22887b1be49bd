"""One episode as an agent meets it: the rendered prompt, what the real tools return, what programs answer."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import fsum, isclose
from pathlib import Path
from typing import Any, TypeVar, cast

import orjson

from finskillbench.domains import by_method, by_name, domain, domains
from finskillbench.domains.base import Domain, Subtask
from finskillbench.domains.checks.examination import Shared
from finskillbench.domains.examples import Label
from finskillbench.domains.interactive import RECORD
from finskillbench.domains.tables import MOST_ROWS, Table
from finskillbench.edition import Edition
from finskillbench.edition.checks.reads import Flat, flatten
from finskillbench.edition.store import read_manifest
from finskillbench.episode import Episode, JsonObject, Profile
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, Mount, mount
from finskillbench.harness.episode_state import EpisodeSpec, Resources
from finskillbench.harness.loop import run_episode
from finskillbench.harness.model import ToolCall, ToolSpec
from finskillbench.harness.models import get_model
from finskillbench.harness.programs.reference import find_recipe
from finskillbench.harness.prompts.compaction import refers_to_facts
from finskillbench.harness.prompts.compose import INPUT_SECTION, SCHEMA_SECTION, system_prompt, task_prompt
from finskillbench.harness.skills.loader import curated
from finskillbench.harness.tools.contracts import subtask_tools, tool_specs
from finskillbench.harness.tools.toolbox import Toolbox
from finskillbench.harness.trace import Trace
from finskillbench.panels.filings.query import AXES, LARGEST_LIMIT
from finskillbench.sandbox.child import encode_result
from finskillbench.scoring.strict_json import InvalidSubmission, parse_submission
from finskillbench.scoring.values import array, is_object, mapping, text

T = TypeVar("T")
_PERIOD = ("unit", "start", "end")
"""What a figure shares with the facts as filed that state it, beside their tags."""
REFERENCE, TRIVIAL, NOP = "baseline/reference", "baseline/trivial", "baseline/nop"


@dataclass(frozen=True, slots=True)
class Beside:
    """What an audit may look at beside the edition.

    other : an edition of another seed, for checks that try on one what they learned on the other.
    raw_dir : a collection of raw files, a witness of published labels.
    """

    other: Edition | None = None
    raw_dir: Path | None = None


def _opened(folder: Path) -> Edition:
    return Edition(folder, read_manifest(folder))


class Bench:
    """An edition on the bench: opened once per process, with the tools, packages and programs of the harness.

    Parameters
    ----------
    edition : loaded by `load_edition`.
    beside : what lies outside it.
    """

    def __init__(self, edition: Edition, beside: Beside) -> None:
        self.edition = edition
        self.other = beside.other
        self.shared = Shared(edition, beside.raw_dir)
        packages = curated()
        self.mounts: dict[str, Mount] = {
            condition: mount(condition, packages, {}) for condition in (Condition.NO_SKILL, Condition.CURATED)
        }
        self.loop = asyncio.new_event_loop()
        self._documents: dict[str, dict[str, str]] = {}
        self._made: dict[Hashable, object] = {}

    @classmethod
    def reopened(cls, edition: Path, other: Path | None, raw_dir: Path | None) -> Bench:
        """The bench of another process; the files were verified by the one that called `load_edition`."""
        return cls(_opened(edition), Beside(None if other is None else _opened(other), raw_dir))

    @cached_property
    def resources(self) -> Resources:
        """What programs need of the harness."""
        return Resources(runner=Scripts(), filings=self.edition.filings)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` makes, once for a key in this process."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    def documents(self, skill: str) -> dict[str, str]:
        """What every episode of a domain is given to read beside its task: skill documents, tools, system prompt."""
        if skill not in self._documents:
            mounted = self.mounts[Condition.CURATED].of(skill)
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
        """Stop the loop."""
        self.loop.close()


def _subtask_of(episode: Episode) -> Subtask | None:
    """The subtask of an episode; None for an imported one under a name that is not registered."""
    for find in (by_name, by_method):
        try:
            return find(episode.sub_task)
        except InputError:
            continue
    return None


def domain_by_name(name: str) -> Domain | None:
    """The domain of an episode; None where it is not registered."""
    return domain(name) if any(one.name == name for one in domains()) else None


class Seen:
    """One episode with all that can be seen of it; each part is made when it is first asked for."""

    def __init__(self, bench: Bench, episode: Episode, certificate: JsonObject) -> None:
        self.bench = bench
        self.episode = episode
        self.task_id = episode.task_id
        self.subtask = _subtask_of(episode)
        self.domain = domain_by_name(episode.skill)
        self._certificate = certificate
        self.returned: dict[str, str] = {}
        """What tools have returned so far, as the texts that an agent gets, by what was asked."""
        self._traces: dict[tuple[str, str], Trace] = {}

    @cached_property
    def full_input(self) -> dict[str, Any]:
        """The input with its references resolved, as the edition holds it."""
        return self.bench.edition.full_input(self.episode)

    @cached_property
    def label(self) -> Label:
        """The label with its certificate."""
        truth = self.bench.edition.truth(self.task_id)
        return Label(self.episode, self.full_input, truth, self._certificate, self.bench.shared.built)

    @cached_property
    def prompt(self) -> str:
        """The task prompt, the same in every condition."""
        return task_prompt(self.episode, self.subtask.answer if self.subtask is not None else None)

    @cached_property
    def printed(self) -> dict[str, Any]:
        """The input as the prompt prints it: every field by its name, abridged."""
        section = self.prompt.partition(INPUT_SECTION)[2].partition(SCHEMA_SECTION)[0]
        return orjson.loads(section[section.index("{") :])

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Every field that the prompt names, as `get_task_data` returns it; facts as of `_injected`."""
        return {name: self._read(name) for name in self.printed}

    def _read(self, field: str) -> Any:
        """One field as the answer is derived from it."""
        reference, filings = self.episode.input.get(field), self.bench.edition.filings
        if filings is not None and refers_to_facts(reference):
            return self._injected(field, self._shown(field, filings.as_filed(reference)))
        held = self.full_input.get(field)
        return self._table(field, held) if isinstance(held, Table) else self._shown(field, held)

    def _shown(self, field: str, held: object) -> Any:
        """One field as `get_task_data` returns it; where it is too long for one result, its parts."""
        found = self.ask("get_task_data", field=field)
        if "value" in found:
            return found["value"]
        whole = mapping(held)
        if not whole or "the limit is" not in str(found.get("error")):
            raise InputError(f"get_task_data refuses {field}: {found.get('error')}")
        return {key: self._read_part(f"{field}.{key}", part) for key, part in whole.items()}

    def _table(self, field: str, table: Table) -> Table:
        """A table, of which an agent is shown the pages: its first and its last are what it holds.

        Raises
        ------
        InputError : a page is not what the table holds.
        """
        for first in {0, max(table.rows - MOST_ROWS, 0)}:
            shown = self.ask("read_table", table=field, first=first)
            if shown != orjson.loads(orjson.dumps(table.page(first))):
                raise InputError(f"read_table shows other rows of {field} than it holds")
        return table

    def _injected(self, field: str, filed: Mapping[str, Any]) -> Any:
        """Facts by metric, as scripts of skills are given them, held to the facts as filed that an agent reads.

        Raises
        ------
        InputError : a figure that counts as reported is not filed, nor the sum of facts as filed that its tag names.
        """
        stated: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
        for row in filed["facts"]:
            stated[row["tag"], *(row[name] for name in _PERIOD)].append(row["value"])
        given = self.full_input[field]
        for row in given["facts"]:
            terms = [stated[tag, *(row[name] for name in _PERIOD)] for tag in row["tag"].split("+")]
            if not row["derived"] and not any(isclose(fsum(one), row["value"]) for one in product(*terms)):
                raise InputError(f"{field}: no tool shows the {row['metric']} of {row['end']} that scripts are given")
        return given

    def _read_part(self, path: str, part: object) -> Any:
        found = self.ask("get_task_data", field=path)
        if "value" in found:
            return found["value"]
        return [self.ask("get_task_data", field=f"{path}.{place}")["value"] for place in range(len(array(part)))]

    @cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools on offer without a skill."""
        own = subtask_tools(self.episode.sub_task)
        return tool_specs(self.bench.mounts[Condition.NO_SKILL], self.episode.skill, own)

    def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool of the harness returns, parsed from the text that an agent gets."""
        return orjson.loads(self._answered(tool, arguments))

    def _answered(self, tool: str, arguments: Mapping[str, Any]) -> str:
        call = ToolCall("1", tool, orjson.dumps(arguments).decode())
        answered, _ = self.bench.loop.run_until_complete(self._toolbox.call(call, self.tools))
        self.returned[f"{tool}({', '.join(map(str, arguments.values()))})"] = answered
        return answered

    @cached_property
    def flat(self) -> Flat:
        """The leaves of `fields` by kind, without the definitions, which are no data, and without tables."""
        return flatten(
            {
                name: value
                for name, value in self.fields.items()
                if name != "conventions" and not isinstance(value, Table)
            }
        )

    @cached_property
    def _toolbox(self) -> Toolbox:
        filings = self.bench.edition.filings
        mounted = self.bench.mounts[Condition.NO_SKILL]
        stage = self.bench.edition.stage(self.episode)
        return Toolbox(self.episode, lambda: self.full_input, mounted, filings=filings, stage=stage)

    def queried(self) -> dict[str, str]:
        """What `query_xbrl` returns of the episode's company, where the domain has it: everything, and the future."""
        symbol = text(self.episode.input.get("symbol"))
        if symbol is None or self.domain is None or "query_xbrl" not in self.domain.tools:
            return {}
        first, *others = AXES
        asked = [
            {"axis": first, "limit": LARGEST_LIMIT},
            *({"axis": axis, "metrics": ["Revenues"], "limit": LARGEST_LIMIT} for axis in others),
            {"period": str(self.episode.as_of_date.year + 1)},
        ]
        tool = "query_xbrl"
        return {str(arguments): self._answered(tool, {"ticker": symbol, **arguments}) for arguments in asked}

    def trace(self, program: str, condition: str = Condition.NO_SKILL) -> Trace:
        """A program playing the episode through the real loop."""
        key = program, condition
        if key not in self._traces:
            given = EpisodeSpec(
                self.episode,
                self.prompt,
                lambda: self.full_input,
                self.bench.mounts[condition],
                open_state=lambda: self.bench.edition.stage(self.episode),
            )
            play = run_episode(get_model(program), given, self.bench.resources)
            self._traces[key] = self.bench.loop.run_until_complete(play)
        return self._traces[key]

    def replayed(self, task_input: Mapping[str, Any]) -> dict[str, Any]:
        """What the script that the skill's document names makes of another input than the episode's.

        Raises
        ------
        InputError : no document names a script, or the script refuses the input.
        """
        runner = self.bench.resources.runner
        assert runner is not None
        for package in self.bench.mounts[Condition.CURATED].packages_of(self.episode.skill).values():
            recipe = find_recipe(package.body, self.episode.sub_task)
            if recipe is not None:
                payload = orjson.dumps({name: task_input[name] for name in recipe.fields if name in task_input})
                outcome = self.bench.loop.run_until_complete(runner.run(package.root / recipe.script, payload))
                if outcome.output is None:
                    raise InputError(f"{recipe.script}: {outcome.error}")
                return {key: outcome.output.get(key) for key in recipe.keys}
        raise InputError(f"no document of {self.episode.skill} names a script for {self.episode.sub_task}")

    @property
    def profile(self) -> Profile:
        """The profile that scores are judged by: `certified`, or `paper` where a label carries no proof."""
        return Profile.CERTIFIED if self.label.truth.proof else Profile.PAPER

    def score(self, answer: object, profile: Profile | None = None) -> float:
        """The score of an answer, given as JSON text or as a JSON value; text that is no submission scores 0."""
        return self.score_parsed(parsed(answer), profile or self.profile)

    def score_parsed(self, submission: JsonObject | None, profile: Profile) -> float:
        """The score of what `parsed` made of an answer."""
        assert self.subtask is not None
        if submission is None:
            return 0.0
        return self.subtask.scorers[profile](submission, self.label.truth, self.full_input).value

    def scores(self, submission: JsonObject | None, profiles: Iterable[Profile]) -> dict[Profile, float]:
        """The same under several profiles; what two of them judge alike is judged once."""
        assert self.subtask is not None
        scorers = {profile: self.subtask.scorers[profile] for profile in profiles}
        one_of = {scorer: profile for profile, scorer in scorers.items()}
        found = {scorer: self.score_parsed(submission, profile) for scorer, profile in one_of.items()}
        return {profile: found[scorer] for profile, scorer in scorers.items()}

    def earned(self, program: str, condition: str = Condition.NO_SKILL) -> float:
        """The score of what a program submitted, and did where the episode is played move by move."""
        trace = self.trace(program, condition)
        submitted = parsed(trace.answer or "")
        if submitted is not None and trace.record is not None:
            submitted = {**submitted, RECORD: trace.record}
        return self.score_parsed(submitted, self.profile)


def parsed(answer: object) -> JsonObject | None:
    """An answer, given as JSON text or as a JSON value, as the judge parses it; None where it is no submission."""
    return _parsed(answer if isinstance(answer, str) else orjson.dumps(answer).decode())


@lru_cache(maxsize=64)  # many cheats are the same in every episode, some of them a thousand entries long
def _parsed(answer: str) -> JsonObject | None:
    try:
        return parse_submission(answer)
    except InvalidSubmission:
        return None


def unresolved(value: object) -> str | None:
    """What a field refers to and nothing serves; None where it holds its data."""
    return text(value.get("ref")) if is_object(value) else None


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a script gave; see `finskillbench.harness.tools.toolbox.ScriptOutcome`."""

    ok: bool
    output: dict[str, Any] | None
    error: str | None


class Scripts:
    """A `finskillbench.harness.tools.toolbox.Runner`; each script is loaded once."""

    def __init__(self) -> None:
        self._mains: dict[Path, Callable[[dict[str, Any]], object]] = {}

    async def run(self, script: Path, payload: bytes) -> _Outcome:
        """Run `main` of a script on the JSON of an object; whatever it raises is its error."""
        try:
            if script not in self._mains:
                self._mains[script] = runpy.run_path(str(script))["main"]
            return _Outcome(True, json.loads(encode_result(self._mains[script](orjson.loads(payload)))), None)
        except Exception as error:  # noqa: BLE001 - a script may raise anything, and the agent is told
            return _Outcome(False, None, f"{type(error).__name__}: {error}")

"""Serve tool calls of one episode. A call never raises: failures are returned as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from json import JSONDecoder
from pathlib import Path
from typing import Any, Protocol

import orjson

from finskillbench.domains.interactive import InteractiveState, InvalidActionError
from finskillbench.domains.tables import EpisodeTable, dump, refers_to_table
from finskillbench.episode import Episode, JsonObject
from finskillbench.errors import FinSkillBenchError
from finskillbench.harness.conditions import Mount
from finskillbench.harness.model import ToolCall, ToolSpec
from finskillbench.harness.prompts.compaction import refers_to_facts
from finskillbench.harness.skills.loader import REFERENCES, SkillPackage, WrittenSkills, script_path
from finskillbench.harness.skills.user_skills import EMPTY, MAX_SAVED_SKILLS, Memory, skill_problem
from finskillbench.harness.tools.contracts import (
    MAX_RESULT_CHARS,
    READS_DATA,
    NoSkillsError,
    ToolError,
    UnknownToolError,
    parse_arguments,
    shorten,
)
from finskillbench.harness.tools.interpreters import CodeResult
from finskillbench.harness.trace import CallOutcome
from finskillbench.redaction import logger
from finskillbench.scoring.values import is_array, is_object

TaskData = Callable[[], Mapping[str, Any]]
"""Returns the episode's input at full precision; called only when a tool needs it."""

_LOG = logger(__name__)


class ScriptOutcome(Protocol):
    """Result of a script runner; fields as in `finskillbench.sandbox.runner.ScriptResult`."""

    @property
    def ok(self) -> bool: ...
    @property
    def output(self) -> dict[str, Any] | None: ...
    @property
    def error(self) -> str | None: ...


class Runner(Protocol):
    """Interface for running a package's script, as `finskillbench.sandbox.runner.ScriptRunner`."""

    async def run(self, script: Path, payload: bytes) -> ScriptOutcome: ...


class _Interpreter(Protocol):
    async def run(
        self, code: str, names: Mapping[str, Any], files: Mapping[str, str], packages: Iterable[SkillPackage]
    ) -> CodeResult: ...


class Filings(Protocol):
    """Interface of `query_xbrl`: facts public by `as_of_date`, and the filed facts of an input's reference."""

    def query(self, arguments: Mapping[str, Any], *, episode: Episode) -> Mapping[str, Any]: ...
    def as_filed(self, reference: Mapping[str, Any]) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ToolServices:
    """Services that tools use.

    runner : runs skill scripts; required if the condition grants scripts.
    interpreter : runs the agent's own code; required if the condition grants it.
    filings : serves `query_xbrl`; None if the episode has no filings.
    scratch_root : parent of the scratch folder for saved skills; None: the system's.
    """

    runner: Runner | None = None
    interpreter: _Interpreter | None = None
    filings: Filings | None = None
    scratch_root: Path | None = None


class Toolbox:
    """Tools of one episode under one mounted condition.

    Parameters
    ----------
    services : services that its tools use.
    memory : skills saved in earlier episodes, for the persistent condition.
    state : state of an interactive episode; it serves the subtask's own tools.
    data_calls : limit of calls that read data; None: no limit.
    """

    def __init__(
        self,
        episode: Episode,
        task_data: TaskData,
        mounted: Mount,
        services: ToolServices = ToolServices(),
        *,
        memory: Memory = EMPTY,
        state: InteractiveState | None = None,
        data_calls: int | None = None,
    ) -> None:
        self._episode, self._task_data, self._state = episode, task_data, state
        self.data_calls_left = data_calls
        self._mounted, self._services = mounted, services
        self._files: Mapping[str, str] = {}
        self._written = WrittenSkills(services.scratch_root, memory.skills)
        self._loaded, self._by_name_only = mounted.preloaded(episode.skill), False
        self.answer: str | None = None
        self.skills_loaded: list[str] = []
        self.scripts_run: list[str] = []

    def close(self) -> None:
        """Remove the episode's scratch folder, if any."""
        self._written.close()

    @property
    def record(self) -> JsonObject | None:
        """Return the actions so far in an interactive episode, None for others."""
        return None if self._state is None else self._state.record

    @property
    def saved_skills(self) -> dict[str, str]:
        """Return the texts of the agent's own skills by name; read them before `close`."""
        return self._written.texts

    @property
    def loadable(self) -> list[str]:
        """Return the sorted names that `load_skill` accepts now: mounted documents and the agent's own skills."""
        return sorted({*self._mounted.loadable, *self._written.names})

    @property
    def runnable(self) -> list[str]:
        """Return the scripts that `run_skill_script` accepts now, as "package/scripts/x.py"."""
        return [f"{name}/{script}" for name, package in self._loaded.items() for script in package.scripts]

    async def call(self, call: ToolCall, offered: Sequence[ToolSpec]) -> tuple[str, CallOutcome]:
        """Serve one call; return its result as JSON text and its outcome. A submission sets `answer`."""
        try:
            spec = next((tool for tool in offered if tool.name == call.name), None)
            if spec is None:
                known = [tool.name for tool in offered]
                raise UnknownToolError(f"there is no tool {shorten(call.name)!r} on this turn", tools=known)
            result = await self._serve(spec, call.arguments)
            text = dump(result).decode()
            if len(text) > MAX_RESULT_CHARS:
                raise ToolError(
                    f"the result has {len(text)} characters, the limit is {MAX_RESULT_CHARS}; request a part of it"
                )
            return text, "ok"
        except ToolError as error:
            return orjson.dumps(error.payload).decode(), error.outcome
        except InvalidActionError as refused:
            return orjson.dumps({"error": str(refused)}).decode(), "tool_failed"
        except FinSkillBenchError as error:
            _LOG.debug("%s: %s failed", self._episode.task_id, call.name, exc_info=True)
            return orjson.dumps({"error": str(error)}).decode(), "tool_failed"
        except Exception as error:  # noqa: BLE001 - tools never raise into the loop
            _LOG.warning("%s: %s failed", self._episode.task_id, shorten(call.name), exc_info=True)
            # The system's error messages contain paths of this machine.
            reason = error.strerror or "" if isinstance(error, OSError) else str(error)
            text = f"{type(error).__name__}: {shorten(reason, 300)}"
            return orjson.dumps({"error": text}).decode(), "tool_failed"

    async def _serve(self, spec: ToolSpec, text: str) -> Any:
        arguments = parse_arguments(spec, text)
        self._count(spec.name)
        match spec.name:
            case "submit_answer":
                answer = arguments["answer"]
                self.answer = answer if isinstance(answer, str) else _member_text(text, "answer")
                return {"status": "submitted"}
            case "load_skill":
                return self._load_skill(arguments["skill_name"])
            case "load_references":
                return self._load_references(**arguments)
            case "get_task_data":
                return {"field": arguments["field"], "value": self._field(arguments["field"])}
            case "read_table":
                return self._table(arguments.pop("table")).page(**arguments)
            case "query_xbrl":
                if self._services.filings is None:
                    raise ToolError("this episode has no filings; use get_task_data")
                return self._services.filings.query(arguments, episode=self._episode)
            case "run_skill_script":
                return await self._run_script(**arguments)
            case "run_python":
                return await self._run_python(arguments["code"])
            case "save_skill":
                return self._save_skill(**arguments)
            case name if self._state is not None:
                return self._state.call(name, arguments)
            case _:
                raise ToolError(f"tool {spec.name!r} is declared but not served; please report it")

    def _count(self, tool: str) -> None:
        if self.data_calls_left is None or tool not in READS_DATA:
            return
        if not self.data_calls_left:
            raise ToolError("all data calls of the budget are used; work with the data that you have read")
        self.data_calls_left -= 1

    def _load_skill(self, name: str) -> dict[str, Any]:
        package = self._find(name)
        self.mark_loaded(name)
        if package is None:
            return {"skill_name": name, "content": self._written.read(name)}
        found: dict[str, Any] = {"skill_name": name, "content": package.body}
        found["references"] = {reference: len(text) for reference, text in sorted(package.references.items())}
        return found | ({"scripts": list(package.scripts)} if self._mounted.arm.scripts else {})

    def allow_scripts(self) -> None:
        """Allow the scripts of all mounted packages, for an agent that reads their documents as files."""
        if self._mounted.arm.scripts:
            self._loaded, self._by_name_only = dict(self._mounted.loadable), True

    def mark_loaded(self, name: str) -> None:
        """Record that the agent has read a document of the skill, so that its scripts can be run."""
        package = self._mounted.loadable.get(name)
        if package is not None and self._mounted.arm.scripts:
            self._loaded.pop(name, None)
            self._loaded[name] = package
        if name not in self.skills_loaded:
            self.skills_loaded.append(name)

    def _load_references(self, skill_name: str, file: str | None = None) -> dict[str, Any]:
        package = self._find(skill_name)
        references = dict(package.references) if package is not None else {}
        if file is not None:
            name = file if file.startswith(REFERENCES) else REFERENCES + file
            if name not in references:
                raise ToolError(f"skill {skill_name!r} has no reference {shorten(file)!r}", references=list(references))
            references = {name: references[name]}
        self.mark_loaded(skill_name)
        return {"skill_name": skill_name, "references": references}

    def _find(self, name: str) -> SkillPackage | None:
        """Return the mounted package called `name`, None for a skill of the agent."""
        if not self.loadable:
            raise NoSkillsError
        if name not in self.loadable:
            raise ToolError(f"skill {shorten(name)!r} not found", available=self.loadable)
        return self._mounted.loadable.get(name)

    def _current_input(self) -> Mapping[str, Any]:
        return self._task_data() if self._state is None else {**self._task_data(), **self._state.fields}

    def _table(self, field: str) -> EpisodeTable:
        found = self._current_input().get(field)
        if not isinstance(found, EpisodeTable):
            tables = [name for name, value in self._current_input().items() if isinstance(value, EpisodeTable)]
            raise ToolError(f"{shorten(field)!r} is not a table of the task", tables=tables)
        return found

    def _field(self, path: str) -> Any:
        if refers_to_table(stored := self._episode.input.get(path)):
            return {"rows": stored["rows"], "columns": stored["columns"], "read_with": "read_table"}
        data = self._readable(path.partition(".")[0])
        if path in data:
            return data[path]
        value: Any = data
        for key in path.split("."):
            if is_object(value) and key in value:
                value = value[key]
            elif is_array(value) and key.isascii() and key.isdigit() and int(key[:9]) < len(value):
                value = value[int(key[:9])]
            else:
                raise ToolError(f"there is no field {shorten(path)!r}", fields=list(data))
        return value

    def _readable(self, field: str) -> Mapping[str, Any]:
        """Return the input as an agent reads it: facts as filed, since only scripts receive derived ones."""
        reference = self._episode.input.get(field)
        if self._services.filings is None or not refers_to_facts(reference):
            return self._current_input()
        return {**self._episode.input, field: self._services.filings.as_filed(reference)}

    @cached_property
    def _initial_fields(self) -> dict[str, Any]:
        return {field: self._readable(field)[field] for field in self._task_data()}

    @property
    def _visible_fields(self) -> dict[str, Any]:
        return self._initial_fields if self._state is None else {**self._initial_fields, **self._state.fields}

    async def _run_script(
        self, script_path: str, input_data: dict[str, Any] | None = None, inject_task_fields: Sequence[str] = ()
    ) -> dict[str, Any]:
        if not self._loaded:
            raise ToolError("no skill is loaded; load one first", available=self.loadable)
        skill, script = self._resolve(script_path)
        payload = dict(input_data or {})
        if inject_task_fields:
            data = self._current_input()
            unknown = [name for name in inject_task_fields if name not in data]
            if unknown:
                raise ToolError(f"there is no field {shorten(unknown[0])!r} to inject", fields=list(data))
            payload.update({name: data[name] for name in inject_task_fields})
        if self._services.runner is None:
            raise ToolError("scripts cannot be run here")
        self.scripts_run.append(f"{skill.name}/{script.relative_to(skill.root).as_posix()}")
        outcome = await self._services.runner.run(script, dump(payload))
        if not outcome.ok:
            raise ToolError(outcome.error or "the script failed without a message", script=script_path)
        return {"script": script_path, "output": outcome.output}

    async def _run_python(self, code: str) -> dict[str, Any]:
        if self._services.interpreter is None:
            raise ToolError("code cannot be run here")
        ran = await self._services.interpreter.run(
            code, {"task": self._visible_fields}, self._files, reversed(self._loaded.values())
        )
        self._files = ran.files
        result = {
            "printed": ran.printed,
            "files": sorted(ran.files),
            **({"note": ran.files_notice} if ran.files_notice else {}),
        }
        if ran.error is not None:
            raise ToolError(ran.error, **result)
        return {"value": ran.value, **result}

    def _resolve(self, relative: str) -> tuple[SkillPackage, Path]:
        """Return the loaded package and the file of a script; without a package name the last loaded match."""
        before = relative.partition("/")[0]
        named = self._loaded.get(before)
        if named is None and before in self._mounted.loadable:
            raise ToolError(f"skill {before!r} is not loaded; load it first", loaded=list(self._loaded))
        found: list[tuple[SkillPackage, Path]] = []
        problems: list[FinSkillBenchError] = []
        for package in (named,) if named is not None else reversed(self._loaded.values()):
            try:
                found.append((package, script_path(package, relative.removeprefix(f"{package.name}/"))))
            except FinSkillBenchError as error:
                problems.append(error)
        if found and (len(found) == 1 or not self._by_name_only):
            return found[0]
        if found:
            names = sorted(package.name for package, _ in found)
            raise ToolError(f"{shorten(relative)!r} is in several skills; name one as SKILL/{relative}", skills=names)
        scripts = {name: list(package.scripts) for name, package in self._loaded.items()}
        raise ToolError(str(problems[0]), scripts=scripts)

    def _save_skill(self, skill_name: str, content: str) -> dict[str, Any]:
        if problem := skill_problem(skill_name, content):
            raise ToolError(problem)
        if skill_name not in self._written.names and len(self._written.names) >= MAX_SAVED_SKILLS:
            raise ToolError(f"{MAX_SAVED_SKILLS} skills are saved already; save under one of their names to replace it")
        self._written.save(skill_name, content)
        return {"status": "saved", "skills": self._written.names}


def _member_text(text: str, key: str) -> str:
    """Return the original text of the last member `key` of the JSON object in `text`.

    Serializing a parsed value would repair duplicate keys and digits that the scorer must see.
    """
    decode = JSONDecoder().raw_decode
    found = ""
    at = _skip_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = decode(text, at)
        at = _skip_space(text, text.index(":", at) + 1)
        _, end = decode(text, at)
        if name == key:
            found = text[at:end]
        at = _skip_space(text, end)
        if text[at] == ",":
            at = _skip_space(text, at + 1)
    return found


def _skip_space(text: str, at: int) -> int:
    while text[at] in " \t\n\r":
        at += 1
    return at

"""Plays a procedure of a case through the tools' own functions, with everything passed on as JSON."""

from __future__ import annotations

import importlib.util
import json
from datetime import date
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.interactive import Procedure
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.episode import Disclosure, JsonObject
from finskillbench_desk.disclosure import PlannedCase
from finskillbench_desk.domain import SKILLS
from finskillbench_desk.forensic_screen.subtask import law_task, screening_task

SCRIPTS = SKILLS[2] / "scripts"


@lru_cache(maxsize=8)
def task(tier: str, seed: int) -> BuiltTask:
    return screening_task(np.random.default_rng(seed), seed, tier, date(2023, 6, 30))


@lru_cache(maxsize=8)
def undisclosed(structure: str, disclosure: Disclosure, seed: int, tier: str = "medium") -> BuiltTask:
    case = PlannedCase(seed, disclosure, structure, tier)
    return law_task(np.random.default_rng(seed), case, structure, date(2023, 6, 30))


def full_input(made: BuiltTask) -> dict[str, Any]:
    """The input at full precision, tables opened and all else as it reads back from a file."""
    stored = json.loads(json.dumps(made.episode.input))
    return {name: EpisodeTable(made.tables[name]) if name in made.tables else value for name, value in stored.items()}


@cache
def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def play(made: BuiltTask, procedure: Procedure) -> JsonObject:
    fields = full_input(made)
    playing = procedure()
    asks = next(playing)
    while True:
        results = [json.loads(json.dumps(_served(ask.tool, ask.arguments, fields), allow_nan=False)) for ask in asks]
        try:
            asks = playing.send(results)
        except StopIteration as done:
            return done.value


def _served(tool: str, arguments: JsonObject, fields: dict[str, Any]) -> dict[str, Any]:
    if tool == "get_task_data":
        value: Any = fields
        for key in arguments["field"].split("."):
            value = value[key]
        return {"value": value}
    if tool == "read_table":
        return dict(fields[arguments["table"]].page(rows=arguments["rows"]))
    if tool == "load_skill":
        return {}
    injected = {name: fields[name] for name in arguments["inject_task_fields"]}
    payload = json.loads(dump({**arguments["input_data"], **injected}))
    return {"output": script(Path(arguments["script_path"]).stem)(payload)}

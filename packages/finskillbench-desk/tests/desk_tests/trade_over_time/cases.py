"""Cases without an edition: worlds of an invented market, and a player of procedures on the scripts and the stage."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from finskillbench.domains.building import BuiltTask
from finskillbench.domains.interactive import InvalidActionError
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.episode import Disclosure, Score
from finskillbench_desk.disclosure import PlannedCase
from finskillbench_desk.domain import SKILLS
from finskillbench_desk.market import ListedName
from finskillbench_desk.trade_over_time.generate import draw_trading_world
from finskillbench_desk.trade_over_time.interactive import certified, open_state
from finskillbench_desk.trade_over_time.subtask import SUBTASK, law_task, trading_task
from finskillbench_desk.trade_over_time.world import TIERS, TradingWorld

MARKET = tuple(ListedName(f"N{place:03d}", "any", f"Industry {place // 10:02d}", core=False) for place in range(120))
DAYS = (date(2024, 1, 31), date(2024, 2, 29))


def world_of(tier: str, seed: int) -> TradingWorld:
    """A world of a tier."""
    names = [each.symbol for each in MARKET], [each.industry for each in MARKET]
    return draw_trading_world(*names, TIERS[tier], np.random.default_rng([11, seed]))


@cache
def case(tier: str, seed: int) -> BuiltTask:
    """A case of a tier, built once."""
    return trading_task(np.random.default_rng([13, seed]), MARKET, tier, seed, DAYS)


@cache
def law_case(structure: str, seed: int, level: Disclosure = "described") -> BuiltTask:
    """A case of a structure whose law is not disclosed, built once."""
    planned = PlannedCase(seed, level, structure, list(TIERS)[seed % len(TIERS)])
    return law_task(np.random.default_rng([15, seed]), MARKET, planned, DAYS)


def full_input(task: BuiltTask) -> dict[str, Any]:
    """The input of a case at full precision."""
    return {**task.episode.input, **{name: EpisodeTable(frame) for name, frame in task.tables.items()}}


@cache
def script(name: str) -> Any:
    """The entry of a script of the package, loaded from its file as the sandbox does."""
    path = SKILLS[0] / "scripts" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def through_json(value: Any) -> Any:
    """A value as it comes out of a tool."""
    return orjson.loads(dump(value))


def judged(task: BuiltTask, record: Mapping[str, Any]) -> Score:
    """The score of a record."""
    return certified({"decisions": 12, "record": through_json(record)}, task.truth, {})


@cache
def played(tier: str, seed: int, procedure: str) -> tuple[Score, int]:
    """The score of a procedure of the subtask in a case, and the turns that it took with the answer."""
    return play(case(tier, seed), procedure)


def play(task: BuiltTask, procedure: str) -> tuple[Score, int]:
    """The score and turns of a procedure in a case that was built."""
    given = full_input(task)
    stage = open_state(given, task.hidden or {})
    playing = SUBTASK.interactive.procedures[procedure]()
    asks, turns = next(playing), 1
    while True:
        results: list[Any] = []
        for ask in asks:
            now, arguments = {**given, **stage.fields}, ask.arguments
            if ask.tool == "get_task_data":
                results.append({"value": now[arguments["field"]]})
            elif ask.tool == "run_skill_script":
                fields = {name: now[name] for name in arguments["inject_task_fields"]}
                payload = through_json({**arguments["input_data"], **fields})
                results.append({"output": script(Path(arguments["script_path"]).name)(payload)})
            elif ask.tool == "load_skill":
                results.append({})
            else:
                try:
                    results.append(stage.call(ask.tool, through_json(arguments)))
                except InvalidActionError as error:
                    results.append({"error": str(error)})
        turns += 1
        try:
            asks = playing.send(through_json(results))
        except StopIteration:
            return judged(task, stage.record), turns

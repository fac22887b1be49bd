"""Cases of the allocation desk as an edition would hold them, drawn once for a whole test run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import orjson

from finskillbench.domains.examples import Label
from finskillbench.domains.interactive import Procedure, ProcedureCall
from finskillbench.domains.tables import EpisodeTable, dump
from finskillbench.episode import Disclosure, Episode, Profile, Score, Truth
from finskillbench_desk.allocate import SUBTASK, allocation_certificate, allocation_tables, input_of, label_of
from finskillbench_desk.allocate.cases import AllocationCase, draw_allocation_case
from finskillbench_desk.allocate.prompts import LAW_PROMPT, PROMPT, source_log
from finskillbench_desk.allocate.sources import TIERS
from finskillbench_desk.domain import SKILLS
from finskillbench_desk.market import INDUSTRIES

NAMES = [(f"N{place:03d}", INDUSTRIES[place // 10]) for place in range(120)]
TASK = "dk_al_01_test"


@dataclass(frozen=True)
class Played:
    """A case with what an agent is given and how it is judged."""

    case: AllocationCase
    data: dict[str, Any]
    truth: Truth
    label: Label[Any]

    def score(self, answer: Any) -> Score:
        return SUBTASK.scorers[Profile.CERTIFIED](answer, self.truth, self.data)

    def baseline(self, name: str) -> Score:
        return self.score(orjson.loads(orjson.dumps(run_procedure(SUBTASK.interactive.procedures[name], self.serve))))

    def serve(self, ask: ProcedureCall) -> Any:
        """What the harness returns for a call, without the sandbox."""
        arguments = ask.arguments
        if ask.tool == "get_task_data":
            value: Any = self.data
            for key in arguments["field"].split("."):
                value = value[key]
            return {"field": arguments["field"], "value": value}
        if ask.tool == "read_table":
            return self.data[arguments["table"]].page()
        if ask.tool == "load_skill":
            return {}
        given = {name: self.data[name] for name in arguments["inject_task_fields"]}
        output = script(arguments["script_path"])(orjson.loads(dump({**arguments["input_data"], **given})))
        return {"script": arguments["script_path"], "output": orjson.loads(orjson.dumps(output))}

    def weights(self, vector: Any) -> dict[str, Any]:
        return {"weights": dict(zip(self.case.world.book.tickers, map(float, vector), strict=True))}


def run_procedure(procedure: Procedure, serve: Any) -> Any:
    """Run a procedure, with `serve` answering its tool calls."""
    playing = procedure()
    try:
        requests = next(playing)
        while True:
            requests = playing.send([serve(request) for request in requests])
    except StopIteration as done:
        return done.value


@cache
def script(path: str) -> Any:
    """The `main` of a script of the package for trading."""
    scope: dict[str, Any] = {"__name__": "script"}
    source = (SKILLS[0].parent / path).read_text(encoding="utf-8")
    exec(compile(source, path, "exec"), scope)
    return scope["main"]


@cache
def played(number: int, tier: str = "", seed: int = 5) -> Played:
    """Case `number` of a seed, its tier by turns unless it is named."""
    rng = np.random.default_rng([seed, number])
    return _played(rng, draw_allocation_case(rng, NAMES, None, tier or list(TIERS)[number % len(TIERS)]), "full")


def played_law(structure: str = "market_change_break", disclosure: Disclosure = "described") -> Played:
    """A case of a structure whose law is not disclosed."""
    return _played_law(structure, disclosure)


@cache
def _played_law(structure: str, disclosure: Disclosure) -> Played:
    case = _law_case(structure)
    return _played(np.random.default_rng(0), case, disclosure)


@cache
def _law_case(structure: str) -> AllocationCase:
    return draw_allocation_case(np.random.default_rng([7, len(structure)]), NAMES, structure, "medium")


def _played(rng: np.random.Generator, case: AllocationCase, disclosure: Disclosure) -> Played:
    frames = allocation_tables(case)
    given = input_of(TASK, case, frames, source_log(rng, case), disclosure)
    data: dict[str, Any] = {**given, **{name: EpisodeTable(frame) for name, frame in frames.items()}}
    truth = label_of(TASK, case)
    stored = orjson.loads(orjson.dumps([truth.expected_output, SUBTASK.verification.for_label(truth.verification)]))
    truth = Truth(TASK, SUBTASK.name, *stored, proof=truth.proof)
    prompt = PROMPT if disclosure == "full" else LAW_PROMPT
    episode = Episode(TASK, "desk", SUBTASK.name, date(2025, 1, 31), "easy", given, prompt)
    certificate = orjson.loads(orjson.dumps(allocation_certificate(case)))
    return Played(case, data, truth, Label(episode, data, truth, certificate))

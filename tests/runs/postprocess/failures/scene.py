"""An episode as a scripted model plays it: it knows the label, and does what its recipe says.

Nothing of what looks for failures is used here: which script a task has, and what its label's parts are, is written
down a second time.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.runs.execute.backend import prepare_episode

PC, RM, FA = "portfolio-construction", "risk-management", "fundamental-analysis"
_OPTIMISE = ("expected_returns", "covariance_matrix", "risk_free_rate", "objective", "risk_aversion", "constraints")
_LIMITS = ("benchmark_weights", "current_portfolio", "sector_mapping", "factor_exposures")
_TRADES = ("current_portfolio", "sector_mapping", "trading_costs_bps", "min_trade", "required_improvement")
_FILING = ("symbol", "period_end", "form_type", "filing_facts")
SCRIPTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "unconstrained_optimization": (PC, "scripts/optimize.py", _OPTIMISE),
    "constrained_optimization": (PC, "scripts/optimize.py", (*_OPTIMISE, *_LIMITS)),
    "rebalancing": (PC, "scripts/rebalance.py", (*_OPTIMISE, *_TRADES)),
    "black_litterman": (
        PC,
        "scripts/black_litterman.py",
        ("market_cap_weights", "covariance_matrix", "risk_free_rate", "analyst_views", "risk_aversion", "tau"),
    ),
    "infeasibility_detection": (
        PC,
        "scripts/feasibility.py",
        ("constraints", "limit_to_relax", "covariance_matrix", *_LIMITS),
    ),
    "tool_use_parameterization": (PC, "scripts/read_mandate.py", ("scenario_description", "sectors")),
    "constraint_monitoring": (
        RM,
        "scripts/check_mandate.py",
        ("portfolio", "mandate", "sector_mapping", "factor_exposures", "benchmark_weights", "covariance_matrix"),
    ),
    "risk_identification": (
        RM,
        "scripts/risk_report.py",
        (
            *("portfolio", "sector_mapping", "factor_exposures", "average_daily_volume_usd", "factor_volatility"),
            *("benchmark_weights", "covariance_matrix"),
        ),
    ),
    "stress_testing": (
        RM,
        "scripts/stress_test.py",
        (
            *("portfolio", "stress_scenario", "sector_mapping", "factor_exposures", "benchmark_weights"),
            *("average_daily_volume_usd", "covariance_matrix"),
        ),
    ),
    "risk_remediation": (
        RM,
        "scripts/remediate.py",
        (
            *("portfolio", "mandate", "trading_terms", "sector_mapping", "factor_exposures", "benchmark_weights"),
            "covariance_matrix",
        ),
    ),
    "normalization": (FA, "scripts/normalize.py", _FILING),
    "earnings_quality": (FA, "scripts/earnings_quality.py", _FILING),
    "driver_decomposition": (
        FA,
        "scripts/drivers.py",
        ("symbol", "current_period_end", "prior_period_end", "filing_facts"),
    ),
}

Step = Callable[[Sequence[Message]], Turn]


@dataclass
class Scene:
    """One episode under one recipe; `must` collects what the recipe did wrong, `may` what nobody can deny of it."""

    episode: Episode
    right: dict[str, Any]
    task_input: dict[str, Any]
    draw: random.Random
    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)
    answer: Any = None

    @property
    def skill(self) -> str:
        return SCRIPTS[self.episode.sub_task][0]

    @property
    def script(self) -> str:
        return SCRIPTS[self.episode.sub_task][1]

    @property
    def fields(self) -> list[str]:
        return [name for name in SCRIPTS[self.episode.sub_task][2] if name in self.task_input]

    def read(self) -> Step:
        """Every field of the task in one turn."""
        return turn(*(("get_task_data", {"field": name}) for name in self.episode.input))

    def load(self, name: str | None = None) -> Step:
        return turn(("load_skill", {"skill_name": name or self.skill}))

    def run(self, fields: Sequence[str] | None = None, script: str | None = None, **typed: Any) -> Step:
        fields = [name for name in self.fields if name not in typed] if fields is None else list(fields)
        arguments = {"script_path": script or self.script, "input_data": typed, "inject_task_fields": fields}
        return turn(("run_skill_script", arguments))

    def submit(self, answer: Any) -> Step:
        """Hand in; what of its parts is right and what is not is held against the label."""
        self.answer = answer
        if isinstance(answer, dict):
            right, given = parts(self.right), parts(answer)
            same = {key for key in right if key in given and plain(given[key]) == plain(right[key])}
            if same and any(value is not None and given.get(key) is None for key, value in right.items()):
                self.must.add("partial_answer")
        return handed_in(answer)

    def submit_output(self) -> Step:
        """Hand in what the last script returned; where it failed the label, with every number off."""

        def step(messages: Sequence[Message]) -> Turn:
            for message in reversed(messages):
                if message.role == "tool" and '"output"' in message.content:
                    output = orjson.loads(message.content.partition("\n")[0])["output"]
                    answer = {key: output.get(key) for key in self.right}
                    if all(value is None or value == [] for value in answer.values()):
                        self.must.add("empty_answer")  # the script says that there is nothing
                        self.must.discard("wrong_period")
                    return handed_in(answer)(messages)
            self.must.discard("wrong_period")  # a guess is of no period
            return handed_in(off(self.right, self.draw))(messages)

        self.may.add("partial_answer")
        return step


Recipe = Callable[[Scene], list[Step] | None]
"""The turns of a scene, or None where the subtask has nothing to do so wrongly."""


class Scripted:
    """A model that plays one recipe on every episode, and keeps the scenes by task and condition."""

    def __init__(self, name: str, recipe: Recipe, edition: Edition, seed: int = 0) -> None:
        self.name = f"scripted/{name}"
        self.recipe, self.edition, self.seed = recipe, edition, seed
        self.scenes: dict[str, Scene] = {}
        self._plays: dict[str, tuple[str, list[Step]]] = {}

    def study(self, episodes: Sequence[Episode]) -> list[str]:
        """Write the play of each episode; the tasks on which the recipe can be played."""
        for episode in episodes:
            truth = self.edition.truth(episode.task_id)
            scene = Scene(
                episode,
                copied(truth.expected_output),
                self.edition.full_input(episode),
                random.Random(f"{self.name} {episode.task_id} {self.seed}"),
            )
            steps = self.recipe(scene)
            if steps is not None:
                self._plays[prepare_episode(self.edition, episode).prompt] = episode.task_id, steps
                self.scenes[episode.task_id] = scene
        return list(self.scenes)

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        prompt = next(message.content for message in messages if message.role == "user")
        task = next((each for text, each in self._plays.items() if prompt.startswith(text)), None)
        if task is None:
            return handed_in({})(messages)
        number = sum(message.role == "assistant" for message in messages)
        steps = task[1]
        made = steps[number](messages) if number < len(steps) else Turn("I have said all.")
        return Turn(made.text, made.tool_calls, Usage(input_tokens=1_000, output_tokens=100, cost_usd=0.0))


def turn(*calls: tuple[str, dict[str, Any]]) -> Step:
    made = Turn(
        tool_calls=tuple(ToolCall(f"c{i}", name, orjson.dumps(given).decode()) for i, (name, given) in enumerate(calls))
    )
    return lambda messages: made


def handed_in(answer: Any) -> Step:
    text = answer if isinstance(answer, str) else orjson.dumps(answer).decode()
    return turn(("submit_answer", {"answer": text}))


def parts(answer: dict[str, Any]) -> dict[str, Any]:
    """The top-level keys, or those of the only object that is no map of tickers."""
    for key in ("metrics", "optimizer_call"):
        if key in answer and isinstance(answer[key], dict):
            return answer[key]
    return answer


def plain(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def copied(value: Any) -> Any:
    return copy.deepcopy(orjson.loads(orjson.dumps(value)))


def floats(value: Any, change: Callable[[float], float]) -> Any:
    """A copy with every number that is written with a point changed."""
    if isinstance(value, dict):
        return {key: floats(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [floats(item, change) for item in value]
    return change(value) if isinstance(value, float) else value


def off(value: Any, draw: random.Random) -> Any:
    """A copy with every such number off by 7 to 60 %, in its own direction."""
    return floats(value, lambda number: number * (1 + draw.choice((-1, 1)) * draw.uniform(0.07, 0.6)))


def points(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        for item in value.values():
            yield from points(item)
    elif isinstance(value, list):
        for item in value:
            yield from points(item)
    elif isinstance(value, float):
        yield value

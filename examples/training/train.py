"""Improve a small policy by rewards of training episodes; print scores before and after on other splits.

    python examples/training/train.py

The policy answers `unconstrained_optimization`. It reads a task by `get_task_data` and never its truth. Its weights are
the softmax of logits that begin at 0 (equal weights). In each of `ROUNDS` rounds, features of the names, multiplied by
parameters of the objective, are added to the logits. Evolution strategies change the parameters: each draw plays a
training task with a perturbation and its negative, and the difference of the two raw rewards is its advantage.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from finskillbench.analysis.intervals import estimate_means
from finskillbench.arrays import Floats
from finskillbench.episode import Reward
from finskillbench.harness.environment import TaskSource
from finskillbench.harness.model import ToolCall
from finskillbench.integrations.environments import BlockingEnvironment, SeedTasks
from finskillbench.splits import Split

SUBTASK = "unconstrained_optimization"
FIELDS = ("objective", "expected_returns", "covariance_matrix", "risk_aversion")
FEATURES = ("return", "marginal variance", "aversion x marginal variance", "inverse variance", "weight")
ROUNDS, SCALE = 120, 20.0
"""Rounds of an answer, and the factor of features, which are fractions."""
SIGMA, RATE = 0.15, 0.15
"""Standard deviation of perturbations, and root mean square of the first update."""
EPISODES = 40
"""Most tasks of an edition."""
EDITIONS = {Split.TRAIN: 1, Split.VALIDATION: 1, Split.TEST_SEED: 2, Split.TEST_TEMPLATE: 2}
Parameters = Mapping[str, Floats]


class Gain(NamedTuple):
    """Mean reward before and after training, and its gain with 95 % interval; `reward` is score or raw."""

    reward: str
    before: float
    after: float
    gain: float
    low: float
    high: float


def weights_of(data: Mapping[str, Any], theta: Floats) -> dict[str, float]:
    """Return the policy's weights by ticker, for the parameters of the task's objective."""
    names, covariance = data["covariance_matrix"]["tickers"], np.array(data["covariance_matrix"]["matrix"])
    returns = np.array([data["expected_returns"][name] for name in names])
    inverse = 1.0 / covariance.diagonal()
    logits, weights = np.zeros(len(names)), np.full(len(names), 1.0 / len(names))
    for _ in range(ROUNDS):
        slope = covariance @ weights
        features = np.array([returns, slope, data["risk_aversion"] * slope, inverse / inverse.sum(), weights])
        logits = logits + SCALE * theta @ features
        weights = np.exp(logits - logits.max())
        weights /= weights.sum()
    return dict(zip(names, weights.tolist(), strict=True))


class Player:
    """Plays episodes of a source with the policy."""

    def __init__(self, source: TaskSource) -> None:
        self._environment = BlockingEnvironment(source)

    def play(self, task: str, parameters: Parameters, perturbation: float | Floats = 0.0) -> tuple[str, Reward]:
        """Play an episode; return its objective and reward."""
        self._environment.reset(task)
        calls = [ToolCall(field, "get_task_data", json.dumps({"field": field})) for field in FIELDS]
        texts = [message.content.split("\n")[0] for message in self._environment.step(*calls).messages]
        data = {field: json.loads(text)["value"] for field, text in zip(FIELDS, texts, strict=True)}
        theta = parameters.get(data["objective"], np.zeros(len(FEATURES))) + perturbation
        reward = self._environment.submit({"weights": weights_of(data, theta)})
        assert reward is not None
        return data["objective"], reward


def train(source: TaskSource, tasks: Sequence[str], steps: int, batch: int, seed: int) -> Parameters:
    """Return parameters by objective after some steps, each with a batch of antithetic pairs of episodes."""
    rng, player, parameters = np.random.default_rng(seed), Player(source), dict[str, Floats]()
    for step in range(steps):
        gradients, rewards = dict[str, list[Floats]](), list[float]()
        for task in rng.choice(tasks, batch):
            draw = rng.standard_normal(len(FEATURES))
            objective, better = player.play(task, parameters, SIGMA * draw)
            _, worse = player.play(task, parameters, -SIGMA * draw)
            gradients.setdefault(objective, []).append((better.raw - worse.raw) * draw)
            rewards += [better.raw, worse.raw]
        for objective, each in gradients.items():
            mean = np.mean(each, axis=0)
            change = RATE * (1.0 - step / steps) * mean / max(float(np.sqrt((mean**2).mean())), 1e-9)
            parameters[objective] = parameters.get(objective, np.zeros(len(FEATURES))) + change
        if step % max(1, steps // 10) == 0:
            print(f"step {step:4}  mean raw reward of the batch {np.mean(rewards):+.3f}", flush=True)
    return parameters


def compare(source: TaskSource, tasks: Sequence[str], parameters: Parameters) -> list[Gain]:
    """Return the gains of score and raw reward; tasks of one month share prices and form a cluster."""
    player, clusters = Player(source), ["_".join(task.split("_")[:3]) for task in tasks]
    pairs = [(player.play(task, {})[1], player.play(task, parameters)[1]) for task in tasks]
    gains = list[Gain]()
    for name, largest in (("score", 1.0), ("raw", 2.0)):
        before, after = np.array([[getattr(each, name) for each in pair] for pair in pairs]).T
        frame = pl.DataFrame({"sub_task": SUBTASK, "cluster": clusters, "gain": after - before})
        table = estimate_means(frame, "gain", bounds=(-largest, largest)).select("mean", "low", "high")
        gains.append(Gain(name, float(before.mean()), float(after.mean()), *table.row(0)))
    return gains


def main() -> None:
    """Train, and print the gains on tasks of every split; editions that are missing are built in the user's cache."""
    parser = argparse.ArgumentParser(description="Improve a small policy by rewards of training episodes.")
    parser.add_argument("--seed", type=int, default=1, help="seed of draws and perturbations")
    parser.add_argument("--steps", type=int, default=300, help="updates of the parameters")
    parser.add_argument("--batch", type=int, default=48, help="pairs of episodes of an update")
    options = parser.parse_args()
    sources = {split: SeedTasks(split=split, subtasks=[SUBTASK], episodes=EPISODES) for split in EDITIONS}
    tasks = {
        split: sorted({sources[split].task_of(place) for place in range(number * EPISODES)})
        for split, number in EDITIONS.items()
    }
    parameters = train(sources[Split.TRAIN], tasks[Split.TRAIN], options.steps, options.batch, options.seed)
    for objective, theta in sorted(parameters.items()):
        print(f"{objective:12}", "  ".join(f"{name} {x:+.2f}" for name, x in zip(FEATURES, theta, strict=True)))
    print(f"{'split':14}{'reward':>7}{'tasks':>6}{'before':>8}{'after':>8}{'gain':>8}  95 % interval")
    for split, source in sources.items():
        for gain in compare(source, tasks[split], parameters):
            print(
                f"{split:14}{gain.reward:>7}{len(tasks[split]):6}{gain.before:8.3f}{gain.after:8.3f}{gain.gain:+8.3f}"
                f"  {gain.low:+.3f} to {gain.high:+.3f}"
            )
        source.close()


if __name__ == "__main__":
    main()

"""Errors of short forms of 120 episodes on simulated populations of models.

Run: python benchmarks/short_form.py [--edition DIR] [--draws N]

Subtasks, difficulties and shared objects are those of an edition's full-run protocol. A model solves a part of an
answer with the logistic probability of (ability - difficulty) times discrimination. Abilities are per model, with
deviations by subtask, condition and shared object; subtask means under the three conditions are near those of the
paper's table 4. A score is the share of solved parts: PARTS assumes how many independent parts the scorers of each
subtask see; "all or nothing" has one everywhere, the most noise a score can have. Episodes may end without an answer,
with score 0: in the paper 21 % do, and two of nine models rarely answer. Here it is a fifth, mostly of few models
("few silent") or of all alike ("all silent"), or none ("none silent"). "stronger" tests models two standard deviations
above those of the short form.

Errors are of the overall score of models that took no part in the choice, for short forms chosen from 12, 20 and 40
models, for `run --sample 120`, and for simple random samples of 120 episodes. "covered" is the share of errors within
the 95 % interval that the short form states, "stated" the root mean square error that it states.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, stdtrit

from finskillbench.analysis.short_form import MAX_EPISODES, choose_weights, equal_weights, held_out_errors
from finskillbench.arrays import Floats, Integers
from finskillbench.domains import cluster_of, subtask_named
from finskillbench.edition import load_edition
from finskillbench.episode import Episode
from finskillbench.runs.plan.items import choose_episodes
from finskillbench.runs.plan.streams import default_edition

PARTS = {
    "tool_use_parameterization": 3,
    "rebalancing": 2,
    "black_litterman": 2,
    "constraint_monitoring": 3,
    "risk_identification": 3,
    "stress_testing": 2,
    "normalization": 3,
    "earnings_quality": 5,
    "driver_decomposition": 3,
}
MEANS = {  # no skill, curated, self-generated
    "unconstrained_optimization": (0.247, 0.719, 0.236),
    "constrained_optimization": (0.148, 0.505, 0.127),
    "tool_use_parameterization": (0.803, 0.872, 0.831),
    "rebalancing": (0.183, 0.451, 0.164),
    "black_litterman": (0.153, 0.375, 0.147),
    "constraint_monitoring": (0.597, 0.775, 0.651),
    "risk_identification": (0.023, 0.332, 0.055),
    "stress_testing": (0.017, 0.281, 0.027),
    "risk_remediation": (0.438, 0.558, 0.478),
    "normalization": (0.681, 0.678, 0.638),
    "earnings_quality": (0.436, 0.535, 0.474),
    "driver_decomposition": (0.256, 0.322, 0.249),
}
LABELS = {"easy": 0.6, "medium": 0.0, "hard": -0.6}
MODELS = (12, 20, 40)
NEW = 20
WITHIN, WANTED = 0.03, 0.95


class Silence(NamedTuple):
    """Logit-normal rate of episodes without an answer: mean, deviations by model and subtask; share answered."""

    mean: float
    models: float
    subtasks: float
    answered: float


FEW, ALL, NONE = Silence(-2.2, 2.0, 0.7, 0.9), Silence(-1.6, 0.8, 0.8, 0.79), Silence(-99.0, 0.0, 0.0, 1.0)


class Scenario(NamedTuple):
    """A population of models; `whole` scores are 0 or 1, `stronger` is added to the ability of new models."""

    name: str
    conditions: int = 3
    silence: Silence = FEW
    whole: bool = False
    stronger: float = 0.0


SCENARIOS = (
    Scenario("several parts, few silent"),
    Scenario("several parts, all silent", silence=ALL),
    Scenario("several parts, none silent", silence=NONE),
    Scenario("all or nothing, few silent", whole=True),
    Scenario("several parts, few silent, stronger", stronger=2.0),
    Scenario("several parts, few silent", conditions=1),
    Scenario("all or nothing, few silent", conditions=1, whole=True),
)


def population(episodes: list[Episode], models: int, scenario: Scenario, rng: np.random.Generator) -> Floats:
    """Return scores of the shape (models + NEW, conditions, episodes); the last NEW models are new ones."""
    subtask = np.unique([each.sub_task for each in episodes], return_inverse=True)[1]
    cluster = np.unique([cluster_of(each) for each in episodes], return_inverse=True)[1]
    count, silence = models + NEW, scenario.silence

    def deviations(deviation: float, conditions: int, groups: Integers) -> Floats:
        return rng.normal(0, deviation, (count, conditions, groups.max() + 1))[:, :, groups]

    ability = rng.normal(0, 1, (count, 1, 1)) + deviations(0.6, 1, subtask)
    ability = ability + deviations(0.4, scenario.conditions, subtask) + deviations(0.4, scenario.conditions, cluster)
    ability[models:] += scenario.stronger
    means = np.array([MEANS[each.sub_task][: scenario.conditions] for each in episodes]).T
    level = 1.6 * logit(np.minimum(0.95, means / silence.answered))
    easiness = np.array([LABELS.get(each.difficulty, 0.0) for each in episodes]) + rng.normal(0, 1.2, len(episodes))
    chance = expit(1.2 * np.exp(rng.normal(0, 0.3, len(episodes))) * (ability + level + easiness))
    silent = silence.mean + rng.normal(0, silence.models, (count, 1, 1)) + deviations(silence.subtasks, 1, subtask)
    parts = np.array([1 if scenario.whole else PARTS.get(each.sub_task, 1) for each in episodes])
    return (rng.random(chance.shape) > expit(silent)) * rng.binomial(parts, chance) / parts


def sampled(episodes: list[Episode], subtasks: Integers, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return weights of the episodes of `run --sample`, and of a simple random sample of as many."""
    names = {each.task_id for each in choose_episodes(episodes, sample=MAX_EPISODES)}
    chosen = np.array([each.task_id in names for each in episodes], dtype=float)
    simple = np.zeros(len(episodes))
    simple[rng.choice(len(episodes), MAX_EPISODES, replace=False)] = 1.0
    simple *= equal_weights(subtasks)
    return chosen / np.bincount(subtasks, chosen)[subtasks] / (subtasks.max() + 1), simple / simple.sum()


def simulate(episodes: list[Episode], scenario: Scenario, draws: int) -> list[float]:
    """Return shares within WITHIN of short form, sample and simple sample, coverage, error and stated error."""
    subtasks = np.unique([each.sub_task for each in episodes], return_inverse=True)[1]
    errors: list[Floats] = []
    covered: list[np.floating] = []
    stated: list[float] = []
    for models in MODELS:
        for draw in range(draws):
            rng = np.random.default_rng((models, draw))
            scores = population(episodes, models, scenario, rng)
            overall = scores.mean(axis=1)
            weights = [choose_weights(overall[:models], subtasks), *sampled(episodes, subtasks, rng)]
            errors.append(np.array([overall[models:] @ (each - equal_weights(subtasks)) for each in weights]))
            stated.append(float(np.mean(held_out_errors(scores[:models], subtasks).mean(axis=1) ** 2)))
            covered.append(np.mean(np.abs(errors[-1][0]) <= stdtrit(models, 0.975) * stated[-1] ** 0.5))
    joined = np.concatenate(errors, axis=1)
    within = (np.abs(joined) <= WITHIN).mean(axis=1)
    return [*within, float(np.mean(covered)), float(np.mean(joined[0] ** 2) ** 0.5), float(np.mean(stated) ** 0.5)]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--draws", type=int, default=20, help="populations for each number of models (default 20)")
    arguments = parser.parse_args()
    edition = load_edition(arguments.edition or default_edition(print)).part("paper")
    episodes = [each for each in choose_episodes(edition.episodes()) if subtask_named(each.sub_task).headline]
    tested = len(MODELS) * arguments.draws * NEW
    print(
        f"{len(episodes)} episodes; {tested:,} new models a line; short forms from {', '.join(map(str, MODELS))} models"
    )
    print(f"\n{'':<49}share within {WITHIN}            short form")
    header = "conditions  short form  --sample  simple  covered  error  stated"
    print(f"{'population':<36}{header}  at least {WANTED:.0%}")
    for scenario in SCENARIOS:
        short, sample, simple, covered, error, stated = simulate(episodes, scenario, arguments.draws)
        cells = f"{scenario.conditions:>10}  {short:>10.1%}  {sample:>8.1%}  {simple:>6.1%}  {covered:>7.1%}"
        print(f"{scenario.name:<36}{cells}  {error:.3f}  {stated:>6.3f}  {'yes' if short >= WANTED else 'no'}")


if __name__ == "__main__":
    main()

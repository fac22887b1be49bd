"""Item statistics of episodes, and short forms: few episodes that estimate the overall score.

The overall score of a model is its mean over conditions of the unweighted mean over the headline's subtasks. A short
form is a stratified sample: each subtask's episodes are sorted by difficulty and cut into as many bins of equal size as
it gets episodes, and the episode nearest to the bin's mean difficulty represents it. (The episode on which models score
most like on the whole bin would be biased towards low scores, which vary less.) Numbers of episodes by subtask minimise
the sampling variance (Neyman 1934; Wright 2012 for whole numbers).

Episodes chosen from models' scores fit these models best (Zhang, Dorner & Hardt 2025, arXiv 2506.07673). So the error
is that of models left out of both the choice and the estimate; it does not hold for better models than these.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import polars as pl
from scipy.special import stdtrit

from finskillbench.analysis.results import LEAST, Results
from finskillbench.arrays import Floats, Integers
from finskillbench.episode import Profile
from finskillbench.errors import InputError

MIN_MODELS = 10
MAX_EPISODES = 120
OVERALL = "overall"
_LEAST_EPISODES = 4
"""Least number of episodes of a subtask, since a new model's scores may vary where those of other models do not."""
_KEYS = ("model", "harness")


@dataclass(frozen=True, slots=True)
class Population:
    """Models with complete runs under the same conditions; programs do not count.

    `episodes` has `episode` and `sub_task`, sorted by subtask; `subtasks` numbers the latter. `scores` has the shape
    (models, conditions, episodes); a missing score is replaced by the mean of the other models. `known` counts, per
    episode, the models with all scores.
    """

    conditions: tuple[str, ...]
    episodes: pl.DataFrame
    subtasks: Integers
    scores: Floats
    known: Integers


def population_of(results: Results) -> Population:
    """Return the models whose runs are complete: with a score for 95 % of the headline's episodes.

    Episodes are those with a score in at least half of the runs; runs with less than half as many episodes as the
    longest, such as samples and runs of a short form, are left out. Conditions with at least ten complete models count,
    or else those with the most. Raises `InputError` if there is no complete model.
    """
    scored = results.episodes.filter("headline", ~pl.col("program"))
    length = pl.len().over(*_KEYS, "condition")
    scored = scored.filter(length >= length.max() / 2)
    runs = max(1, scored.select(*_KEYS, "condition").n_unique())
    scored = scored.filter(pl.len().over("episode") >= runs / 2)
    episodes = scored.select("episode", "sub_task").unique().sort("sub_task", "episode")
    complete = scored.group_by(*_KEYS, "condition").len().filter(pl.col("len") >= LEAST * episodes.height)
    counts = complete.group_by("condition").len()
    chosen = counts.filter(pl.col("len") >= pl.min_horizontal(pl.max("len"), pl.lit(MIN_MODELS)))["condition"]
    conditions = tuple(name for name in results.conditions if name in set(chosen))
    models = complete.filter(pl.col("condition").is_in(conditions)).group_by(_KEYS).len()
    models = models.filter(pl.col("len") == len(conditions)).select(_KEYS).sort(_KEYS)
    if models.is_empty():
        raise InputError("item statistics: no language model has scores for 95 % of the episodes; finish a run first")
    grid = models.join(pl.DataFrame({"condition": conditions}), how="cross").join(episodes, how="cross")
    keys = [*_KEYS, "condition", "episode"]
    filled = grid.join(scored.select(*keys, "score"), on=keys, how="left", maintain_order="left")
    shape = (models.height, len(conditions), episodes.height)
    known = filled["score"].is_not_null().to_numpy().reshape(shape).all(axis=1).sum(axis=0)
    others = pl.col("score").mean().over("condition", "episode")
    scores = filled.select(pl.col("score").fill_null(others).fill_null(0.0)).to_numpy().reshape(shape)
    subtasks = episodes["sub_task"].rank("dense").to_numpy().astype(np.int64) - 1
    return Population(conditions, episodes, subtasks, scores, known)


def item_statistics(population: Population) -> pl.DataFrame:
    """Describe each episode by the mean scores of models over conditions.

    Returns `episode`, `sub_task`, `models` (with all its scores), `difficulty` (mean score), `discrimination`
    (corrected point-biserial: correlation with the mean of the other episodes), `redundancy` (largest correlation with
    another episode of the subtask), `redundant_with` (which), and `flag`. Correlations are null for fewer than three
    models and for episodes on which all models are equal.
    """
    scores, subtasks = population.scores.mean(axis=1), population.subtasks
    unit = _standardised(scores)
    discrimination = (unit * _standardised(scores.sum(axis=1, keepdims=True) - scores)).mean(axis=0)
    related = unit.T @ unit / len(scores)
    others = (subtasks[:, None] == subtasks) & ~np.eye(subtasks.size, dtype=bool) & ~np.isnan(related)
    related = np.where(others, related, -2.0)
    redundancy = np.where(others.any(axis=0), related.max(axis=0), np.nan)
    names = population.episodes["episode"].gather(related.argmax(axis=0).tolist())
    conditions = [(scores == 0.0).all(axis=0), (scores == 1.0).all(axis=0), discrimination < 0.0]
    return population.episodes.with_columns(
        models=pl.Series(population.known, dtype=pl.Int64),
        difficulty=pl.Series(scores.mean(axis=0)),
        discrimination=pl.Series(discrimination).fill_nan(None),
        redundancy=pl.Series(redundancy).fill_nan(None),
        redundant_with=pl.when(pl.Series(others.any(axis=0))).then(names),
        flag=pl.Series(np.select(conditions, ["all 0", "all 1", "negative discrimination"], "").tolist()),
    )


def _standardised(scores: Floats) -> Floats:
    """Standardise columns; NaN where models are equal or fewer than three."""
    centred = scores - scores.mean(axis=0)
    deviation = np.sqrt((centred**2).mean(axis=0))
    return centred / np.where((deviation > 1e-12) & (len(scores) > 2), deviation, np.nan)


def choose_weights(scores: Floats, subtasks: Integers, count: int = MAX_EPISODES) -> Floats:
    """Return a weight for each episode: 0 if not chosen; the weights of a subtask add to 1 / number of subtasks.

    Parameters
    ----------
    scores : of the shape (models, episodes). subtasks : from 0, by episode.
    count : episodes to choose, at least one for each subtask.
    """
    sizes = np.bincount(subtasks)
    members = [np.nonzero(subtasks == subtask)[0] for subtask in range(sizes.size)]
    spreads = np.array([_residual_variance(scores[:, each]) for each in members]) + 1e-6
    counts = np.minimum(min(_LEAST_EPISODES, count // sizes.size), sizes)
    for _ in range(min(count, scores.shape[1]) - int(counts.sum())):
        counts[np.argmax(np.where(counts < sizes, spreads / (counts * (counts + 1)), -1.0))] += 1
    difficulty, weights = scores.mean(axis=0), np.zeros(scores.shape[1])
    for each, wanted in zip(members, counts, strict=True):
        by_difficulty = each[np.argsort(difficulty[each], kind="stable")]
        for group in np.array_split(by_difficulty, wanted):
            nearest = np.abs(difficulty[group] - difficulty[group].mean()).argmin()
            weights[group[nearest]] = group.size / (each.size * sizes.size)
    return weights


def _residual_variance(scores: Floats) -> float:
    """Return the variance that neither models nor episodes explain (two-way layout without repeats)."""
    rest = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    return float((rest**2).mean())


def held_out_errors(scores: Floats, subtasks: Integers, count: int = MAX_EPISODES) -> Floats:
    """Return estimate less true score of each model and condition, from episodes chosen without that model.

    Parameters
    ----------
    scores : of the shape (models, conditions, episodes). Others : as in `choose_weights`.
    """
    overall = scores.mean(axis=1)
    weights = [choose_weights(np.delete(overall, model, axis=0), subtasks, count) for model in range(len(scores))]
    return np.einsum("mce,me->mc", scores, np.array(weights) - equal_weights(subtasks))


def equal_weights(subtasks: Integers) -> Floats:
    """Return the weight of each episode in the unweighted mean over subtasks."""
    sizes = np.bincount(subtasks)
    return 1.0 / (sizes[subtasks] * sizes.size)


class Accuracy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Accuracy of estimates of one score: root mean square error of models left out, half of the width of the 95 %
    t interval from these errors, and the range of the models' scores.
    """

    error: float
    half_width: float
    lowest_score: float
    highest_score: float


class ShortForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A short form of an edition.

    `models` and `subtasks` are the numbers of models it was chosen from and of subtasks, `accuracy` is by condition and
    for `OVERALL`, `weights` by task id.
    """

    edition: str
    profile: Profile
    models: int
    subtasks: int
    accuracy: dict[str, Accuracy]
    weights: Annotated[dict[str, Annotated[float, msgspec.Meta(gt=0, le=1)]], msgspec.Meta(min_length=1)]

    @property
    def conditions(self) -> list[str]:
        return [name for name in self.accuracy if name != OVERALL]


def read_short_form(path: Path) -> ShortForm:
    """Read a short form; raise `InputError` if the file is not one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ShortForm)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(f"{path}: not a short form ({error}); make one with finskillbench short-form") from None


def make_short_form(results: Results, count: int = MAX_EPISODES) -> ShortForm:
    """Choose a short form of `count` episodes.

    Raises `InputError` for several editions, fewer than ten complete models, or a `count` below the number of subtasks
    or not below the number of episodes.
    """
    if results.rows["edition"].n_unique() > 1:
        raise InputError("short form: the rows have several editions; give runs of one edition")
    found = population_of(results)
    if (models := len(found.scores)) < MIN_MODELS:
        under = f"{models} models have complete runs under {', '.join(found.conditions)}"
        raise InputError(f"short form: {under}, but it needs {MIN_MODELS}; use run --sample {count} instead")
    subtasks, size = int(found.subtasks.max()) + 1, found.episodes.height
    if not subtasks <= count < size:
        raise InputError(f"short form: of {size} episodes, {count} were requested; choose {subtasks} to {size - 1}")
    scores = np.concatenate([found.scores.mean(axis=1, keepdims=True), found.scores], axis=1)
    weights = choose_weights(scores[:, 0], found.subtasks, count)
    truth = scores @ equal_weights(found.subtasks)
    errors = np.sqrt((held_out_errors(scores, found.subtasks, count) ** 2).mean(axis=0))
    figures = np.array([errors, stdtrit(models, 0.975) * errors, truth.min(axis=0), truth.max(axis=0)])
    names = (OVERALL, *found.conditions)
    return ShortForm(
        edition=str(results.rows["edition"][0]),
        profile=results.profile,
        models=models,
        subtasks=subtasks,
        accuracy={name: Accuracy(*each) for name, each in zip(names, figures.T.tolist(), strict=True)},
        weights={name: float(each) for name, each in zip(found.episodes["episode"], weights, strict=True) if each},
    )


def short_form_estimates(results: Results, form: ShortForm) -> pl.DataFrame:
    """Estimate the scores of language models from the episodes of a short form.

    Returns `model`, `harness`, `condition` (or `OVERALL`, if all conditions of the form were run), `episodes` (with a
    score) and `estimate`, without those that lack scores of a whole subtask or have other episodes of the headline.
    """
    weights = pl.DataFrame({"episode": list(form.weights), "weight": list(form.weights.values())})
    short = pl.col("episode").is_in(list(form.weights)).all().over(_KEYS)
    scored = results.episodes.filter("headline", ~pl.col("program")).filter(short)
    scored = scored.join(weights, on="episode", maintain_order="left")
    mean = (pl.col("score") * pl.col("weight")).sum() / pl.col("weight").sum()
    of_subtasks = scored.group_by(*_KEYS, "condition", "sub_task", maintain_order=True).agg(mean, episodes=pl.len())
    means = (pl.sum("episodes").cast(pl.Int64), pl.mean("score").alias("estimate"), pl.len().alias("parts"))
    found = of_subtasks.group_by(*_KEYS, "condition", maintain_order=True).agg(means)
    found = found.filter(pl.col("parts") == form.subtasks)
    known = found.filter(pl.col("condition").is_in(form.conditions)).rename({"estimate": "score"}).drop("parts")
    overall = known.group_by(_KEYS, maintain_order=True).agg(pl.lit(OVERALL).alias("condition"), *means)
    return pl.concat([overall.filter(pl.col("parts") == len(form.conditions)), found]).drop("parts")

"""Forecast calls, tokens and cost of a run from an earlier run or from published figures.

Totals are counts times means. A median describes a single episode better, but sums depend on means: an episode that
continues to its last turn reads its input again on each. Baseline programs make no model calls and cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.edition import Edition
from finskillbench.episode import Status
from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition, arm_of, mount_all
from finskillbench.harness.model import Usage
from finskillbench.harness.models import BASELINES, ModelKey, allowance_of, labels
from finskillbench.harness.providers.prices import NO_CHARGE, Price, PriceTable
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.skills.user_skills import NO_USER_SKILLS, UserSkills
from finskillbench.harness.trace import BUILTIN_HARNESS
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.plan.streams import Shard, extend_streams, make_streams, missing
from finskillbench.runs.store import record
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import Row


@dataclass(frozen=True, slots=True)
class Amount:
    """Model calls, tokens and their price in US dollars (None: unknown)."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None

    def __add__(self, other: Amount) -> Amount:
        """Sum; its price is known only if both prices are."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return Amount(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


def amount(
    calls: float, input_tokens: float, output_tokens: float, price: Price | None, cached_tokens: float = 0.0
) -> Amount:
    """Return calls and tokens with their price; `cached_tokens` is the part of the input from a provider's cache."""
    usage = Usage(
        input_tokens=round(input_tokens),
        cached_tokens=min(round(cached_tokens), round(input_tokens)),
        output_tokens=round(output_tokens),
    )
    cost = None if price is None else price.cost(usage)
    return Amount(round(calls), round(input_tokens), round(output_tokens), cost)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected usage of some episodes with lower and upper bound; `basis` describes its source."""

    expected: Amount
    low: Amount
    high: Amount
    basis: str = ""

    def capped(self, max_output_tokens: int, price: Price | None) -> Forecast:
        """Return the forecast with output limited to `max_output_tokens`."""
        expected, low, high = (_cut(each, max_output_tokens, price) for each in (self.expected, self.low, self.high))
        return Forecast(expected, low, high, self.basis)

    def __add__(self, other: Forecast) -> Forecast:
        """Sum of values and of bounds, since errors of both may coincide."""
        return Forecast(self.expected + other.expected, self.low + other.low, self.high + other.high)


def _cut(used: Amount, max_output_tokens: int, price: Price | None) -> Amount:
    over = max(0, used.output_tokens - max_output_tokens)
    saved = 0.0 if price is None else price.cost(Usage(output_tokens=over))
    cost = None if used.cost_usd is None else used.cost_usd - saved
    return Amount(used.calls, used.input_tokens, used.output_tokens - over, cost)


class _Published(NamedTuple):
    median: int
    mean: int
    turns: float


PUBLISHED: Mapping[Condition, _Published] = {
    Condition.NO_SKILL: _Published(19_952, 38_783, 7.46),
    Condition.CURATED: _Published(22_546, 35_378, 7.30),
    Condition.SELF_GENERATED: _Published(40_034, 63_606, 9.29),
}
OUTPUT_SHARE, MIN_OUTPUT_SHARE, MAX_OUTPUT_SHARE = 0.1, 0.05, 0.2
"""Share of output among all tokens; the paper does not report it. Reasoning models have the largest."""
SPREAD = 2.0
"""Factor below the published median and above the mean that bounds a single model; the paper has no such figures."""
DEVIATIONS = 2.0
"""Width of the forecast in standard errors of an earlier run."""


def nearest_published_condition(condition: str) -> Condition:
    """Return the published condition that is most similar to a condition."""
    arm = arm_of(condition)
    if arm.own:
        return Condition.SELF_GENERATED
    return Condition.CURATED if arm.mounts_packages else Condition.NO_SKILL


def published_forecast(condition: str, episodes: int, max_calls: int, price: Price | None) -> Forecast:
    """Forecast usage of an unknown model from the paper; `max_calls` limits the model calls of an episode."""
    found = PUBLISHED[nearest_published_condition(condition)]
    turns = min(found.turns, max_calls)
    low, mean, high = (episodes * each for each in (found.median / SPREAD, found.mean, found.mean * SPREAD))
    return Forecast(
        amount(episodes * turns, (1 - OUTPUT_SHARE) * mean, OUTPUT_SHARE * mean, price),
        amount(episodes * turns / SPREAD, (1 - MAX_OUTPUT_SHARE) * low, MIN_OUTPUT_SHARE * low, price),
        amount(episodes * max_calls, (1 - MIN_OUTPUT_SHARE) * high, MAX_OUTPUT_SHARE * high, price),
        f"published average of eight models ({found.mean:,} tokens in {found.turns} calls an episode; median "
        f"{found.median:,})",
    )


class EarlierRun:
    """Finished episodes of an earlier run, by model; `name` is its name in messages.

    Excludes programs, errors and episodes without token counts. Raises `InputError` if nothing is left.
    """

    def __init__(self, name: str, rows: Iterable[Row]) -> None:
        self.name = name
        self._rows: dict[ModelKey, list[Row]] = {}
        self._uncounted: Counter[tuple[ModelKey, str]] = Counter()
        for row in rows:
            counted = row.total_input_tokens is not None and row.total_output_tokens is not None
            if row.model in BASELINES or row.status is Status.ERROR:
                continue
            if counted:
                self._rows.setdefault(row.item.model_key, []).append(row)
            else:
                self._uncounted[row.item.model_key, str(row.condition)] += 1
        if not self._rows:
            raise InputError(
                f"{name}: no model has finished an episode with known tokens; run a pilot first, say with --limit 5"
            )

    def forecast(
        self,
        model_key: ModelKey,
        condition: str,
        episodes: Counter[tuple[str, str]],
        max_calls: int,
        price: Price | None,
    ) -> Forecast:
        """Forecast usage of a model from this run, for `episodes` by domain and subtask.

        Each subtask uses its own episodes, else those of its domain, else all. A condition that was not run uses the
        most frequent one, times the published ratio of the two. Raises `InputError` if the run has several other models
        only.
        """
        name, rows = self._rows_like(model_key)
        matching = [row for row in rows if row.condition == condition]
        factors, spread, basis = np.ones(4), 1.0, f"{len(matching)} episodes{name} in {self.name}"
        if not matching:
            nearest = Counter(row.condition for row in rows).most_common(1)[0][0]
            matching = [row for row in rows if row.condition == nearest]
            factors, spread = _published_ratios(nearest, condition), SPREAD
            basis = f"{len(matching)} episodes{name} under {nearest} in {self.name}, times the published ratio"
        if uncounted := self._uncounted[model_key, condition]:
            basis += f" ({uncounted} more without token counts are excluded)"
        total, variance, unknown = _sums(matching, episodes)
        if unknown:
            basis += f"; for lack of episodes of the subtask, those of its domain: {', '.join(unknown)}"
        total, error = total * factors, DEVIATIONS * np.sqrt(variance) * factors
        # Agents with their own loop have no limit of calls.
        max_calls = max(max_calls, *(row.turns for row in matching if row.harness != BUILTIN_HARNESS), 0)
        maxima = np.array([max_calls * episodes.total(), np.inf, np.inf, np.inf])
        expected, low, high = (
            amount(calls, read, written, price, cached)
            for calls, read, written, cached in (
                np.clip(each, 0.0, maxima) for each in (total, (total - error) / spread, (total + error) * spread)
            )
        )
        return Forecast(expected, low, high, basis)

    def _rows_like(self, model_key: ModelKey) -> tuple[str, list[Row]]:
        """Return the rows of a model, or of the most similar one, and a phrase that names the difference."""
        if model_key in self._rows:
            return "", self._rows[model_key]
        alike = [row for other, rows in self._rows.items() if other.model == model_key.model for row in rows]
        if alike:
            return " with other arguments", alike
        models = sorted({other.model for other in self._rows})
        if len(models) > 1:
            raise InputError(
                f"{self.name}: has no episodes of {model_key.model}; it has episodes of {', '.join(models)}"
            )
        return f" of {models[0]}", [row for rows in self._rows.values() for row in rows]


def _published_ratios(nearest: str, condition: str) -> Floats:
    """Return the published ratios of calls and tokens of an episode between two conditions."""
    old, new = PUBLISHED[nearest_published_condition(nearest)], PUBLISHED[nearest_published_condition(condition)]
    return np.array([new.turns / old.turns, *[new.mean / old.mean] * 3])


def _measures(rows: Sequence[Row]) -> Floats:
    """Return an (n, 4) array of calls, input, output and cached tokens; unknown cached tokens count as 0."""
    return np.array(
        [(row.turns, row.total_input_tokens, row.total_output_tokens, row.total_cached_tokens or 0) for row in rows],
        dtype=float,
    )


def _sums(rows: Sequence[Row], episodes: Counter[tuple[str, str]]) -> tuple[Floats, Floats, list[str]]:
    """Return expected sums of the measures, their variances, and the subtasks without episodes."""
    cells = {name: [row for row in rows if row.sub_task == name] for _, name in episodes}
    known = [_measures(cell) for cell in cells.values() if len(cell) > 1]
    # Pooled over subtasks, since a few episodes underestimate mean and variance if a long one is missing among them.
    scatter = np.mean([_relative_variance(each) for each in known], axis=0) if known else np.ones(4)
    total, variance = np.zeros(4), np.zeros(4)
    unknown: list[str] = []
    for (domain, name), count in episodes.items():
        cell = cells[name]
        if not cell:
            unknown.append(name)
            cell = [row for row in rows if row.domain == domain] or rows
        mean = _measures(cell).mean(axis=0)
        total += count * mean
        variance += scatter * mean**2 * (count**2 / len(cell) + count)
    return total, variance, unknown


def _relative_variance(found: Floats) -> Floats:
    """Return the variance over the squared mean; 0 where the mean is 0."""
    mean = found.mean(axis=0)
    return np.divide(found.var(axis=0, ddof=1), mean**2, out=np.zeros(4), where=mean > 0)


@dataclass(frozen=True, slots=True)
class UsageEstimate:
    """Forecast for one model, labelled `model`, under one condition; `episodes` are those to run."""

    model: str
    condition: str
    episodes: int
    forecast: Forecast


def estimate(
    plan: Plan,
    left: Collection[Item] | None = None,
    *,
    prices: PriceTable,
    like: EarlierRun | None = None,
    user_skills: Mapping[str, UserSkills] = NO_USER_SKILLS,
    library: Path | None = None,
    allow_unconfined: bool = False,
) -> list[UsageEstimate]:
    """Estimate each model and condition of a plan, in its order.

    Parameters
    ----------
    left : items to run; None: all.
    like : earlier run whose usage is extrapolated; None: published figures.
    user_skills : skill packages of the user by condition. library : folder of public packages of `library:N`.

    Raises
    ------
    InputError : a condition needs skill packages that are missing or cannot be confined here; or `like` has several
        models, none of them in the plan.
    """
    wanted = set(plan.items if left is None else left)
    counts_by_model: dict[tuple[ModelKey, str], Counter[tuple[str, str]]] = {}
    sub_tasks = {episode.task_id: (episode.skill, episode.sub_task) for episode in plan.episodes}
    for item in plan.items:
        counts_by_model.setdefault((item.model_key, item.condition), Counter())[sub_tasks[item.task_id]] += (
            item in wanted
        )
    names = labels(model_key for model_key, _ in counts_by_model)
    check_guards(
        mount_all({item.condition for item in wanted}, user_skills, library).values(), allow_unconfined=allow_unconfined
    )
    return [
        UsageEstimate(
            names[model_key], condition, counts.total(), _forecast(model_key, condition, counts, prices, like)
        )
        for (model_key, condition), counts in counts_by_model.items()
    ]


def _forecast(
    model_key: ModelKey, condition: str, counts: Counter[tuple[str, str]], prices: PriceTable, like: EarlierRun | None
) -> Forecast:
    if model_key.model in BASELINES:
        nothing = amount(0, 0, 0, NO_CHARGE)
        return Forecast(nothing, nothing, nothing, "a program; makes no model calls")
    allowance, price = allowance_of(model_key), prices.price_of(model_key.model)
    if like is None:
        forecast = published_forecast(condition, counts.total(), allowance.turns, price)
    else:
        forecast = like.forecast(model_key, condition, counts, allowance.turns, price)
    return forecast if allowance.tokens is None else forecast.capped(counts.total() * allowance.tokens, price)


def left_to_run(
    folder: Path, edition: Edition, plan: Plan, *, shard: Shard | None = None, retry_errors: bool = True
) -> tuple[tuple[Item, ...], int]:
    """Return the items that a run of this plan, or of one shard, would run in `folder`, and the number finished there.

    Does not lock the folder, so a run may be in progress; an absent folder has no finished items. Raises `InputError`
    if it is of another edition, cannot grow by this plan, or has a damaged record or journal.
    """
    streams = make_streams(plan, shard)
    if not streams:
        raise InputError(f"shard {shard} of this plan is empty; choose fewer shards")
    requested = {item for stream in streams for item in stream.items}
    rows = _finished_rows(folder, edition)
    streams = extend_streams(streams, rows, edition.episodes())
    left = tuple(item for stream in streams for item in missing(stream, rows, requested, retry_errors=retry_errors))
    return left, len(requested) - len(left)


def _finished_rows(folder: Path, edition: Edition) -> dict[Item, Row]:
    """Return the rows whose trajectories exist."""
    if not (folder / record.FILE).is_file():
        return {}
    if record.read_record(folder).edition_digest != edition.digest:
        raise InputError(f"{folder}: holds a run of another edition; choose another --out")
    return {item: row for item, row in read_history(folder).rows.items() if (folder / item.trajectory).is_file()}

"""What a run would use, before a cent is spent.

Baseline programs ask no model and cost nothing. Of a model an earlier run tells, or what was published
(`finskillbench.runs.plan.usage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.entries import Entry, allowance_of, labels
from finskillbench.harness.models import BASELINES
from finskillbench.harness.providers.prices import NO_CHARGE, PriceTable
from finskillbench.harness.skills.given import NOTHING_GIVEN, Given
from finskillbench.harness.skills.runner import check_guards
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.plan.streams import Shard, make_streams, missing, with_past
from finskillbench.runs.plan.usage import Earlier, Forecast, amount, published
from finskillbench.runs.store import record
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import Row


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one entry under one condition would use; `model` is what a table calls it, `episodes` are those to run."""

    model: str
    condition: str
    episodes: int
    forecast: Forecast


def estimate(
    plan: Plan,
    left: Collection[Item] | None = None,
    *,
    prices: PriceTable,
    like: Earlier | None = None,
    given: Mapping[str, Given] = NOTHING_GIVEN,
    allow_unconfined: bool = False,
) -> list[Estimate]:
    """Estimate each entry and condition of a plan, in the plan's order.

    Parameters
    ----------
    left : items of the plan that are to be run; None: all.
    prices : price by model.
    like : an earlier run, whose models are taken to go on as they did there.
    given : the packages of the user's own arms.
    allow_unconfined : as in a run.

    Raises
    ------
    InputError : a condition mounts packages and there are none, or they cannot be confined here; or `like` has several
        models, and none of them is one of the plan.
    """
    wanted = set(plan.items if left is None else left)
    arms: dict[tuple[Entry, str], Counter[tuple[str, str]]] = {}
    sub_tasks = {episode.task_id: (episode.skill, episode.sub_task) for episode in plan.episodes}
    for item in plan.items:
        arms.setdefault((item.entry, item.condition), Counter())[sub_tasks[item.task_id]] += item in wanted
    names = labels(entry for entry, _ in arms)
    check_guards(mount_all({item.condition for item in wanted}, given).values(), allow_unconfined=allow_unconfined)
    return [
        Estimate(names[entry], condition, counts.total(), _asked(entry, condition, counts, prices, like))
        for (entry, condition), counts in arms.items()
    ]


def _asked(
    entry: Entry, condition: str, counts: Counter[tuple[str, str]], prices: PriceTable, like: Earlier | None
) -> Forecast:
    """Forecast the calls and tokens of `counts` episodes, by domain and subtask; zero for a program."""
    if entry.model in BASELINES:
        nothing = amount(0, 0, 0, NO_CHARGE)
        return Forecast(nothing, nothing, nothing, "a program, which asks no model")
    allowance, price = allowance_of(entry), prices.of(entry.model)
    if like is None:
        forecast = published(condition, counts.total(), allowance.turns, price)
    else:
        forecast = like.forecast(entry, condition, counts, allowance.turns, price)
    return forecast if allowance.tokens is None else forecast.within(counts.total() * allowance.tokens, price)


def left_to_run(
    folder: Path, edition: Edition, plan: Plan, *, shard: Shard | None = None, retry_errors: bool = True
) -> tuple[tuple[Item, ...], int]:
    """Items that a run of this plan, or of one shard of it, would run in `folder`, and how many are finished there.

    Reads without holding the folder, so that a run in progress can be asked too; a folder that is absent has nothing.

    Raises
    ------
    InputError : the folder's rows are of another edition, it cannot grow by this plan, or its record or its journal is
        damaged.
    """
    streams = make_streams(plan, shard)
    if not streams:
        raise InputError(f"shard {shard} of this plan is empty; choose fewer shards")
    asked = {item for stream in streams for item in stream.items}
    rows = _finished_rows(folder, edition)
    streams = with_past(streams, rows, edition.episodes())
    left = tuple(item for stream in streams for item in missing(stream, rows, asked, retry_errors=retry_errors))
    return left, len(asked) - len(left)


def _finished_rows(folder: Path, edition: Edition) -> dict[Item, Row]:
    """The rows of the items whose trajectories are there."""
    if not (folder / record.FILE).is_file():
        return {}
    if record.read_record(folder).edition_digest != edition.digest:
        raise InputError(f"{folder}: holds a run of another edition; choose another --out")
    return {item: row for item, row in read_history(folder).rows.items() if (folder / item.trajectory).is_file()}

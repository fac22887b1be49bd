"""What a run would use, before a cent is spent.

A program plays a sample of its episodes in memory: every stratum (a subtask's episodes of one difficulty, under one
arm) gives the same share of its episodes, drawn by the digest of their ids; the share grows until the totals are known
well enough. Of any other model an earlier run tells, or what was published (`finskillbench.runs.plan.usage`): no
program works as a model does.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance

from finskillbench.edition import Edition
from finskillbench.episode import Episode
from finskillbench.errors import InputError
from finskillbench.harness.allowance import Allowance
from finskillbench.harness.conditions import mount_all
from finskillbench.harness.entries import Entry, allowance_of, labels
from finskillbench.harness.models import BASELINES
from finskillbench.harness.providers.prices import NO_CHARGE, PriceTable
from finskillbench.harness.skills.given import NOTHING_GIVEN, Given
from finskillbench.harness.skills.runner import check_guards
from finskillbench.harness.words.prompts import VERDICTS_SHOWN
from finskillbench.runs.plan.items import Item, Plan
from finskillbench.runs.plan.rehearsal import Play, Rehearsal
from finskillbench.runs.plan.streams import Shard, make_streams, missing, with_past
from finskillbench.runs.plan.usage import DEVIATIONS, Amount, Earlier, Forecast, amount, published
from finskillbench.runs.store import record
from finskillbench.runs.store.journal import read_history
from finskillbench.runs.store.rows import Row

PILOT = 60
"""Episodes of an arm that are played in any case, where it has as many; at least `PILOT_OF_STRATUM` of each stratum."""
PILOT_OF_STRATUM = 2
STANDARD_ERROR = 0.04
"""More are played until the standard errors of an arm's calls, input and output are below this part of each."""

Progress = Callable[[int, int], None]
"""`(done, total)` after each model and condition."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one entry under one condition would use; `model` is what a table calls it, `episodes` are those to run."""

    model: str
    condition: str
    episodes: int
    forecast: Forecast


def estimate(
    edition: Edition,
    plan: Plan,
    left: Collection[Item] | None = None,
    *,
    prices: PriceTable,
    like: Earlier | None = None,
    given: Mapping[str, Given] = NOTHING_GIVEN,
    allow_unconfined: bool = False,
    progress: Progress | None = None,
) -> list[Estimate]:
    """Estimate each entry and condition of a plan, in the plan's order.

    Parameters
    ----------
    edition : what the plan was made on; its truth is not read.
    left : items of the plan that are to be run; None: all.
    prices : price by model.
    like : an earlier run, whose models are taken to go on as they did there.
    given : what arms of somebody's own mount.
    allow_unconfined : as in a run.
    progress : called after each model and condition.

    Raises
    ------
    InputError : a condition mounts packages and there are none, or they cannot be confined here; or `like` has several
        models, and none of them is one of the plan.
    EditionError : the edition is damaged.
    """
    wanted = set(plan.items if left is None else left)
    arms: dict[tuple[Entry, str], list[Item]] = {}
    for item in plan.items:
        arms.setdefault((item.entry, item.condition), []).append(item)
    names = labels(entry for entry, _ in arms)
    check_guards(mount_all({item.condition for item in wanted}, given).values(), allow_unconfined=allow_unconfined)
    sub_tasks = {episode.task_id: (episode.skill, episode.sub_task) for episode in plan.episodes}

    async def work(rehearsal: Rehearsal) -> list[Estimate]:
        found: list[Estimate] = []
        for number, ((entry, condition), items) in enumerate(arms.items(), 1):
            if entry.model in BASELINES:
                strata = _strata(plan.episodes, items, wanted)
                await _sample(strata, rehearsal, entry.model, condition, allowance_of(entry))
                count, forecast = sum(stratum.weight for stratum in strata), _played(strata)
            else:
                counts = Counter(sub_tasks[item.task_id] for item in items if item in wanted)
                count, forecast = counts.total(), _asked(entry, condition, counts, prices, like)
            found.append(Estimate(names[entry], condition, count, forecast))
            if progress is not None:
                progress(number, len(arms))
        return found

    played = {item.condition for item in wanted if item.model in BASELINES}
    with Rehearsal(edition, plan, played, given, allow_unconfined=allow_unconfined) as rehearsal:
        return asyncio.run(work(rehearsal))


def _asked(
    entry: Entry, condition: str, counts: Counter[tuple[str, str]], prices: PriceTable, like: Earlier | None
) -> Forecast:
    """What `counts` episodes, by domain and subtask, take of a model that is asked."""
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


class _Stratum:
    """Episodes that are much alike: `tasks` in the order in which they are drawn, and what the drawn ones used.

    `weight` counts the items to be run, repeats included; `verdicts` is the average number that a prompt of the
    persistent arm shows them.
    """

    def __init__(self, items: Sequence[Item], verdicts: int) -> None:
        self.tasks = sorted({item.task_id for item in items}, key=lambda name: hashlib.sha256(name.encode()).digest())
        self.weight = len(items)
        self.verdicts = verdicts
        self.plays: list[Play] = []

    def draw(self, wanted: int) -> list[str]:
        """The tasks that are still to be played, so that `wanted` will have been."""
        return self.tasks[len(self.plays) : wanted]

    def total(self, measure: Callable[[Play], float]) -> float:
        """Expected sum of a measure over the items."""
        return self.weight * fmean(map(measure, self.plays))

    def doubt(self, measure: Callable[[Play], float]) -> float:
        """Variance of `total`."""
        played = len(self.plays)
        if played == len(self.tasks):
            return 0.0
        return self.weight**2 * (1 - played / len(self.tasks)) * variance(map(measure, self.plays)) / played


def _strata(episodes: Iterable[Episode], items: Sequence[Item], wanted: Collection[Item]) -> list[_Stratum]:
    """Group the wanted items of one arm."""
    kinds = {episode.task_id: (episode.sub_task, episode.difficulty) for episode in episodes}
    groups: dict[tuple[str, str], list[Item]] = {}
    earlier: dict[tuple[str, int], int] = {}
    shown: dict[Item, int] = {}
    for item in items:
        stream = kinds[item.task_id][0], item.run_idx
        shown[item] = min(earlier.get(stream, 0), VERDICTS_SHOWN)
        earlier[stream] = earlier.get(stream, 0) + 1
        if item in wanted:
            groups.setdefault(kinds[item.task_id], []).append(item)
    return [_Stratum(group, round(fmean(shown[item] for item in group))) for group in groups.values()]


_MEASURES: tuple[Callable[[Play], int], ...] = (
    lambda play: play.calls,
    lambda play: play.input_tokens,
    lambda play: play.output_tokens,
)
"""What has to be known well."""


async def _sample(
    strata: Sequence[_Stratum], rehearsal: Rehearsal, player: str, condition: str, allowance: Allowance
) -> None:
    """Play a pilot, then twice as many, and so on, until the totals are known well enough.

    All strata grow alike: to follow the least certain one would leave out those whose costly episodes are still
    unseen.
    """

    async def play(stratum: _Stratum, share: float) -> None:
        drawn = stratum.draw(max(PILOT_OF_STRATUM, math.ceil(share * len(stratum.tasks))))
        plays = (rehearsal.play(player, condition, task_id, stratum.verdicts, allowance) for task_id in drawn)
        stratum.plays += await asyncio.gather(*plays)

    share = PILOT / max(PILOT, sum(len(stratum.tasks) for stratum in strata))
    while not _well_known(strata):
        await asyncio.gather(*(play(stratum, share) for stratum in strata))
        share *= 2


def _well_known(strata: Sequence[_Stratum]) -> bool:
    """Whether every stratum was played, and every total has a small standard error."""
    return all(stratum.plays for stratum in strata) and all(
        math.sqrt(math.fsum(stratum.doubt(measure) for stratum in strata))
        <= STANDARD_ERROR * math.fsum(stratum.total(measure) for stratum in strata)
        for measure in _MEASURES
    )


def _played(strata: Sequence[_Stratum]) -> Forecast:
    """What the sample used, scaled up; programs cost nothing."""
    totals = [math.fsum(stratum.total(measure) for stratum in strata) for measure in _MEASURES]
    errors = [DEVIATIONS * math.sqrt(math.fsum(stratum.doubt(measure) for stratum in strata)) for measure in _MEASURES]

    def at(side: int) -> Amount:
        calls, read, written = (total + side * error for total, error in zip(totals, errors, strict=True))
        return amount(calls, read, written, NO_CHARGE)

    return Forecast(at(0), at(-1), at(1), f"as {sum(len(stratum.plays) for stratum in strata)} episodes played here")

"""What happens to the episodes of a run, as its journal tells it, and what follows: their rows, and what was spent.

Kept in order and never altered: what an episode in flight has cost so far, its end or why it was dropped, and that it
was judged again. So a killed process leaves open what it was paying for, and nothing is counted twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from finskillbench.harness.model import FREE, Usage
from finskillbench.harness.providers.prices import NO_CHARGE, Price
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.rows import Row

KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Expense:
    """What an episode has cost: answered calls, their usage, and the upper bound in US dollars of unanswered ones."""

    calls: int = 0
    usage: Usage = FREE
    lost_usd: float = 0.0


NOTHING = Expense()


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """One line of the journal."""


class Call(Event, frozen=True):
    """Before and after each model call under a budget: what the episode has cost so far.

    Before the call, the amount that is set aside for it is counted among the unanswered.
    """

    item: Item
    expense: Expense


class Finished(Event, frozen=True):
    """An episode has ended and is judged; `lost_usd` bounds what its unanswered calls may have cost beside its row."""

    row: Row
    lost_usd: float = 0.0


class Dropped(Event, frozen=True):
    """An episode was given up in flight, and why."""

    item: Item
    why: str
    expense: Expense


class Rescored(Event, frozen=True):
    """A finished episode was judged again; nothing was paid."""

    row: Row


AnyEvent = Call | Finished | Dropped | Rescored


@dataclass(frozen=True, slots=True)
class History:
    """What a journal comes to.

    `rows` holds the last row of each item (an episode that ended in an error is run again), `paid` the model and the
    expense of everything that ended, and `open` the expense of what had not ended when the process did.
    """

    rows: dict[Item, Row] = field(default_factory=dict[Item, Row])
    paid: list[tuple[str, Expense]] = field(default_factory=list[tuple[str, Expense]])
    open: dict[Item, Expense] = field(default_factory=dict[Item, Expense])

    def add(self, event: AnyEvent) -> None:
        """Take the next event in."""
        match event:
            case Call(item=item, expense=expense):
                self.open[item] = expense
                if expense == NOTHING:
                    del self.open[item]
            case Finished(row=row, lost_usd=lost_usd):
                self.rows[row.item] = row
                self.open.pop(row.item, None)
                self.paid.append((row.model, Expense(row.episodes, row.usage, lost_usd)))
            case Dropped(item=item, expense=expense):
                self.open.pop(item, None)
                self.paid.append((item.model, expense))
            case Rescored(row=row):
                self.rows[row.item] = row

    def killed(self) -> list[Dropped]:
        """The events that close what a killed process left open, its call under way at the upper bound."""
        return [Dropped(item, KILLED, expense) for item, expense in self.open.items()]

    def amounts(self) -> list[tuple[str, Expense]]:
        """The model and the expense of all that was begun."""
        return [*self.paid, *((item.model, expense) for item, expense in self.open.items())]

    def spent(self, prices: Mapping[str, Price | None]) -> float:
        """US dollars in all, tries that failed included; `prices` by model serve where the price was not known."""
        return math.fsum(
            _cost(expense.usage, prices.get(model)) + expense.lost_usd for model, expense in self.amounts()
        )


def history(events: Iterable[AnyEvent]) -> History:
    """What some events come to, in their order."""
    result = History()
    for event in events:
        result.add(event)
    return result


def _cost(usage: Usage, price: Price | None) -> float:
    if usage.cost_usd is not None:
        return usage.paid_usd
    price = price or NO_CHARGE
    # How much of the input was written to a cache stands in no row: taken at the dearer of the two prices.
    written = (usage.input_tokens or 0) - (usage.cached_tokens or 0) if price.cache_write > price.input else 0
    return price.cost(replace(usage, cache_write_tokens=written))

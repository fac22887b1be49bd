"""Record (`run.json`) and events of a run folder.

A folder grows: each call adds the episodes that it requests and the folder lacks. Edition, scorers, prompts and mounted
skills must be equal for all rows; the version of the code may differ.

Events are stored in order and never changed: expenses in flight, the end of an episode or the reason why it was
dropped, and rescoring. A killed process leaves its expenses open, and nothing is counted twice.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
import orjson

from finskillbench.edition import Edition
from finskillbench.errors import InputError
from finskillbench.harness.model import FREE, Usage
from finskillbench.harness.prompts.compose import wording_digest
from finskillbench.harness.providers.prices import NO_CHARGE, Price
from finskillbench.runs.plan.items import Item, Plan, RunRequest, check_names, in_order, merge_requests, requests_of
from finskillbench.runs.store.rows import Row
from finskillbench.runs.store.version import Validation, scorer_version, validation_of, write_atomic

KILLED = "killed"


@dataclass(frozen=True, slots=True)
class Expense:
    """Cost of an episode: answered calls, their usage, and an upper bound in US dollars for unanswered ones."""

    calls: int = 0
    usage: Usage = FREE
    lost_usd: float = 0.0


NOTHING = Expense()


class Event(msgspec.Struct, frozen=True, tag_field="event", tag=str.lower):
    """One line of the journal."""


class Call(Event, frozen=True):
    """Expenses of an episode before (reserve included, as unanswered) and after each model call under a budget."""

    item: Item
    expense: Expense


class Finished(Event, frozen=True):
    """An episode has ended and is judged; `lost_usd` bounds the cost of unanswered calls, which its row omits."""

    row: Row
    lost_usd: float = 0.0


class Dropped(Event, frozen=True):
    """An episode was dropped in flight, for the reason `why`."""

    item: Item
    why: str
    expense: Expense


class Rescored(Event, frozen=True):
    """A finished episode was judged again, at no cost."""

    row: Row


AnyEvent = Call | Finished | Dropped | Rescored


@dataclass(frozen=True, slots=True)
class History:
    """State after the events of a journal.

    `rows` holds the last row of each item (errors are repeated), `paid` model and expense of everything that ended, and
    `open` the expense of episodes that had not ended when the process did.
    """

    rows: dict[Item, Row] = field(default_factory=dict[Item, Row])
    paid: list[tuple[str, Expense]] = field(default_factory=list[tuple[str, Expense]])
    open: dict[Item, Expense] = field(default_factory=dict[Item, Expense])

    def add(self, event: AnyEvent) -> None:
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
        """Return the events that close open episodes of a killed process, with calls in flight at their upper bound."""
        return [Dropped(item, KILLED, expense) for item, expense in self.open.items()]

    def amounts(self) -> list[tuple[str, Expense]]:
        """Return model and expense of all attempts."""
        return [*self.paid, *((item.model, expense) for item, expense in self.open.items())]

    def spent(self, prices: Mapping[str, Price | None]) -> float:
        """Return total US dollars, including failed attempts; `prices` by model apply where the cost is unknown."""
        return math.fsum(
            _cost(expense.usage, prices.get(model)) + expense.lost_usd for model, expense in self.amounts()
        )


def replay_events(events: Iterable[AnyEvent]) -> History:
    """Return the state after some events, in their order."""
    result = History()
    for event in events:
        result.add(event)
    return result


def _cost(usage: Usage, price: Price | None) -> float:
    if usage.cost_usd is not None:
        return usage.paid_usd
    price = price or NO_CHARGE
    # Rows lack cache writes, so assume the higher of both prices.
    written = (usage.input_tokens or 0) - (usage.cached_tokens or 0) if price.cache_write > price.input else 0
    return price.cost(replace(usage, cache_write_tokens=written))


FILE = "run.json"
_SHARED_FIELDS = ("edition_digest", "prompts_digest", "scorer_version", "mounts")
"""Fields that must be equal for all rows of a folder, as far as both sides have them."""


def _versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {
        name: version(name) for name in ("finskillbench", "numpy", "polars", "clarabel", "pydantic")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Properties that all rows of a run folder share.

    `asked` lists the requests, `places` the positions of their tasks in the edition, and `mounts` the proof of
    `finskillbench.harness.proof.prove_arms` by condition. From the latest call: folder of the edition, this user's
    `data validate` verdict on it or None, versions of this program and its libraries. From all calls: `sandbox`, the
    guards of every script, `interpreters` of user skills by condition, and `library`, the name of the folder of public
    packages of conditions `library:N`.
    """

    edition_digest: str
    edition_path: str
    edition_validated: Validation | None = None
    prompts_digest: str = field(default_factory=wording_digest)
    scorer_version: str = field(default_factory=scorer_version)
    mounts: Mapping[str, Any]
    asked: tuple[RunRequest, ...]
    places: Mapping[str, int]
    versions: Mapping[str, str] = field(default_factory=_versions)
    sandbox: Mapping[str, bool] = field(default_factory=dict[str, bool])
    interpreters: Mapping[str, str] = field(default_factory=dict[str, str])
    library: str | None = None

    def items(self) -> tuple[Item, ...]:
        """Return all requested items, in the order of a plan."""
        return self.in_order(frozenset[Item]().union(*(each.items() for each in self.asked)))

    def in_order(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """Sort items of this folder in the order of a plan; raise `InputError` if one was never requested."""
        try:
            return in_order(items, self.places)
        except KeyError as error:
            raise InputError(
                f"{FILE}: the journal has rows of {error}, which is not listed here; restore {FILE}"
            ) from None


def make_record(
    edition: Edition,
    plan: Plan,
    mounts: Mapping[str, Any],
    sandbox: Mapping[str, bool],
    interpreters: Mapping[str, str],
    library: str | None = None,
) -> RunRecord:
    """Return the record of a folder with only this plan."""
    wanted = {episode.task_id for episode in plan.episodes}
    places = {episode.task_id: place for place, episode in enumerate(edition.episodes()) if episode.task_id in wanted}
    return RunRecord(
        edition_digest=edition.digest,
        edition_path=str(edition.path),
        edition_validated=validation_of(edition),
        mounts=mounts,
        asked=merge_requests(requests_of(plan), places),
        places=places,
        sandbox=sandbox,
        interpreters=interpreters,
        library=library,
    )


def merge_record(folder: Path, record: RunRecord) -> RunRecord:
    """Return the record of a folder after another call; nothing is written.

    Raises `InputError` if the folder holds something else, its record is damaged, or the records are incompatible.
    """
    try:
        # Read the folder once, since another process may start the same run in it.
        names = sorted(entry.name for entry in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return record
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror}); choose another --out") from error
    if FILE in names:
        existing = read_record(folder)
        if differing := first_difference(existing, record):
            needs_rescoring = differing.startswith("scorer_version ")
            remedy = "judge it again with finskillbench rescore, or choose another --out"
            raise InputError(
                f"{folder}: was run with another {differing}; {remedy if needs_rescoring else 'choose another --out'}"
            )
        return combine_records(existing, record)
    foreign = [name for name in names if name not in ("run.lock", f"{FILE}.part")]
    if foreign:
        raise InputError(f"{folder}: not empty and not a run folder (contains {foreign[0]}); choose another --out")
    return record


def first_difference(old: RunRecord, new: RunRecord) -> str | None:
    """Describe the first field that must be equal in one folder and differs, then and now; None if there is none."""
    then, now = ({name: getattr(record, name) for name in _SHARED_FIELDS} for record in (old, new))
    return next(iter(_differences(then, now)), None)


def combine_records(old: RunRecord, new: RunRecord) -> RunRecord:
    """Return the record of a folder with the rows of both; raise `InputError` if two items would share a file."""
    places = {**old.places, **new.places}
    record = replace(
        new,
        mounts=_deep_merge(old.mounts, new.mounts),
        asked=merge_requests((*old.asked, *new.asked), places),
        places=dict(sorted(places.items(), key=lambda pair: pair[1])),
        sandbox={**old.sandbox, **{name: held and old.sandbox.get(name, True) for name, held in new.sandbox.items()}},
        interpreters={**old.interpreters, **new.interpreters},
        library=new.library or old.library,
    )
    check_names(record.items())
    return record


def write_record(folder: Path, record: RunRecord) -> None:
    """Write the record of a run folder, unless it is unchanged."""
    path = folder / FILE
    data = orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    if not path.exists() or path.read_bytes() != data:
        write_atomic(path, data, durable=True)


def read_record(folder: Path) -> RunRecord:
    """Read the record of a run folder; raise `InputError` if it is absent or damaged."""
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable run record ({error}); choose another folder") from error


def _deep_merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested objects; values that both have are equal."""
    return {
        **old,
        **{
            name: _deep_merge(old[name], value) if _is_object(value) and name in old else value
            for name, value in new.items()
        },
    }


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Describe the values that both have and that differ."""
    for key in (key for key in new if key in old):
        then, now = old[key], new[key]
        if _is_object(then) and _is_object(now):
            yield from _differences(then, now, f"{prefix}{key}.")
        elif then != now:
            yield f"{prefix}{key} (then {_brief(then)}, now {_brief(now)})"


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _brief(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 80 else text[:77] + "..."

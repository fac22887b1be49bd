"""What the driver and a desk say to each other, as MessagePack; `number` is that of one try at one episode."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from finskillbench.harness.skills.given import Memory
from finskillbench.harness.trace import Trace
from finskillbench.runs.execute.board import Outcome
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.record import NOTHING, Expense


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """One message, in either direction."""


class Play(Message, frozen=True):
    """To a desk: play this episode. `limited` says whether its calls ask for slots.

    `dearest` is as of `finskillbench.runs.execute.here.Terms`.
    """

    number: int
    item: Item
    memory: Memory
    limited: bool
    dearest: float


class Drop(Message, frozen=True):
    """To a desk: give this episode up."""

    number: int


class Granted(Message, frozen=True):
    """To a desk: what the episode asked for is granted; `round` is that of the limiter."""

    number: int
    round: int = 0


class Refused(Message, frozen=True):
    """To a desk: the budget does not reach; `why` is what the run says."""

    number: int
    why: str


class Close(Message, frozen=True):
    """To a desk: give everything up and end."""


class Beat(Message, frozen=True):
    """In both directions: whoever sends it is alive."""


class Opened(Message, frozen=True):
    """From a desk: it can play."""


class Reserve(Message, frozen=True):
    """From a desk: set this aside of the budget, see `finskillbench.runs.execute.metered.Budget.reserve`."""

    number: int
    bound: float
    invested: float


class Settle(Message, frozen=True):
    """From a desk: the reservation is over, see `finskillbench.runs.execute.metered.Budget.settle`."""

    number: int
    bound: float
    cost: float
    unanswered: float


class Note(Message, frozen=True):
    """From a desk: what the episode has cost so far, for the journal."""

    number: int
    expense: Expense


class Acquire(Message, frozen=True):
    """From a desk: a call wants to be made."""

    number: int


class Release(Message, frozen=True):
    """From a desk: the call is over, see `finskillbench.runs.execute.board.Limiter.release`."""

    number: int
    begun: int
    outcome: Outcome
    retry_after: float | None = None
    expense: Expense = NOTHING


class Done(Message, frozen=True):
    """From a desk: it is over; its trajectory as it is written, and what unanswered calls may have cost.

    `trace` is what the trajectory says beside the conversation, packed: the driver judges it and unpacks nothing else.
    """

    number: int
    trajectory: bytes
    trace: bytes
    lost_usd: float


class Stopped(Message, frozen=True):
    """From a desk: the episode took no further call, since the budget was refused."""

    number: int
    why: str


class Failed(Message, frozen=True):
    """From a desk: an error that is no model's, by its class in `finskillbench.errors`, "" for any other."""

    number: int
    kind: str
    told: str


ToDesk = Play | Drop | Granted | Refused | Close | Beat
FromDesk = Opened | Beat | Reserve | Settle | Note | Acquire | Release | Done | Stopped | Failed
LARGEST_LETTER = 4 * 2**20
"""Bytes of trajectories from which on a letter is sent, whatever else waits."""


class FromOne(msgspec.Struct, frozen=True, array_like=True):
    """A letter to the driver, and which desk wrote it."""

    desk: str
    messages: list[FromDesk]


_encoder = msgspec.msgpack.Encoder()
_to_desk = msgspec.msgpack.Decoder(list[ToDesk])
_from_desk = msgspec.msgpack.Decoder(FromOne)
_trace = msgspec.msgpack.Decoder(Trace)


def letter_to_desk(messages: list[ToDesk]) -> bytes:
    """Some messages in one letter."""
    return _encoder.encode(messages)


def letter_from_desk(desk: str, messages: list[FromDesk]) -> bytes:
    """Some messages of a desk in one letter."""
    return _encoder.encode(FromOne(desk, messages))


def read_at_desk(data: bytes) -> list[ToDesk]:
    """The messages of a letter to a desk."""
    return _to_desk.decode(data)


def read_from_desk(data: bytes) -> FromOne:
    """A letter from a desk."""
    return _from_desk.decode(data)


def packed(trace: Trace) -> bytes:
    """A trace without its conversation, which is most of it and decides no row."""
    return _encoder.encode(replace(trace, messages=()))


def unpacked(data: bytes) -> Trace:
    """A trace that was packed."""
    return _trace.decode(data)

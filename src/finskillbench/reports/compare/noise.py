"""Tables of noise between identical runs, and of the sample sizes for a gain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import polars as pl

from finskillbench.analysis.noise import DifferenceNoise, RepeatNoise, difference_noise, repeat_noise, sample_sizes
from finskillbench.analysis.results import EPISODE
from finskillbench.reports.tables.base import Cell, Column, Estimate, Kind, Table, columns_of

_NOTE = (
    "Shares are of pairs of repeats: with one pass only, and with different scores. The range holds 95 % of the "
    "differences in mean score between two runs of the same settings on these episodes; there is none "
    "if fewer than five episodes vary. A difference beyond it is not noise; whether it holds on other episodes is for "
    "its interval to say."
)
_POWER = (
    "Episodes of like clusters that detect the gain with a power of 80 % at the 5 % level, two-sided. Answers are "
    "those of each side: one repeat needs the fewest, more repeats help once an edition has no more episodes."
)


class Group(NamedTuple):
    """Pairs of one group with the rows of both sides; `keys` are its cells in tables."""

    keys: tuple[str, ...]
    paired: pl.DataFrame
    a: pl.DataFrame
    b: pl.DataFrame


_Noise: TypeAlias = tuple[RepeatNoise | None, RepeatNoise | None, DifferenceNoise | None]
"""Noise of both sides, and of their difference."""


def make_group(keys: tuple[str, ...], paired: pl.DataFrame, a: pl.DataFrame, b: pl.DataFrame) -> Group:
    """Restrict the rows of both sides to the pairs, by the episode keys that `paired` has."""
    on = [name for name in EPISODE if name in paired.columns]
    return Group(keys, paired, *(side.join(paired, on=on, how="semi", maintain_order="left") for side in (a, b)))


def noise_tables(
    groups: Sequence[Group], names: tuple[str, str], columns: Sequence[Column], gain: float | None
) -> list[Table]:
    """Tabulate the noise of each group, and with a gain the sample sizes; tables without rows are empty.

    Parameters
    ----------
    names : of sides A and B. columns : of the groups' keys.
    """
    measured = [(group, _noise(group)) for group in groups]
    noise = Table(
        "noise",
        "Two identical runs",
        (
            Column("run", "Runs of"),
            *columns,
            Column("pairs", "Episodes", Kind.COUNT),
            Column("repeats", "Repeats", Kind.NUMBER, digits=1),
            Column("verdicts", "Verdicts differ", Kind.SHARE, interval=True),
            Column("scores", "Scores differ", Kind.SHARE),
            Column("range", "Range, +-", Kind.SCORE),
            Column("observed", "B - A", Kind.DIFFERENCE),
            Column("beyond", "Beyond noise"),
        ),
        tuple(row for group, found in measured for row in _noise_rows(group, found, names)),
        (_NOTE,),
    )
    if gain is None:
        return [noise]
    sizes = Table(
        "sample_size",
        f"Episodes for a gain of {gain:g}",
        (
            *columns,
            *columns_of(Kind.COUNT, repeats="Repeats", episodes="Episodes", clusters="Clusters", answers="Answers"),
        ),
        tuple(row for group, found in measured for row in _size_rows(group, found, gain)),
        (_POWER,),
    )
    return [noise, sizes]


def _noise(group: Group) -> _Noise:
    a, b = repeat_noise(group.a), repeat_noise(group.b)
    return a, b, difference_noise(a, b)


def _noise_rows(group: Group, noise: _Noise, names: tuple[str, str]) -> Iterator[tuple[Cell, ...]]:
    for name, side in zip(names, noise[:2], strict=True):
        if side is not None:
            shares = (Estimate(*side.verdicts), side.scores)
            yield (name, *group.keys, side.episodes, side.repeats, *shares, side.half_width, None, None)
    if noise[2] is not None:
        mean, half_width = float(group.paired.select(pl.mean("difference")).item()), noise[2].half_width
        beyond = None if half_width is None else "yes" if abs(mean) > half_width else "no"
        yield ("A and B", *group.keys, group.paired.height, None, None, None, half_width, mean, beyond)


def _size_rows(group: Group, noise: _Noise, gain: float) -> Iterator[tuple[Cell, ...]]:
    for size in sample_sizes(group.paired, gain, noise[2]):
        answers = None if size.episodes is None else size.episodes * size.repeats
        yield (*group.keys, size.repeats, size.episodes, size.clusters, answers)

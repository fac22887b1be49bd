"""How long the slowest answer takes to judge: answers of one mebibyte, each made to be slow for some scorer.

    python benchmarks/judging.py EDITION [--answers 10000]

Every place of every subtask's own answer is filled with what costs a scorer most: rows that repeat, rows that differ in
one field by a number or a text, keys that nearly match, objects with tens of thousands of keys, long texts and lists.
The right answer of each subtask is judged first: what is imported once is not what an answer costs.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from finskillbench.domains import Subtask, subtasks
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Episode, Submission
from finskillbench.runs.verdicts import judge

BYTES = (1 << 20) - 1


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of an answer."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def filled(answer: Any, path: tuple[Any, ...], what: Any) -> Any:
    """The answer with `what` at the place."""
    if not path:
        return what
    copy = dict(answer) if isinstance(answer, dict) else list(answer)
    copy[path[0]] = filled(answer[path[0]], path[1:], what)
    return copy


def at(answer: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        answer = answer[step]
    return answer


def swollen(value: Any, draw: random.Random) -> Iterator[Callable[[], Any]]:
    """Things like `value`, each nearly a mebibyte of JSON, made when they are called for."""
    unit = value[0] if isinstance(value, list) and value else value
    size = max(1, len(orjson.dumps(unit)) + 1)
    yield lambda: [unit] * (BYTES * 9 // 10 // size)
    for key, item in unit.items() if isinstance(unit, dict) else ():
        rows, keys = BYTES * 3 // 4 // (size + 8), BYTES * 3 // 4 // (len(orjson.dumps(item)) + len(key) + 10)
        yield lambda key=key, rows=rows: [{**unit, key: place} for place in range(rows)]
        yield lambda key=key, rows=rows: [{**unit, key: f"{place}"} for place in range(rows)]
        yield lambda key=key, item=item, keys=keys: {f"{key}{place}": item for place in range(keys)}
    yield lambda: {f"k{place}": draw.random() for place in range(BYTES // 40)}
    yield lambda: "x" * (BYTES * 9 // 10)
    yield lambda: [draw.random() for _ in range(BYTES // 24)]


def attacks(
    edition: Edition, subtask: Subtask, draw: random.Random
) -> Iterator[tuple[Episode, tuple[Any, ...], Callable[[], Any]]]:
    """Every place of an episode's answer with everything it is filled with, in a random order; episode by episode."""
    episodes = list(edition.episodes([subtask.name])) if subtask.name in edition.sub_tasks else []
    draw.shuffle(episodes)
    for episode in episodes:
        right = orjson.loads(orjson.dumps(edition.truth(episode.task_id).expected_output))
        ways = [(path, what) for path in places(right) for what in swollen(at(right, path), draw)]
        draw.shuffle(ways)
        yield from ((episode, path, what) for path, what in ways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edition", type=Path)
    parser.add_argument("--answers", type=int, default=1_000)
    arguments = parser.parse_args()
    edition = load_edition(arguments.edition)
    each = max(1, arguments.answers // len(subtasks()))
    worst = 0.0
    print(f"{'subtask':30} {'answers':>7} {'median':>9} {'worst':>9}")
    for subtask in subtasks():
        draw = random.Random(subtask.name)
        times: list[float] = []
        for episode, path, what in islice(attacks(edition, subtask, draw), each):
            truth = edition.truth(episode.task_id)
            right = orjson.loads(orjson.dumps(truth.expected_output))
            text = orjson.dumps(filled(right, path, what())).decode()[: BYTES + 1]
            task_input = edition.full_input(episode)
            if not times:
                judge(Submission(episode.task_id, orjson.dumps(right).decode()), truth, task_input)
            begun = time.process_time()
            judge(Submission(episode.task_id, text), truth, task_input)
            times.append(time.process_time() - begun)
            if times[-1] > worst:
                worst = times[-1]
                slowest = f"{subtask.name} {'.'.join(map(str, path)) or 'the whole'}"
        if times:
            print(f"{subtask.name:30} {len(times):7} {statistics.median(times):8.3f}s {max(times):8.3f}s")
    print(f"worst {worst:.3f} s: {slowest} (at most 0.25 s)")


if __name__ == "__main__":
    main()

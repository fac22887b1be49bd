"""How long the slowest answer takes to judge: answers of one mebibyte, each made to be slow for some scorer.

    python benchmarks/judging.py EDITION [--answers 10000]

Every subtask gets its own answer's keys filled with what costs a scorer most: long lists of rows, rows that repeat,
names that nearly match, objects with a hundred thousand keys, deep nesting, long numbers.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from finskillbench.domains import subtasks
from finskillbench.edition import load_edition
from finskillbench.episode import Submission
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


def swollen(value: Any, draw: random.Random) -> Any:
    """Something like `value` that is nearly a mebibyte of JSON."""
    unit = value[0] if isinstance(value, list) and value else value
    size = max(1, len(orjson.dumps(unit)) + 1)
    kind = draw.randrange(6)
    if kind == 0:
        return [unit] * (BYTES * 9 // 10 // size)
    if kind == 1 and isinstance(unit, dict) and unit:
        return [{**unit, draw.choice(list(unit)): place} for place in range(BYTES * 3 // 4 // (size + 8))]
    if kind == 2 and isinstance(unit, dict) and unit:
        key, item = draw.choice(list(unit.items()))
        return {f"{key}{place}": item for place in range(BYTES * 3 // 4 // (len(orjson.dumps(item)) + len(key) + 10))}
    if kind == 3:
        return {f"k{place}": draw.random() for place in range(BYTES // 40)}
    if kind == 4:
        return "x" * (BYTES * 9 // 10)
    return [draw.random() for _ in range(BYTES // 24)]


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
        episodes = edition.episodes([subtask.name])
        times: list[float] = []
        for _ in range(each if episodes else 0):
            episode = draw.choice(episodes)
            truth = edition.truth(episode.task_id)
            right = orjson.loads(orjson.dumps(truth.expected_output))
            path = draw.choice(list(places(right)))
            text = orjson.dumps(filled(right, path, swollen(at(right, path), draw))).decode()[: BYTES + 1]
            task_input = edition.full_input(episode)
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

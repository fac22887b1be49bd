"""Submissions of every kind against every scorer: none raises, none leaves its range, none that is all wrong is paid.

Run: python benchmarks/fuzz.py [--edition FOLDER] [--answers 200000] [--seed 0]

Half of the answers are the truth with some parts damaged: other numbers, other types, null, repeated, renamed or left
out. The other half keep its shape and have no part right: every number is another, every word and every boolean too.
`paper` pays repeats in a ranked list (risk identification), everything else lies between 0 and 1. Of the answers that
are wrong throughout, the mean of `certified` must not exceed what the trivial answer may earn.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from finskillbench.domains import subtasks
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Profile, Submission
from finskillbench.runs.plan.streams import default_edition
from finskillbench.runs.verdicts import judge

MOST_FOR_WRONG = 0.02
"""Most that answers without a right part may earn in the mean, as the trivial answer."""
_JUNK = (None, True, False, 0, -1, 1e308, -1e-308, 10**30, "", "N/A", "PASS", [], {}, [[]], {"a": {"b": None}})


def damaged(rng: random.Random, value: Any, rate: float) -> Any:
    """The value with each part damaged at a rate."""
    if rng.random() < rate:
        return _other(rng, value)
    if isinstance(value, dict):
        kept = {key: damaged(rng, item, rate) for key, item in value.items() if rng.random() > rate / 3}
        return kept | ({rng.choice(["extra", "", "weights", "type"]): rng.choice(_JUNK)} if rng.random() < rate else {})
    if isinstance(value, list):
        items = [damaged(rng, item, rate) for item in value if rng.random() > rate / 3]
        if items and rng.random() < rate:
            items.append(rng.choice(items))
        return rng.sample(items, len(items)) if rng.random() < rate else items
    return value


def _other(rng: random.Random, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.7:
        return value * rng.choice([-1, 0, 0.5, 0.9, 0.999, 1.0001, 1.1, 2, 100, 1e6])
    return rng.choice(_JUNK)


def wrong(rng: random.Random, value: Any) -> Any:
    """The same shape with nothing right in it."""
    if isinstance(value, dict):
        return {key: wrong(rng, item) for key, item in value.items()}
    if isinstance(value, list):
        return [wrong(rng, item) for item in value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return 1 - value if value in (0, 1) else value * rng.choice([-3.0, -1.0, 0.1, 0.4, 1.8, 5.0])
    return {"PASS": "FAIL", "FAIL": "PASS", "buy": "sell", "sell": "buy"}.get(value, f"not {value}")


def fuzz(path: Path, answers: int, seed: int, sub_task: str) -> tuple[str, int, list[str], float, float]:
    """Judge a number of answers to one subtask: problems found, mean and highest `certified` of the wrong ones."""
    edition = load_edition(path)
    problems: list[str] = []
    wrong_scores: list[float] = []
    with threadpool_limits(1):
        for number, (name, text, task_id) in enumerate(_answers(edition, sub_task, answers, seed)):
            truth, episode = edition.truth(task_id), _episode(edition, sub_task, number)
            try:
                verdict = judge(Submission(task_id, text), truth, edition.full_input(episode))
            except Exception as error:  # noqa: BLE001 - that none is raised is what is tried
                problems.append(f"{task_id}: {type(error).__name__}: {error}: {text[:200]}")
                continue
            for profile, score in verdict.scores.items():
                most = 2.0 if (sub_task, profile) == ("risk_identification", Profile.PAPER) else 1.0
                if not 0.0 <= score <= most + 1e-12:
                    problems.append(f"{task_id}: {profile} is {score}: {text[:200]}")
            if name == "wrong":
                wrong_scores.append(verdict.scores[Profile.CERTIFIED])
    return sub_task, answers, problems, sum(wrong_scores) / len(wrong_scores), max(wrong_scores)


def _episode(edition: Edition, sub_task: str, number: int) -> Any:
    episodes = edition.episodes([sub_task])
    return episodes[number % len(episodes)]


def _answers(edition: Edition, sub_task: str, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    rng = random.Random(f"{seed} {sub_task}")
    for number in range(count):
        task_id = _episode(edition, sub_task, number).task_id
        expected = edition.truth(task_id).expected_output
        kind = "damaged" if rng.random() < 0.5 else "wrong"
        made = wrong(rng, expected) if kind == "wrong" else damaged(rng, expected, rng.choice([0.02, 0.1, 0.4]))
        yield kind, json.dumps(made), task_id


def main() -> int:
    """Print a line for each subtask; 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", type=Path, help="folder of an edition (default: the default one)")
    parser.add_argument("--answers", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    path = arguments.edition or default_edition(lambda step: None)
    held = load_edition(path).sub_tasks
    names = [subtask.name for subtask in subtasks() if subtask.name in held]
    each = -(-arguments.answers // len(names))
    found: dict[str, list[str]] = defaultdict(list)
    print(f"{'subtask':<28}{'answers':>9}{'problems':>10}{'all wrong: mean':>17}{'highest':>9}")
    with ProcessPoolExecutor(2) as pool:
        for name, count, problems, mean, highest in pool.map(partial(fuzz, path, each, arguments.seed), names):
            found[name] += problems
            if mean > MOST_FOR_WRONG:
                found[name].append(f"{name}: answers without a right part earn {mean:.3f} in the mean")
            print(f"{name:<28}{count:>9,}{len(problems):>10}{mean:>17.4f}{highest:>9.3f}", flush=True)
    for problem in [problem for problems in found.values() for problem in problems[:5]]:
        print(problem)
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

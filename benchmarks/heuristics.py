"""What fixed recipes earn: each subtask's best, fitted on one edition and tried on others.

    python benchmarks/heuristics.py EDITION [OTHER ...] [--episodes 60]

A recipe is one of the answers that a subtask brings as `exploits`, made from what an agent sees and without the work.
The one that earns most under `certified` on the first edition is what `baseline/heuristic` should answer.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import orjson

from finskillbench.domains import Subtask, subtasks
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Profile
from finskillbench.harness.programs.program import Heuristic, heuristic_answer

MOST = 0.25
"""What the best fixed recipe may earn."""


def earned(edition: Edition, subtask: Subtask, episodes: int) -> Mapping[str, float]:
    """Mean certified score of each recipe, and of what `baseline/heuristic` answers."""
    scores: dict[str, list[float]] = defaultdict(list)
    scorer = subtask.scorers[Profile.CERTIFIED]
    held = edition.episodes([subtask.name]) if subtask.name in edition.sub_tasks else ()
    for episode in held[:episodes]:
        task_input, truth = edition.full_input(episode), edition.truth(episode.task_id)
        answers = dict(subtask.examples.exploits(task_input)) if subtask.examples.exploits is not None else {}
        answers[Heuristic.name] = heuristic_answer(subtask, task_input)
        for name, answer in answers.items():
            plain = orjson.loads(orjson.dumps(answer, option=orjson.OPT_SERIALIZE_NUMPY))
            scores[name].append(scorer(plain, truth, task_input).value)
    return {name: fmean(values) for name, values in scores.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("editions", type=Path, nargs="+")
    parser.add_argument("--episodes", type=int, default=60)
    arguments = parser.parse_args()
    editions = [load_edition(path) for path in arguments.editions]
    highest = 0.0
    for subtask in subtasks():
        if Profile.CERTIFIED not in subtask.scorers:
            continue
        means = [earned(edition, subtask, arguments.episodes) for edition in editions]
        if not means[0]:
            continue
        best = max(means[0], key=lambda name: (means[0][name], name))
        shown = [f"{mean.get(best, 0.0):.3f} ({mean[Heuristic.name]:.3f})" for mean in means if mean]
        highest = max(highest, *(value for mean in means for value in mean.values()))
        print(f"{subtask.name:28} {best:45} {'  '.join(shown)}", flush=True)
    print(f"In brackets: {Heuristic.name}. Highest of any recipe on any edition: {highest:.3f} (at most {MOST})")


if __name__ == "__main__":
    main()

"""What is earned by looking answers up: the published truths of one edition, handed in for the episodes of another.

    python benchmarks/lookup.py KNOWN OTHER [OTHER ...] [--episodes 200]

Whoever has the known edition by heart answers with the label of its most similar episode, by the words and numbers of
prompt and input (TF-IDF, cosine); as it stands, and with its companies renamed to those that stand in their places.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import orjson
from sklearn.feature_extraction.text import TfidfVectorizer

from finskillbench.domains import Subtask, subtasks
from finskillbench.edition import Edition, load_edition
from finskillbench.episode import Episode, Profile

MOST = 0.2
"""What looking up may earn."""


def text_of(episode: Episode) -> str:
    """What an agent sees of an episode before any call, and its input as far as it is not a reference."""
    return (
        f"{episode.prompt.task_description}\n{orjson.dumps(episode.input, option=orjson.OPT_SERIALIZE_NUMPY).decode()}"
    )


def renamed(known: Edition, other: Edition) -> Mapping[str, str]:
    """The companies of the one edition under the names that stand in their places in the other."""
    return dict(zip(known.manifest["universe"], other.manifest["universe"], strict=False))


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    """A label with other companies in it."""
    text = orjson.dumps(value).decode()
    return orjson.loads(re.sub(r"[A-Za-z][\w.\-]*", lambda word: names.get(word[0], word[0]), text))


def earned(known: Edition, other: Edition, subtask: Subtask, episodes: int) -> tuple[float, float]:
    """Mean certified score of the nearest label, as it stands and with the names changed."""
    stored, asked = known.episodes([subtask.name]), other.episodes([subtask.name])
    asked = asked[:: max(1, len(asked) // episodes)][:episodes]
    vectors = TfidfVectorizer(token_pattern=r"[\w.\-]+", lowercase=False)
    table = vectors.fit_transform(map(text_of, stored))
    nearest = np.asarray((vectors.transform(map(text_of, asked)) @ table.T).argmax(axis=1)).ravel()
    names, scorer = renamed(known, other), subtask.scorers[Profile.CERTIFIED]
    scores: tuple[list[float], list[float]] = ([], [])
    for episode, place in zip(asked, nearest, strict=True):
        label = orjson.loads(orjson.dumps(known.truth(stored[place].task_id).expected_output))
        task_input, truth = other.full_input(episode), other.truth(episode.task_id)
        for values, answer in zip(scores, (label, with_names(label, names)), strict=True):
            values.append(scorer(answer, truth, task_input).value)
    return fmean(scores[0]), fmean(scores[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("known", type=Path)
    parser.add_argument("others", type=Path, nargs="+")
    parser.add_argument("--episodes", type=int, default=200)
    arguments = parser.parse_args()
    known, others = load_edition(arguments.known), [load_edition(path) for path in arguments.others]
    highest = 0.0
    for subtask in subtasks():
        if Profile.CERTIFIED not in subtask.scorers or subtask.name not in known.sub_tasks:
            continue
        pairs = [earned(known, each, subtask, arguments.episodes) for each in others if subtask.name in each.sub_tasks]
        highest = max(highest, *(max(pair) for pair in pairs))
        print(f"{subtask.name:28} {'  '.join(f'{plain:.3f} {named:.3f}' for plain, named in pairs)}", flush=True)
    print(f"As it stands, and renamed. Highest: {highest:.3f} (at most {MOST})")


if __name__ == "__main__":
    main()

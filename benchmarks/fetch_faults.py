"""A hundred faults at random places of a fetch: half files, wrong editions, and questions asked twice. None is the aim.

Each trial fetches a few names of the synthetic collection from a loopback server, is broken once (a bad answer of
fifteen kinds, kill -9, a full disk, a file altered by hand), looks at what is left, and fetches again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fetch.trials import KINDS, Course, Trial
from tests.fetch.world import World

from finskillbench.fetch.configuration import Window
from finskillbench.sources.synthetic import write_collection


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--companies", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw"
        write_collection(raw, seed=1, names=30)
        world = World(raw)
        names = sorted(world.ciks)[: asked.names]
        window = Window(date(2025, 12, 1), date(2025, 12, 31))
        course = Course(world, Path(folder) / "trials", names, window)
        print(
            f"{asked.faults} faults, seed {asked.seed}; a fetch of {asked.names} names asks {course.requests} questions"
        )
        trials = [course.run(number, asked.seed) for number in range(asked.faults)]
    kinds = Counter(trial.kind for trial in trials)
    stopped = Counter(trial.kind for trial in trials if trial.ended != "done")
    print(f"{'fault':<18}{'trials':>7}{'stopped':>9}{'broken':>8}")
    for kind in KINDS:
        wrong = sum(bool(trial.broken) for trial in trials if trial.kind == kind)
        print(f"{kind:<18}{kinds[kind]:>7}{stopped[kind]:>9}{wrong:>8}")
    half = sum("half a file" in what for trial in trials for what in trial.broken)
    print(f"half files {half}, trials with other files or a wrong edition {_wrong(trials)}, ", end="")
    print(f"questions for what was there {sum(trial.twice for trial in trials)}")
    for trial in trials:
        for what in trial.broken:
            print(f"  {trial.kind} at question {trial.at}: {what}; it had ended: {trial.ended[:200]}")
    if any(trial.broken for trial in trials):
        raise SystemExit(1)


def _wrong(trials: list[Trial]) -> int:
    return sum(any("other files" in what or "built" in what for what in trial.broken) for trial in trials)


if __name__ == "__main__":
    main()

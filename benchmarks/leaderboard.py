"""Time to read, judge and show bundles, against zipfile and hashlib alone on the same members.

    python benchmarks/leaderboard.py EDITION

Measured: a bundle of 25,000 and of 50,000 members; a bundle of 17,820 rows with a trajectory for each; a leaderboard of
100 whole bundles, 17,820 rows or more together, with trajectories. Bundles are made from one run of the reference
program on the first 14 episodes of each subtask. Seconds are of the processor: others may be at work. Exit code 1 if a
requirement fails.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import count, islice
from pathlib import Path
from string import ascii_lowercase

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.editions import first_episodes

from finskillbench import load_edition, run
from finskillbench.edition import Edition
from finskillbench.publish.bundle import (
    ANSWERS,
    MANIFEST,
    ROWS,
    AnswerRecord,
    File,
    Participant,
    Submitter,
    encode_manifest,
)
from finskillbench.publish.bundle.archive import write_bundle
from finskillbench.publish.bundle.judge import judge_bundle
from finskillbench.publish.bundle.read import Bundle, read_bundle
from finskillbench.publish.bundle.write import submit_run
from finskillbench.publish.leaderboard import gather_bundles, write_site
from finskillbench.runs.store.rows import Row, table_bytes, to_frame, with_digest

EPISODES, BUNDLES, ROWS_OF_A_RUN, MEMBERS = 14, 100, 17_820, 50_000
REQUIRED_MEMBERS_SECONDS, REQUIRED_BOARD_SECONDS, REQUIRED_GROWTH, REQUIRED_RATIO = 20.0, 60.0, 2.5, 5.0
Played = Sequence[tuple[Row, AnswerRecord]]


def renamed(base: Bundle, model: str, repeat: int = 0) -> Iterator[tuple[Row, AnswerRecord]]:
    """The rows of a bundle with their answers, under another model and repeat."""
    for row, answer in zip(base.rows, base.answers, strict=True):
        yield (
            with_digest(replace(row, model=model, run_idx=repeat)),
            msgspec.structs.replace(answer, model=model, run_idx=repeat),
        )


def write(out: Path, base: Bundle, played: Played, name: str, trajectories: Mapping[str, bytes]) -> Path:
    """Write a bundle of some rows; unsigned."""
    files = {
        ROWS: table_bytes(to_frame(row for row, _ in played)),
        ANSWERS: b"".join(msgspec.json.encode(answer) + b"\n" for _, answer in played),
        **trajectories,
    }
    manifest = msgspec.structs.replace(
        base.manifest,
        submitter=Submitter(name=name),
        entrants=tuple(
            Participant(model=model, arguments=arguments)
            for model, arguments in dict.fromkeys((row.model, row.arguments) for row, _ in played)
        ),
        rows=len(played),
        files={path: File(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for path, data in files.items()},
    )
    write_bundle({MANIFEST: encode_manifest(manifest), **files}, out)
    return out


def read_alone(path: Path) -> float:
    """Seconds of zipfile and hashlib alone for all members."""
    start = time.process_time()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            hashlib.sha256(archive.read(name)).digest()
    return time.process_time() - start


def timed_read(path: Path) -> tuple[Bundle, float]:
    """The bundle and the seconds that its reading takes."""
    start = time.process_time()
    return read_bundle(path, unsigned=True), time.process_time() - start


def members(folder: Path, base: Bundle) -> bool:
    """Return True if many small members are read in time, in proportion to their number."""
    seconds: list[float] = []
    played = list(renamed(base, "lab/small"))
    for number in (MEMBERS // 2, MEMBERS):
        small = {f"trajectories/a/{place:05}.json.gz": b"%d" % place for place in range(number - 3)}
        path = write(folder / f"members-{number}.zip", base, played, "small", small)
        alone = read_alone(path)
        seconds.append(timed_read(path)[1])
        size = path.stat().st_size / 1e6
        print(f"{number:,} members, {size:.1f} MB: read {seconds[-1]:.2f} s; zipfile alone {alone:.2f} s")
    growth, ratio = seconds[1] / seconds[0], seconds[1] / alone
    print(f"growth {growth:.2f}x for twice as many; {ratio:.1f}x of zipfile alone")
    return seconds[1] <= REQUIRED_MEMBERS_SECONDS and growth <= REQUIRED_GROWTH and ratio <= REQUIRED_RATIO


def whole_run(folder: Path, base: Bundle, edition: Edition, trajectories: Sequence[bytes]) -> None:
    """Print what a bundle of a whole run takes."""
    repeats = (each for repeat in count() for each in renamed(base, "lab/whole", repeat))
    played = list(islice(repeats, ROWS_OF_A_RUN))
    files = {row.item.trajectory: trajectories[place % len(trajectories)] for place, (row, _) in enumerate(played)}
    path = write(folder / "whole.zip", base, played, "whole", files)
    alone = read_alone(path)
    bundle, reading = timed_read(path)
    cut = msgspec.structs.replace(bundle.manifest, partial="its last repeat is cut")
    start = time.process_time()
    judge_bundle(replace(bundle, manifest=cut), edition)
    judging = time.process_time() - start
    print(
        f"{len(bundle.rows):,} rows with trajectories, {path.stat().st_size / 1e6:.0f} MB: read {reading:.1f} s "
        f"(zipfile alone {alone:.1f} s), judged {judging:.1f} s"
    )


def board(folder: Path, base: Bundle, edition: Edition, trajectories: Sequence[bytes]) -> bool:
    """Return True if a leaderboard of many bundles is built in time."""
    paths: list[Path] = []
    for number in range(BUNDLES):
        played = list(renamed(base, f"lab/model-{number}"))
        files = {row.item.trajectory: data for (row, _), data in zip(played, trajectories, strict=True)}
        name = f"lab-{ascii_lowercase[number // 26]}{ascii_lowercase[number % 26]}"
        paths.append(write(folder / f"{number}.zip", base, played, name, files))
    start = time.process_time()
    gathered = gather_bundles(paths, edition, unsigned=True)
    between = time.process_time()
    write_site(gathered, edition, folder / "site", today=date(2026, 1, 1))
    taken, whole = between - start, time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rows = sum(len(each.rows) for each in gathered.taken)
    print(f"{BUNDLES} bundles, {rows:,} rows: {whole:.1f} s, {taken:.1f} s of them to read and judge; {peak:.0f} MB")
    return whole <= REQUIRED_BOARD_SECONDS and rows >= ROWS_OF_A_RUN


def main() -> int:
    """Measure, print, and say by the exit code whether the requirements hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("edition", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edition = load_edition(first_episodes(arguments.edition, folder / "edition", EPISODES))
        run(edition, ["baseline/reference"], ["no_skill"], out=folder / "run")
        submit_run(folder / "run", edition, folder / "base.zip", Submitter(name="base"), key=None)
        base = read_bundle(folder / "base.zip", unsigned=True)
        trajectories = [(folder / "run" / row.item.trajectory).read_bytes() for row in base.rows]
        good = members(folder, base)
        whole_run(folder, base, edition, trajectories)
        good &= board(folder, base, edition, trajectories)
    print(
        f"required: {MEMBERS:,} members in {REQUIRED_MEMBERS_SECONDS:.0f} s, growth of {REQUIRED_GROWTH}x, "
        f"{REQUIRED_RATIO:.0f}x of zipfile alone; {BUNDLES} bundles in {REQUIRED_BOARD_SECONDS:.0f} s"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

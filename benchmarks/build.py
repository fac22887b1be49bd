"""Time and memory of `data build --source synthetic`, from raw files to proved truth, by size of the universe.

    python benchmarks/build.py [NAMES ...]      default: 30 500

Each size is built in a process of its own. Required for 30 names, all 2,603 episodes: under 60 s on two cores, and
1 GB. Larger sizes are reported; one of 3,000 names takes a long while and several GB.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SECONDS, MEGABYTES = 60.0, 1024.0

_CHILD = """
import resource, sys, time
from pathlib import Path
from finskillbench.edition import build_edition

steps = []
start = time.perf_counter()
build_edition(source="synthetic", seed=1, names=int(sys.argv[1]), out=Path(sys.argv[2]),
              progress=lambda step: steps.append((time.perf_counter() - start, step)))
end = time.perf_counter() - start
for (begin, step), (stop, _) in zip(steps, [*steps[1:], (end, "")]):
    print(f"    {step:<40} {stop - begin:8.2f} s")
print(f"total {end} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
"""


def main(sizes: list[int]) -> None:
    """Build one edition of each size and print its steps, time and peak memory."""
    for names in sizes:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", _CHILD, str(names), str(Path(folder) / "edition")]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{names} names: the build failed with code {done.returncode}, see above")
        *steps, total = done.stdout.splitlines()
        seconds, megabytes = (float(value) for value in total.split()[1:])
        print(f"{names} names", *steps, sep="\n")
        required = f"   required: under {SECONDS:.0f} s and {MEGABYTES:.0f} MB" if names == 30 else ""
        print(f"    in all {seconds:.1f} s, peak {megabytes:.0f} MB{required}", flush=True)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [30, 500])

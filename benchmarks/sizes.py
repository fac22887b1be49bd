"""What an edition costs by the size of its universe: seconds and peak memory of each domain, and how both grow.

    python benchmarks/sizes.py [NAMES ...] [--plot FILE.svg|FILE.png] [--rows FILE.jsonl]   default: 30 120 500 3000

Each size is built from synthetic files in a process of its own, with one core, so that no domain is built in another
process. Processor seconds stand beside those of the clock: they are the same on a machine that others use too, and the
growth is theirs. A domain's memory is the most that the process holds while it works on it. With `--rows`, sizes that
the file holds already are not built again, and new ones are added to it.

Required: growth of each domain between 30 and 3,000 names by no more than names to the power of 1.2 (least squares on
logarithms, over all sizes built); 30 names in 60 s and 1 GB; 3,000 names in 30 minutes and 6 GB. Exit code
1 if a domain grows faster, or 3,000 names take more memory.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SIZES, EXPONENT = (30, 120, 500, 3000), 1.2
REQUIRED = {30: (60.0, 1024.0), 3000: (1800.0, 6144.0)}
"""Seconds of the clock and MB."""
RAW = "raw files and panels"

_CHILD = """
import json, os, sys, time
from pathlib import Path
from finskillbench.edition import build_edition

def peak():
    # The most memory since the last call, in MB.
    most = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(most.split()[1]) / 1024

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
steps = []
def progress(step):
    steps.append((step, time.perf_counter(), time.process_time(), peak()))
build_edition(source="synthetic", seed=1, companies=int(sys.argv[1]), out=Path(sys.argv[2]), progress=progress)
progress("")
print(json.dumps(steps))
"""


def measured(names: int) -> dict[str, Any]:
    """Build one size; by step its seconds, processor seconds and peak MB."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "build_one.py"
        script.write_text(_CHILD, encoding="utf-8")
        command = [sys.executable, str(script), str(names), str(Path(folder) / "edition")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{names} names: the build failed with code {done.returncode}, see above")
    measures = json.loads(done.stdout.splitlines()[-1])
    begun, ended = measures[:-1], measures[1:]
    steps = [
        (step, stop - start, spent - before, most)
        for (step, start, before, _), (_, stop, spent, most) in zip(begun, ended, strict=True)
    ]
    return {"names": names, "steps": steps}


def by_domain(row: dict[str, Any]) -> dict[str, list[float]]:
    """Domain -> seconds, processor seconds, peak MB; what comes before the first domain under `RAW`."""
    found: dict[str, list[float]] = {}
    domain = RAW
    for step, seconds, spent, most in row["steps"]:
        domain = step.removeprefix("preparing ") if step.startswith("preparing") else domain
        so_far = found.setdefault(domain, [0.0, 0.0, 0.0])
        found[domain] = [so_far[0] + seconds, so_far[1] + spent, max(so_far[2], most)]
    return found


def exponent(points: list[tuple[int, float]]) -> float:
    """The power of names by which a cost grows; NaN for fewer than two sizes."""
    if len({names for names, _ in points}) < 2:
        return math.nan
    logs = np.log(np.array(points, dtype=float))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def report(rows: list[dict[str, Any]]) -> bool:
    """Print what every size cost and the growth of each domain; whether what is required holds."""
    kept = True
    costs: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        names = row["names"]
        print(f"{names} names{'':<30}{'seconds':>12}{'processor s':>12}{'peak MB':>10}")
        for domain, (seconds, spent, most) in by_domain(row).items():
            costs.setdefault(domain, []).append((names, spent))
            print(f"    {domain:<36}{seconds:12.1f}{spent:12.1f}{most:10.0f}")
        total, spent, most = (
            sum(s[1] for s in row["steps"]),
            sum(s[2] for s in row["steps"]),
            max(s[3] for s in row["steps"]),
        )
        print(f"    {'all':<36}{total:12.1f}{spent:12.1f}{most:10.0f}", end="")
        seconds, megabytes = REQUIRED.get(names, (math.inf, math.inf))
        print(f"   required: {seconds:.0f} s, {megabytes:.0f} MB" if names in REQUIRED else "")
        kept &= names != max(REQUIRED) or most <= megabytes
    print(f"growth of processor seconds with names; required of each domain: at most {EXPONENT}")
    for domain, points in costs.items():
        power = exponent(points)
        print(f"    {domain:<36}{power:12.2f}")
        kept &= domain == RAW or not power > EXPONENT
    return kept


def draw(rows: list[dict[str, Any]], file: Path) -> None:
    """Processor seconds by names, a line for each domain on logarithmic axes, with the slope that is allowed."""
    from finskillbench.reports.figures.scatter import Scale, draw_axes
    from finskillbench.reports.figures.svg import Drawing, png

    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        for domain, (_, spent, _) in by_domain(row).items():
            lines.setdefault(domain, []).append((row["names"], max(spent, 0.1)))
    sizes = [row["names"] for row in rows]
    every = [spent for points in lines.values() for _, spent in points]
    drawing = Drawing(820, 430)
    labels = [f"{domain} (power {exponent(points):.2f})" for domain, points in lines.items()]
    top = 14 + drawing.legend(labels, (72, 14), lines=True, width=730)
    across = Scale(min(sizes) / 1.3, max(sizes) * 1.3, 62, 792, log=True)
    up = Scale(min(every) / 1.5, max(every) * 1.5, 378, top, log=True)
    draw_axes(drawing, across, up, "names", "processor seconds")
    least = min(points[0][1] for points in lines.values())
    allowed = [(names, least * (names / sizes[0]) ** EXPONENT) for names in sizes]
    drawing.path([(across(x), up(y)) for x, y in allowed], "zero")
    for series, points in enumerate(lines.values()):
        drawing.path([(across(x), up(y)) for x, y in points], f"d{series}")
        for x, y in points:
            with drawing.tooltip(f"{x} names: {y:.1f} s"):
                drawing.mark((across(x), up(y)), series)
    svg = drawing.file("Cost of an edition by names", f"Thin line: growth by names to the power of {EXPONENT}.")
    if file.suffix == ".png":
        file.write_bytes(png(svg))
    else:
        file.write_text(svg, encoding="utf-8")
    print(f"drawn: {file}")


def main() -> None:
    """Build the sizes that are asked for, print and draw what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", type=int, default=SIZES)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--rows", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.rows is not None and given.rows.exists():
        rows = [json.loads(line) for line in given.rows.read_text(encoding="utf-8").splitlines()]
    for names in sorted(set(given.names) - {row["names"] for row in rows}):
        rows.append(measured(names))
        if given.rows is not None:
            with given.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    rows.sort(key=lambda row: row["names"])
    kept = report(rows)
    if given.plot is not None:
        draw(rows, given.plot)
    raise SystemExit(0 if kept else 1)


if __name__ == "__main__":
    main()

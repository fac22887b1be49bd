"""Cost of a large library, precision of chance, and whether the reference program finds its skill in it.

Run: python benchmarks/library.py EDITION [--library DIR] [--pairs N] [--size N]

Listing: tool specifications of one episode, token estimates of its call, and the check of its condition, in the process
time of one turn. Run time: the same program on the same episodes under `library:SIZE` and under `curated`, as median of
the ratios of pairs that alternate which is first. Precision: `baseline/random_loader` under several sizes against the
share of relevant packages, with the interval of the report.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from finskillbench import load_edition, run
from finskillbench.analysis.library import precision_and_recall
from finskillbench.analysis.results import collect
from finskillbench.domains import domains
from finskillbench.edition import Edition
from finskillbench.harness.conditions import Mount, mount_all, package_names, prove_mount
from finskillbench.harness.model import Message
from finskillbench.harness.prompts.tokens import input_tokens
from finskillbench.harness.proof import prove_arms
from finskillbench.harness.tools.contracts import tool_specs

REQUIRED_MILLISECONDS, REQUIRED_RATIO = 2.0, 1.10
REFERENCE = "baseline/reference"
SIZES = (5, 20, 100, 400)


def listing(mounted: Mount, domain: str, times: int = 200) -> float:
    """Return the median milliseconds of one listing."""
    messages, found = [Message("user", "x" * 8_000)], list[float]()
    for _ in range(times):
        started = time.process_time()
        offered = mounted.for_domain(domain)
        tools = tool_specs(offered, domain)
        prove_mount(offered, tools, domain)
        input_tokens(messages, tools)
        found.append((time.process_time() - started) * 1_000)
    return statistics.median(found)


def timed(edition: Edition, condition: str, library: Path | None) -> float:
    """Return the seconds of a run of the reference program, from the reading of packages to the table of rows."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run(edition, [REFERENCE], [condition], library=library if ":" in condition else None, out=Path(folder) / "run")
        return time.perf_counter() - started


def main() -> int:
    """Print each measurement next to its requirement; exit code 1 if one is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("edition", type=Path)
    parser.add_argument("--library", type=Path, help="folder of public packages")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs (default: 7)")
    parser.add_argument("--size", type=int, default=400, help="packages of the library (default: 400)")
    options = parser.parse_args()
    edition, condition = load_edition(options.edition), f"library:{options.size}"
    mount_all(["curated"])
    started = time.perf_counter()
    mounts = mount_all(["curated", condition], library=options.library)
    print(f"{condition} mounted in {time.perf_counter() - started:.2f} s", end=", ")
    started = time.perf_counter()
    prove_arms(mounts, [domain.name for domain in domains()])
    print(f"proved in {time.perf_counter() - started:.2f} s for {len(domains())} domains")
    domain = edition.episodes()[0].skill
    few, many = (listing(mounts[name], domain) for name in ("curated", condition))
    print(f"listing: {many:.3f} ms, curated {few:.3f} ms; required: at most {REQUIRED_MILLISECONDS:.1f} ms more")
    ratios = list[float]()
    for number in range(options.pairs):
        order = ("curated", condition) if number % 2 else (condition, "curated")
        seconds = {name: timed(edition, name, options.library) for name in order}
        ratios.append(seconds[condition] / seconds["curated"])
    ratio = statistics.median(ratios)
    print(
        f"run time of {REFERENCE}: {ratio:.3f} of curated (median of {', '.join(f'{each:.2f}' for each in ratios)}); "
        f"required: at most {REQUIRED_RATIO:.2f}"
    )
    conditions = [f"library:{size}" for size in SIZES]
    with tempfile.TemporaryDirectory() as folder:
        models = [REFERENCE, "baseline/random_loader"]
        rows = run(edition, models, conditions, library=options.library, out=Path(folder) / "run").rows
    found = precision_and_recall(collect(rows), ["model", "condition"])
    chance_holds = True
    for size in SIZES:
        lines = {line["model"]: line for line in found.filter(condition=f"library:{size}").iter_rows(named=True)}
        random, expected = lines[models[1]], len(package_names(domain)) / size
        low, high = random["loaded_precision_low"], random["loaded_precision_high"]
        chance_holds &= low <= expected <= high
        score = rows.filter(model=REFERENCE, condition=f"library:{size}")["score"].mean()
        print(
            f"library:{size}: random loader's precision {random['loaded_precision']:.4f} [{low:.4f}, {high:.4f}], "
            f"chance {expected:.4f}; {REFERENCE}: precision {lines[REFERENCE]['loaded_precision']:.3f}, "
            f"recall {lines[REFERENCE]['loaded_recall']:.3f}, mean score {score:.3f}"
        )
    return int(many - few > REQUIRED_MILLISECONDS or ratio > REQUIRED_RATIO or not chance_holds)


if __name__ == "__main__":
    sys.exit(main())

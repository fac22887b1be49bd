"""Whether other universes build: random names of a real collection, 30 and 15 of them, with every portfolio subtask."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from finskillbench.domains import domain
from finskillbench.domains.building import BuildContext
from finskillbench.panels import build_panels
from finskillbench.sources.market import load_market
from finskillbench.sources.statements import parse_statements
from finskillbench.sources.universe import load_universe


def build(raw: Path, size: int, seed: int) -> str:
    """Build a random universe from the files of a collection; what came of it, in a line."""
    universe = load_universe(raw)
    files = sorted((raw / "statements_derived").glob("*.json"))
    statements = {path.stem for path in files if parse_statements(path)[0].gap() is None}
    prices = {path.name.split(".")[0] for path in (raw / "prices").glob("ohlcv*/*.csv.gz")}
    sector = {
        symbol: name
        for group in (universe.names, universe.alternates)
        for name, symbols in group.items()
        for symbol in symbols
        if symbol in statements & prices
    }
    names = np.random.default_rng(seed).permutation(sorted(sector))[:size].tolist()
    sectors = {
        name: {"names": [s for s in names if sector[s] == name], "alternates": [s for s in sector if s not in names]}
        for name in sorted({sector[s] for s in names})
    }
    for name, entry in sectors.items():
        entry["alternates"] = [s for s in entry["alternates"] if sector[s] == name]
    with tempfile.TemporaryDirectory() as folder:
        for part in raw.iterdir():
            if part.is_dir():
                (Path(folder) / part.name).symlink_to(part)
        known = set(universe.symbols()) - set(names) - {s for e in sectors.values() for s in e["alternates"]}
        first = next(iter(sectors.values()))
        first["alternates"] += sorted(known)  # every file's ticker must be listed somewhere
        (Path(folder) / "universe.json").write_text(json.dumps({"sectors": sectors}))
        context = BuildContext(build_panels(load_market(Path(folder))), seed)
    objects = domain("portfolio_construction").prepare(context)
    counts = [len(task.build(context, objects)) for task in domain("portfolio_construction").subtasks if task.build]
    return f"{len(sectors)} sectors, episodes {counts}, {len(context.notes)} notes"


def main() -> None:
    """Try eight universes of each size; the collection's folder is the argument."""
    with threadpool_limits(1):
        for size in (30, 15):
            for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 8):
                start = time.perf_counter()
                print(
                    f"{size} names, seed {seed}: {build(Path(sys.argv[1]).resolve(), size, seed)}", end="", flush=True
                )
                print(f", {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()

"""Whether other universes build: random names of a real collection, built as a stranger's files would be.

Each universe is a folder with the files of its own names only, 15 to as many as have prices and statements. The market
half is built whole, labels proved and derived a second time, and written; `--full N` builds the filings with the first
N too, and `--thin` tries only what can refuse a universe, in a third of the time. A refusal is an outcome, and has to
be one line; anything else that is raised stops the benchmark.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from finskillbench.domains import domain
from finskillbench.domains.building import BuildContext
from finskillbench.domains.risk.catalogs import risk_settings
from finskillbench.domains.risk.objects.construct import construct
from finskillbench.edition.build import build_edition, refuse_small_universe
from finskillbench.edition.checks.engine import validate_edition
from finskillbench.errors import SourceError
from finskillbench.findings import CheckState
from finskillbench.panels import build_panels
from finskillbench.sources.companies.statements import parse_statements
from finskillbench.sources.companies.universe import load_universe
from finskillbench.sources.files import files_below, ticker_of
from finskillbench.sources.market.collection import load_market
from finskillbench.sources.market.prices import SUFFIXES, has_ohlcv

SMALLEST = 15
_FEW = 8
"""Risk portfolios of a type, where a build draws 40."""
_SHARED = ("famafrench", "fred", "constituents")
_FILINGS = ("companyfacts", "submissions", "xbrl")


class Collection:
    """The names of a collection that have prices and statements, with their sectors and files."""

    def __init__(self, raw: Path) -> None:
        self.raw = raw
        universe = load_universe(raw)
        self.statements = {
            ticker_of(path): path
            for path in files_below(raw / "statements_derived", (".json",))
            if parse_statements(path)[0].gap() is None
        }
        self.prices: dict[str, list[Path]] = {}
        for path in files_below(raw / "prices", SUFFIXES):
            if has_ohlcv(path):
                self.prices.setdefault(ticker_of(path), []).append(path)
        self.sectors: Mapping[str, str] = {
            symbol: sector
            for group in (universe.names, universe.alternates)
            for sector, symbols in group.items()
            for symbol in symbols
            if symbol in self.statements and symbol in self.prices
        }

    def universe(self, seed: int) -> list[str]:
        """Random names, so many as a random size says."""
        rng = np.random.default_rng(seed)
        size = int(rng.integers(SMALLEST, len(self.sectors) + 1))
        return sorted(rng.permutation(sorted(self.sectors))[:size].tolist())

    def write(self, names: list[str], folder: Path, filings: bool) -> None:
        """A collection of these names, its files linked."""
        for part in (*_SHARED, *(_FILINGS if filings else ())):
            (folder / part).symlink_to(self.raw / part)
        (folder / "statements_derived").mkdir()
        for name in names:
            (folder / "statements_derived" / f"{name}.json").symlink_to(self.statements[name])
            for path in self.prices[name]:
                beside = folder / "prices" / path.parent.name
                beside.mkdir(parents=True, exist_ok=True)
                (beside / path.name).symlink_to(path)
        sectors = {
            sector: {"names": [name for name in names if self.sectors[name] == sector]}
            for sector in dict.fromkeys(self.sectors[name] for name in names)
        }
        (folder / "universe.json").write_text(json.dumps({"sectors": sectors}))


def whole(raw: Path, seed: int, out: Path, validate: bool) -> dict[str, int]:
    """Build the edition, and have every label of it proved again: episodes by subtask, and checks that failed."""
    edition = build_edition(source="raw-dir", raw_dir=raw, seed=seed, out=out)
    failed = {"failed checks": validate_edition(edition).counts[CheckState.FAIL]} if validate else {}
    return {**edition.manifest["counts"], **failed}


def thin(raw: Path, seed: int) -> dict[str, int]:
    """Panels, every portfolio subtask and a fifth of the risk portfolios, in memory: whatever can refuse a universe."""
    market = load_market(raw)
    refuse_small_universe(market, raw)
    context = BuildContext(build_panels(market), seed)
    portfolio = domain("portfolio_construction")
    objects = portfolio.prepare(context)
    counts = {task.name: len(list(task.build(context, objects))) for task in portfolio.subtasks if task.build}
    drawn = construct(context, {**risk_settings(), "portfolios_per_type": _FEW})
    return {**counts, "risk portfolios": len(drawn.portfolios)}


def outcome(collection: Collection, seed: int, given: argparse.Namespace) -> str:
    """What came of one random universe, in a line."""
    names = collection.universe(seed)
    what = f"{len(names)} names in {len({collection.sectors[name] for name in names})} sectors"
    with tempfile.TemporaryDirectory() as place:
        raw = Path(place, "raw")
        raw.mkdir()
        collection.write(names, raw, seed - given.first < given.full)
        try:
            counts = thin(raw, seed) if given.thin else whole(raw, seed, Path(place, "edition"), given.validate)
        except SourceError as error:
            return f"{what}: REFUSED {error}"
    return f"{what}: {', '.join(f'{name} {count}' for name, count in counts.items())}"


def main() -> None:
    """Build the universes of so many seeds; a line each, then how many built."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--full", type=int, default=0, help="how many with their filings")
    parser.add_argument("--thin", action="store_true", help="a fifth of the risk portfolios, and no episodes of theirs")
    parser.add_argument("--validate", action="store_true", help="validate what is built whole")
    given = parser.parse_args()
    collection = Collection(given.raw.resolve())
    print(f"{len(collection.sectors)} names have prices and statements", flush=True)
    built = 0
    with threadpool_limits(1):
        for seed in range(given.first, given.first + given.count):
            start = time.process_time()
            told = outcome(collection, seed, given)
            built += "REFUSED" not in told
            print(f"seed {seed}: {told}, {time.process_time() - start:.0f} CPU-s", flush=True)
    print(f"{built} of {given.count} built")


if __name__ == "__main__":
    main()

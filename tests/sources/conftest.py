"""One written synthetic collection for the whole directory, and a part of it that is read in a third of the time."""

import shutil
from pathlib import Path

import orjson
import pytest

from finskillbench.sources.market.collection import MarketData, load_market
from finskillbench.sources.synthetic import SyntheticMarket, simulate, write_collection

SEED = 7


@pytest.fixture(scope="session")
def truth() -> SyntheticMarket:
    return simulate(SEED)


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A written collection; tests that spoil files copy it first."""
    folder = tmp_path_factory.mktemp("synthetic") / "raw"
    write_collection(folder, seed=SEED)
    return folder


@pytest.fixture(scope="session")
def real(realdata: Path) -> MarketData:
    """The market of the real collection."""
    return load_market(realdata)


@pytest.fixture(scope="session")
def few(collection: Path, truth: SyntheticMarket, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nine names of its first two sectors: what a file must be does not hang on how many there are."""
    folder = tmp_path_factory.mktemp("few") / "raw"
    shutil.copytree(collection, folder, ignore=shutil.ignore_patterns("companyfacts", "submissions", "xbrl"))
    record = orjson.loads((collection / "universe.json").read_bytes())
    record["sectors"] = dict(list(record["sectors"].items())[:2])
    kept = {name for sector in record["sectors"].values() for name in sector["names"]}
    record["securities"] = {name: one for name, one in record["securities"].items() if name in kept}
    (folder / "universe.json").write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2))
    for security in truth.securities:
        if security.symbol in kept:
            for name in ("companyfacts", "submissions"):
                (folder / name).mkdir(exist_ok=True)
                shutil.copy(collection / name / f"CIK{security.cik}.json", folder / name)
            shutil.copytree(collection / "xbrl" / security.symbol, folder / "xbrl" / security.symbol)
        else:
            (folder / "prices" / f"{security.symbol}.csv").unlink()
            (folder / "statements_derived" / f"{security.symbol}.json").unlink()
    return folder

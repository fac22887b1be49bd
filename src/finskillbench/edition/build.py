"""Building an edition: raw files → panels → truth → episodes, in one pass."""

from __future__ import annotations

import gc
import importlib.metadata
import tempfile
from collections.abc import Callable, Collection
from datetime import date
from pathlib import Path
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from finskillbench.domains import catalog_files, domains, subtasks
from finskillbench.domains.building import BuildContext
from finskillbench.domains.catalog import Catalog, examine_catalog, read_catalog_folder
from finskillbench.edition.handed_out import check_cluster, hand_out
from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.parts import build_parts
from finskillbench.edition.store import (
    CATALOG,
    LARGEST,
    digest_files,
    digest_of,
    new_folder,
    write_manifest,
)
from finskillbench.errors import CatalogError, InputError, SourceError
from finskillbench.garbage import seldom_sought
from finskillbench.panels import Panels, build_panels, read_panels, write_panels
from finskillbench.panels.build import with_filings
from finskillbench.panels.store import write_filings
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.market.collection import MarketData, load_market
from finskillbench.sources.public.store.journal import Fetched, verified
from finskillbench.sources.synthetic import write_collection

DEFAULT_SEED = 1
DEFAULT_NAMES = 30
_LIBRARIES = ("numpy", "scipy", "polars", "clarabel", "scikit-learn")
_RAW_FOLDERS = (
    "prices",
    "famafrench",
    "french",
    "fred",
    "statements_derived",
    "statements",
    "constituents",
    "companyfacts",
    "submissions",
    "xbrl",
)
SMALLEST, LARGEST_UNIVERSE = 15, 3000
"""Names of a universe."""
FEWEST_SECTORS = 5

Progress = Callable[[str], None]


def build_edition(
    *,
    source: Literal["synthetic", "raw-dir"] = "synthetic",
    raw_dir: Path | None = None,
    seed: int = DEFAULT_SEED,
    names: int | None = None,
    catalog: Path | None = None,
    filed: tuple[date, date] | None = None,
    cluster: str | None = None,
    out: Path,
    progress: Progress = lambda step: None,
) -> Edition:
    """Build an edition into `out`.

    Parameters
    ----------
    source : where raw files come from: written from `seed`, or read from `raw_dir`.
    seed : drives the synthetic market and every draw of episodes; another seed is another benchmark.
    names : size of the universe, 15 to 3,000; default 30, or what the raw-dir's own universe file says.
    catalog : folder of own mandates, books, scenarios, tiers or texts, in place of what is built in or beside it.
    filed : first and last filing day of the reports that fundamental episodes are about; by default every report, or
        of a collection that `data fetch` made those of its months.
    cluster : address of the scheduler of a Dask cluster, whose workers build the labels; None: this machine does.
    progress : called with the name of each step as it starts.

    Raises
    ------
    SourceError : raw data that cannot be trusted, with file and line; a fetched file that was altered since.
    CatalogError : every mistake in the files of `catalog`, with file, line and remedy.
    InputError : unusable arguments; an `out` that is not empty or cannot be written; a cluster that cannot be reached,
        or whose workers cannot read `out` and `raw_dir`. Nothing is left half-written.
    """
    if names is not None and not SMALLEST <= names <= LARGEST_UNIVERSE:
        raise InputError(f"--names must lie between {SMALLEST} and {LARGEST_UNIVERSE}, not {names}")
    if seed < 0:
        raise InputError(f"--seed must not be negative, not {seed}")
    if seed > LARGEST:
        raise InputError(f"--seed must not be above {LARGEST}")
    if cluster is not None:
        check_cluster(cluster)
    own = Catalog() if catalog is None else read_catalog_folder(catalog, catalog_files())
    if source == "raw-dir":
        if raw_dir is None or not raw_dir.is_dir():
            raise InputError(f"--raw-dir must name a folder of raw files, not {raw_dir}")
        with new_folder(out) as folder:
            progress("checking what was fetched")
            fetched = _fetched(raw_dir)
            window = filed or (fetched.window if fetched else None)
            told = {"kind": source, **(fetched.told if fetched else {})}
            _build(raw_dir, folder, told, seed, names, own, window, cluster, progress)
    else:
        with new_folder(out) as folder, _raw_beside(folder) as raw:
            size = names or DEFAULT_NAMES
            progress("writing synthetic raw files")
            write_collection(Path(raw), seed=seed, names=size)
            _build(Path(raw), folder, {"kind": source, "names": size}, seed, size, own, filed, cluster, progress)
    return load_edition(out)


def _raw_beside(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A place for raw files, named after the staging folder so that what a killed build leaves is swept with it."""
    return tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.raw.")


def _build(
    raw: Path,
    folder: Path,
    source: dict[str, Any],
    seed: int,
    names: int | None,
    catalog: Catalog,
    filed: tuple[date, date] | None,
    cluster: str | None,
    progress: Progress,
) -> None:
    domains()  # loads every numerical library: the limit below holds only for those that are loaded by then
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1), seldom_sought():
        _write(raw, folder, source, seed, names, catalog, filed, cluster, progress)


def _write(
    raw: Path,
    folder: Path,
    source: dict[str, Any],
    seed: int,
    names: int | None,
    catalog: Catalog,
    filed: tuple[date, date] | None,
    cluster: str | None,
    progress: Progress,
) -> None:
    progress("reading raw files")
    market = load_market(raw, names=names) if has_prices(raw, names) else None
    if market is not None:
        refuse_small(market, raw)
    filings = load_filings(raw)
    progress("building panels")
    panels = build_panels(market, None, catalog.dates)
    del market
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        write_panels(with_filings(panels, write_filings(filings, Path(scratch))), folder / "panels")
    panels = read_panels(folder / "panels")
    gc.collect()  # a build looks for cyclic garbage seldom
    context = BuildContext(panels, seed, filings, catalog, source["kind"] == "synthetic", filed)
    if filed is not None:
        context.notes.append(f"Fundamental episodes are about reports filed from {filed[0]} to {filed[1]} alone.")
    left_out = _left_out(context)
    _examine(catalog, panels, left_out)
    chosen = [domain for domain in domains() if domain.name not in left_out]
    if cluster is None:
        parts = build_parts(context, chosen, folder, progress)
    else:
        parts = hand_out(cluster, context, chosen, folder, raw, progress)
    if not any(part.counts for part in parts):
        raise SourceError(raw, "not one episode can be built", remedy=" ".join(context.notes))
    names_of_all = [subtask.name for subtask in subtasks()]
    write_manifest(
        folder,
        {
            "source": source | {"raw_digest": _raw_digest(raw)},
            "seed": seed,
            **_kept(catalog, folder),
            **({"filed": [day.isoformat() for day in filed]} if filed else {}),
            "universe": list(panels.universe),
            "as_of_dates": [day.isoformat() for day in panels.month_ends],
            "counts": {name: part.counts[name] for name in names_of_all for part in parts if name in part.counts},
            "work": {name: part.work[name] for name in names_of_all for part in parts if name in part.work},
            "subtasks": names_of_all,
            "parameters": {name: value for part in parts for name, value in part.parameters.items()},
            "notes": [*panels.report.notes, *context.notes],
            "versions": versions(),
        },
    )


def _kept(catalog: Catalog, folder: Path) -> dict[str, Any]:
    """What the manifest tells of a catalog, whose files the edition keeps: it can be built again from itself."""
    if not catalog.files:
        return {}
    for name, data in catalog.files.items():
        path = folder / CATALOG / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    files = digest_files(folder / CATALOG)
    return {"catalog": {"digest": digest_of(files), "files": files}}


def has_prices(raw: Path, names: int | None = None) -> bool:
    """Whether a collection has the market half; without it an edition is of its filings alone.

    Raises
    ------
    SourceError : it has neither half, or `names` are to be chosen by prices that are not there.
    """
    if (raw / "prices").is_dir():
        return True
    if not (raw / "companyfacts").is_dir():
        raise SourceError(
            raw,
            "there is neither a folder prices nor a folder companyfacts",
            remedy="add one of them; `finskillbench data template OUT` shows the format of every file",
        )
    if names is not None:
        raise InputError(f"--names {names}: {raw} has no folder prices to choose names by; leave --names out")
    return False


def refuse_small(market: MarketData, raw: Path) -> None:
    """Refuse a universe too small for limits on names and sectors to mean anything.

    Raises
    ------
    SourceError : naming what it has and what is needed.
    """
    names, sectors = len(market.securities), len({security.sector for security in market.securities})
    if names < SMALLEST or sectors < FEWEST_SECTORS:
        raise SourceError(
            raw / "universe.json",
            f"{names} names in {sectors} sectors can be used where {SMALLEST} in {FEWEST_SECTORS} are needed",
            remedy="add names with prices and statements",
        )


def _left_out(context: BuildContext) -> set[str]:
    """Names of the domains that need what the panels were not built from; a note says so of each."""
    left_out: set[str] = set()
    for domain in domains():
        absent = [half for half in domain.needs if half not in context.panels.halves]
        if absent:
            left_out.add(domain.name)
            context.notes.append(f"{domain.title.capitalize()} is left out: the collection has no {absent[0]}.")
    return left_out


def _examine(catalog: Catalog, panels: Panels, left_out: Collection[str]) -> None:
    """Hold a catalog against the market, before anything is proved; CatalogError tells every mistake."""
    kinds = [(kind, one.name in left_out) for one in domains() for kind in one.catalog]
    unused = [kind.name for kind, left in kinds if left and catalog.of(kind) is not None]
    if unused:
        raise CatalogError([f"{name}: the collection has no prices; add them, or remove the file" for name in unused])
    examine_catalog(catalog, [kind for kind, left in kinds if not left], panels)


def _fetched(raw: Path) -> Fetched | None:
    """What `data fetch` wrote down of a collection, once every file of it is found as it was fetched."""
    names = [path for name in _RAW_FOLDERS for path in (raw / name).rglob("*") if path.is_file()]
    own = [raw / "universe.json"] if (raw / "universe.json").is_file() else []
    return verified(raw, [path.relative_to(raw).as_posix() for path in (*own, *names)])


def _raw_digest(raw: Path) -> str:
    return digest_of(
        {
            f"{name}/{path}": digest
            for name in _RAW_FOLDERS
            if (raw / name).is_dir()
            for path, digest in digest_files(raw / name).items()
        }
    )


def versions() -> dict[str, str]:
    """Versions of this package and of the libraries that a truth can depend on."""
    return {name: importlib.metadata.version(name) for name in ("finskillbench", *_LIBRARIES)}

"""Building an edition: raw files → panels → truth → episodes, in one pass."""

from __future__ import annotations

import gc
import importlib.metadata
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from finskillbench.domains import catalog_files, domains, subtasks, suites_named
from finskillbench.domains.base import Domain
from finskillbench.domains.catalog import Catalog, examine_catalog, read_catalog_folder
from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.parts import Order, Processes, build_parts, units_of
from finskillbench.edition.store import (
    CATALOG,
    LARGEST,
    digest_files,
    digest_of,
    new_folder,
    write_manifest,
)
from finskillbench.edition.without_truth import check_cluster, hand_out
from finskillbench.episode import PAPER_SUITE
from finskillbench.errors import CatalogError, InputError, SourceError
from finskillbench.garbage import relaxed_gc
from finskillbench.notebook import Bar
from finskillbench.panels import Panels, build_panels, read_panels, write_panels
from finskillbench.panels.build import with_filings
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.panels.store import write_filings
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.fetched import Fetched, verified
from finskillbench.sources.market.collection import MarketData, load_market
from finskillbench.sources.synthetic import write_collection

DEFAULT_SEED = 1
DEFAULT_NAMES = 30
_LIBRARIES = ("numpy", "scipy", "polars", "clarabel")
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
    suite: str = PAPER_SUITE,
    episodes: int | None = None,
    catalog: Path | None = None,
    filed: tuple[date, date] | None = None,
    cluster: str | None = None,
    out: Path,
    progress: Progress | None = None,
) -> Edition:
    """Build an edition into `out`.

    Parameters
    ----------
    source : where raw files come from: written from `seed`, or read from `raw_dir`.
    seed : drives the synthetic market and every draw of episodes; another seed is another benchmark.
    names : size of the universe, 15 to 3,000; default 30, or what the raw-dir's own universe file says.
    suite : the suite to build, or "all".
    episodes : most episodes of each subtask, for a quick look; None builds as many as the specification asks for.
    catalog : folder of own mandates, books, scenarios, tiers or texts, in place of what is built in or beside it.
    filed : first and last filing day of the reports that fundamental episodes are about; by default every report, or
        of a collection that `data fetch` made those of its months.
    cluster : address of the scheduler of a Dask cluster, whose workers build the labels; None: this machine does.
    progress : called with the name of each step as it starts; None: shown where a notebook does.

    Raises
    ------
    SourceError : raw data that cannot be trusted, with file and line; a fetched file that was altered since.
    CatalogError : every mistake in the files of `catalog`, with file, line and remedy.
    InputError : unusable arguments; an `out` that is not empty or cannot be written; a cluster that cannot be reached,
        or whose workers cannot read `out` and `raw_dir`. Nothing is left half-written.
    """
    progress = progress or Bar().show
    if names is not None and not SMALLEST <= names <= LARGEST_UNIVERSE:
        raise InputError(f"--names must lie between {SMALLEST} and {LARGEST_UNIVERSE}, not {names}")
    if seed < 0:
        raise InputError(f"--seed must not be negative, not {seed}")
    if seed > LARGEST:
        raise InputError(f"--seed must not be above {LARGEST}")
    if episodes is not None and episodes < 1:
        raise InputError(f"episodes must be at least 1, not {episodes}")
    if cluster is not None:
        check_cluster(cluster)
    chosen = tuple(one for one in domains() if one.suite in suites_named(suite))
    own = Catalog() if catalog is None else read_catalog_folder(catalog, catalog_files())
    _refuse_unused(own, chosen)
    if source == "raw-dir":
        if raw_dir is None or not raw_dir.is_dir():
            raise InputError(f"--raw-dir must name a folder of raw files, not {raw_dir}")
        request = _Request(raw_dir, {"kind": source}, seed, names, chosen, episodes, own, filed, cluster)
        _build_files(request, out, progress)
    else:
        with new_folder(out) as folder, _raw_beside(folder) as raw:
            size = names or DEFAULT_NAMES
            progress("writing synthetic raw files")
            write_collection(Path(raw), seed=seed, names=size)
            stated = {"kind": source, "names": size}
            _write(folder, _Request(Path(raw), stated, seed, size, chosen, episodes, own, filed, cluster), progress)
    return load_edition(out)


def build_sample(raw_dir: Path, chosen: Sequence[Domain], out: Path, progress: Progress) -> Edition:
    """Build one episode of each subtask of some domains from raw files, as `build_edition` does.

    Raises
    ------
    SourceError : as `build_edition` does of the files that these domains need.
    """
    request = _Request(raw_dir, {"kind": "raw-dir"}, DEFAULT_SEED, None, chosen, 1, Catalog(), None, None)
    _build_files(request, out, progress)
    return load_edition(out)


def _build_files(request: _Request, out: Path, progress: Progress) -> None:
    """Build from raw files, once every file that `data fetch` wrote is found as it was fetched."""
    with new_folder(out) as folder:
        progress("checking what was fetched")
        fetched = _fetched(request.raw)
        if fetched is not None:
            source = {**request.source, **fetched.told}
            request = replace(request, source=source, filed=request.filed or fetched.window)
        _write(folder, request, progress)


def _raw_beside(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A place for raw files, named after the staging folder so that what a killed build leaves is swept with it."""
    return tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.raw.")


def _refuse_unused(catalog: Catalog, chosen: Collection[Domain]) -> None:
    """Refuse a catalog file that only a domain of another suite reads."""
    unused = [
        f"{kind.name}: only the suite {one.suite} reads it; build that suite, or remove the file"
        for one in domains()
        if one not in chosen
        for kind in one.catalog
        if catalog.of(kind) is not None
    ]
    if unused:
        raise CatalogError(unused)


@dataclass(frozen=True, slots=True)
class _Request:
    """Arguments of one build, with the raw files in `raw` and the domains of its suites in `chosen`."""

    raw: Path
    source: Mapping[str, Any]
    seed: int
    names: int | None
    chosen: Sequence[Domain]
    episodes: int | None
    catalog: Catalog
    filed: tuple[date, date] | None
    cluster: str | None


def _write(folder: Path, request: _Request, progress: Progress) -> None:
    units = units_of(request.chosen)
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1), relaxed_gc(), Processes(len(units) - 1) as processes:
        panels = _write_panels(folder, request, processes, progress)
        gc.collect()  # a build looks for cyclic garbage seldom
        notes: list[str] = []
        if request.filed is not None:
            first, last = request.filed
            notes.append(f"Fundamental episodes are about reports filed from {first} to {last} alone.")
        buildable = _buildable(request.chosen, panels, notes)
        _examine(request, panels, buildable)
        order = Order(
            folder.resolve(),
            request.raw.resolve(),
            tuple(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()),
            request.seed,
            request.catalog,
            request.source["kind"] == "synthetic",
            request.filed,
            request.episodes,
        )
        if request.cluster is None:
            parts = build_parts(order, units_of(buildable), processes, progress)
        else:
            parts = hand_out(request.cluster, order, buildable, progress)
    notes += dict.fromkeys(note for part in parts for note in part.notes)
    if not any(part.counts for part in parts):
        why = " ".join((*panels.report.unusable, *notes))
        raise SourceError(request.raw, "not one episode can be built", remedy=why)
    names = [each.name for each in subtasks() if any(each in one.subtasks for one in request.chosen)]
    write_manifest(
        folder,
        {
            "source": {**request.source, "raw_digest": _raw_digest(request.raw)},
            "seed": request.seed,
            **_kept(request.catalog, folder),
            **({"filed": [day.isoformat() for day in request.filed]} if request.filed else {}),
            "universe": list(panels.universe),
            "as_of_dates": [day.isoformat() for day in panels.month_ends],
            "counts": {name: part.counts[name] for name in names for part in parts if name in part.counts},
            "work": {name: part.work[name] for name in names for part in parts if name in part.work},
            "subtasks": names,
            "parameters": {name: value for part in parts for name, value in part.parameters.items()},
            "notes": [*panels.report.notes, *panels.report.unusable, *notes],
            "versions": versions(),
        },
    )


def _write_panels(folder: Path, request: _Request, processes: Processes, progress: Progress) -> Panels:
    """Write the panels that the chosen domains need, those of the market and those of filings at the same time."""
    progress("reading raw files")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        has_market = has_prices(request.raw, request.names) and any("prices" in one.needs for one in request.chosen)
        filed = None
        if any("company facts" in one.needs for one in request.chosen):
            filed = processes.submit(_filed_panels, request.raw, Path(scratch))
        market = load_market(request.raw, names=request.names) if has_market else None
        if market is not None:
            refuse_small(market, request.raw)
        progress("building panels")
        panels = build_panels(market, None, request.catalog.dates)
        write_panels(panels if filed is None else with_filings(panels, filed.result()), folder / "panels")
    return read_panels(folder / "panels")


def _filed_panels(raw: Path, folder: Path) -> FundamentalPanels:
    """Build the panels of filings into a folder."""
    return write_filings(load_filings(raw), folder)


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


def _buildable(chosen: Sequence[Domain], panels: Panels, notes: list[str]) -> list[Domain]:
    """The domains whose needs the panels cover; a note names each of the others."""
    found: list[Domain] = []
    for one in chosen:
        absent = [half for half in one.needs if half not in panels.halves]
        if absent:
            unusable = absent[0] == "company facts" and panels.report.unusable
            why = "none of the company facts can be used" if unusable else f"the collection has no {absent[0]}"
            notes.append(f"{one.title.capitalize()} is left out: {why}.")
        else:
            found.append(one)
    return found


def _examine(request: _Request, panels: Panels, buildable: Sequence[Domain]) -> None:
    """Hold the catalog against the market, before anything is proved; CatalogError names every mistake."""
    left_out = [kind for one in request.chosen if one not in buildable for kind in one.catalog]
    unused = [kind.name for kind in left_out if request.catalog.of(kind) is not None]
    if unused:
        raise CatalogError([f"{name}: the collection has no prices; add them, or remove the file" for name in unused])
    examine_catalog(request.catalog, [kind for one in buildable for kind in one.catalog], panels)


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

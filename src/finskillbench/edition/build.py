"""Build an edition from raw files: panels, truth and episodes in one pass."""

from __future__ import annotations

import gc
import importlib.metadata
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any, Literal

from threadpoolctl import threadpool_limits

from finskillbench.domains import catalog_files, domains, subtasks, suites_named
from finskillbench.domains.base import Domain
from finskillbench.domains.catalog import Catalog, examine_catalog, read_catalog_folder
from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.parts import BuildSpec, Processes, build_parts, units_of
from finskillbench.edition.store import CATALOG, LARGEST, digest_files, digest_of, new_folder, write_manifest
from finskillbench.edition.without_truth import build_on_cluster, check_cluster
from finskillbench.episode import PAPER_SUITE, Disclosure
from finskillbench.errors import CatalogError, InputError, SourceError
from finskillbench.garbage import relaxed_gc
from finskillbench.notebook import Bar
from finskillbench.panels import Panels, build_panels, read_panels, write_panels
from finskillbench.panels.build import with_filings
from finskillbench.panels.filings.statements import FundamentalPanels
from finskillbench.panels.store import write_filings
from finskillbench.sources.edgar.collection import load_filings
from finskillbench.sources.fetched import FetchedCollection, verify_collection
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
"""Bounds on the number of companies in a universe."""
FEWEST_SECTORS = 5

Progress = Callable[[str], None]


# Longer than a screen: each argument is documented here, and only here.
def build_edition(
    *,
    source: Literal["synthetic", "raw-dir"] = "synthetic",
    raw_dir: Path | None = None,
    seed: int = DEFAULT_SEED,
    companies: int | None = None,
    suite: str = PAPER_SUITE,
    episodes: int | None = None,
    disclosure: Disclosure | None = None,
    catalog: Path | None = None,
    filed: tuple[date, date] | None = None,
    cluster: str | None = None,
    out: Path,
    progress: Progress | None = None,
) -> Edition:
    """Build an edition into `out`.

    Parameters
    ----------
    source : "synthetic" writes raw files from `seed`; "raw-dir" reads them from `raw_dir`.
    seed : drives the synthetic market and every draw of episodes; another seed is another benchmark.
    companies : size of the universe, 15 to 3,000; default 30, or the size of the raw-dir's universe file.
    suite : the suite to build, or "all".
    episodes : most episodes of each subtask, for a quick look; None builds the number in the specification.
    disclosure : statement of the law that desk cases follow; None mixes `described` and `data`.
    catalog : folder with the user's mandates, books, scenarios, tiers or texts.
    filed : first and last filing day of the reports behind fundamental episodes. Default: every report, or for a
        collection made by `data fetch` those of its months.
    cluster : scheduler address of a Dask cluster whose workers build the labels; None builds on this machine.
    progress : called with the name of each step as it starts; None shows steps in notebooks only.

    Raises
    ------
    SourceError : invalid raw data, with file and line; a fetched file that was altered.
    CatalogError : every mistake in the files of `catalog`, with file, line and remedy.
    InputError : unusable arguments; an `out` that is not empty or cannot be written; a cluster that cannot be reached,
        or whose workers cannot read `out` and `raw_dir`. No partial output remains.
    """
    progress = progress or Bar().show
    if companies is not None and not SMALLEST <= companies <= LARGEST_UNIVERSE:
        raise InputError(f"--companies must be between {SMALLEST} and {LARGEST_UNIVERSE}, not {companies}")
    if seed < 0:
        raise InputError(f"--seed must not be negative, not {seed}")
    if seed > LARGEST:
        raise InputError(f"--seed must not be above {LARGEST}")
    if episodes is not None and episodes < 1:
        raise InputError(f"episodes must be at least 1, not {episodes}")
    if cluster is not None:
        check_cluster(cluster)
    chosen = tuple(one for one in domains() if one.suite in suites_named(suite))
    if disclosure is not None and not any(one.withheld for one in chosen):
        raise InputError(
            f"--disclosure: no case of the suite {suite} follows a law; leave it out or build --suite desk"
        )
    user_catalog = Catalog() if catalog is None else read_catalog_folder(catalog, catalog_files())
    _refuse_unused(user_catalog, chosen)

    def request_of(raw: Path, stated: Mapping[str, Any], names: int | None) -> _Request:
        return _Request(raw, stated, seed, names, chosen, episodes, user_catalog, filed, cluster, disclosure)

    if source == "raw-dir":
        if raw_dir is None or not raw_dir.is_dir():
            raise InputError(f"--raw-dir must name a folder of raw files, not {raw_dir}")
        _build_files(request_of(raw_dir, {"kind": source}, companies), out, progress)
    else:
        with new_folder(out) as folder, _raw_scratch(folder) as raw:
            size = companies or DEFAULT_NAMES
            progress("writing synthetic raw files")
            write_collection(Path(raw), seed=seed, names=size)
            _write(folder, request_of(Path(raw), {"kind": source, "names": size}, size), progress)
    return load_edition(out)


def build_sample(raw_dir: Path, chosen: Sequence[Domain], out: Path, progress: Progress) -> Edition:
    """Build one episode of each subtask of some domains from raw files.

    Raises
    ------
    SourceError : as `build_edition`, for the files that these domains need.
    """
    request = _Request(raw_dir, {"kind": "raw-dir"}, DEFAULT_SEED, None, chosen, 1)
    _build_files(request, out, progress)
    return load_edition(out)


def _build_files(request: _Request, out: Path, progress: Progress) -> None:
    """Verify every file that `data fetch` wrote, then build from the raw files."""
    with new_folder(out) as folder:
        progress("verifying fetched files")
        fetched = _verify_fetched(request.raw)
        if fetched is not None:
            source = {**request.source, **fetched.manifest_entry}
            request = replace(request, source=source, filed=request.filed or fetched.window)
        _write(folder, request, progress)


def _raw_scratch(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """Create a scratch folder for raw files; its name lets `new_folder` sweep it after a killed build."""
    return tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.raw.")


def _refuse_unused(catalog: Catalog, chosen: Collection[Domain]) -> None:
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
    """Arguments of one build: raw files in `raw`, domains of the suites in `chosen`."""

    raw: Path
    source: Mapping[str, Any]
    seed: int
    names: int | None
    chosen: Sequence[Domain]
    episodes: int | None = None
    catalog: Catalog = field(default_factory=Catalog)
    filed: tuple[date, date] | None = None
    cluster: str | None = None
    disclosure: Disclosure | None = None


def _write(folder: Path, request: _Request, progress: Progress) -> None:
    units = units_of(request.chosen)
    # Thousands of small dense systems: BLAS threads would only wait for each other.
    with threadpool_limits(1), relaxed_gc(), Processes(len(units) - 1) as processes:
        panels = _write_panels(folder, request, processes, progress)
        gc.collect()  # relaxed_gc rarely collects
        notes: list[str] = []
        if request.filed is not None:
            first, last = request.filed
            notes.append(f"Fundamental episodes cover only reports filed from {first} to {last}.")
        buildable = _buildable(request.chosen, panels, notes)
        _examine(request, panels, buildable)
        spec = BuildSpec(
            folder.resolve(),
            request.raw.resolve(),
            tuple(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()),
            request.seed,
            request.catalog,
            request.source["kind"] == "synthetic",
            request.filed,
            request.episodes,
            request.disclosure,
        )
        if request.cluster is None:
            parts = build_parts(spec, units_of(buildable), processes, progress)
        else:
            parts = build_on_cluster(request.cluster, spec, buildable, progress)
    notes += dict.fromkeys(message for part in parts for message in part.notes)
    if not any(part.counts for part in parts):
        why = " ".join((*panels.report.unusable, *notes))
        raise SourceError(request.raw, "no episode can be built", remedy=why)
    names = [each.name for each in subtasks() if any(each in one.subtasks for one in request.chosen)]
    write_manifest(
        folder,
        {
            "source": {**request.source, "raw_digest": _raw_digest(request.raw)},
            "seed": request.seed,
            **_write_catalog(request.catalog, folder),
            **({"disclosure": request.disclosure} if request.disclosure else {}),
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
    """Write the panels that the chosen domains need; market and filing panels are built in parallel."""
    progress("reading raw files")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        has_market = has_prices(request.raw, request.names) and any("prices" in one.needs for one in request.chosen)
        filed = None
        if any("company facts" in one.needs for one in request.chosen):
            filed = processes.submit(_filed_panels, request.raw, Path(scratch))
        market = load_market(request.raw, names=request.names) if has_market else None
        if market is not None:
            refuse_small_universe(market, request.raw)
        progress("building panels")
        panels = build_panels(market, None, request.catalog.dates)
        write_panels(panels if filed is None else with_filings(panels, filed.result()), folder / "panels")
    return read_panels(folder / "panels")


def _filed_panels(raw: Path, folder: Path) -> FundamentalPanels:
    return write_filings(load_filings(raw), folder)


def _write_catalog(catalog: Catalog, folder: Path) -> dict[str, Any]:
    """Copy the catalog into the edition and return its manifest fields; the edition can be rebuilt from itself."""
    if not catalog.files:
        return {}
    for name, data in catalog.files.items():
        path = folder / CATALOG / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    files = digest_files(folder / CATALOG)
    return {"catalog": {"digest": digest_of(files), "files": files}}


def has_prices(raw: Path, names: int | None = None) -> bool:
    """Return True if the collection has prices; without them an edition holds filings only.

    Raises
    ------
    SourceError : the collection has neither prices nor company facts.
    InputError : `names` is set, but there are no prices to choose names by.
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
        raise InputError(
            f"--companies {names}: {raw} has no folder prices to choose companies by; leave --companies out"
        )
    return False


def refuse_small_universe(market: MarketData, raw: Path) -> None:
    """Refuse a universe that is too small for limits on names and sectors.

    Raises
    ------
    SourceError : with the sizes found and required.
    """
    names, sectors = len(market.securities), len({security.sector for security in market.securities})
    if names < SMALLEST or sectors < FEWEST_SECTORS:
        raise SourceError(
            raw / "universe.json",
            f"only {names} names in {sectors} sectors can be used; {SMALLEST} in {FEWEST_SECTORS} are needed",
            remedy="add names with prices and statements",
        )


def _buildable(chosen: Sequence[Domain], panels: Panels, notes: list[str]) -> list[Domain]:
    """Select the domains whose needs the panels cover; add a note for each of the others."""
    found: list[Domain] = []
    for one in chosen:
        absent = [half for half in one.needs if half not in panels.data_kinds]
        if absent:
            unusable = absent[0] == "company facts" and panels.report.unusable
            why = "none of the company facts can be used" if unusable else f"the collection has no {absent[0]}"
            notes.append(f"{one.title.capitalize()} is left out: {why}.")
        else:
            found.append(one)
    return found


def _examine(request: _Request, panels: Panels, buildable: Sequence[Domain]) -> None:
    left_out = [kind for one in request.chosen if one not in buildable for kind in one.catalog]
    unused = [kind.name for kind in left_out if request.catalog.of(kind) is not None]
    if unused:
        raise CatalogError([f"{name}: the collection has no prices; add them, or remove the file" for name in unused])
    examine_catalog(request.catalog, [kind for one in buildable for kind in one.catalog], panels)


def _verify_fetched(raw: Path) -> FetchedCollection | None:
    """Verify the files of a collection against the record of `data fetch`; None without a record."""
    names = [path for name in _RAW_FOLDERS for path in (raw / name).rglob("*") if path.is_file()]
    universe = [raw / "universe.json"] if (raw / "universe.json").is_file() else []
    return verify_collection(raw, [path.relative_to(raw).as_posix() for path in (*universe, *names)])


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
    """Return the versions of this package and of the libraries that can affect a truth."""
    return {name: importlib.metadata.version(name) for name in ("finskillbench", *_LIBRARIES)}

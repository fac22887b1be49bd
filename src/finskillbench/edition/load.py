"""Load an edition: verified against its manifest, with truth read on request only."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from finskillbench import notebook
from finskillbench.domains import EVERY_SUITE, domains, subtask_named, subtasks, suite_of, suites_named
from finskillbench.domains.base import Domain
from finskillbench.domains.interactive import InteractiveState
from finskillbench.edition import store
from finskillbench.edition.references import FACTS, References
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.errors import EditionError, InputError
from finskillbench.scoring.values import is_object
from finskillbench.splits import Split, split_of

_LARGEST_FILE = 2**32


@dataclass(frozen=True, repr=False)
class Edition:
    """An edition on disk; `manifest` records how it was built and the digest of every file.

    `chosen` restricts it to some suites, None selects all; see `part`.
    """

    path: Path
    manifest: store.Manifest
    chosen: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        counts = self.counts
        return f"Edition({str(self.path)!r}: {sum(counts.values())} episodes of {len(counts)} subtasks)"

    def _repr_html_(self) -> str:
        return notebook.html_table(("subtask", "episodes"), self.counts.items(), caption=repr(self))

    def to_polars(self) -> pl.DataFrame:
        """Return one row per episode, in file order, without inputs."""
        records = [(one.task_id, one.skill, one.sub_task, one.as_of_date, one.difficulty) for one in self.episodes()]
        types = {**dict.fromkeys(("task_id", "domain", "sub_task"), pl.String), "as_of_date": pl.Date}
        return pl.DataFrame(records, schema={**types, "difficulty": pl.String}, orient="row")

    @property
    def digest(self) -> str:
        """Digest over all files; identifies the edition."""
        return self.manifest["digest"]

    @property
    def sub_tasks(self) -> tuple[str, ...]:
        """Subtasks with episodes, in benchmark order."""
        return tuple(self.counts)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Episodes by subtask, in benchmark order."""
        counts = self.manifest["counts"]
        return {name: n for name, n in counts.items() if self.chosen is None or suite_of(name) in self.chosen}

    @property
    def suites(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(suite for name in self.counts if (suite := suite_of(name)) is not None))

    @property
    def domains(self) -> tuple[Domain, ...]:
        return tuple(one for one in domains() if one.suite in self.suites)

    def part(self, suite: str) -> Edition:
        """Return the edition restricted to one suite; "all" selects every suite.

        Raises
        ------
        InputError : an unknown suite, or one without episodes here; with the command that builds it.
        """
        wanted = suites_named(suite)
        tried = {suite_of(name) for name in self.manifest.get("subtasks", ())} if suite == EVERY_SUITE else set[str]()
        for name in wanted:
            if name not in self.suites and name not in tried:
                raise InputError(f"{self.path} has no episodes of the suite {name}; {self._how_to_build(suite)}")
        return replace(self, chosen=wanted)

    def _how_to_build(self, suite: str) -> str:
        source, seed = self.manifest["source"], self.manifest["seed"]
        if suite in {suite_of(name) for name in self.manifest.get("subtasks", ())}:
            return "its sources support none: " + " ".join(self.manifest["notes"])
        arguments = f"--suite {suite}"
        if seed is not None:
            arguments += f" --seed {seed}"
        if source["kind"] == "raw-dir":
            arguments += " --source raw-dir --raw-dir DIR"
        elif (names := dict(source).get("names")) is not None:
            arguments += f" --companies {names}"
        return f"build them: finskillbench data build {arguments} --out {self.path}-{suite}"

    @property
    def has_truth(self) -> bool:
        return (self.path / "truth").is_dir()

    @property
    def has_certificates(self) -> bool:
        return (self.path / "certificates").is_dir()

    @property
    def has_stages(self) -> bool:
        return (self.path / store.STAGES).is_dir()

    def episodes(self, sub_tasks: Collection[str] | None = None) -> tuple[Episode, ...]:
        """Return episodes in file order, of the named subtasks or of all; an unknown one raises `InputError`."""
        unknown = sorted(set(sub_tasks or ()) - set(self.sub_tasks))
        if unknown:
            raise InputError(f"{self.path} has no subtask {', '.join(unknown)}; it holds {', '.join(self.sub_tasks)}")
        wanted = [name for name in self.sub_tasks if sub_tasks is None or name in sub_tasks]
        return tuple(episode for name in wanted for episode in self._episodes[name])

    @cached_property
    def _episodes(self) -> Mapping[str, tuple[Episode, ...]]:
        folder = self.path / "episodes"
        return {name: tuple(store.read_records(folder / f"{name}.jsonl", Episode)) for name in self.sub_tasks}

    def truth(self, task_id: str) -> Truth:
        """Return the truth of one episode.

        Raises `EditionError` if the copy has no such truth, `InputError` if there is no such episode.
        """
        if task_id not in self._truths:
            if any(task_id == episode.task_id for episode in self.episodes()):
                raise EditionError(f"{self.path}: there is no truth of {task_id}; rebuild the edition")
            raise InputError(f"{self.path} has no episode {task_id}")
        return self._truths[task_id]

    @cached_property
    def _truths(self) -> Mapping[str, Truth]:
        if not self.has_truth:
            raise EditionError(f"{self.path} has no truth/; use the edition that this copy was made from")
        found: dict[str, Truth] = {}
        for name in self.sub_tasks:
            path = self.path / "truth" / f"{name}.jsonl"
            for truth in store.read_records(path, Truth):
                if truth.sub_task != name:  # it would be scored by the wrong scorer
                    raise EditionError(f"{path}: {truth.task_id} belongs to {truth.sub_task}; rebuild the edition")
                found[truth.task_id] = truth
        return found

    def lines(self, part: str, sub_task: str) -> Iterator[dict[str, Any]]:
        """Iterate over the raw lines of one file; `part` is "episodes", "truth", "certificates" or "stages"."""
        return store.read_lines(self.path / part / f"{sub_task}.jsonl")

    def certificates(self, sub_task: str) -> dict[str, JsonObject]:
        return self._by_task("certificates", sub_task, "certificate")

    def splits(self, sub_task: str) -> dict[str, Split]:
        """Return the split of each task of a subtask.

        Raises
        ------
        EditionError : certificates are missing, as in an edition without truth.
        """
        found, subtask = self.certificates(sub_task), subtask_named(sub_task)
        return {
            one.task_id: split_of(self.manifest["seed"], subtask.template(one, found.get(one.task_id, {})))
            for one in self.episodes([sub_task])
        }

    def hidden(self, sub_task: str) -> Mapping[str, JsonObject]:
        """Return hidden fields of a subtask's interactive cases by task id; empty if the edition holds none."""
        if sub_task not in self._hidden_parts:
            there = (self.path / store.STAGES / f"{sub_task}.jsonl").is_file()
            self._hidden_parts[sub_task] = self._by_task(store.STAGES, sub_task, "hidden") if there else {}
        return self._hidden_parts[sub_task]

    @cached_property
    def _hidden_parts(self) -> dict[str, Mapping[str, JsonObject]]:
        return {}

    def _by_task(self, part: str, sub_task: str, field: str) -> dict[str, JsonObject]:
        found: dict[str, JsonObject] = {}
        for number, row in enumerate(self.lines(part, sub_task), 1):
            task_id, value = row.get("task_id"), row.get(field)
            if not isinstance(task_id, str) or not is_object(value):
                path = self.path / part / f"{sub_task}.jsonl"
                raise EditionError(f"{path}, line {number}: no {field} of a task; rebuild the edition")
            found[task_id] = value
        return found

    def open_interactive_state(self, episode: Episode) -> InteractiveState | None:
        """Open a fresh state of an interactive episode; None for single questions.

        Raises `EditionError` if the copy lacks the hidden fields of the case, or they are malformed.
        """
        if episode.sub_task not in self._staged:
            return None
        opened = subtask_named(episode.sub_task).open_interactive_state
        hidden = self.hidden(episode.sub_task).get(episode.task_id)
        if opened is None or hidden is None:
            raise EditionError(
                f"{self.path}: {episode.task_id} is interactive, and {store.STAGES}/ has no entry for it; run it with "
                "the edition that this copy was made from"
            )
        try:
            return opened(self.full_input(episode), hidden)
        except ValueError as error:
            path = self.path / store.STAGES / f"{episode.sub_task}.jsonl"
            raise EditionError(f"{path}: {episode.task_id}: {error}; rebuild the edition") from None

    @cached_property
    def _staged(self) -> frozenset[str]:
        return frozenset(each.name for each in subtasks() if each.open_interactive_state is not None)

    def full_input(self, episode: Episode) -> dict[str, Any]:
        """Return the input with references replaced by full-precision data: covariance, returns, facts or a table.

        A reference that does not resolve stays unchanged (releases imported without their arrays).
        """
        return {name: self.resolved(value) for name, value in episode.input.items()}

    def resolved(self, value: Any) -> Any:
        return self._references.resolved(value)

    @property
    def filings(self) -> PublicFilings | None:
        """Facts for `query_xbrl`; None if the edition carries no facts."""
        return PublicFilings(self._references) if FACTS in self.manifest["files"] else None

    @cached_property
    def _references(self) -> References:
        return References(self.path, self.manifest["files"])


@dataclass(frozen=True, slots=True)
class PublicFilings:
    """Facts of an edition, restricted to those public by an episode's `as_of_date`."""

    references: References

    def query(self, arguments: Mapping[str, Any], *, episode: Episode) -> dict[str, Any]:
        """Query facts of the company `ticker`; further arguments and result as for `FiledStore.query`.

        Raises
        ------
        InputError : an invalid argument, with the valid ones.
        EditionError : the panels cannot be read.
        """
        filters = dict(arguments)
        return self.references.filed.query(filters.pop("ticker"), episode.as_of_date, **filters)

    def as_filed(self, reference: Mapping[str, Any]) -> dict[str, Any]:
        """Return as-filed rows, tag by tag, for a facts reference."""
        return self.references.as_filed(reference)


def load_edition(path: Path | str, suite: str | None = None) -> Edition:
    """Open an edition and verify every file against the manifest; `suite` selects a part, None selects all.

    Raises
    ------
    InputError : the edition has no such suite; with the command that builds it.
    EditionError : a missing, added or altered file, or an invalid manifest field.
    """
    folder = Path(path)
    names = _files(folder)
    manifest = store.read_manifest(folder)
    added = sorted(names - {store.MANIFEST, store.CANARY_FILE, *manifest["files"]})
    if added:
        raise EditionError(f"{folder / added[0]} is not part of the edition; remove it or rebuild the edition")
    withheld = tuple(name for name in store.WITHHELD if not (folder / name).is_dir())
    for name, digest in manifest["files"].items():
        if name.split("/")[0] in withheld:
            continue
        if name not in names:
            raise EditionError(f"{folder / name} is missing; restore it or rebuild the edition")
        if store.digest_file(folder / name) != digest:
            raise EditionError(f"{folder / name} was altered since the edition was built; restore or rebuild it")
    edition = Edition(folder, manifest)
    return edition if suite is None else edition.part(suite)


def _files(folder: Path) -> set[str]:
    """List regular files below a folder by relative path; raises `EditionError` for links, pipes and huge files."""
    found: set[str] = set()
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in sorted([*folders, *files])):
            state = path.lstat()
            if stat.S_ISREG(state.st_mode):
                found.add(path.relative_to(folder).as_posix())
            elif not stat.S_ISDIR(state.st_mode):
                raise EditionError(f"{path} is not a regular file; restore it or rebuild the edition")
            if state.st_size > _LARGEST_FILE:
                raise EditionError(f"{path} is larger than {_LARGEST_FILE:,} bytes; restore it or rebuild the edition")
    return found


class PublicEdition(Edition):
    """An edition on a worker; refuses access to truths even if the folder holds them."""

    def truth(self, task_id: str) -> Any:
        raise EditionError(f"{self.path}: a worker that runs agents must not read the truth of {task_id}")

    def certificates(self, sub_task: str) -> Any:
        raise EditionError(f"{self.path}: a worker that runs agents must not read the certificates of {sub_task}")

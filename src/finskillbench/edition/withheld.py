"""Public copies of an edition without truth, and the check that metadata reveal no truth."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.store import CANARY, CANARY_FILE, CATALOG, WITHHELD, catalog_digest, new_folder, write_sealed
from finskillbench.episode import Episode, Truth
from finskillbench.errors import EditionError
from finskillbench.scoring.values import is_array, is_object

_PLANTED = frozenset({"planted", "trap", "control"})
"""Words in metadata keys that reveal planted defects or their number."""


def truth_in_metadata(episode: Episode, truth: Truth, input_texts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield metadata paths that reveal part of the truth, each with a description of the problem.

    A text reveals it if it occurs in the label, its verification or its proof, but not in `input_texts`; a key reveals
    it if it contains a word of `_PLANTED`. List entries have `*` in the path.
    """
    withheld = {text for part in (truth.expected_output, truth.verification, truth.proof) for text in text_values(part)}
    for path, leaf in _leaves(episode.metadata):
        if isinstance(leaf, str) and leaf in withheld and leaf not in input_texts:
            yield path, f"holds {leaf!r}, a text of the truth"
    for path in _keys(episode.metadata):
        if {word.removesuffix("s") for word in path.rpartition(".")[2].lower().split("_")} & _PLANTED:
            yield path, "names a planted defect"


def refuse_truth_in_metadata(edition: Edition) -> None:
    """Raise `EditionError` if metadata reveal a truth, unless that truth is public (imported releases)."""
    if not edition.has_truth or edition.manifest["source"]["kind"] == "release":
        return
    for episode in edition.episodes():
        for path, wrong in truth_in_metadata(episode, edition.truth(episode.task_id), set(text_values(episode.input))):
            raise EditionError(
                f"{edition.path}: metadata.{path} of {episode.task_id} {wrong}, and would be published; rebuild the "
                "edition with this version, or remove the field where the subtask makes its episodes"
            )


def text_values(value: object) -> Iterator[str]:
    return (leaf for _, leaf in _leaves(value) if isinstance(leaf, str))


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if is_object(value):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif is_array(value):
        for item in value:
            yield from _leaves(item, f"{path}[*]")
    else:
        yield path, value


def _keys(value: object, path: str = "") -> Iterator[str]:
    if is_object(value):
        for key, item in value.items():
            key_path = f"{path}.{key}" if path else key
            yield key_path
            yield from _keys(item, key_path)


CANARY_TEXT = f"""\
Episodes of FinSkillBench, a benchmark of investment-management agents. They must not become training data: a model that
has read them can no longer be measured with them. Please leave out documents that contain this line.

{CANARY}
"""


def export_public(edition: Edition, out: Path) -> Edition:
    """Copy an edition without its truth and certificates.

    The copy keeps the original's digest, so rows of both belong to one edition and the original scores answers to the
    copy. Its manifest omits the seed, from which the truth could be rebuilt, and the names and notes of catalog files;
    one digest represents them.

    Raises
    ------
    InputError : `out` is not empty or cannot be written. No partial output remains.
    EditionError : the metadata of an episode reveal part of its truth.
    """
    refuse_truth_in_metadata(edition)
    with new_folder(out) as folder:
        for name in edition.manifest["files"]:
            if name.split("/")[0] in WITHHELD:
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(edition.path / name, folder / name)
        (folder / CANARY_FILE).write_text(CANARY_TEXT)
        write_sealed(folder, {**edition.manifest, "seed": None, **_without_catalog(edition)})
    return load_edition(out)


def _without_catalog(edition: Edition) -> dict[str, Any]:
    """Return replacements for the manifest fields that describe a catalog; empty without a catalog."""
    files = edition.manifest["files"]
    digest = catalog_digest(files)
    if digest is None:
        return {}
    return {
        "files": {name: each for name, each in files.items() if name.split("/")[0] != CATALOG},
        "catalog": {"digest": digest, "files": {}},
        "notes": ["Built with a user catalog, whose files and notes are omitted here."],
    }

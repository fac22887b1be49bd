"""What an episode tells of its truth beside the task: metadata are handed out, so that they must tell nothing of it.

A copy of an edition to hand out: what agents need, without the truth, and marked for filters of training data.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.store import CANARY, CANARY_FILE, CATALOG, WITHHELD, brought_digest, new_folder, write_sealed
from finskillbench.episode import Episode, Truth
from finskillbench.errors import EditionError
from finskillbench.scoring.values import is_array, is_object

_PLANTED = frozenset({"planted", "trap", "control"})
"""Words of a key that says what was planted in an episode, or how much of it."""


def truth_values_shown(episode: Episode, truth: Truth, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Places of the metadata that give a part of the truth away, each with what is wrong there.

    A text does that stands in the label, its verification or its proof and not in `given`, the texts of the input; so
    does a key that speaks of what was planted. Entries of a list have `*` for their place.
    """
    withheld = {text for part in (truth.expected_output, truth.verification, truth.proof) for text in texts(part)}
    for path, leaf in _leaves(episode.metadata):
        if isinstance(leaf, str) and leaf in withheld and leaf not in given:
            yield path, f"holds {leaf!r}, a name of the truth"
    for path in _keys(episode.metadata):
        if {word.removesuffix("s") for word in path.rpartition(".")[2].lower().split("_")} & _PLANTED:
            yield path, "tells what was planted"


def refuse_what_tells(edition: Edition) -> None:
    """Refuse to hand an edition out whose metadata give a truth of it away.

    Nothing is held against an edition without truth, nor against an imported release, whose truth is published.

    Raises
    ------
    EditionError : naming the first such episode and field.
    """
    if not edition.has_truth or edition.manifest["source"]["kind"] == "release":
        return
    for episode in edition.episodes():
        for path, wrong in truth_values_shown(episode, edition.truth(episode.task_id), set(texts(episode.input))):
            raise EditionError(
                f"{edition.path}: metadata.{path} of {episode.task_id} {wrong}, and would be handed out; build the "
                "edition again with this version, or leave it out where the subtask makes its episodes"
            )


def texts(value: object) -> Iterator[str]:
    """Every text of a JSON value, keys not among them."""
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
            here = f"{path}.{key}" if path else key
            yield here
            yield from _keys(item, here)


CANARY_TEXT = f"""\
Episodes of FinSkillBench, a benchmark of investment-management agents. They must not become training data: a model that
has read them can no longer be measured with them. Please leave out documents that contain this line.

{CANARY}
"""


def export_public(edition: Edition, out: Path) -> Edition:
    """Copy an edition without its truth and certificates.

    The copy has the digest of the original, so rows of both are of one edition, and whoever holds the original scores
    what comes back. Its manifest does not tell the seed, from which anybody could build the truth, nor what the
    files are called that somebody brought to the build, nor what was noted of them: one digest stands for all.

    Raises
    ------
    InputError : `out` is not empty, or cannot be written. Nothing is left half-written.
    EditionError : the metadata of an episode give a part of its truth away.
    """
    refuse_what_tells(edition)
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
    """The fields of a manifest that would tell of a catalog, without what they tell; none where nobody brought one."""
    files = edition.manifest["files"]
    brought = brought_digest(files)
    if brought is None:
        return {}
    return {
        "files": {name: each for name, each in files.items() if name.split("/")[0] != CATALOG},
        "catalog": {"digest": brought, "files": {}},
        "notes": ["It was built with files of somebody's own, which are held back with what was noted of them."],
    }

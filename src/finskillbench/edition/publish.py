"""A copy of an edition to hand out: what agents need, without the truth, and marked for filters of training data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.store import CANARY, CANARY_FILE, CATALOG, WITHHELD, brought_digest, new_folder, write_sealed
from finskillbench.edition.withheld import refuse_what_tells

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

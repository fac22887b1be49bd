"""A copy of an edition to hand out: what agents need, without the truth, and marked for filters of training data."""

from __future__ import annotations

import shutil
from pathlib import Path

from finskillbench.edition.load import Edition, load_edition
from finskillbench.edition.store import CANARY, CANARY_FILE, WITHHELD, new_folder, write_sealed
from finskillbench.edition.withheld import refuse_what_tells

CANARY_TEXT = f"""\
Episodes of FinSkillBench, a benchmark of investment-management agents. They must not become training data: a model that
has read them can no longer be measured with them. Please leave out documents that contain this line.

{CANARY}
"""


def export_public(edition: Edition, out: Path) -> Edition:
    """Copy an edition without its truth and certificates.

    The copy has the digest of the original, so rows of both are of one edition, and whoever holds the original scores
    what comes back. Its manifest does not tell the seed, from which anybody could build the truth.

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
        write_sealed(folder, {**edition.manifest, "seed": None})
    return load_edition(out)

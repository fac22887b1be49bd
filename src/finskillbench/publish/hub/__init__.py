"""An edition as a data set that can be uploaded to a hub as it is: Parquet shards, a card, Croissant metadata.

README.md            the card: what it is, what is held back and why, how to load it
croissant.json       every shard with its digest, every column with its type, as records
checksums.sha256     of all other files, as `sha256sum -c` reads it
CANARY.txt           the string that marks it, and why
data/<sub_task>/     the episodes as shards, one configuration for each subtask
edition/             the same edition as agents are handed it: what `load_edition` reads
truth/               only where it was asked for: labels, in a configuration of their own
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY, CANARY_FILE, digest_files, new_folder
from finskillbench.edition.withheld import CANARY_TEXT, export_public
from finskillbench.publish.hub.metadata import card, croissant
from finskillbench.publish.hub.shards import Shard, write_episodes, write_truth

__all__ = ["CARD", "CHECKSUMS", "CROISSANT", "PLAYED", "export_hub"]

CARD = "README.md"
CROISSANT = "croissant.json"
CHECKSUMS = "checksums.sha256"
PLAYED = "edition"
"""The folder of the copy that agents play from."""
TRUTH_WARNING = f"""\
This folder holds the expected answers of every episode. A model that has read them cannot be measured with them, and
whoever has them can submit them. Do not publish it for an edition that a leaderboard holds out.

{CANARY}
"""


def export_hub(edition: Edition, out: Path, *, today: date, truth: bool = False) -> tuple[Shard, ...]:
    """Write an edition as the folder of a data set.

    Neither certificates nor stages, nor what somebody brought to the build, nor the seed are ever in it; labels only
    with `truth`, which the edition must then have.

    Parameters
    ----------
    edition : the edition, with or without its truth.
    out : a new folder.
    today : the date of publication, in the metadata.
    truth : whether labels are written too, into a folder of their own.

    Returns
    -------
    The shards of episodes, then those of truth.

    Raises
    ------
    InputError : `out` is not empty, or cannot be written. Nothing is left half-written.
    EditionError : truth was asked for, and the edition was handed out without it.
    """
    with new_folder(out) as folder:
        shards = write_episodes(edition, folder)
        labels = write_truth(edition, folder) if truth else ()
        if truth:
            (folder / "truth" / "WARNING.txt").write_text(TRUTH_WARNING)
        export_public(edition, folder / PLAYED)
        (folder / CANARY_FILE).write_text(CANARY_TEXT)
        (folder / CROISSANT).write_bytes(croissant(edition, shards, labels, today=today))
        (folder / CARD).write_text(card(edition, shards, labels))
        listed = "".join(f"{digest}  {name}\n" for name, digest in digest_files(folder).items())
        (folder / CHECKSUMS).write_text(listed)
    return (*shards, *labels)

"""Export an edition as a data set for a hub: Parquet shards, a card, Croissant metadata.

README.md            data set card: content, withheld parts, loading
croissant.json       shards with digests, columns with types, as records; statements on responsible use
eval.yaml            registration as a benchmark of Hugging Face
checksums.sha256     of all other files, for `sha256sum -c`
CANARY.txt           the canary and its purpose
data/<sub_task>/     episodes as shards, one configuration per subtask
edition/             public edition for `load_edition`
truth/               optional labels, in a separate configuration
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY, CANARY_FILE, digest_files, new_folder
from finskillbench.edition.withheld import CANARY_TEXT, export_public
from finskillbench.publish.hub.metadata import benchmark, card, croissant
from finskillbench.publish.hub.shards import HubShard, write_episode_shards, write_truth_shards

__all__ = ["BENCHMARK", "CARD", "CHECKSUMS", "CROISSANT", "PLAYED", "export_hub"]

CARD = "README.md"
CROISSANT = "croissant.json"
BENCHMARK = "eval.yaml"
CHECKSUMS = "checksums.sha256"
PLAYED = "edition"
"""Folder of the public edition."""
TRUTH_WARNING = f"""\
This folder contains the expected answers of every episode. A model that was trained on them cannot be measured with
them, and they can be submitted as answers. Do not publish this folder while a leaderboard uses the edition.

{CANARY}
"""


def export_hub(edition: Edition, out: Path, *, today: date, truth: bool = False) -> tuple[HubShard, ...]:
    """Write an edition as the folder of a data set.

    Certificates, states of interactive episodes, user files of the build and the seed are never included.

    Parameters
    ----------
    edition : with or without truth. out : a new folder. today : date of publication. truth : write labels, too.

    Returns
    -------
    The shards of episodes, then those of truth.

    Raises
    ------
    InputError : `out` is not empty or not writable; nothing is written partially.
    EditionError : truth was requested, and the edition has none.
    """
    with new_folder(out) as folder:
        shards = write_episode_shards(edition, folder)
        labels = write_truth_shards(edition, folder) if truth else ()
        if truth:
            (folder / "truth" / "WARNING.txt").write_text(TRUTH_WARNING)
        export_public(edition, folder / PLAYED)
        (folder / CANARY_FILE).write_text(CANARY_TEXT)
        (folder / CROISSANT).write_bytes(croissant(edition, shards, labels, today=today))
        (folder / CARD).write_text(card(edition, shards, labels))
        (folder / BENCHMARK).write_text(benchmark(shards))
        listed = "".join(f"{digest}  {name}\n" for name, digest in digest_files(folder).items())
        (folder / CHECKSUMS).write_text(listed)
    return (*shards, *labels)

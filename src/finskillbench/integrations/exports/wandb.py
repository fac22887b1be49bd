"""A run in Weights & Biases' offline format: one run for each arm, grouped by the folder; `wandb sync` sends them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from finskillbench.analysis.results import collect
from finskillbench.edition.store import refuse_inside_edition
from finskillbench.episode import Profile
from finskillbench.errors import InputError
from finskillbench.integrations.exports.arms import arms_of
from finskillbench.integrations.exports.attached import gathered
from finskillbench.reports.read import RunRows
from finskillbench.runs.store.files import make_folder


def export_wandb(
    run: RunRows, out: Path, profile: Profile = Profile.CERTIFIED, attach: Sequence[Path] = ()
) -> list[Path]:
    """Write a run below `out` as offline runs; nothing leaves this machine.

    The metrics of `Arm` are the summary of its run, its parameters the configuration; the files of `gathered` lie at
    the first.

    Returns
    -------
    The folders of the offline runs, one for each arm.

    Raises
    ------
    InputError : Weights & Biases is not installed, or the folder cannot be made.
    """
    if find_spec("wandb") is None:
        raise InputError(
            "Weights & Biases is not installed; run: pip install 'finskillbench[wandb]' (in a checkout: make wandb)"
        )
    refuse_inside_edition(out)
    arms = arms_of(run, collect(run.rows, profile))
    make_folder(out)
    wandb = cast("Any", import_module("wandb"))  # an extra, which type checkers need not have
    # Only what a run says of itself: no console, no figures of this machine, no code, no repository.
    settings = wandb.Settings(
        console="off", x_disable_stats=True, x_disable_meta=True, disable_git=True, disable_code=True, silent=True
    )
    folders: list[Path] = []
    with gathered(run.rows, attach) as files:
        for arm in arms:
            made = wandb.init(
                project="finskillbench",
                group=run.path.resolve().name,
                name=arm.name,
                job_type=arm.condition,
                config=dict(arm.parameters),
                dir=str(out.absolute()),
                mode="offline",
                reinit="create_new",
                settings=settings,
            )
            made.summary.update(dict(arm.metrics))
            if not folders:
                shutil.copytree(files, made.dir, dirs_exist_ok=True)
            made.finish()
            folders.append(Path(made.dir).parent)
    return folders

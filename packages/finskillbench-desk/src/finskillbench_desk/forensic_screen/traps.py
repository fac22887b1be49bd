"""What is stored of a case's traps: where they are and what somebody answers who falls for them.

A place is a trap where the correction that it calls for decides the company: without it management is likelier than
not, and with it it is not. That is read from the tables, so that whoever has them can say it too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench_desk.engines.posterior.posterior import kind_probabilities
from finskillbench_desk.forensic_screen.generator.places import LOCAL, fallen_probabilities
from finskillbench_desk.forensic_screen.generator.world import World
from finskillbench_desk.forensic_screen.reading import Panel, read_archive, read_panel, usable

EVEN = 0.5
"""The prior of somebody who neglects the base rate."""
LIKELIER = 0.5
"""Probability from which management is likelier than not."""


def stored_traps(world: World, panel: Panel) -> list[dict[str, Any]]:
    """Kind, where, and probabilities of whoever falls for it: corrections by company, the archive, the base rate."""
    companies = world.tables["companies"]["company"].to_list()
    clean = kind_probabilities(panel.y, panel.acquired, world.model, world.prediction).sum(axis=1)
    found: list[dict[str, Any]] = []
    for kind in sorted(LOCAL):
        misread = read_panel(world.tables, world.model, world.rules, left_out=kind)
        moved = np.any(misread.y != panel.y, axis=(1, 2)) | (misread.acquired != panel.acquired)
        where = np.flatnonzero(moved)
        if not where.size:
            continue
        fallen = fallen_probabilities(misread.y[where], world.model, world.prediction).sum(axis=1)
        for company, probability in zip(where.tolist(), fallen.tolist(), strict=True):
            if clean[company] < LIKELIER < probability:
                name = companies[company]
                found.append({"kind": kind, "where": name, "probabilities": {name: round(probability, 6)}})
    archive = world.tables["archive"]
    if not archive.select(usable().all()).item():
        everything = read_archive(archive, world.model, usable_only=False)
        fallen_all = kind_probabilities(panel.y, panel.acquired, world.model, everything).sum(axis=1)
        found.append({"kind": "archive", "where": "archive", "probabilities": _named(companies, fallen_all)})
    even = replace(world.model, base_rate=EVEN)
    neglect = kind_probabilities(panel.y, panel.acquired, even, world.prediction).sum(axis=1)
    found.append({"kind": "base_rate", "where": "memo", "probabilities": _named(companies, neglect)})
    return found


def _named(companies: list[str], probabilities: Floats) -> dict[str, float]:
    return dict(zip(companies, np.round(probabilities, 6).tolist(), strict=True))

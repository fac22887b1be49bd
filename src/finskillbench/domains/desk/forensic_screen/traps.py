"""What is stored of a case's traps: where they are and what somebody answers who falls for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.desk.forensic_screen.generator.places import fallen_probabilities
from finskillbench.domains.desk.forensic_screen.generator.world import World
from finskillbench.domains.desk.forensic_screen.reading import Panel, read_archive
from finskillbench.engines.statistics.screening.posterior import kind_probabilities

EVEN = 0.5
"""The prior of somebody who neglects the base rate."""


def stored_traps(world: World, panel: Panel) -> list[dict[str, Any]]:
    """Kind, where, and probabilities of whoever falls for it: planted places, the archive's cases, the base rate."""
    companies = world.tables["companies"]["company"].to_list()
    found: list[dict[str, Any]] = []
    for place in world.places:
        if place.planted:
            own = panel.y[place.company : place.company + 1] + place.offset
            fallen = float(fallen_probabilities(own, world.model, world.prediction).sum())
            company = companies[place.company]
            found.append({"kind": place.kind, "where": company, "probabilities": {company: round(fallen, 6)}})
    if not world.orderly_archive:
        everything = read_archive(world.tables["archive"], world.model, usable_only=False)
        fallen_all = kind_probabilities(panel.y, panel.acquired, world.model, everything).sum(axis=1)
        found.append({"kind": "archive", "where": "archive", "probabilities": _named(companies, fallen_all)})
    even = replace(world.model, base_rate=EVEN)
    neglect = kind_probabilities(panel.y, panel.acquired, even, world.prediction).sum(axis=1)
    found.append({"kind": "base_rate", "where": "memo", "probabilities": _named(companies, neglect)})
    return found


def _named(companies: list[str], probabilities: Floats) -> dict[str, float]:
    return dict(zip(companies, np.round(probabilities, 6).tolist(), strict=True))

"""Mean certified scores of standard shortcuts and mistakes, by tier."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from statistics import fmean
from typing import cast

from finskillbench.audit.seen import Seen
from finskillbench.domains import by_name
from finskillbench.edition.work import LEVELS
from finskillbench.episode import Profile
from finskillbench.findings import Findings

SHORTCUTS = "shortcuts"
FEWEST = 6
"""Shortcuts that a subtask registers at least."""
RISE = 0.03
"""By how much the mean over all shortcuts may rise from one tier to the next, as sampling of a dozen episodes does."""

Means = Mapping[str, Mapping[str, float]]
"""Name of a shortcut to tier to mean certified score."""


def shortcuts(seen: Seen, findings: Findings) -> None:
    """Score every shortcut of an episode's subtask under `certified`."""
    subtask = seen.subtask
    if (
        subtask is None
        or subtask.examples.shortcuts is None
        or not seen.bench.shared.built
        or not seen.label.truth.proof
    ):
        return
    found = cast("dict[str, dict[str, list[float]]]", findings.figures.setdefault("scores", {}))
    for name, answer in subtask.examples.shortcuts.answers(seen.full_input).items():
        score = seen.score(answer, Profile.CERTIFIED)
        found.setdefault(name, {}).setdefault(seen.episode.difficulty, []).append(score)


def bounds(sub_task: str, findings: Findings) -> None:
    """Hold each mean below the bound of its tier, and the mean over all shortcuts in the order of the tiers."""
    scores = cast("dict[str, dict[str, list[float]]]", findings.figures.pop("scores", {}))
    stated = by_name(sub_task).examples.shortcuts if scores else None
    if stated is None:
        return
    means: Means = {
        name: {tier: fmean(by_tier[tier]) for tier in LEVELS if tier in by_tier} for name, by_tier in scores.items()
    }
    findings.figures["means"] = {sub_task: means}
    findings.expect(len(means) >= FEWEST, sub_task, f"registers {len(means)} shortcuts; at least {FEWEST} are required")
    for name, by_tier in means.items():
        for tier, mean in by_tier.items():
            most = stated.bound(tier)
            message = f"earns {mean:.3f} on the mean of {tier} episodes; at most {most} is allowed"
            findings.expect(mean <= most, sub_task, message, name)
    overall = [(tier, fmean(each[tier] for each in means.values() if tier in each)) for tier in _tiers(means)]
    for (below, easier), (tier, harder) in pairwise(overall):
        message = f"all shortcuts earn {harder:.3f} on the mean of {tier} episodes, {easier:.3f} of {below} ones"
        findings.expect(harder <= easier + RISE, sub_task, message, "order of tiers")


def _tiers(means: Means) -> list[str]:
    return [tier for tier in LEVELS if any(tier in by_tier for by_tier in means.values())]

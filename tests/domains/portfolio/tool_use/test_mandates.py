"""The grammar of mandates: no text of one edition answers those of another, and what a text demands can be kept."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest

from finskillbench.arrays import SECTORS
from finskillbench.domains.portfolio.mandate_texts import (
    PLANS,
    ComposedMandate,
    MandateUniverse,
    built_in_sentences,
    compose,
)
from finskillbench.domains.portfolio.tool_use import effective_parameters, merit
from finskillbench.engines.portfolio.problem import Objective


def _universe(sectors: int, size: int) -> MandateUniverse:
    names = tuple(sorted(SECTORS))[:sectors]
    return MandateUniverse(names, size, dict.fromkeys(names, 1 / sectors))


UNIVERSE = _universe(len(SECTORS), 30)
KINDS = tuple(itertools.product(Objective, PLANS))


def _edition(seed: int, count: int) -> list[ComposedMandate]:
    vocabulary = built_in_sentences()
    return [
        compose(*KINDS[index % len(KINDS)], UNIVERSE, vocabulary, np.random.default_rng((seed, index)))
        for index in range(count)
    ]


def _tokens(mandate: ComposedMandate) -> Counter[str]:
    return Counter(re.findall(r"[a-z0-9.%]+", mandate.text.lower()))


def _alike(one: Counter[str], other: Counter[str]) -> float:
    return (one & other).total() / (one | other).total()


@pytest.mark.slow
@pytest.mark.parametrize("known", [40, 400])
def test_the_call_of_the_most_similar_text_of_other_editions_is_little_worth(known: int) -> None:
    library = [(mandate, _tokens(mandate)) for mandate in _edition(1, known)]
    earned: list[float] = []
    for mandate in _edition(2, 40):
        tokens = _tokens(mandate)
        nearest, _ = max(library, key=lambda item: _alike(tokens, item[1]))
        given, wanted = (effective_parameters(each.call, SECTORS, 30) for each in (nearest, mandate))
        earned.append(merit(given, wanted))
    assert np.mean(earned) <= 0.2


@pytest.mark.parametrize("universe", [UNIVERSE, _universe(5, 15), _universe(len(SECTORS), 500)])
def test_demands_leave_room_for_a_portfolio(universe: MandateUniverse) -> None:
    vocabulary = built_in_sentences()
    for index in range(300):
        mandate = compose(*KINDS[index % len(KINDS)], universe, vocabulary, np.random.default_rng((3, index)))
        limits = mandate.call["constraints"]
        assert limits.get("max_weight", 1.0) * universe.size >= 1.5
        assert limits.get("max_sector_weight", 1.0) * len(universe.sectors) >= 1.5
        assert limits.get("min_weight", 0.0) * universe.size <= 0.5
        assert limits.get("min_names", 0) < limits.get("max_names", universe.size) <= universe.size
        assert not set(limits.get("excluded_sectors", ())) & set(limits.get("sector_limits", {}))
        assert ("risk_aversion" in mandate.call) is (mandate.call["objective"] == Objective.MAX_SHARPE)
        assert "{" not in mandate.text

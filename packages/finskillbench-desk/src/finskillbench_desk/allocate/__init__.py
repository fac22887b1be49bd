"""Allocation: choose weights for 120 names from 190 sources of unknown worth and eleven years of their record.

Worlds come from a known law, drawn for each case from many structures and not disclosed, or from a disclosed family. So
the exact posterior and the optimal weights are known (see `share`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

import numpy as np
import polars as pl
from pydantic import Field

from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.checks.proofs import certificate_of, proof_of
from finskillbench.domains.examples import Examples
from finskillbench.domains.interactive import EpisodeBudget, InteractiveCase
from finskillbench.domains.tables import TableReference, reference
from finskillbench.episode import Disclosure, Episode, JsonObject, Profile, Truth
from finskillbench_desk.allocate.cases import AllocationCase, draw_allocation_case
from finskillbench_desk.allocate.examples import exploits, graded_examples
from finskillbench_desk.allocate.laws import BLOCK, STRUCTURES, family_json, law_json
from finskillbench_desk.allocate.procedures import PROCEDURES
from finskillbench_desk.allocate.prompts import (
    CONVENTIONS,
    LAW_PROMPT,
    PROMPT,
    allocation_data_memo,
    allocation_memo,
    certified,
    effect_covariance_json,
    source_log,
)
from finskillbench_desk.allocate.proof import proof
from finskillbench_desk.allocate.sources import (
    BAND,
    FACTORS,
    GROUP_SIZE,
    IS_ANALYST,
    MAX_WEIGHT,
    NAMES,
    PENALTY,
    QUARTERS,
    RISK_AVERSION,
    SOURCE_NAMES,
    TIERS,
    TURNOVER,
    book_json,
    vendor_of,
)
from finskillbench_desk.disclosure import plan, structure_of
from finskillbench_desk.market import ListedName

NAME = "allocate"
EPISODES = 40


class AllocateInput(TypedDict):
    """Task input of one case; tables are read by `read_table` or injected into scripts."""

    quarters: int
    panel: TableReference
    today: TableReference
    names: TableReference
    factor_returns: TableReference
    sources: TableReference
    factor_covariance: dict[str, Any]
    family: NotRequired[dict[str, float]]
    limits: dict[str, float]
    risk_aversion: float
    documents: dict[str, str]
    conventions: dict[str, str]


class Allocation(Answer):
    """Answer: the weights of the book."""

    weights: dict[str, float] = Field(
        description="Ticker to new weight as a fraction of NAV, six decimals; >= 0, summing to 1. A ticker that is "
        "left out has weight 0."
    )


def build(context: BuildContext, objects: tuple[ListedName, ...]) -> Iterator[BuiltTask]:
    """Yield forty cases, one world each, cycling through structures, disclosures and tiers."""
    if not context.synthetic or not objects:
        return
    names = [(listed.symbol, listed.industry) for listed in objects]
    dates = context.panels.month_ends
    for number, disclosure, structure, tier in plan(context, EPISODES, STRUCTURES, TIERS):
        rng = context.generator("desk", NAME, *((structure,) if structure else ()), number)
        case, level = draw_allocation_case(rng, names, structure, tier), disclosure if structure else tier
        as_of = dates[number % len(dates)]
        task_id = f"{SUBTASK.prefix}_{number + 1:02d}_{level}"
        frames = allocation_tables(case)
        task_input = input_of(task_id, case, frames, source_log(rng, case), disclosure)
        prompt = PROMPT if structure is None else LAW_PROMPT
        episode = Episode(task_id, "desk", NAME, as_of, tier, task_input, prompt)
        yield BuiltTask(episode, label_of(task_id, case), allocation_certificate(case), frames)


def input_of(
    task_id: str, case: AllocationCase, frames: dict[str, pl.DataFrame], log: str, disclosure: Disclosure
) -> AllocateInput:
    named = {name: reference(task_id, name, frame) for name, frame in frames.items()}
    law, book = case.world.law, case.world.book
    stated: AllocateInput = {
        "quarters": QUARTERS,
        "panel": named["panel"],
        "today": named["today"],
        "names": named["names"],
        "factor_returns": named["factor_returns"],
        "sources": named["sources"],
        "factor_covariance": {"factors": list(FACTORS), "matrix": book.factor_covariance.tolist()},
        "family": family_json(law),
        "limits": {
            "max_weight": MAX_WEIGHT,
            "industry_band": BAND,
            "max_turnover": TURNOVER,
            "price_of_breaking": PENALTY,
        },
        "risk_aversion": RISK_AVERSION,
        "documents": {
            "memo": allocation_memo(law) if disclosure == "full" else allocation_data_memo(book, disclosure),
            "notes": log,
        },
        "conventions": dict(CONVENTIONS),
    }
    if disclosure != "full":
        del stated["family"]
    return stated


def allocation_tables(case: AllocationCase) -> dict[str, pl.DataFrame]:
    book, sources, world = case.world.book, case.world.sources, case.world
    who = {"ticker": list(book.tickers), "industry": list(np.repeat(book.groups, GROUP_SIZE).tolist())}
    panel = pl.DataFrame(sources.values[:-1].reshape(QUARTERS * NAMES, -1), schema=list(SOURCE_NAMES))
    dates = np.repeat(np.arange(1, QUARTERS + 1, dtype=np.int16), NAMES)
    lead = pl.DataFrame(
        {
            "quarter": dates,
            **{name: values * QUARTERS for name, values in who.items()},
            "return_bp": world.returns.ravel(),
        }
    )
    return {
        "panel": pl.concat([lead, panel], how="horizontal"),
        "today": pl.DataFrame(who).hstack(pl.DataFrame(sources.values[-1], schema=list(SOURCE_NAMES)).get_columns()),
        "names": pl.DataFrame(
            {
                **who,
                **{factor: book.loadings[:, place] for place, factor in enumerate(FACTORS)},
                "specific_volatility": book.specific,
                "equilibrium_return": book.prior,
                "current_weight": book.current,
                "benchmark_weight": book.benchmark,
                "linear_cost": book.linear,
                "quadratic_cost": book.quadratic,
            }
        ),
        "factor_returns": pl.DataFrame(
            {"quarter": np.arange(1, QUARTERS + 1)}
            | {factor: world.factor_returns[:, place] for place, factor in enumerate(FACTORS)}
        ),
        "sources": pl.DataFrame(
            {
                "source": list(SOURCE_NAMES),
                "kind": ["analyst" if each else "signal" for each in IS_ANALYST],
                "vendor": [vendor_of(column) for column in range(len(SOURCE_NAMES))],
                "since": sources.since + 1,
                "scale": sources.scale,
            }
        ),
    }


def verification_of(case: AllocationCase) -> JsonObject:
    """Return what the scorer needs: book, posterior, both ends of the scale, and the weights of each mistake.

    The law is None if the case discloses it.
    """
    law = case.world.law
    size = {"industry": GROUP_SIZE, "block": BLOCK * GROUP_SIZE}.get(law.place, NAMES)
    return {
        "book": book_json(case.world.book),
        "effects": case.belief.alpha.tolist(),
        "effect_covariance": effect_covariance_json(case.belief.doubt, size),
        "textbook_utility": case.textbook,
        "attainable_utility": case.attainable,
        "misread": {name: weights.tolist() for name, weights in case.misread.items()},
        "law": law_json(law) if case.world.structure else None,
    }


def label_of(task_id: str, case: AllocationCase) -> Truth:
    proof = proof_of(case.best) | {"mistakes": len(case.misread)}
    return Truth(task_id, NAME, {"weights": _weights(case)}, verification_of(case), proof)


def _weights(case: AllocationCase) -> dict[str, float]:
    return dict(zip(case.world.book.tickers, case.best.weights.clip(0.0).tolist(), strict=True))


def allocation_certificate(case: AllocationCase) -> JsonObject:
    """Return the certificate: the optimum's, the numbers of traps and controls, the structure and mistakes' costs."""
    controls = sum(place.control for place in case.pitfalls)
    planted = {"traps": len(case.pitfalls) - controls, "controls": controls}
    structure = {"structure": case.world.structure} if case.world.structure else {}
    costs = {name: 1 - case.share(weights) for name, weights in case.misread.items()}
    return {**certificate_of(case.best), "planted": planted, **structure, "costs": costs}


def _trivial(fields: JsonObject) -> JsonObject:
    del fields
    return {"weights": {}}


SUBTASK: Subtask[AllocateInput, tuple[ListedName, ...]] = Subtask(
    name=NAME,
    prefix="dk_al",
    input=AllocateInput,
    answer=Allocation,
    definitions=CONVENTIONS,
    cluster=lambda episode: episode.task_id,
    template_of=structure_of,
    build=build,
    proof=proof,
    scorers={Profile.STRICT: certified, Profile.CERTIFIED: certified},
    verification=Verification(
        method="share_of_attainable_utility",
        parameters={"price_of_breaking": PENALTY, "ground_truth_source": "exact posterior, certified optimiser"},
        proved=("book", "effects", "effect_covariance", "textbook_utility", "attainable_utility", "misread", "law"),
    ),
    baselines=Baselines(trivial=Naive((), _trivial), ceiling=0.75),
    examples=Examples(graded=graded_examples, exploits=exploits),
    interactive=InteractiveCase(
        budget=EpisodeBudget(turns=24, output_tokens=60_000, data_calls=40), procedures=PROCEDURES
    ),
)

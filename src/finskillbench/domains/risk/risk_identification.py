"""Risk identification: rank the largest risk exposures of a portfolio."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import Field

from finskillbench.arrays import FACTORS
from finskillbench.domains.base import Answer, Baselines, Naive, Subtask, Verification
from finskillbench.domains.building import BuildContext, BuiltTask, merge_conventions, shuffled
from finskillbench.domains.examples import Examples, Label, Shortcuts
from finskillbench.domains.risk import no_skill_baseline, rederive
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.examples import exploits
from finskillbench.domains.risk.examples.risk_identification import graded_examples, shortcuts
from finskillbench.domains.risk.inputs import IdentificationInput
from finskillbench.domains.risk.objects.construct import ListedPortfolio, RiskObjects
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.objects.stress import drawn_within
from finskillbench.domains.risk.shared import (
    BENCHMARK,
    PLANTED,
    PRECISION,
    SKILL,
    betas_by_ticker,
    covariance_field,
    dense_covariance,
    holding_count,
    planted_facts,
    sector_mapping,
    values_by_ticker,
)
from finskillbench.domains.risk.user_catalogs.books import left_out
from finskillbench.engines.risk.exposures import (
    CONVENTIONS,
    LEAST_HHI,
    LIST_LENGTH,
    MATERIAL,
    PORTFOLIO,
    ExposureType,
    candidates,
    ranked,
)
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, require_field
from finskillbench.engines.risk.report import exposure_list
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth, lowest_raw
from finskillbench.findings import Findings
from finskillbench.scoring.values import as_number, as_text, clip, closeness, dcg, objects, overlap, parameter, share

NAME = "risk_identification"
METHOD = "ranked_list_recall"
TOLERANCE = 0.05
"""Relative difference below which two magnitudes may appear in either order."""
FULL, WRONG = 0.005, 0.01
"""Relative errors of a figure for full credit and for none."""
SHOWN, SIZED, BOTH = 0.25, 0.25, 0.5
"""Credit for the evidence, for the magnitude, and for both: one right figure may be luck."""
DISORDER, TOP_MISSED, RANKS = 0.3, 0.65, 0.8
"""Factors for a reversed list, a wrong top exposure, and wrong ranks."""
CLEAR = 0.01
"""Least relative distance of every magnitude from materiality, so that rounding decides no listing."""
SHORTEST = 2
"""Shortest list worth ranking."""
LONGEST = 20
"""Entries read from an answer."""
FEW, MANY = 20, 25
"""Most holdings of an easy and of a medium episode."""
EARNED = {"easy": 0.5, "medium": 0.45, "hard": 0.35}
"""Most that a shortcut may earn on average, by tier."""

_DEFINITIONS = merge_conventions(
    {
        "units": "weights, cash_weight and magnitudes are decimals of NAV (0.05 is 5 %); covariance and "
        "factor_volatility are annualised decimals; betas are ratios; average_daily_volume_usd and total_nav are in USD"
    },
    BENCHMARK,
    CONVENTIONS,
)

_Items = Sequence[Mapping[str, Any]]


class RiskExposure(Answer):
    """One exposure."""

    rank: int = Field(description="1 for the largest magnitude, then 2, 3 ...")
    type: Literal["factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk"] = Field(
        description="Kind of risk."
    )
    subject: str = Field(
        description="Subject of the exposure: the factor (factor_tilt), the sector (sector_concentration), the "
        'ticker (single_name), or "portfolio" (concentration, liquidity_risk).'
    )
    detail: str = Field(description="The exposure and its size in words.")
    magnitude: float = Field(
        description="Stand-alone risk, >= 0: the loss, a fraction of NAV (0.05 is 5 %), at one standard deviation of a "
        "year's return of this exposure alone, as conventions defines it for each type."
    )
    evidence: float = Field(
        description="Usual measure of the exposure: factor_tilt the portfolio's beta, signed; sector_concentration "
        "the sector's weight; single_name the weight, signed; concentration the Herfindahl index; liquidity_risk the "
        "illiquid share of NAV."
    )


class RiskIdentification(Answer):
    """Answer: the ranked list."""

    top_risk_exposures: list[RiskExposure] = Field(description="At most 5 exposures in descending order of magnitude.")


def _paper(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
    """ranked_list_recall: 0.4 recall + 0.3 precision + 0.3 NDCG of the first k (`top_k`, default 5).

    Recall and precision use the multiset overlap of `type`. The relevance of a type is its greatest expected magnitude;
    the ideal uses each type once. Not clipped: repeated types raise it above 1, as published.
    """
    del task_input
    predicted, expected = _lists(answer, truth)
    relevance: dict[str, float] = {}
    for item in expected:
        kind = as_text(item.get("type"))
        if kind is not None:
            relevance[kind] = max(_magnitude(item), relevance.get(kind, float("-inf")))
    kinds = [as_text(item.get("type")) for item in predicted]
    gains = [0.0 if kind is None else relevance.get(kind, 0.0) for kind in kinds]
    ideal = sorted(relevance.values(), reverse=True)
    return _score(predicted, expected, gains, ideal)


def _strict(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
    """Variant of `paper` that matches items one to one in rank order, so that it never exceeds 1."""
    del task_input
    predicted, expected = _lists(answer, truth)
    free: defaultdict[str, deque[float]] = defaultdict(deque)
    for item in expected:
        kind = as_text(item.get("type"))
        if kind is not None:
            free[kind].append(_magnitude(item))
    gains: list[float] = []
    for item in predicted:
        kind = as_text(item.get("type"))
        queue = None if kind is None else free.get(kind)
        gains.append(queue.popleft() if queue else 0.0)
    ideal = sorted((_magnitude(item) for item in expected), reverse=True)
    score = _score(predicted, expected, gains, ideal)
    return Score(min(1.0, score.value), score.details)


def _certified(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
    """Score right exposures, weighted by rank, times factors for order, top exposure and ranks.

    An exposure matches by type and subject. It earns 0.25 evidence + 0.25 magnitude + 0.5 of their product, full within
    0.5 % and nothing from 1 %, discounted by rank as in DCG. Each invented exposure counts as one more missed. Credit c
    becomes max(0, 2c - 1). Factors: 0.3 + 0.7 x share of ordered pairs (5 % tolerance), 0.65 without the largest
    exposure first, 0.8 for wrong ranks. Entries beyond the 20th are ignored.
    """
    del task_input
    _, expected = _lists(truth.expected_output, truth)
    answered = _exposures(answer)[:LONGEST]
    places = [_place(item, answered) for item in expected]
    credit = [0.0 if at is None else _earned(answered[at], item) for item, at in zip(expected, places, strict=True)]
    if not expected:
        return Score(0.0 if answered else 1.0, {"given": len(answered)})
    invented = len(answered) - len({at for at in places if at is not None})
    discounts = [1.0 / math.log2(rank + 1) for rank in range(1, len(expected) + invented + 1)]
    earned = math.fsum(worth * part for worth, part in zip(discounts, credit, strict=False))
    order = _order(expected, [at if part else None for at, part in zip(places, credit, strict=True)])
    top = any(
        part and at == 0 and _magnitude(item) * (1 + TOLERANCE) >= _magnitude(expected[0])
        for item, part, at in zip(expected, credit, places, strict=True)
    )
    ranked_as = ((item.get("rank"), place) for place, item in enumerate(answered, start=1))
    ranks = all(rank is None or as_number(rank) == place for rank, place in ranked_as)
    unlimited = 2.0 * earned / math.fsum(discounts) - 1.0
    value = clip(unlimited)
    value *= (DISORDER + (1 - DISORDER) * order) * (1.0 if top else TOP_MISSED) * (1.0 if ranks else RANKS)
    details = {"credit": credit, "given": len(answered), "order": order, "top": top, "ranks": ranks}
    return Score(value, details, value or lowest_raw(unlimited))


def _place(wanted: Mapping[str, Any], answered: _Items) -> int | None:
    """Find an exposure in an answer by type and subject; without a subject, search its detail."""
    kind, subject = as_text(wanted.get("type")) or "", as_text(wanted.get("subject"))
    for at, item in enumerate(answered):
        if (as_text(item.get("type")) or "").strip().lower() != kind:
            continue
        named = as_text(item.get("subject"))
        if subject is None or _plain(named if named is not None else "") == _plain(subject):
            return at
        if named is None and (subject == PORTFOLIO or _mentions(as_text(item.get("detail")) or "", subject)):
            return at
    return None


def _earned(item: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """Return the credit of a matched exposure; labels without evidence use the magnitude alone."""
    sized = _near(as_number(item.get("magnitude")), _magnitude(wanted))
    evidence = as_number(wanted.get("evidence"))
    shown = sized if evidence is None else _near(as_number(item.get("evidence")), evidence)
    return SHOWN * shown + SIZED * sized + BOTH * shown * sized


def _near(value: float | None, wanted: float) -> float:
    return closeness(value, wanted, full=FULL, full_floor=1e-5, zero=WRONG, zero_floor=1e-4)


def _order(expected: _Items, places: Sequence[int | None]) -> float:
    """Return the share of correctly ordered pairs among matched exposures of different size."""
    named = [(_magnitude(item), at) for item, at in zip(expected, places, strict=True) if at is not None]
    pairs = [
        larger[1] < smaller[1]
        for rank, larger in enumerate(named)
        for smaller in named[rank + 1 :]
        if larger[0] > smaller[0] * (1 + TOLERANCE)
    ]
    return share(sum(pairs), len(pairs)) if pairs else 1.0


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _mentions(detail: str, subject: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(subject)}(?![\w-])", detail) is not None


def _lists(answer: JsonObject, truth: Truth) -> tuple[_Items, _Items]:
    k = max(1, int(parameter(truth.verification, "top_k", 5)))
    return _exposures(answer)[:k], _exposures(truth.expected_output)[:k]


def _exposures(source: JsonObject) -> _Items:
    return objects(source.get("top_risk_exposures")) or objects(source.get("risks"))


def _magnitude(item: Mapping[str, Any]) -> float:
    return as_number(item.get("magnitude")) or 0.0


def _score(predicted: _Items, expected: _Items, gains: Sequence[float], ideal: Sequence[float]) -> Score:
    kinds = ([as_text(item.get("type")) for item in side] for side in (predicted, expected))
    shared = overlap(*([kind for kind in side if kind is not None] for side in kinds))
    recall, precision = share(shared, len(expected)), share(shared, len(predicted))
    ndcg = _ratio(gains, ideal)
    value = 0.4 * recall + 0.3 * precision + 0.3 * ndcg
    return Score(value, {"recall": recall, "precision": precision, "ndcg": ndcg, "dcg": dcg(gains), "idcg": dcg(ideal)})


def _ratio(gains: Sequence[float], ideal: Sequence[float]) -> float:
    """Return DCG / IDCG scaled by the largest relevance against overflow; 0 without relevance."""
    top = max(ideal, default=0.0)
    best = dcg(value / top for value in ideal) if top > 0 else 0.0
    return dcg(value / top for value in gains) / best if best > 0 else 0.0


def _build(context: BuildContext, objects: RiskObjects) -> list[BuiltTask]:
    """Build tasks from the user's books and drawn portfolios, stratified by `_traits`."""
    books = [ListedPortfolio(case, ranked(case.portfolio, case.market)) for case in objects.user_pools.books]
    user_items = [item for item in books if _clear(item)]
    why = "fewer than two risks are material, or rounding decides one"
    context.notes.extend(left_out(NAME, objects.user_pools.books, [item.case for item in user_items], why))
    items = [item for item in objects.identification if _clear(item)]
    tasks = drawn_within(EARNED, items, _traits, context.most(EPISODES), context.generator(NAME, "draw"), _scored)
    return [*map(_task, user_items), *shuffled(tasks, context.generator(NAME, "order"))]


def _scored(item: ListedPortfolio) -> tuple[BuiltTask, dict[str, float]]:
    """Return the task of a portfolio, and the score of each shortcut."""
    task = _task(item)
    full = cast("IdentificationInput", {**task.episode.input, "covariance_matrix": dense_covariance(item.case.market)})
    return task, {name: _certified(answer, task.truth, full).value for name, answer in shortcuts(full).items()}


def _clear(item: ListedPortfolio) -> bool:
    """Check that the list is long enough and that rounding decides neither materiality nor fifth place."""
    every = candidates(item.case.portfolio, item.case.market)
    material = sorted((one.magnitude for one in every if one.material), reverse=True)
    apart = all(abs(one.magnitude / MATERIAL[one.type] - 1) >= CLEAR for one in every)
    (spread,) = (one for one in every if one.type is ExposureType.CONCENTRATION)
    apart &= spread.magnitude < MATERIAL[spread.type] or abs(spread.evidence / LEAST_HHI - 1) >= CLEAR
    full = len(material) <= LIST_LENGTH or material[LIST_LENGTH - 1] >= material[LIST_LENGTH] * (1 + TOLERANCE)
    return len(material) >= SHORTEST and apart and full


def _traits(item: ListedPortfolio) -> tuple[str, ...]:
    case, kinds = item.case, [one.type for one in item.exposures]
    listed = [f"{kind} listed: {kind in kinds}" for kind in ExposureType]
    tier = _difficulty(case)
    return case.type, case.regime, tier, f"{tier}, {len(kinds)} listed", f"top {kinds[0]}", *listed


def _difficulty(case: PortfolioCase) -> str:
    """Return the tier from portfolio size and shorts, which the prompt shows; never from the label."""
    names, short = holding_count(case), bool((case.portfolio.weights < -ZERO_WEIGHT).any())
    if names > MANY or (short and names > FEW):
        return "hard"
    return "medium" if short or names > FEW else "easy"


def _task(item: ListedPortfolio) -> BuiltTask:
    case, market = item.case, item.case.market
    task_id = f"{SUBTASK.prefix}_{case.as_of}_{case.portfolio_id}"
    task_input: IdentificationInput = {
        "portfolio": case.to_json(),
        "sector_mapping": sector_mapping(market),
        "factor_exposures": betas_by_ticker(market),
        "average_daily_volume_usd": values_by_ticker(
            market, require_field(market.dollar_volume, "average daily volume")
        ),
        "factor_volatility": dict(
            zip(FACTORS, require_field(market.factor_volatility, "volatility").tolist(), strict=True)
        ),
        "benchmark_weights": values_by_ticker(market, require_field(market.benchmark, "benchmark weights")),
        "covariance_matrix": covariance_field(market, case.as_of),
        "conventions": dict(_DEFINITIONS),
    }
    label = {"top_risk_exposures": exposure_list(item.exposures)}
    prompt = Prompt(
        f"Find the material risk exposures of the portfolio against its benchmark as of {case.as_of}: factor tilts, "
        "sectors, single names, concentration and liquidity. Measure each by its stand-alone risk, the loss at one "
        "standard deviation; conventions defines it for each type, the size from which it is material, and the "
        f"ranking of the list. Give the first {LIST_LENGTH}, or all if there are fewer.",
        "Submit a JSON object with top_risk_exposures, ranked by magnitude in descending order (rank, type, subject, "
        f"detail, magnitude, evidence). {PRECISION}",
    )
    resolved: IdentificationInput = {**task_input, "covariance_matrix": dense_covariance(market)}
    return BuiltTask(
        Episode(task_id, SKILL, NAME, case.as_of, _difficulty(case), task_input, prompt),
        Truth(task_id, NAME, label, planted_facts(case)),
        {"kind": "rederived", "second": [list(one) for one in rederive.exposures(resolved)]},
    )


def _examine(label: Label[IdentificationInput], findings: Findings) -> None:
    """Check that every exposure of a label has a detail."""
    worded = all(as_text(row.get("detail")) for row in label.truth.expected_output["top_risk_exposures"])
    findings.expect(worded, label.truth.task_id, "an exposure has no detail")


_USUAL = (
    ("concentration", "portfolio", 0.08, 0.08),
    ("sector_concentration", "Technology", 0.06, 0.3),
    ("single_name", "AAPL", 0.04, 0.1),
    ("liquidity_risk", "portfolio", 0.035, 0.2),
    ("factor_tilt", "mkt_rf", 0.025, 1.1),
)
"""One exposure of each type, of typical size."""


SUBTASK: Subtask[IdentificationInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_ri",
    input=IdentificationInput,
    answer=RiskIdentification,
    definitions=_DEFINITIONS,
    build=_build,
    rederive=rederive.identification_answer,
    proof=_examine,
    scorers={Profile.PAPER: _paper, Profile.STRICT: _strict, Profile.CERTIFIED: _certified},
    verification=Verification(
        method=METHOD,
        parameters={
            "top_k": LIST_LENGTH,
            "partial_credit": True,
            "metrics": ["recall_at_5", "precision_at_5", "ndcg_at_5"],
        },
        proved=PLANTED,
        description=("detail",),
    ),
    baselines=Baselines(
        no_skill=Naive(
            ("portfolio", "sector_mapping"),
            lambda data: exploits.exposure_answer(no_skill_baseline.exposures_by_weight(data)),
        ),
        trivial=Naive((), lambda data: exploits.exposure_answer(_USUAL)),
        heuristic="weights times a usual volatility",
    ),
    examples=Examples(
        graded=graded_examples, exploits=exploits.identification_exploits, shortcuts=Shortcuts(shortcuts)
    ),
)

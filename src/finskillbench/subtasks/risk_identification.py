"""Risk identification: the largest risk exposures of a portfolio, ranked."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from finskillbench.episode import JsonObject, Profile, Score, Truth
from finskillbench.scoring.measures import dcg, overlap, share
from finskillbench.scoring.values import number, objects, parameter, text
from finskillbench.subtasks.base import Answer, Subtask

_Items = Sequence[Mapping[str, Any]]


class RiskExposure(Answer):
    """One exposure."""

    rank: int = Field(description="1 for the largest magnitude, then 2, 3 ...")
    type: Literal["factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk"] = Field(
        description="Kind of risk."
    )
    detail: str = Field(description="What it is an exposure to (factor, sector or ticker) and its size, in words.")
    magnitude: float = Field(
        description="Size of the exposure, >= 0: absolute beta of a factor, weight of a sector or name as a fraction "
        "(0.15 is 15 %), Herfindahl index (sum of squared weights) of the portfolio."
    )


class RiskIdentification(Answer):
    """Answer: the ranked list."""

    top_risk_exposures: list[RiskExposure] = Field(description="At most 5 exposures in descending order of magnitude.")


def paper(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """ranked_list_recall: 0.4 recall + 0.3 precision + 0.3 NDCG among the first k (`top_k`, default 5).

    Recall and precision from the multiset overlap of `type`. NDCG: the relevance of a type is its greatest expected
    magnitude; the ideal uses each type once. Not clipped: repeated types lift it over 1, as published.
    """
    del task_input
    predicted, expected = _lists(answer, truth)
    relevance: dict[str, float] = {}
    for item in expected:
        kind = text(item.get("type"))
        if kind is not None:
            relevance[kind] = max(_magnitude(item), relevance.get(kind, float("-inf")))
    gains = [relevance.get(text(item.get("type")) or "", 0.0) for item in predicted]
    ideal = sorted(relevance.values(), reverse=True)
    return _score(predicted, expected, gains, ideal)


def strict(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """As `paper`, but items are matched one to one, greedily in rank order: never over 1; reports DCG and IDCG.

    A predicted item gains the magnitude of the first expected item of its type that is still free; the ideal takes
    every expected item once, in descending order.
    """
    del task_input
    predicted, expected = _lists(answer, truth)
    free: defaultdict[str, deque[float]] = defaultdict(deque)
    for item in expected:
        kind = text(item.get("type"))
        if kind is not None:
            free[kind].append(_magnitude(item))
    gains = []
    for item in predicted:
        queue = free.get(text(item.get("type")) or "")
        gains.append(queue.popleft() if queue else 0.0)
    ideal = sorted((_magnitude(item) for item in expected), reverse=True)
    score = _score(predicted, expected, gains, ideal)
    return Score(min(1.0, score.value), score.details)


def _lists(answer: JsonObject, truth: Truth) -> tuple[_Items, _Items]:
    k = max(1, int(parameter(truth.verification, "top_k", 5)))
    return _exposures(answer)[:k], _exposures(truth.expected_output)[:k]


def _exposures(source: JsonObject) -> _Items:
    return objects(source.get("top_risk_exposures")) or objects(source.get("risks"))


def _magnitude(item: Mapping[str, Any]) -> float:
    return number(item.get("magnitude")) or 0.0


def _score(predicted: _Items, expected: _Items, gains: Sequence[float], ideal: Sequence[float]) -> Score:
    kinds = [[kind for item in side if (kind := text(item.get("type"))) is not None] for side in (predicted, expected)]
    shared = overlap(*kinds)
    recall, precision = share(shared, len(expected)), share(shared, len(predicted))
    ndcg = _ratio(gains, ideal)
    value = 0.4 * recall + 0.3 * precision + 0.3 * ndcg
    return Score(value, {"recall": recall, "precision": precision, "ndcg": ndcg, "dcg": dcg(gains), "idcg": dcg(ideal)})


def _ratio(gains: Sequence[float], ideal: Sequence[float]) -> float:
    """DCG / IDCG in units of the largest relevance, so that no sum can overflow; 0 where nothing is relevant."""
    top = max(ideal, default=0.0)
    best = dcg(value / top for value in ideal) if top > 0 else 0.0
    return dcg(value / top for value in gains) / best if best > 0 else 0.0


SUBTASK = Subtask(
    name="risk_identification",
    skill="risk_management",
    prefix="rm_ri",
    method="ranked_list_recall",
    answer=RiskIdentification,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict},
)

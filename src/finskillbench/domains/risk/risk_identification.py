"""Risk identification: the largest risk exposures of a portfolio, ranked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from finskillbench.domains.base import Answer, Subtask
from finskillbench.domains.building import BuildContext, Task, conventions
from finskillbench.domains.draws import drawn, shuffled
from finskillbench.domains.risk.objects.construct import risk_context
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.second import exposures
from finskillbench.domains.risk.shared import (
    EPISODES,
    PRECISION,
    SKILL,
    UNITS,
    agreed,
    by_ticker,
    derived_again,
    factor_exposures,
    holdings,
    planted,
    pool_sizes,
    returns_field,
    same,
    sector_mapping,
)
from finskillbench.engines.risk.exposures import (
    CONVENTIONS,
    LIST_LENGTH,
    PORTFOLIO,
    Exposure,
    ExposureType,
    candidates,
    ranked,
)
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, required
from finskillbench.engines.risk.report import exposure_list
from finskillbench.engines.risk.task import market_from, portfolio_from
from finskillbench.episode import Episode, JsonObject, Profile, Prompt, Score, Truth
from finskillbench.scoring.measures import closeness, dcg, overlap, share
from finskillbench.scoring.values import number, objects, parameter, text

NAME = "risk_identification"
METHOD = "ranked_list_recall"
TOLERANCE = 0.05
"""Relative error from which a magnitude is wrong, and up to which two may stand in either order."""
FULL = 0.005
"""Relative error of a magnitude up to which it earns in full."""
TIE = 1e-9
"""Exposures whose magnitudes differ by no more are interchangeable."""
PLAIN = 8
"""Episodes whose list takes nothing but weights: no betas and no volumes."""
LONGEST = 20
"""Entries of a list that are read."""
FEW, MANY = 21, 23
"""Most holdings of an easy episode, and of a medium one: about a third of the portfolios each."""

_Items = Sequence[Mapping[str, Any]]


class RiskExposure(Answer):
    """One exposure."""

    rank: int = Field(description="1 for the largest magnitude, then 2, 3 ...")
    type: Literal["factor_tilt", "sector_concentration", "single_name", "concentration", "liquidity_risk"] = Field(
        description="Kind of risk."
    )
    subject: str = Field(
        description="What it is an exposure to: the factor (factor_tilt), the sector (sector_concentration), the "
        'ticker (single_name), or "portfolio" (concentration, liquidity_risk).'
    )
    detail: str = Field(description="The exposure and its size in words.")
    magnitude: float = Field(
        description="Size of the exposure, >= 0: factor_tilt the absolute beta of the portfolio, for mkt_rf its "
        "distance from 1; sector_concentration and single_name a weight as a fraction of NAV (0.15 is 15 %); "
        "concentration the Herfindahl index (sum of squared weights); liquidity_risk the illiquid share of NAV."
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


def certified(answer: JsonObject, truth: Truth, task_input: JsonObject) -> Score:
    """Exposures that are right in type and subject, each times the ramp of its magnitude, over the longer list.

    A magnitude earns in full within 0.5 %, nothing from 5 % on. Exposures of equal magnitude are interchangeable: which
    of four names at 15 % is named does not matter. What comes in another than descending order of its own magnitudes,
    or with a rank that is not its place in the list, costs a fifth. Of a list longer than 20 the rest is not read.
    """
    market = market_from(task_input)
    book = portfolio_from(task_input, market)
    known = candidates(book, market)
    listed = ranked(book, market, len(known))
    k = max(1, int(parameter(truth.verification, "top_k", 5)))
    wanted = _exposures(truth.expected_output)[:k]
    labelled = {(item["type"], item["subject"]) for item in wanted}
    spare = [candidate for candidate in listed if (candidate.type, candidate.subject) not in labelled]
    expected = [_slot(item, spare) for item in wanted]
    given = _exposures(answer)[:LONGEST]
    named: list[Exposure | None] = []
    for item in given:
        candidate = _named(item, known)
        named.append(None if candidate in named else candidate)  # the same exposure again earns nothing
    right = _assigned([[] if c is None else [j for j, slot in enumerate(expected) if slot(c)] for c in named])
    sizes = [_magnitude(given[place]) for place in right]
    credit = [_sized(size, named[place]) for place, size in zip(right, sizes, strict=True)]
    descending = all(later <= earlier * (1 + TOLERANCE) for earlier, later in pairwise(sizes))
    ranks = all(item.get("rank") is None or number(item["rank"]) == place for place, item in enumerate(given, start=1))
    longest = max(len(expected), len(given))
    value = sum(credit) / longest * (1.0 if descending and ranks else 0.8) if longest else 0.0
    details = {"matched": len(sizes), "given": len(given), "sizes": credit, "descending": descending, "ranks": ranks}
    return Score(value, details)


def _sized(size: float, exposure: Exposure | None) -> float:
    """Credit of a submitted magnitude."""
    if exposure is None:
        return 0.0
    return closeness(size, exposure.magnitude, full=FULL, full_floor=1e-6, zero=TOLERANCE, zero_floor=1e-5)


def _slot(item: Mapping[str, Any], spare: Sequence[Exposure]) -> Callable[[Exposure], bool]:
    """Whether a candidate may stand in the place of one expected exposure.

    It is that exposure; or it ties with it and is of its type (another of four names at 15 %), or ties with it and
    is one of the `spare` that rank behind the list (the sixth that is as large as the fifth).
    """
    kind, size = item["type"], item["magnitude"]

    def fits(candidate: Exposure) -> bool:
        tied = abs(candidate.magnitude - size) <= TIE
        return tied and (candidate.type == kind or candidate in spare)

    return fits


def _named(item: Mapping[str, Any], known: Sequence[Exposure]) -> Exposure | None:
    """The candidate that an entry names by type, subject and magnitude, or None.

    Without a `subject`, the only one of the type that the `detail` names; the portfolio itself needs no naming.
    """
    kind, size = text(item.get("type")), number(item.get("magnitude"))
    if kind is None or size is None:
        return None
    of_type = [candidate for candidate in known if candidate.type == kind.strip().lower()]
    subject, detail = text(item.get("subject")), text(item.get("detail")) or ""
    if subject is not None:
        named = [candidate for candidate in of_type if _plain(candidate.subject) == _plain(subject)]
    else:
        named = [c for c in of_type if c.subject == PORTFOLIO or _mentions(detail, c.subject)]
    if len(named) != 1 or abs(size - named[0].magnitude) > TOLERANCE * named[0].magnitude:
        return None
    return named[0]


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _mentions(detail: str, subject: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(subject)}(?![\w-])", detail) is not None


def _assigned(choices: Sequence[Sequence[int]]) -> list[int]:
    """Places of the entries in a largest one-to-one assignment to the slots that each may take, in order."""
    taken: dict[int, int] = {}

    def place(entry: int, tried: set[int]) -> bool:
        for slot in choices[entry]:
            if slot not in tried:
                tried.add(slot)
                if slot not in taken or place(taken[slot], tried):
                    taken[slot] = entry
                    return True
        return False

    for entry in range(len(choices)):
        place(entry, set())
    return sorted(taken.values())


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


def build(context: BuildContext, objects: object) -> list[Task]:
    """Portfolios drawn by type, regime, difficulty and the set of types in their lists.

    Of `PLAIN` episodes at most the list has neither a factor tilt nor illiquidity: it is told by the weights alone.
    """
    pool = [(case, ranked(case.book, case.market)) for case in risk_context(context).identification]
    kinds = Counter(f"listing_{kind}" for _, listed in pool for kind in {one.type.value for one in listed})
    pool_sizes(context)[NAME] = {"portfolios": len(pool), **dict(sorted(kinds.items()))}
    tasks: list[Task] = []
    for plain, count in ((False, EPISODES - PLAIN), (True, PLAIN)):
        side = [item for item in pool if _plain_list(item[1]) is plain]
        tasks += drawn(side, _traits, count, context.generator(NAME, "draw", plain), _task)
    return shuffled(tasks, context.generator(NAME, "order"))


_Case = tuple[PortfolioCase, tuple[Exposure, ...]]


def _traits(item: _Case) -> tuple[str, ...]:
    case, listed = item
    kinds = {one.type for one in listed}
    tilts = sum(one.type is ExposureType.FACTOR_TILT for one in listed)
    return case.type, case.regime, _difficulty(case), " ".join(sorted(kinds)), f"{min(tilts, 2)} tilts"


def _plain_list(listed: Sequence[Exposure]) -> bool:
    return not {ExposureType.FACTOR_TILT, ExposureType.LIQUIDITY_RISK} & {one.type for one in listed}


def _difficulty(case: PortfolioCase) -> str:
    """By the size of the book, never by its list: the prompt shows it. Short positions make it hard."""
    if (case.book.weights < -ZERO_WEIGHT).any():
        return "hard"
    names = holdings(case)
    return "easy" if names <= FEW else "medium" if names <= MANY else "hard"


def _task(item: _Case) -> Task:
    case, listed = item
    market = case.market
    task_id = f"{SUBTASK.prefix}_{case.as_of}_{case.portfolio_id}"
    task_input = {
        "portfolio": case.to_json(),
        "sector_mapping": sector_mapping(market),
        "factor_exposures": factor_exposures(market),
        "average_daily_volume_usd": by_ticker(market, required(market.dollar_volume, "average daily volume")),
        "returns": returns_field(market, case.as_of),
        "conventions": conventions({"units": UNITS}, CONVENTIONS),
    }
    second = exposures(task_input)
    same(task_id, "the list", [(one.type.value, one.subject) for one in listed], [one[:2] for one in second])
    pairs = [(f"{one.type} {one.subject}", one.magnitude, other[2]) for one, other in zip(listed, second, strict=True)]
    prompt = Prompt(
        f"Find the largest risk exposures of the portfolio as of {case.as_of}: factor tilts, sector concentration, the "
        "largest single name, overall concentration and liquidity. conventions defines the magnitude of each, from "
        f"which size on it is listed, and how the list is ranked; give the first {LIST_LENGTH}, or all if there are "
        "fewer.",
        "Submit a JSON object with top_risk_exposures, ranked by magnitude in descending order (rank, type, subject, "
        f"detail, magnitude). {PRECISION}",
    )
    return Task(
        Episode(task_id, SKILL, NAME, case.as_of, _difficulty(case), task_input, prompt),
        Truth(
            task_id,
            NAME,
            {"top_risk_exposures": exposure_list(listed)},
            {
                "method": METHOD,
                "top_k": LIST_LENGTH,
                "partial_credit": True,
                "metrics": ["recall_at_5", "precision_at_5", "ndcg_at_5"],
                **planted(case),
            },
            derived_again(agreed(task_id, pairs), len(pairs)),
        ),
        {"kind": "rederived", "second": [list(one) for one in second]},
    )


SUBTASK = Subtask(
    name=NAME,
    prefix="rm_ri",
    method=METHOD,
    answer=RiskIdentification,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict, Profile.CERTIFIED: certified},
    build=build,
    definitions=conventions({"units": UNITS}, CONVENTIONS),
)

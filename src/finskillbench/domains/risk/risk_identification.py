"""Risk identification: the largest risk exposures of a portfolio, ranked."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field

from finskillbench.domains.agreement import compare
from finskillbench.domains.base import Answer, Label, Naive, Subtask
from finskillbench.domains.building import BuildContext, Task, conventions
from finskillbench.domains.draws import drawn, shuffled
from finskillbench.domains.proofs import expect_agreement
from finskillbench.domains.risk import by_hand, second
from finskillbench.domains.risk.catalogs import EPISODES
from finskillbench.domains.risk.inputs import IdentificationInput
from finskillbench.domains.risk.objects.construct import ListedPortfolio, RiskObjects
from finskillbench.domains.risk.objects.portfolios import PortfolioCase
from finskillbench.domains.risk.shared import (
    PRECISION,
    SKILL,
    UNITS,
    by_ticker,
    derived_again,
    factor_exposures,
    holdings,
    planted,
    returns_field,
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
from finskillbench.findings import Findings
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


def paper(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
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


def strict(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
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
    gains: list[float] = []
    for item in predicted:
        queue = free.get(text(item.get("type")) or "")
        gains.append(queue.popleft() if queue else 0.0)
    ideal = sorted((_magnitude(item) for item in expected), reverse=True)
    score = _score(predicted, expected, gains, ideal)
    return Score(min(1.0, score.value), score.details)


def certified(answer: JsonObject, truth: Truth, task_input: IdentificationInput) -> Score:
    """Exposures that are right in type and subject, each times the ramp of its magnitude, over the longer list.

    A magnitude earns in full within 0.5 %, nothing from 5 % on. Exposures of equal magnitude are interchangeable: which
    of four names at 15 % is named does not matter. What comes in another than descending order of its own magnitudes,
    or with a rank that is not its place in the list, costs a fifth. Of a list longer than 20 the rest is not read.
    """
    market = market_from(task_input)
    portfolio = portfolio_from(task_input, market)
    known = candidates(portfolio, market)
    listed = ranked(portfolio, market, len(known))
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


def build(context: BuildContext, objects: RiskObjects) -> list[Task]:
    """Portfolios drawn by type, regime, difficulty and the set of types in their lists.

    Of `PLAIN` episodes at most the list has neither a factor tilt nor illiquidity: it is told by the weights alone.
    """
    tasks: list[Task] = []
    for plain, count in ((False, EPISODES - PLAIN), (True, PLAIN)):
        side = [one for one in objects.identification if _plain_list(one.exposures) is plain]
        tasks += drawn(side, _traits, count, context.generator(NAME, "draw", plain), _task)
    return shuffled(tasks, context.generator(NAME, "order"))


def _traits(item: ListedPortfolio) -> tuple[str, ...]:
    case, kinds = item.case, [one.type for one in item.exposures]
    tilts = kinds.count(ExposureType.FACTOR_TILT)
    return case.type, case.regime, _difficulty(case), " ".join(sorted(set(kinds))), f"{min(tilts, 2)} tilts"


def _plain_list(listed: Sequence[Exposure]) -> bool:
    return not {ExposureType.FACTOR_TILT, ExposureType.LIQUIDITY_RISK} & {one.type for one in listed}


def _difficulty(case: PortfolioCase) -> str:
    """By the size of the portfolio, never by its list: the prompt shows it. Short positions make it hard."""
    if (case.portfolio.weights < -ZERO_WEIGHT).any():
        return "hard"
    names = holdings(case)
    return "easy" if names <= FEW else "medium" if names <= MANY else "hard"


def _task(item: ListedPortfolio) -> Task:
    case, market = item.case, item.case.market
    task_id = f"{SUBTASK.prefix}_{case.as_of}_{case.portfolio_id}"
    task_input: IdentificationInput = {
        "portfolio": case.to_json(),
        "sector_mapping": sector_mapping(market),
        "factor_exposures": factor_exposures(market),
        "average_daily_volume_usd": by_ticker(market, required(market.dollar_volume, "average daily volume")),
        "returns": returns_field(market, case.as_of),
        "conventions": conventions({"units": UNITS}, CONVENTIONS),
    }
    label = {"top_risk_exposures": exposure_list(item.exposures)}
    prompt = Prompt(
        f"Find the largest risk exposures of the portfolio as of {case.as_of}: factor tilts, sector concentration, the "
        "largest single name, overall concentration and liquidity. conventions defines the magnitude of each, from "
        f"which size on it is listed, and how the list is ranked; give the first {LIST_LENGTH}, or all if there are "
        "fewer.",
        "Submit a JSON object with top_risk_exposures, ranked by magnitude in descending order (rank, type, subject, "
        f"detail, magnitude). {PRECISION}",
    )
    verification = {
        "method": METHOD,
        "top_k": LIST_LENGTH,
        "partial_credit": True,
        "metrics": ["recall_at_5", "precision_at_5", "ndcg_at_5"],
        **planted(case),
    }
    proof = derived_again(task_id, _without_words(label), second.identification_answer(task_input), ("magnitude",))
    return Task(
        Episode(task_id, SKILL, NAME, case.as_of, _difficulty(case), task_input, prompt),
        Truth(task_id, NAME, label, verification, proof),
        {"kind": "rederived", "second": [list(one) for one in second.exposures(task_input)]},
    )


def _without_words(label: JsonObject) -> JsonObject:
    """A label without `detail`, which says in rounded words what the other entries say in full."""
    rows = [{key: value for key, value in row.items() if key != "detail"} for row in label["top_risk_exposures"]]
    return {**label, "top_risk_exposures": rows}


def _examine(label: Label[IdentificationInput], findings: Findings) -> None:
    """The listed exposures are those that the second derivation lists, in its order; `detail` is there for people."""
    expect_agreement(label, findings)
    expected = label.truth.expected_output
    derived = second.identification_answer(label.task_input)
    compare(_without_words(expected), derived, label.truth.task_id, findings)
    worded = all(text(row.get("detail")) for row in expected["top_risk_exposures"])
    findings.expect(worded, label.truth.task_id, "an exposure has no detail")


def _by_hand(data: Mapping[str, Any]) -> JsonObject:
    """Largest name, largest sector and the Herfindahl index; no betas, no volumes."""
    weights, _ = by_hand.holdings(data)
    found = [("concentration", "portfolio", sum(weight**2 for weight in weights.values()))]
    if weights:
        sizes = {name: abs(weight) for name, weight in weights.items()}
        found += [
            ("single_name", *by_hand.largest(sizes)),
            ("sector_concentration", *by_hand.largest(by_hand.by_sector(weights, data["sector_mapping"]))),
        ]
    found.sort(key=lambda exposure: -exposure[2])
    return _ranked([(kind, subject, f"{subject} {size:.4f}", size) for kind, subject, size in found])


_USUAL = (
    ("factor_tilt", "hml", "hml beta +0.400", 0.4),
    ("sector_concentration", "Technology", "Technology sector 30.0%", 0.3),
    ("single_name", "AAPL", "AAPL at 10.0%", 0.1),
    ("concentration", "portfolio", "HHI 0.0600", 0.06),
    ("liquidity_risk", "portfolio", "illiquid share 5.0%", 0.05),
)
"""One exposure of each type, of a usual size."""


def _usual_list(data: Mapping[str, Any]) -> JsonObject:
    del data
    return _ranked(_USUAL)


def _ranked(exposures: Sequence[tuple[str, str, str, float]]) -> JsonObject:
    """An answer of exposures given as (type, subject, detail, magnitude)."""
    return {
        "top_risk_exposures": [
            {"rank": rank, "type": kind, "subject": subject, "detail": detail, "magnitude": magnitude}
            for rank, (kind, subject, detail, magnitude) in enumerate(exposures, start=1)
        ]
    }


SUBTASK: Subtask[IdentificationInput, RiskObjects] = Subtask(
    name=NAME,
    prefix="rm_ri",
    method=METHOD,
    answer=RiskIdentification,
    scorers={Profile.PAPER: paper, Profile.STRICT: strict, Profile.CERTIFIED: certified},
    build=build,
    proof=_examine,
    by_hand=Naive(("portfolio", "sector_mapping"), _by_hand),
    trivial=Naive((), _usual_list),
    input=IdentificationInput,
    definitions=conventions({"units": UNITS}, CONVENTIONS),
)

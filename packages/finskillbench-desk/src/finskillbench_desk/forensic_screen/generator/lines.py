"""Statements whose lines tie together and from which the ratios follow: whole thousands, 82 lines a quarter.

Revenue and ratios are given; every other line is drawn about its usual share of revenue, so that nothing but the ratios
carries information. Only freely set lines are rounded; totals are sums of rounded lines, so identities hold exactly.

Places where data mislead somebody who has not read the notes: which companies, from when, and what they look like.

A planted place makes an innocent path look managed to whoever leaves the correction out. Its path is drawn again until
it does. That looks only at what an agent can see, so the posterior of what happened is what it was.

What nature draws for companies: whether, how and from when they are managed, and their paths of log ratios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Model, Prediction
from finskillbench_desk.engines.posterior.posterior import kind_probabilities, placed
from finskillbench_desk.forensic_screen.difficulty import MEASURES, QUARTERS, RATIOS
from finskillbench_desk.forensic_screen.generator.draws import LOG_UNIT, Background
from finskillbench_desk.forensic_screen.reading import BALANCE, IDENTITIES, LAYOUT, SLIP, fiscal_quarter


class Paths(NamedTuple):
    """Paths (n, T, R) of log ratios about what is announced; kind, -1 for none, and first managed quarter (n,)."""

    y: Floats
    kind: Integers
    start: Integers

    def at(self, place: int) -> Paths:
        """One company's."""
        which = slice(place, place + 1)
        return Paths(self.y[which], self.kind[which], self.start[which])


def drawn_paths(rng: np.random.Generator, model: Model, prediction: Prediction, acquired: Integers) -> Paths:
    """Companies as the disclosed model has them; `acquired` (n,) is the quarter of an acquisition, -1 for none."""
    n, ratios = len(acquired), len(model.deviation)
    managed = rng.random(n) < model.base_rate
    kind = np.where(managed, rng.choice(len(model.shares), n, p=model.shares), -1)
    start = np.where(managed, rng.integers(QUARTERS - model.starts, QUARTERS, n), -1)
    scale = np.sqrt(1.0 / rng.gamma(model.freedom / 2.0, 2.0 / model.freedom, n))
    noise = rng.standard_normal((n, QUARTERS, ratios))
    push = np.zeros_like(noise)
    freely = rng.standard_normal((n, ratios))
    for place in np.flatnonzero(managed):
        root = np.linalg.cholesky(prediction.covariance[kind[place]])
        shift = prediction.mean[kind[place]] + scale[place] * root @ freely[place]
        push[place] = placed(model.profiles[kind[place]], int(start[place]), QUARTERS)[:, None] * shift
    moves = scale[:, None, None] * (noise @ np.linalg.cholesky(model.sigma).T) + push
    x = np.empty_like(moves)
    x[:, 0] = scale[:, None] * (noise[:, 0] @ np.linalg.cholesky(model.stationary).T)
    for quarter in range(1, QUARTERS):
        x[:, quarter] = model.persistence * x[:, quarter - 1] + moves[:, quarter]
    own = scale[:, None] * model.own * rng.standard_normal((n, ratios))
    change = scale[:, None] * model.acquired * rng.standard_normal((n, ratios))
    later = (acquired[:, None] >= 0) & (np.arange(QUARTERS) >= acquired[:, None])
    return Paths(x + own[:, None, :] + later[:, :, None] * change[:, None, :], kind, start)


LOCAL = ("unit_slip", "restatement", "acquisition", "lease_standard", "fiscal_year", "growth")
PLANTED, ORDERLY = 3, 2
"""How many of the kinds are planted in a case, and of how many there is a look-alike in which all is in order."""
SPURT, SPURT_QUARTERS = 0.15, 7
"""Extra growth of log revenue a quarter, and for how long."""
_CANDIDATES, _TRIES = 64, 12
_INNOCENT, _SUSPECT = 0.2, 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One place.

    Attributes
    ----------
    kind : one of `LOCAL`.
    company : its number.
    quarter : from which it shows.
    planted : False where everything is in order.
    offset : (T, R) what stands in the log ratios of somebody who leaves the correction out; zero for an acquisition.
    """

    kind: str
    company: int
    quarter: int
    planted: bool
    offset: Floats


def drawn_places(
    rng: np.random.Generator, companies: int, each: int, model: Model, prediction: Prediction, common: CommonParts
) -> list[Place]:
    """Planted and orderly places, `each` companies a kind, no company twice; unlucky quarters come later."""
    kinds = [str(kind) for kind in rng.permutation(LOCAL)]
    chosen = rng.choice(companies, (PLANTED + ORDERLY) * each, replace=False)
    places: list[Place] = []
    for number, company in enumerate(chosen):
        order = number // each
        place = Place(kinds[order], int(company), 0, order < PLANTED, np.zeros((QUARTERS, MEASURES)))
        places.append(_moved(rng, place, model, prediction, common))
    return places


@dataclass(frozen=True, slots=True, eq=False)
class CommonParts:
    """What a place's offset is made of beside the model: industries' seasons, each company's industry and year end.

    industry, year_end, new_year_end : (n,); months : (T,) calendar month in which each quarter ends.
    """

    background: Background
    industry: Integers
    year_end: Integers
    new_year_end: Integers
    months: Integers


def _moved(rng: np.random.Generator, place: Place, model: Model, prediction: Prediction, common: CommonParts) -> Place:
    """The same place in another quarter of the window, with what it looks like from there."""
    quarter = int(rng.integers(QUARTERS - model.starts, QUARTERS - 3))
    if not place.planted:
        return replace(place, quarter=quarter)
    after = (np.arange(QUARTERS) >= quarter)[:, None]
    offset = np.zeros((QUARTERS, MEASURES))
    if place.kind == "unit_slip":
        offset[quarter] = [
            np.log(SLIP) * ((ratio.numerator in BALANCE) - (ratio.denominator in BALANCE)) for ratio in RATIOS
        ]
    elif place.kind == "restatement":
        kind = int(rng.integers(len(model.shares)))
        push = 1.5 * placed(model.profiles[kind], quarter, QUARTERS)[:, None] * prediction.mean[kind]
        for later in range(quarter, QUARTERS):
            offset[later] = model.persistence * offset[later - 1] + push[later]
    elif place.kind == "lease_standard":
        offset = after * model.lease
    elif place.kind == "fiscal_year":
        season = common.background.seasons[common.industry[place.company]] * LOG_UNIT
        old, new = (
            season[fiscal_quarter(common.months, np.full(QUARTERS, ends[place.company]))]
            for ends in (common.year_end, common.new_year_end)
        )
        offset = after * (new - old)
    elif place.kind == "growth":
        offset = (after & (np.arange(QUARTERS) < quarter + SPURT_QUARTERS)[:, None]) * (SPURT * model.growth)
    return replace(place, quarter=quarter, offset=offset)


def live_path(
    rng: np.random.Generator, place: Place, model: Model, prediction: Prediction, common: CommonParts
) -> tuple[Place, Paths]:
    """The place, perhaps in another quarter, with a path that is innocent and looks managed to whoever falls for it."""
    best: tuple[float, Place, Paths] | None = None
    for _ in range(_TRIES):
        acquired = np.full(_CANDIDATES, place.quarter if place.kind == "acquisition" else -1)
        paths = drawn_paths(rng, model, prediction, acquired)
        clean = kind_probabilities(paths.y, acquired, model, prediction).sum(axis=1)
        taken_in = fallen_probabilities(paths.y + place.offset, model, prediction).sum(axis=1)
        gap = np.where((clean < _INNOCENT) & (taken_in > _SUSPECT), 1.0, taken_in - clean)
        first = int(gap.argmax())
        if best is None or gap[first] > best[0]:
            best = float(gap[first]), place, paths.at(first)
        if best[0] >= 1.0:
            break
        place = _moved(rng, place, model, prediction, common)
    assert best is not None
    return best[1], best[2]


def fallen_probabilities(y: Floats, model: Model, prediction: Prediction) -> Floats:
    """What somebody concludes (n, K) who leaves a correction out.

    Such a reader counts in standard deviations of the company's innovations before the window.
    """
    before = y[:, : QUARTERS - model.starts]
    change = before[:, 1:] - model.persistence * before[:, :-1]
    change = change - change.mean(axis=1, keepdims=True)
    squares = np.einsum("ntr,rs,nts->n", change, np.linalg.inv(model.sigma), change, optimize=True)
    volatility = squares / ((change.shape[1] - 1) * change.shape[2])
    return kind_probabilities(
        y / np.sqrt(volatility)[:, None, None], np.full(len(y), -1), replace(model, freedom=1e9), prediction
    )


Lines = dict[str, Integers]

_SHARES = {
    "selling": 0.08,
    "marketing": 0.03,
    "general_and_administrative": 0.06,
    "lease_cost": 0.012,
    "other_operating_income": 0.004,
    "interest_income": 0.002,
    "interest_expense": 0.008,
    "cash": 0.35,
    "short_term_investments": 0.12,
    "prepaid_expenses": 0.05,
    "contract_assets": 0.04,
    "other_current_assets": 0.03,
    "deferred_tax_assets": 0.06,
    "other_assets": 0.15,
    "payables": 0.30,
    "accrued_wages": 0.09,
    "tax_payable": 0.03,
    "short_term_debt": 0.15,
    "other_current_liabilities": 0.06,
    "long_term_debt": 0.90,
    "pension_liabilities": 0.20,
    "deferred_tax_liabilities": 0.08,
}
"""Lines that are a share of revenue and nothing else, with their usual share."""
_YEARLY = (
    "short_term_investments",
    "deferred_tax_assets",
    "other_assets",
    "short_term_debt",
    "long_term_debt",
    "pension_liabilities",
    "deferred_tax_liabilities",
)
"""Those of them that change once a year."""
_TAX = 0.24


def statements(revenue: Integers, ratios: Mapping[str, Floats], bought: Floats, seed: int) -> Lines:
    """All lines of n companies over T quarters.

    Parameters
    ----------
    revenue : (n, T + 1) net revenue in thousands, the quarter before the first one included.
    ratios : name to (n, T + 1), what each ratio is to be.
    bought : (n, T + 1) price paid for acquisitions, as a share of revenue.
    seed : of everything drawn here; the same seed with other ratios changes only what follows from them.
    """
    rng = np.random.default_rng(seed)
    shape = revenue.shape
    lines: Lines = {"net_revenue": revenue}
    for name, share in _SHARES.items():
        drawn = _whole(revenue * share * _own(rng, shape, 0.35, 0.05))
        lines[name] = np.repeat(drawn[:, ::4], 4, axis=1)[:, : shape[1]] if name in _YEARLY else drawn
    _operations(lines, ratios, rng)
    _assets(lines, ratios, bought, rng)
    for name in ("gross_profit", "operating_income", "pretax_income"):
        lines[name] = _total(lines, name)
    lines["income_tax"] = _whole(np.maximum(lines["pretax_income"], 0) * _TAX * _own(rng, shape, 0.1, 0.05))
    lines["net_income"] = _total(lines, "net_income")
    payer = rng.random((len(revenue), 1)) < 0.7
    lines["dividends"] = _whole(payer * 0.8 * np.maximum(lines["net_income"], 0))
    _totals(lines)
    return _cash_flow(lines)


def _operations(lines: Lines, ratios: Mapping[str, Floats], rng: np.random.Generator) -> None:
    revenue = lines["net_revenue"]
    shape = revenue.shape
    lines["returns_and_allowances"] = _whole(revenue * ratios["returns"])
    lines["gross_sales"] = revenue + lines["returns_and_allowances"]
    lines["cost_of_sales"] = cost = _whole(revenue * ratios["cost_of_sales"])
    lines["materials"] = _whole(cost * 0.5 * _own(rng, shape, 0.08, 0.02))
    lines["labour"] = _whole(cost * 0.2 * _own(rng, shape, 0.1, 0.02))
    lines["production_overhead"] = cost - lines["materials"] - lines["labour"]
    lines["research_and_development"] = _whole(revenue * 0.06 * _own(rng, shape, 0.3, 0.04))
    lines["development_capitalised"] = _whole(lines["research_and_development"] * ratios["capitalisation"])
    lines["restructuring"] = _whole(_rare(rng, shape, 0.08) * revenue * 0.02)


def _assets(lines: Lines, ratios: Mapping[str, Floats], bought: Floats, rng: np.random.Generator) -> None:
    revenue, cost = lines["net_revenue"], lines["cost_of_sales"]
    shape = revenue.shape
    lines["receivables_gross"] = _whole(revenue * ratios["receivables"])
    lines["allowance_for_doubtful_accounts"] = _whole(lines["receivables_gross"] * ratios["allowance"])
    lines["inventory"] = stock = _whole(cost * ratios["inventory"])
    lines["raw_materials"] = _whole(stock * 0.3 * _own(rng, shape, 0.12, 0.04))
    lines["work_in_progress"] = _whole(stock * 0.2 * _own(rng, shape, 0.15, 0.04))
    lines["finished_goods"] = stock - lines["raw_materials"] - lines["work_in_progress"]
    lines["deferred_revenue"] = _whole(revenue * ratios["deferral"])
    lines["provisions"] = _whole(revenue * ratios["provisions"])
    lines["ppe_gross"] = gross = _whole(_smooth(revenue) * 2.4 * _own(rng, shape, 0.3, 0.005))
    lines["depreciation"] = _whole(gross * ratios["depreciation"])
    lines["lease_liabilities"] = _whole(gross * ratios["leases"])
    lines["right_of_use_assets"] = _whole(lines["lease_liabilities"] * 0.94 * _own(rng, shape, 0.03, 0.01))
    lines["accumulated_depreciation"] = _whole(gross * 0.45 * _own(rng, shape, 0.15, 0.01))
    lines["acquisitions"] = _whole(revenue * bought)
    goodwill = _whole(revenue[:, :1] * 0.8 * _own(rng, (len(revenue), 1), 0.6, 0.0))
    lines["impairment"] = _whole(_rare(rng, shape, 0.02) * goodwill * 0.05)
    lines["goodwill"] = goodwill + np.cumsum(lines["acquisitions"] - lines["impairment"], axis=1)
    spent = lines["development_capitalised"]
    balance, written_off = spent * 8, spent // 8
    for quarter in range(1, shape[1]):
        written_off[:, quarter] = balance[:, quarter - 1] // 8
        balance[:, quarter] = balance[:, quarter - 1] + spent[:, quarter] - written_off[:, quarter]
    lines["capitalised_development"], lines["amortisation"] = balance, written_off


def _totals(lines: Lines) -> None:
    earned = lines["net_income"] - lines["dividends"]
    for name in ("receivables_net", "total_current_assets", "ppe_net", "total_assets", "total_current_liabilities"):
        lines[name] = _total(lines, name)
    for name in ("total_liabilities", "equity"):
        lines[name] = _total(lines, name)
    opening = _whole(lines["equity"][:, :1] * 0.6)
    lines["retained_earnings"] = opening + np.cumsum(earned, axis=1)
    lines["capital_and_reserves"] = _total(lines, "capital_and_reserves")


def _cash_flow(lines: Lines) -> Lines:
    """Changes from quarter to quarter; what was not earned or borrowed was raised from shareholders."""
    change = {name: np.diff(values, axis=1, prepend=values[:, :1]) for name, values in lines.items()}

    def moved(*names: str) -> Integers:
        return np.sum([change[name] for name in names], axis=0)

    lines["change_in_receivables"] = moved("receivables_net")
    lines["change_in_inventory"] = moved("inventory")
    lines["change_in_other_assets"] = moved(
        "prepaid_expenses", "contract_assets", "other_current_assets", "deferred_tax_assets", "other_assets"
    )
    lines["change_in_payables"] = moved("payables")
    lines["change_in_deferred_revenue"] = moved("deferred_revenue")
    lines["change_in_provisions"] = moved("provisions")
    lines["change_in_other_liabilities"] = (
        moved("accrued_wages", "tax_payable", "other_current_liabilities", "pension_liabilities")
        + moved("deferred_tax_liabilities", "lease_liabilities")
        - moved("right_of_use_assets")
    )
    lines["capital_expenditure"] = moved("ppe_net") + lines["depreciation"]
    lines["purchases_of_investments"] = moved("short_term_investments")
    lines["debt_raised"] = moved("short_term_debt", "long_term_debt")
    lines["shares_issued"] = moved("capital_and_reserves")
    lines["opening_cash"] = lines["cash"] - change["cash"]
    lines["closing_cash"] = lines["cash"]
    for name in ("operating_cash_flow", "investing_cash_flow", "financing_cash_flow", "change_in_cash"):
        lines[name] = _total(lines, name)
    return {name: lines[name][:, 1:].copy() for names in LAYOUT.values() for name in names}


def _total(lines: Lines, name: str) -> Integers:
    return np.sum([sign * lines[part] for part, sign in IDENTITIES[name].items()], axis=0)


def _whole(values: NDArray[np.floating[Any]]) -> Integers:
    return np.rint(values).astype(np.int64)


def _own(rng: np.random.Generator, shape: tuple[int, ...], between: float, within: float) -> Floats:
    """A factor about 1 of each company, and of each of its quarters."""
    return np.exp(between * rng.standard_normal((shape[0], 1)) + within * rng.standard_normal(shape))


def _rare(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Floats:
    return (rng.random(shape) < share) * rng.uniform(0.2, 1.0, shape)


def _smooth(revenue: Integers) -> Floats:
    """Revenue without its season: the mean of the last four quarters, of fewer at the beginning."""
    total = np.cumsum(revenue.astype(np.float64), axis=1)
    mean = total / np.arange(1, revenue.shape[1] + 1, dtype=np.float64)
    mean[:, 4:] = (total[:, 4:] - total[:, :-4]) / 4.0
    return mean

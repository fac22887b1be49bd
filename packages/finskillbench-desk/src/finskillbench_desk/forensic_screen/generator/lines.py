"""Paths of log ratios, pitfalls, and statements whose 82 lines per quarter are consistent with the ratios.

Lines other than those of the ratios carry no information. Only free lines are rounded, so identities hold exactly.
Pitfall paths are redrawn until an unmanaged one looks managed without the correction; this uses visible data only, so
the posterior is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from finskillbench.arrays import Floats, Integers
from finskillbench_desk.engines.posterior.model import Prediction, RatioModel
from finskillbench_desk.engines.posterior.posterior import kind_probabilities, place_profile
from finskillbench_desk.forensic_screen.difficulty import MEASURES, QUARTERS, RATIOS
from finskillbench_desk.forensic_screen.generator.draws import LOG_UNIT, Background
from finskillbench_desk.forensic_screen.reading import BALANCE, IDENTITIES, LAYOUT, SLIP, fiscal_quarter


class Paths(NamedTuple):
    """Log ratios (n, T, R) without announced effects, kind (n,), -1 for none, and first managed quarter (n,)."""

    y: Floats
    kind: Integers
    start: Integers

    def at(self, place: int) -> Paths:
        which = slice(place, place + 1)
        return Paths(self.y[which], self.kind[which], self.start[which])


def drawn_paths(rng: np.random.Generator, model: RatioModel, prediction: Prediction, acquired: Integers) -> Paths:
    """Draw companies from the disclosed model; `acquired` (n,) is the quarter of an acquisition, -1 for none."""
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
        push[place] = place_profile(model.profiles[kind[place]], int(start[place]), QUARTERS)[:, None] * shift
    moves = scale[:, None, None] * (noise @ np.linalg.cholesky(model.sigma).T) + push
    x = np.empty_like(moves)
    x[:, 0] = scale[:, None] * (noise[:, 0] @ np.linalg.cholesky(model.stationary).T)
    for quarter in range(1, QUARTERS):
        x[:, quarter] = model.persistence * x[:, quarter - 1] + moves[:, quarter]
    level = scale[:, None] * model.level_deviation * rng.standard_normal((n, ratios))
    change = scale[:, None] * model.acquired * rng.standard_normal((n, ratios))
    later = (acquired[:, None] >= 0) & (np.arange(QUARTERS) >= acquired[:, None])
    return Paths(x + level[:, None, :] + later[:, :, None] * change[:, None, :], kind, start)


LOCAL = ("unit_slip", "restatement", "acquisition", "lease_standard", "fiscal_year", "growth")
PLANTED, ORDERLY = 3, 2
"""Numbers of kinds planted in a case, and of kinds with a harmless look-alike."""
SPURT, SPURT_QUARTERS = 0.15, 7
"""Extra quarterly growth of log revenue in a spurt, and its length in quarters."""
_CANDIDATES, _TRIES = 64, 12
_INNOCENT, _SUSPECT = 0.2, 0.9


@dataclass(frozen=True, slots=True, eq=False)
class StatementPitfall:
    """A trap at a company, or a harmless look-alike (not `planted`), that shows from `quarter` on.

    `kind` is one of `LOCAL`; `offset` (T, R) is the error of log ratios without the correction, zero for an
    acquisition.
    """

    kind: str
    company: int
    quarter: int
    planted: bool
    offset: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CommonParts:
    """Inputs of offsets in addition to the model: seasons, and each company's industry and year ends (n,); `months` is
    (T,).
    """

    background: Background
    industry: Integers
    year_end: Integers
    new_year_end: Integers
    months: Integers


class PitfallModel(NamedTuple):
    """Model, shifts by kind of first filings that were restated, and common parts, from which offsets are computed."""

    model: RatioModel
    prediction: Prediction
    common: CommonParts


def drawn_pitfalls(
    rng: np.random.Generator, kinds: Sequence[str], each: int, inputs: PitfallModel
) -> list[StatementPitfall]:
    """Draw traps and look-alikes at distinct companies, `each` of them per kind; `live_path` may move the quarters."""
    kinds = [str(kind) for kind in rng.permutation(kinds)]
    chosen = rng.choice(len(inputs.common.industry), (PLANTED + ORDERLY) * each, replace=False)
    pitfalls: list[StatementPitfall] = []
    for number, company in enumerate(chosen):
        order = number // each
        place = StatementPitfall(kinds[order], int(company), 0, order < PLANTED, np.zeros((QUARTERS, MEASURES)))
        pitfalls.append(_moved(rng, place, inputs))
    return pitfalls


def _moved(rng: np.random.Generator, place: StatementPitfall, inputs: PitfallModel) -> StatementPitfall:
    """Move a pitfall to another quarter of the window and recompute its offset."""
    model, prediction, common = inputs
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
        push = 1.5 * place_profile(model.profiles[kind], quarter, QUARTERS)[:, None] * prediction.mean[kind]
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
    rng: np.random.Generator, place: StatementPitfall, inputs: PitfallModel
) -> tuple[StatementPitfall, Paths]:
    """Draw an unmanaged path that looks managed without the correction, moving the pitfall if needed."""
    model, prediction, _ = inputs
    best: tuple[float, StatementPitfall, Paths] | None = None
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
        place = _moved(rng, place, inputs)
    assert best is not None
    return best[1], best[2]


def fallen_probabilities(y: Floats, model: RatioModel, prediction: Prediction) -> Floats:
    """Return the probabilities (n, K) for a reader who takes the volatility before the window as known."""
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
"""Lines that are a share of revenue, with their usual share."""
_YEARLY = (
    "short_term_investments",
    "deferred_tax_assets",
    "other_assets",
    "short_term_debt",
    "long_term_debt",
    "pension_liabilities",
    "deferred_tax_liabilities",
)
"""Lines that change once a year."""
_TAX = 0.24


def statements(revenue: Integers, ratios: Mapping[str, Floats], bought: Floats, seed: int) -> Lines:
    """Return all lines of n companies over T quarters.

    Parameters
    ----------
    revenue : (n, T + 1) net revenue in thousands, including the quarter before the first.
    ratios : name to (n, T + 1) target ratios.
    bought : (n, T + 1) acquisition prices as a share of revenue.
    seed : equal seeds with other ratios change only the dependent lines.
    """
    rng = np.random.default_rng(seed)
    shape = revenue.shape
    lines: Lines = {"net_revenue": revenue}
    for name, share in _SHARES.items():
        drawn = _whole(revenue * share * _company_factor(rng, shape, 0.35, 0.05))
        lines[name] = np.repeat(drawn[:, ::4], 4, axis=1)[:, : shape[1]] if name in _YEARLY else drawn
    _operations(lines, ratios, rng)
    _assets(lines, ratios, bought, rng)
    for name in ("gross_profit", "operating_income", "pretax_income"):
        lines[name] = _total(lines, name)
    lines["income_tax"] = _whole(np.maximum(lines["pretax_income"], 0) * _TAX * _company_factor(rng, shape, 0.1, 0.05))
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
    lines["materials"] = _whole(cost * 0.5 * _company_factor(rng, shape, 0.08, 0.02))
    lines["labour"] = _whole(cost * 0.2 * _company_factor(rng, shape, 0.1, 0.02))
    lines["production_overhead"] = cost - lines["materials"] - lines["labour"]
    lines["research_and_development"] = _whole(revenue * 0.06 * _company_factor(rng, shape, 0.3, 0.04))
    lines["development_capitalised"] = _whole(lines["research_and_development"] * ratios["capitalisation"])
    lines["restructuring"] = _whole(_rare(rng, shape, 0.08) * revenue * 0.02)


def _assets(lines: Lines, ratios: Mapping[str, Floats], bought: Floats, rng: np.random.Generator) -> None:
    revenue, cost = lines["net_revenue"], lines["cost_of_sales"]
    shape = revenue.shape
    lines["receivables_gross"] = _whole(revenue * ratios["receivables"])
    lines["allowance_for_doubtful_accounts"] = _whole(lines["receivables_gross"] * ratios["allowance"])
    lines["inventory"] = stock = _whole(cost * ratios["inventory"])
    lines["raw_materials"] = _whole(stock * 0.3 * _company_factor(rng, shape, 0.12, 0.04))
    lines["work_in_progress"] = _whole(stock * 0.2 * _company_factor(rng, shape, 0.15, 0.04))
    lines["finished_goods"] = stock - lines["raw_materials"] - lines["work_in_progress"]
    lines["deferred_revenue"] = _whole(revenue * ratios["deferral"])
    lines["provisions"] = _whole(revenue * ratios["provisions"])
    lines["ppe_gross"] = gross = _whole(_smooth(revenue) * 2.4 * _company_factor(rng, shape, 0.3, 0.005))
    lines["depreciation"] = _whole(gross * ratios["depreciation"])
    lines["lease_liabilities"] = _whole(gross * ratios["leases"])
    lines["right_of_use_assets"] = _whole(lines["lease_liabilities"] * 0.94 * _company_factor(rng, shape, 0.03, 0.01))
    lines["accumulated_depreciation"] = _whole(gross * 0.45 * _company_factor(rng, shape, 0.15, 0.01))
    lines["acquisitions"] = _whole(revenue * bought)
    goodwill = _whole(revenue[:, :1] * 0.8 * _company_factor(rng, (len(revenue), 1), 0.6, 0.0))
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
    """Add changes between quarters; shareholders fund what was not earned or borrowed."""
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


def _company_factor(rng: np.random.Generator, shape: tuple[int, ...], between: float, within: float) -> Floats:
    """Draw a factor about 1 for each company and each of its quarters."""
    return np.exp(between * rng.standard_normal((shape[0], 1)) + within * rng.standard_normal(shape))


def _rare(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Floats:
    return (rng.random(shape) < share) * rng.uniform(0.2, 1.0, shape)


def _smooth(revenue: Integers) -> Floats:
    """Return revenue without season: the mean of up to four last quarters."""
    total = np.cumsum(revenue.astype(np.float64), axis=1)
    mean = total / np.arange(1, revenue.shape[1] + 1, dtype=np.float64)
    mean[:, 4:] = (total[:, 4:] - total[:, :-4]) / 4.0
    return mean

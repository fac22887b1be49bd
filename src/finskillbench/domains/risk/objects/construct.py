"""The constructed objects of the four risk subtasks: portfolios, fitted mandates, scenarios, and their pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from finskillbench.arrays import Floats, Integers
from finskillbench.domains.building import BuildContext, load_catalog
from finskillbench.domains.risk.objects.mandates import TIERS, Fitted, fitted_at, mandate_catalog, notes_on
from finskillbench.domains.risk.objects.portfolios import PortfolioCase, draw, slots
from finskillbench.domains.risk.objects.recipes import Setting
from finskillbench.domains.risk.objects.scenarios import ScenarioBook, scenario_book
from finskillbench.engines.optimisation.certified import InfeasibleError, UndecidedError
from finskillbench.engines.portfolio.problem import HOLDING_THRESHOLD
from finskillbench.engines.risk.batch import Batch
from finskillbench.engines.risk.formulation import Aim, Goal
from finskillbench.engines.risk.mandate import COLUMN, Kind, Mandate
from finskillbench.engines.risk.monitor import PASS_TOLERANCE, measure_pairs
from finskillbench.engines.risk.portfolio import ZERO_WEIGHT, Market, Portfolio
from finskillbench.engines.risk.remediation import Remedy, budget_left, remediate, solve_again
from finskillbench.engines.risk.stress import scenario_from
from finskillbench.errors import InputError


@dataclass(frozen=True, eq=False)
class MonitoringPair:
    """A portfolio held against a mandate.

    `violations` are the kinds that fail; `margin` is how far the nearest status is from changing, in the unit of its
    limit (whole names are counted, not measured).
    """

    case: PortfolioCase
    mandate: Mandate
    tier: str
    violations: tuple[Kind, ...]
    margin: float

    @property
    def compliant(self) -> bool:
        """Whether every constraint passes."""
        return not self.violations


_FEW = 2
_FIRST: tuple[Callable[[MonitoringPair], bool], ...] = (
    lambda pair: pair.compliant,
    lambda pair: 0 < len(pair.violations) <= _FEW,
    lambda pair: True,
)
_FIRST_UP_TO = (0.5, 0.8)
"""What comes first among the mandates of a tier, and up to which uniform random number."""


@dataclass(frozen=True, eq=False)
class StressPair:
    """A portfolio under a scenario, which is kept as the input JSON shows it."""

    case: PortfolioCase
    scenario: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RemediationPair(MonitoringPair):
    """A portfolio that breaks a mandate, and the certified trades that mend it or come nearest."""

    remedy: Remedy

    @property
    def limited(self) -> bool:
        """Whether the mandate limits the turnover of the month."""
        return self.mandate.get(Kind.TURNOVER_MAX_MONTHLY) is not None


@dataclass(frozen=True, eq=False)
class RiskObjects:
    """Everything the risk subtasks draw their episodes from.

    Attributes
    ----------
    portfolios : in the order of their ids, which says nothing of their types. identification : the same.
    markets : date to the universe there. fitted : (mandate id, date) to the mandate as it can be kept there.
    scenarios : replays, hypothetical scenarios and their severe versions.
    monitoring : each portfolio with three mandates, its home first, one of each tier.
    stress : each portfolio with twelve scenarios, every replay that ended before its date among them.
    remediation : pairs that break the mandate; a set share cannot be mended within the month's turnover.
    """

    portfolios: tuple[PortfolioCase, ...]
    markets: Mapping[date, Market]
    fitted: Mapping[tuple[str, date], Fitted]
    mandate_tiers: Mapping[str, str]
    scenarios: ScenarioBook
    monitoring: tuple[MonitoringPair, ...]
    stress: tuple[StressPair, ...]
    remediation: tuple[RemediationPair, ...]

    @property
    def identification(self) -> tuple[PortfolioCase, ...]:
        """The portfolios whose exposures are to be ranked."""
        return self.portfolios

    def mandate_at(self, name: str, as_of: date) -> Mandate:
        """A mandate of the catalog as fitted to a date's universe."""
        try:
            return self.fitted[name, as_of].mandate
        except KeyError:
            raise InputError(f"no mandate {name} at {as_of}; use a date of the risk portfolios") from None

    def scenarios_for(self, as_of: date) -> tuple[Mapping[str, Any], ...]:
        """The scenarios that may be applied on a date: replays that ended before it, and the hypothetical ones."""
        return self.scenarios.at(as_of)


def risk_context(context: BuildContext) -> RiskObjects:
    """The risk objects of a build, constructed once.

    Raises
    ------
    SourceError : where the panels carry no such portfolio, mandate or scenario.
    """
    return context.shared("risk/objects", lambda: _construct(context))


def _construct(context: BuildContext) -> RiskObjects:
    settings = load_catalog("risk.json")
    scenarios = scenario_book(context)
    hypothetical = tuple(scenario_from(one) for one in scenarios.hypothetical)
    planned = slots(context, settings)
    regimes = Counter(context.panels.regimes[day] for day in context.panels.risk_dates)
    if len(regimes) < len(settings["regimes"]):
        context.notes.append(f"The risk portfolios spread over the regimes there are: {', '.join(sorted(regimes))}.")
    settings_at = {}
    for as_of in context.panels.risk_dates:
        market = context.panels.snapshot(as_of)
        fitted = {name: fitted_at(context, name, as_of, market) for name in mandate_catalog(context)}
        settings_at[as_of] = Setting(market, fitted, hypothetical)
    context.notes.extend(notes_on([(day, one) for day, at in settings_at.items() for one in at.mandates.values()]))

    drawn = [draw(context, slot, settings_at, settings) for slot in planned]
    order = context.generator("risk", "order").permutation(len(drawn))
    width = max(3, len(str(len(drawn))))
    cases = tuple(
        replace(drawn[index], portfolio_id=f"P{number:0{width}d}") for number, index in enumerate(order, start=1)
    )
    against = _against_all(cases, settings_at)
    band = settings["grey_band"]
    return RiskObjects(
        portfolios=cases,
        markets={day: at.market for day, at in settings_at.items()},
        fitted={(name, day): one for day, at in settings_at.items() for name, one in at.mandates.items()},
        mandate_tiers={name: entry["tier"] for name, entry in mandate_catalog(context).items()},
        scenarios=scenarios,
        monitoring=tuple(
            pair for case in cases for pair in _monitored(context, case, against[case.portfolio_id], band)
        ),
        stress=tuple(
            StressPair(case, scenario)
            for case in cases
            for scenario in _stressed(context, case, scenarios, settings["scenarios_per_portfolio"])
        ),
        remediation=_remediated(context, cases, against, settings),
    )


def batched(cases: Sequence[PortfolioCase]) -> tuple[Batch, Integers]:
    """The distinct ones of m cases side by side, sorted by date, and (m,) the row of each case."""
    distinct = sorted({case.portfolio_id: case for case in cases}.values(), key=lambda case: case.as_of)
    row = {case.portfolio_id: place for place, case in enumerate(distinct)}
    batch = Batch.of([case.book for case in distinct], [case.market for case in distinct])
    return batch, np.array([row[case.portfolio_id] for case in cases])


def measured(cases: Sequence[PortfolioCase], mandates: Sequence[Mandate]) -> tuple[Floats, Floats]:
    """Values and excess of m pairs of a case and a mandate, (m, kinds) each, as `measure_pairs` returns them."""
    batch, rows = batched(cases)
    return measure_pairs(batch, rows, mandates)


def _against_all(
    cases: Sequence[PortfolioCase], settings_at: Mapping[date, Setting]
) -> dict[str, dict[str, MonitoringPair]]:
    """Every case, by id, with every mandate, by name, as fitted to its date."""
    pairs = [(case, name, one) for case in cases for name, one in settings_at[case.as_of].mandates.items()]
    excess = measured([case for case, _, _ in pairs], [one.mandate for _, _, one in pairs])[1]
    margins = np.nanmin(np.abs(np.delete(excess, COLUMN[Kind.NAME_COUNT], axis=1)), axis=1).tolist()
    failing = excess > PASS_TOLERANCE
    found: dict[str, dict[str, MonitoringPair]] = {case.portfolio_id: {} for case in cases}
    for (case, name, one), fails, margin in zip(pairs, failing, margins, strict=True):
        kinds = tuple(limit.kind for limit in one.mandate.constraints if fails[COLUMN[limit.kind]])
        found[case.portfolio_id][name] = MonitoringPair(case, one.mandate, one.tier, kinds, margin)
    return found


def _monitored(
    context: BuildContext, case: PortfolioCase, against: Mapping[str, MonitoringPair], band: float
) -> list[MonitoringPair]:
    """The home mandate, then one mandate of each other tier, one that is kept coming first in many of the cases.

    In others one comes first of which no more than two limits are broken: else most kinds of limit, the largest weight
    among them, which needs no arithmetic, would each tell compliance.

    A mandate under which some status hangs on less than `band` is taken only where its tier has no other.
    """
    rng = context.generator("risk", "monitored", case.portfolio_id)
    chosen = [against[case.home]]
    for tier in TIERS:
        if tier == chosen[0].tier:
            continue
        names = [name for name, one in against.items() if one.tier == tier]
        shuffled = [against[names[i]] for i in rng.permutation(len(names))]
        first = _FIRST[int(np.searchsorted(_FIRST_UP_TO, rng.random()))]
        best = min(shuffled, key=lambda one: (one.margin < band, not first(one)))
        chosen.append(best if best.margin >= band else max(shuffled, key=lambda one: one.margin))
    return chosen


def _stressed(
    context: BuildContext, case: PortfolioCase, scenarios: ScenarioBook, count: int
) -> list[Mapping[str, Any]]:
    """Every scenario that may be applied on the case's date, filled up with severe versions drawn by seed."""
    usual = scenarios.at(case.as_of)
    rng = context.generator("risk", "severe", case.portfolio_id)
    extra = rng.permutation(len(scenarios.severe))[: max(0, count - len(usual))]
    return [*usual, *(scenarios.severe[i] for i in sorted(extra))]


def _remediated(
    context: BuildContext,
    cases: tuple[PortfolioCase, ...],
    against: Mapping[str, Mapping[str, MonitoringPair]],
    settings: Mapping[str, Any],
) -> tuple[RemediationPair, ...]:
    """Pairs that break their mandate although the month's trades so far keep its turnover limit.

    They are taken in a random order in which types and mandates take turns, so many of them beyond mending within the
    month's turnover, so many mended under a limit on it, and the others without one, as also where the limited ones
    run out; a pair that cannot be decided, or whose ties cannot, is passed over.

    A universe of more than `large_universe` names gives fewer pairs, and none that need branching on names: each
    program has as many variables, and least squares spread over hundreds of names break every least position.
    """
    large = len(cases[0].market.tickers) > settings["large_universe"]
    strata: dict[tuple[str, str], list[MonitoringPair]] = {}
    for case in cases:
        for name, one in against[case.portfolio_id].items():
            clear = one.margin >= settings["grey_band"]
            if large and any(one.mandate.get(kind) for kind in (Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT)):
                continue
            if clear and one.violations and Kind.TURNOVER_MAX_MONTHLY not in one.violations:
                strata.setdefault((case.type, name), []).append(one)
    rng = context.generator("risk", "remediation")
    queues = [[strata[key][i] for i in rng.permutation(len(strata[key]))] for key in sorted(strata)]
    queues = [queues[i] for i in rng.permutation(len(queues))]
    count = settings["large_remediation_pairs" if large else "remediation_pairs"]
    beyond = round(count * settings["beyond_mending_share"])
    limited = round(count * settings["mended_within_limit_share"])
    wanted = {(False, True): beyond, (True, True): limited, (True, False): count - beyond - limited}
    chosen: dict[tuple[bool, bool], list[RemediationPair]] = {group: [] for group in wanted}
    spare: list[MonitoringPair] = []
    while any(queues) and any(len(chosen[key]) < wanted[key] for key in wanted):
        for queue in filter(None, queues):
            pair = queue.pop()
            limits = pair.mandate.get(Kind.TURNOVER_MAX_MONTHLY) is not None
            open_to = [group for group in wanted if group[1] is limits and len(chosen[group]) < wanted[group]]
            if not open_to:
                if not limits:
                    spare.append(pair)
                continue
            mendable = _mendable(pair, settings["remediation_band"]) if limits else True
            if (mendable, limits) not in open_to:
                continue
            remedied = _remedied(pair)
            if remedied is not None and (remedied.remedy.compliant, limits) in open_to:
                chosen[remedied.remedy.compliant, limits].append(remedied)
    found = [pair for pairs in chosen.values() for pair in pairs]
    for pair in [*spare, *(pair for queue in queues for pair in queue)]:
        if len(found) >= count:
            break
        free = pair.mandate.get(Kind.TURNOVER_MAX_MONTHLY) is None
        if free and (remedied := _remedied(pair)) is not None:
            found.append(remedied)
    place = {case.portfolio_id: index for index, case in enumerate(cases)}
    names = list(mandate_catalog(context))
    return tuple(
        sorted(
            found,
            key=lambda one: (place[one.case.portfolio_id], names.index(one.mandate.mandate_id)),
        )
    )


def _remedied(pair: MonitoringPair) -> RemediationPair | None:
    """The pair with its remedy; None where that cannot be decided to the end."""
    try:
        remedy = remediate(pair.case.book, pair.mandate, pair.case.market)
    except (InfeasibleError, UndecidedError):
        return None
    if not remedy.settled:
        return None
    return RemediationPair(pair.case, pair.mandate, pair.tier, pair.violations, pair.margin, remedy)


def _mendable(pair: MonitoringPair, band: float) -> bool | None:
    """Whether the least turnover fits in what is left of the month; None in a grey band, or where nothing fits.

    The limits on small positions and on the number of names, which need branching, are left out here: what they add
    to the turnover is small, and the truth decides in any case. Where the mandate is beyond mending, what is left must
    suffice for the limits that are kept even then.
    """
    book, mandate = pair.case.book, pair.mandate
    smooth = replace(
        mandate,
        constraints=tuple(
            one for one in mandate.constraints if one.kind not in (Kind.POSITION_LIMIT_MIN, Kind.NAME_COUNT)
        ),
    )
    left = budget_left(book, mandate)
    try:
        least = solve_again(book, smooth, pair.case.market, Aim(Goal.TURNOVER)).certified.value
    except (InfeasibleError, UndecidedError):
        return None
    if abs(least - left) < band:
        return None
    if least > left and _kept_turnover(book, mandate) > left - band:
        return None
    return least < left


def _kept_turnover(book: Portfolio, mandate: Mandate) -> float:
    """Turnover that surely suffices for long_only, position_limit_min and name_count: each offence mended alone."""
    weights, sizes = book.weights, np.abs(book.weights[np.abs(book.weights) > ZERO_WEIGHT])
    total = 0.0 if mandate.get(Kind.LONG_ONLY) is None else float(-weights[weights < 0].sum())
    floor = max(mandate.limit(Kind.POSITION_LIMIT_MIN) or 0.0, HOLDING_THRESHOLD)
    total += float(np.minimum(sizes, np.maximum(floor - sizes, 0.0)).sum())
    count = mandate.get(Kind.NAME_COUNT)
    if count is not None and count.minimum is not None:
        total += max(0.0, count.minimum - len(sizes)) * floor
    if count is not None and count.maximum is not None:
        surplus = max(0, len(sizes) - int(count.maximum))
        total += float(np.sort(sizes)[:surplus].sum())
    return total

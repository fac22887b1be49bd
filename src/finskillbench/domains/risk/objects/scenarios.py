"""Stress scenarios: replays from the panels, and hypothetical ones fitted to a benchmark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import cast

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.domains.risk.catalogs import ReplayEntry, ScenarioCatalog, scenario_catalog
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.engines.risk.portfolio import MarketSnapshot, Portfolio, require_field
from finskillbench.engines.risk.stress import apply, scenario_from
from finskillbench.errors import SourceError
from finskillbench.panels import Panels

REPLAY = "historical_replay"
HYPOTHETICAL = "hypothetical"
SEVERE = "_x1.5"
"""Id suffix of a hypothetical scenario at 1.5 times its severity."""
RATES, SPREADS, VOLATILITY = "DGS10", "BAMLH0A0HYM2", "VIXCLS"
_WIDER = 100.0
"""High-yield spread widening, in basis points, that counts as a credit event."""
_RATE_SHOCK = 100.0
"""Rate change, in basis points, from which duration dominates."""
FEW = 3
"""Names below which a sector's replayed sensitivity is averaged with that of all names."""
_DECIMALS = 4
_AS_IN_FACT = 1.5
"""Tolerance in percentage points for the market's move in a historical window."""
_PRINTED = 5.1e-4
"""Rounding error of a percentage with one decimal."""
_LONGEST = 250
"""Longest drawdown in sessions."""
_LOOKED_AT = 8
"""Candidate drawdowns per drawdown chosen."""
_SHIFTED = " sector_sensitivities already include one common shift, so that the benchmark moves by equity_change_pct"
_SEVERER = "; before it every shock is {:g} times that of the base scenario."
_EXPORTERS = ("Technology", "Industrials", "Basic Materials", "Energy")
_DURATION = ("Real Estate", "Utilities")
_CYCLICAL = ("Basic Materials", "Consumer Cyclical", "Financial Services", "Industrials")
_DEFENSIVE = ("Consumer Defensive", "Healthcare", "Utilities")


@dataclass(frozen=True)
class ScenarioSet:
    """Scenarios of an edition.

    hypothetical : as in the catalog; `calibrated` fits them to a date.
    severity : multiplier of severe versions.
    ends : last session of each replay by id.
    """

    replays: tuple[ScenarioInput, ...]
    hypothetical: tuple[ScenarioInput, ...]
    severity: float
    ends: Mapping[str, date]

    def at(self, as_of: date, market: MarketSnapshot) -> tuple[ScenarioInput, ...]:
        """Return replays that ended before the date, then hypothetical scenarios."""
        known = (one for one in self.replays if self.ends[one["scenario_id"]] < as_of)
        return (*known, *self.hypothetical_at(market))

    def hypothetical_at(self, market: MarketSnapshot) -> tuple[ScenarioInput, ...]:
        """Fit the hypothetical scenarios to the benchmark of a date."""
        return tuple(calibrated(one, market) for one in self.hypothetical)

    def severe_at(self, market: MarketSnapshot) -> tuple[ScenarioInput, ...]:
        """Fit the severe versions, in the same order."""
        return tuple(calibrated(one, market, self.severity) for one in self.hypothetical)

    def with_proxies(
        self, scenario: ScenarioInput, market: MarketSnapshot, proxies: Mapping[str, str]
    ) -> ScenarioInput:
        """Remove sensitivities of sectors with a proxy, and recalibrate."""
        name = scenario["scenario_id"].removesuffix(SEVERE)
        for entry in self.hypothetical:
            if entry["scenario_id"] == name:
                severe = scenario["scenario_id"] != name
                return calibrated(entry, market, self.severity if severe else 1.0, proxies)
        left = {sector: value for sector, value in scenario["sector_sensitivities"].items() if sector not in proxies}
        return {**scenario, "sector_sensitivities": left, "sector_proxies": dict(proxies)}


def build_scenarios(panels: Panels, catalog: ScenarioCatalog, notes: list[str]) -> ScenarioSet:
    """Build the scenarios that the panels support, and add a note per omitted replay."""
    _refuse_unknown_sectors(panels, catalog)
    replays: list[ScenarioInput] = []
    ends: dict[str, date] = {}
    entries = catalog["replays"] if is_history(panels, catalog) else drawdowns(panels, len(catalog["replays"]))
    for entry in entries:
        start, end = date.fromisoformat(entry["start"]), date.fromisoformat(entry["end"])
        made = _replay(panels, entry, start, end, catalog["replay_description"])
        if isinstance(made, str):
            notes.append(f"The replay {entry['scenario_id']} is left out: {made}.")
            continue
        replays.append(made)
        ends[made["scenario_id"]] = end
    return ScenarioSet(tuple(replays), tuple(catalog["hypothetical"]), catalog["severity"], ends)


def is_history(panels: Panels, catalog: ScenarioCatalog) -> bool:
    """Check that the market matches history in the catalog windows that the panels cover."""
    return not any(_contradicting_move(panels, entry) for entry in catalog["replays"])


def _contradicting_move(panels: Panels, entry: ReplayEntry) -> str:
    """Return the market's move where it contradicts the entry, else an empty string."""
    covered = panels.prices["date"][0], panels.prices["date"][-1]
    start, end = date.fromisoformat(entry["start"]), date.fromisoformat(entry["end"])
    if not covered[0] <= start < end <= covered[1]:
        return ""
    window = panels.factors.filter(pl.col("date").is_between(start, end))["mkt_rf"]
    moved = 100 * (float((window + 1).product()) - 1)
    return f"{moved:+.1f} %" if abs(moved - entry["market_pct"]) > _AS_IN_FACT else ""


def contradicting_moves(panels: Panels, replays: Sequence[ReplayEntry]) -> dict[str, str]:
    """Return contradicted replays and the market's move by id; empty for a fictional market."""
    if not is_history(panels, scenario_catalog()):
        return {}
    return {entry["scenario_id"]: moved for entry in replays if (moved := _contradicting_move(panels, entry))}


def drawdowns(panels: Panels, count: int) -> list[ReplayEntry]:
    """Return the deepest drawdowns of at most `_LONGEST` sessions of a fictional market, in order of time."""
    first = panels.factor_exposures["date"].min()
    table = panels.factors.filter(pl.col("date") > first).sort("date").select("date", "mkt_rf").drop_nulls()
    days, growth = table["date"].to_list(), np.cumsum(np.log1p(table["mkt_rf"].to_numpy()))
    growth = np.concatenate([[0.0], growth])  # before each session, and after the last
    spans, found = [(0, len(days))], list[tuple[float, int, int]]()
    while spans and len(found) < _LOOKED_AT * count:
        low, high = spans.pop(0)
        deepest = min(
            (
                (growth[peak + 1 : stop + 1].min() - growth[peak], peak)
                for peak in range(low, high)
                for stop in [min(high, peak + _LONGEST)]
            ),
            default=(0.0, low),
        )
        depth, peak = float(deepest[0]), deepest[1]
        if depth >= 0:
            continue
        trough = peak + 1 + int(np.argmin(growth[peak + 1 : min(high, peak + _LONGEST) + 1]))
        found.append((depth, peak, trough))
        spans += [(low, peak), (trough, high)]
    chosen = sorted(sorted(found)[:count], key=lambda one: one[1])
    return [
        {
            "scenario_id": f"replay_drawdown_{number}",
            "name": f"Drawdown of {100 * math.expm1(depth):+.1f} %",
            "start": days[peak].isoformat(),
            "end": days[trough - 1].isoformat(),
            "market_pct": 100 * math.expm1(depth),
        }
        for number, (depth, peak, trough) in enumerate(chosen, start=1)
    ]


def _refuse_unknown_sectors(panels: Panels, catalog: ScenarioCatalog) -> None:
    for entry in catalog["hypothetical"]:
        unknown = sorted(set(panels.sectors.values()) - set(entry["sector_sensitivities"]))
        if unknown:
            raise SourceError(
                "universe",
                f"the sector {unknown[0]} has no sensitivity in the scenario {entry['scenario_id']}",
                remedy="give it one; 0 where it moves with the market",
            )


def calibrated(
    entry: ScenarioInput, market: MarketSnapshot, severity: float = 1.0, proxies: Mapping[str, str] | None = None
) -> ScenarioInput:
    """Fit a hypothetical scenario times `severity`: shift all sensitivities until the benchmark moves as stated."""
    moves = _times(entry["market_shocks"], severity)
    shocks, raw = (_times(entry[table], severity) for table in ("factor_shocks", "sector_sensitivities"))
    raw = {sector: value for sector, value in raw.items() if sector not in (proxies or {})}
    stated = {
        name: round(cast("float", entry.get(name)) * severity, 10)
        for name in ("spread_widening_bp", "correlation_shift")
        if name in entry
    }
    optional = ({"sector_proxies": dict(proxies)} if proxies else {}) | stated
    applied = scenario_from({**entry, **optional, "factor_shocks": shocks, "sector_sensitivities": raw})
    benchmark = require_field(market.benchmark, "benchmark weights")
    found = apply(Portfolio(benchmark, 1.0 - float(benchmark.sum()), 1.0), applied, market).pnl
    shift = (moves["equity_change_pct"] / 100 - found) / float(benchmark.sum())
    sensitivities = {sector: round(value + shift, _DECIMALS) + 0.0 for sector, value in raw.items()}
    if "technology_change_pct" in moves:
        moves["technology_change_pct"] = round(100 * sensitivities["Technology"], 1)
    name, description = entry["name"].format(**moves), entry["description"].format(**moves)
    fields = {
        "scenario_id": entry["scenario_id"] + (SEVERE if severity != 1.0 else ""),
        "type": HYPOTHETICAL,
        "name": name if severity == 1.0 else f"{name} ({severity:g} times the severity)",
        "description": description + _SHIFTED + (_SEVERER.format(severity) if severity != 1.0 else "."),
        "market_shocks": moves,
        "factor_shocks": shocks,
        "sector_sensitivities": sensitivities,
        **optional,
    }
    return cast("ScenarioInput", fields)


def _times(numbers: Mapping[str, float], by: float) -> dict[str, float]:
    # Rounding removes floating-point residue: -0.025 x 1.5 gives -0.0375.
    return {name: round(value * by, 10) for name, value in numbers.items()}


def _replay(panels: Panels, entry: ReplayEntry, start: date, end: date, description: str) -> ScenarioInput | str:
    """Return a replay over the sessions from `start` to `end`, or the reason for its absence.

    Factor shocks are compounded factor returns. A sector's sensitivity is the mean over names of compounded return less
    risk-free return less prior month-end betas times shocks. Names without betas or complete returns are left out.
    Below
    `FEW` names the mean is averaged with that of all names.
    """
    window = panels.factors.filter(pl.col("date").is_between(start, end)).select("date", *FACTORS, "rf")
    sessions = panels.prices["date"]
    before = panels.factor_exposures.filter(pl.col("date") < start)["date"].max()
    if before is None:
        return f"no betas are known before {start}"
    if sessions[-1] < end or not window.height or window.drop_nulls().height < window.height:
        return f"the panels do not cover {start} to {end}"
    compounded = window.select((pl.col(*FACTORS, "rf") + 1).product() - 1).row(0, named=True)
    riskless = compounded.pop("rf")
    shocks = {factor: round(shock, _DECIMALS) for factor, shock in compounded.items()}
    betas = panels.factor_exposures.filter(pl.col("date") == before)
    explained = betas.select("symbol", pl.sum_horizontal(pl.col(f) * compounded[f] for f in FACTORS).alias("explained"))
    returns = (
        panels.returns.filter(pl.col("date").is_between(start, end))
        .drop_nulls("simple")
        .group_by("symbol")
        .agg((pl.col("simple") + 1).product() - 1, pl.len().alias("sessions"))
        .filter(pl.col("sessions") == window.height)
    )
    specific: dict[str, list[float]] = {sector: [] for sector in sorted(set(panels.sectors.values()))}
    for symbol, total, _, part in returns.join(explained, on="symbol").sort("symbol").iter_rows():
        specific[panels.sectors[symbol]].append(total - riskless - part)
    empty = [sector for sector, values in specific.items() if not values]
    if empty:
        return f"no name of {empty[0]} has betas before {start} and prices to {end}"
    everyone = [value for values in specific.values() for value in values]
    overall = math.fsum(everyone) / len(everyone)
    means = {sector: math.fsum(values) / len(values) for sector, values in specific.items()}
    return {
        "scenario_id": entry["scenario_id"],
        "type": REPLAY,
        "name": f"{entry['name']} ({start} to {end})",
        "description": description.format(start=start, end=end, few=FEW),
        "market_shocks": _narrative(panels, start, end, shocks["mkt_rf"]),
        "factor_shocks": shocks,
        "sector_sensitivities": {
            sector: round((mean + overall) / 2 if len(specific[sector]) < FEW else mean, _DECIMALS)
            for sector, mean in means.items()
        },
    }


def _narrative(panels: Panels, start: date, end: date, equity: float) -> dict[str, float]:
    """Return market moves over the window, without missing series; `equity` is the compounded excess return."""
    numbers = {"equity_change_pct": round(100 * equity, 2)}
    for series, name in ((RATES, "rate_change_bp"), (SPREADS, "credit_spread_change_bp")):
        first = _level(panels.macro, series, pl.col("date") < start)
        last = _level(panels.macro, series, pl.col("date") <= end)
        if first is not None and last is not None:
            numbers[name] = round(100 * (last - first), 1)
    inside = panels.macro.filter(pl.col("date").is_between(start, end))
    if VOLATILITY in inside.columns and isinstance(peak := inside[VOLATILITY].max(), float):
        numbers["vix_peak"] = round(peak, 2)
    return numbers


def _level(macro: pl.DataFrame, series: str, when: pl.Expr) -> float | None:
    if series not in macro.columns:
        return None
    known = macro.filter(when).sort("date")[series].drop_nulls()
    return None if known.is_empty() else float(known[-1])


def economic_violations(scenario: ScenarioInput) -> list[str]:
    """Return the rules that a scenario breaks; replays need only valid fields and a consistent equity move."""
    shocks, stated = scenario["factor_shocks"], scenario["sector_sensitivities"]
    by_sector = {**stated, **{sector: stated[proxy] for sector, proxy in scenario.get("sector_proxies", {}).items()}}
    broken: list[str] = []
    if set(shocks) != set(FACTORS):
        broken.append(f"the factor shocks name {sorted(shocks)}, not the six factors")
    numbers = [*shocks.values(), *by_sector.values(), *scenario["market_shocks"].values()]
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        broken.append("a shock or sensitivity is not a finite number")
    if broken:
        return broken
    market = scenario["market_shocks"]
    if abs(shocks["mkt_rf"] - market["equity_change_pct"] / 100) > 1e-4:
        broken.append("the shock to mkt_rf is not the stated equity move")
    if scenario["type"] == HYPOTHETICAL:
        broken += [text for text, holds in _rules(market, shocks, by_sector) if not holds]
    return broken


def _rules(
    market: Mapping[str, float], shocks: Mapping[str, float], sectors: Mapping[str, float]
) -> list[tuple[str, bool]]:
    """Return the rules of a hypothetical narrative and whether they hold; sectors count relative to the mean."""
    spread, rates = market.get("credit_spread_change_bp", 0.0), market.get("rate_change_bp", 0.0)
    mean = math.fsum(sectors.values()) / len(sectors)
    relative = {sector: value - mean for sector, value in sectors.items()}
    credit_event, equity = spread >= _WIDER, shocks["mkt_rf"]
    duration = [relative[name] for name in _DURATION]
    rules = [("equities do not fall", equity < 0)]
    if credit_event:
        rules += [
            ("small companies gain where spreads widen", shocks["smb"] < 0),
            ("Financial Services do not lose where spreads widen", relative["Financial Services"] < 0),
            (
                "cyclical sectors do not lag defensive ones where spreads widen",
                _mean_difference(sectors, _CYCLICAL, _DEFENSIVE) < 0,
            ),
        ]
    if rates >= _RATE_SHOCK:
        rules.append(("a duration sector gains from higher rates", max(duration) < 0))
    if rates <= -_RATE_SHOCK and not credit_event:
        rules.append(("a duration sector does not gain from lower rates", min(duration) > 0))
    if abs(rates) >= _RATE_SHOCK and not credit_event:
        rules.append(("lenders do not move with rates", relative["Financial Services"] * rates > 0))
    if market.get("dollar_change_pct", 0.0) > 0:
        exporters = [relative[name] for name in _EXPORTERS]
        rules.append(("an exporter does not lose from a stronger dollar", max(exporters) < min(0.0, *duration)))
    if "value_change_pct" in market:
        rules += [
            ("the shock to hml is not the stated move of value", _near(shocks["hml"], market["value_change_pct"])),
            (
                "Technology's sensitivity is not its stated move",
                _near(sectors["Technology"], market["technology_change_pct"]),
            ),
        ]
    if market.get("inflation_change_pct", 0.0) > 0:
        rules.append(("Energy is not the best sector under inflation", sectors["Energy"] == max(sectors.values())))
    return rules


def _mean_difference(sectors: Mapping[str, float], group: Sequence[str], reference: Sequence[str]) -> float:
    means = [math.fsum(sectors[name] for name in names) / len(names) for names in (group, reference)]
    return means[0] - means[1]


def _near(decimal: float, percent: float) -> bool:
    return abs(decimal - percent / 100) <= _PRINTED

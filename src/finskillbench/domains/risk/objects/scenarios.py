"""The stress scenarios: replays derived from the panels, hypothetical ones of the catalog, and severe versions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import polars as pl

from finskillbench.arrays import FACTORS
from finskillbench.domains.risk.catalogs import ReplayEntry, ScenarioCatalog
from finskillbench.domains.risk.inputs import ScenarioInput
from finskillbench.errors import SourceError
from finskillbench.panels import Panels

REPLAY = "historical_replay"
HYPOTHETICAL = "hypothetical"
SEVERE = "_x1.5"
"""Suffix of the id of a hypothetical scenario at 1.5 times its severity."""
RATES, SPREADS, VOLATILITY = "DGS10", "BAMLH0A0HYM2", "VIXCLS"
_WIDER = 100.0
"""High-yield spreads wider by so many basis points are a credit event: equity and lenders lose."""
_RATE_SHOCK = 100.0
"""Basis points of rates from which duration decides."""
FEW = 3
"""A sector of fewer names says little of itself: its replayed sensitivity is drawn half-way to that of all."""
_EXPORTERS = ("Technology", "Industrials", "Basic Materials", "Energy")
_DURATION = ("Real Estate", "Utilities")


@dataclass(frozen=True)
class ScenarioSet:
    """The scenarios of an edition as the input JSON shows them."""

    replays: tuple[ScenarioInput, ...]
    hypothetical: tuple[ScenarioInput, ...]
    severe: tuple[ScenarioInput, ...]
    """The hypothetical ones at 1.5 times their severity, in the same order."""
    ends: Mapping[str, date]
    """Scenario id to the last session of the window, for replays."""

    def at(self, as_of: date) -> tuple[ScenarioInput, ...]:
        """Replays whose window lies wholly before the date, then the hypothetical ones."""
        return (*(one for one in self.replays if self.ends[one["scenario_id"]] < as_of), *self.hypothetical)


def build_scenarios(panels: Panels, catalog: ScenarioCatalog, notes: list[str]) -> ScenarioSet:
    """Every scenario that the panels can carry; `notes` gets a sentence on each replay that they cannot."""
    _refuse_unknown_sectors(panels, catalog)
    replays: list[ScenarioInput] = []
    ends: dict[str, date] = {}
    for entry in catalog["replays"]:
        start, end = date.fromisoformat(entry["start"]), date.fromisoformat(entry["end"])
        made = _replay(panels, entry, start, end, catalog["replay_description"])
        if isinstance(made, str):
            notes.append(f"The replay {entry['scenario_id']} is left out: {made}.")
            continue
        replays.append(made)
        ends[made["scenario_id"]] = end
    hypothetical = tuple(_scaled(entry, 1.0) for entry in catalog["hypothetical"])
    severe = tuple(_scaled(entry, catalog["severity"]) for entry in catalog["hypothetical"])
    return ScenarioSet(tuple(replays), hypothetical, severe, ends)


def _refuse_unknown_sectors(panels: Panels, catalog: ScenarioCatalog) -> None:
    for entry in catalog["hypothetical"]:
        unknown = sorted(set(panels.sectors.values()) - set(entry["sector_sensitivities"]))
        if unknown:
            raise SourceError(
                "universe",
                f"the sector {unknown[0]} has no sensitivity in the scenario {entry['scenario_id']}",
                remedy="use the sectors of sources/universe.json",
            )


def _scaled(entry: ScenarioInput, severity: float) -> ScenarioInput:
    """A hypothetical scenario of the catalog, every number times `severity`; its texts show the numbers."""
    market = _times(entry["market_shocks"], severity)
    name = entry["name"].format(**market)
    return {
        "scenario_id": entry["scenario_id"] + (SEVERE if severity != 1.0 else ""),
        "type": HYPOTHETICAL,
        "name": name if severity == 1.0 else f"{name} ({severity:g} times the severity)",
        "description": entry["description"].format(**market),
        "market_shocks": market,
        "factor_shocks": _times(entry["factor_shocks"], severity),
        "sector_sensitivities": _times(entry["sector_sensitivities"], severity),
    }


def _times(numbers: Mapping[str, float], by: float) -> dict[str, float]:
    # Rounded far below any figure stated, so that -0.025 x 1.5 reads -0.0375.
    return {name: round(value * by, 10) for name, value in numbers.items()}


def _replay(panels: Panels, entry: ReplayEntry, start: date, end: date, description: str) -> ScenarioInput | str:
    """A replay measured over the sessions from `start` to `end`, both included; or why there is none.

    Factor shocks are compounded factor returns. A sector's sensitivity is the mean over its names of the compounded
    return less the compounded risk-free return less the betas, as known at the month-end before, times the shocks.
    Names without betas then, or without a return on every session of the window, do not enter. The mean of fewer than
    `FEW` names is averaged with that of all names.
    """
    window = panels.factors.filter(pl.col("date").is_between(start, end)).select("date", *FACTORS, "rf")
    sessions = panels.prices["date"]
    before = panels.factor_exposures.filter(pl.col("date") < start)["date"].max()
    if before is None:
        return f"no betas are known before {start}"
    if sessions[-1] < end or not window.height or window.drop_nulls().height < window.height:
        return f"the panels do not cover {start} to {end}"
    shocks = window.select((pl.col(*FACTORS, "rf") + 1).product() - 1).row(0, named=True)
    riskless = shocks.pop("rf")
    betas = panels.factor_exposures.filter(pl.col("date") == before)
    explained = betas.select("symbol", pl.sum_horizontal(pl.col(f) * shocks[f] for f in FACTORS).alias("explained"))
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
            sector: (own + overall) / 2 if len(specific[sector]) < FEW else own for sector, own in means.items()
        },
    }


def _narrative(panels: Panels, start: date, end: date, equity: float) -> dict[str, float]:
    """What the market did in words' numbers, from the session before the window to its last; absent series left out.

    `equity` is the compounded excess return of the market.
    """
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
    """The last value of a series where there is one."""
    if series not in macro.columns:
        return None
    known = macro.filter(when).sort("date")[series].drop_nulls()
    return None if known.is_empty() else float(known[-1])


def economics(scenario: ScenarioInput) -> list[str]:
    """The rules of economics and bookkeeping that a scenario breaks, one sentence each; empty for a sound one.

    A replay is what happened: it is held to its vocabulary, and to an equity move that is its own market shock.
    """
    shocks, sensitivities = scenario["factor_shocks"], scenario["sector_sensitivities"]
    broken: list[str] = []
    if set(shocks) != set(FACTORS):
        broken.append(f"the factor shocks name {sorted(shocks)}, not the six factors")
    numbers = [*shocks.values(), *sensitivities.values(), *scenario["market_shocks"].values()]
    if not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
        broken.append("a shock or sensitivity is no finite number")
    if broken:
        return broken
    market = scenario["market_shocks"]
    if abs(shocks["mkt_rf"] - market["equity_change_pct"] / 100) > 1e-4:
        broken.append("the shock to mkt_rf is not the stated equity move")
    if scenario["type"] == HYPOTHETICAL:
        broken += [text for text, holds in _rules(market, shocks, sensitivities) if not holds]
    return broken


def _rules(
    market: Mapping[str, float], shocks: Mapping[str, float], sectors: Mapping[str, float]
) -> list[tuple[str, bool]]:
    """The rules that a hypothetical scenario's narrative calls for, and whether it keeps each."""
    spread, rates = market.get("credit_spread_change_bp", 0.0), market.get("rate_change_bp", 0.0)
    mean = math.fsum(sectors.values()) / len(sectors)
    credit_event, equity = spread >= _WIDER, shocks["mkt_rf"]
    duration = [sectors[name] for name in _DURATION]
    rules = [("stocks of beta 1 gain on average where equities fall", not (equity < 0 and equity + mean >= 0))]
    if credit_event:
        rules += [
            ("equities do not fall where spreads widen", equity < 0),
            ("small companies gain where spreads widen", shocks["smb"] < 0),
            ("the average sector does not lose where spreads widen", mean < 0),
            ("Financial Services do not lose where spreads widen", sectors["Financial Services"] < 0),
        ]
    elif spread > 0:
        rules.append(("equities rise where spreads widen", equity < 0))
    if rates >= _RATE_SHOCK:
        rules.append(("a duration sector gains from higher rates", max(duration) < 0))
    if rates <= -_RATE_SHOCK and not credit_event:
        rules.append(("a duration sector does not gain from lower rates", min(duration) > 0))
    if abs(rates) >= _RATE_SHOCK and not credit_event:
        rules.append(("lenders do not move with rates", sectors["Financial Services"] * rates > 0))
    if market.get("dollar_change_pct", 0.0) > 0:
        exporters = [sectors[name] for name in _EXPORTERS]
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


def _near(decimal: float, percent: float) -> bool:
    return abs(decimal - percent / 100) <= 1e-9

"""Checks of portfolio episodes: coverage, taxonomy, views, units, published limits and calls, binding limits."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np
import polars as pl

from finskillbench.arrays import FACTORS, SECTORS
from finskillbench.domains.checks.coverage import columns_of, episodes_and_files, simple_returns
from finskillbench.domains.checks.examination import Subject, each_label, examining
from finskillbench.domains.portfolio import rederive
from finskillbench.engines.optimisation.certified import UndecidedError
from finskillbench.engines.portfolio.mandates.binding import stated_limits, without
from finskillbench.engines.portfolio.mandates.fields import problem_from
from finskillbench.engines.portfolio.optimise import optimise
from finskillbench.engines.portfolio.problem import Objective
from finskillbench.episode import Episode, JsonObject, Truth
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.scoring.values import as_array, as_number, as_object, is_object, numbers
from finskillbench.sums import exact_sum


def check_portfolio_coverage(subject: Subject, findings: Findings) -> None:
    """Check that every subtask has its episodes and objectives, with truth and certificates of the same tasks."""
    episodes_and_files(subject, findings, "portfolio")
    for subtask in subject.domain.subtasks:
        objectives = {episode.input.get("objective") for episode in subject.of(subtask.name)} - {None}
        if subject.built and objectives and objectives != set(Objective):
            missing = ", ".join(sorted(set(Objective) - objectives))
            findings.warn(subtask.name, f"no episode has the objective {missing}")
    findings.figures["as_of_dates"] = len(subject.edition.manifest["as_of_dates"])


def check_portfolio_taxonomy(subject: Subject, findings: Findings) -> None:
    """Check that panels, inputs and tool calls use one vocabulary of sectors and of factors."""
    panels = subject.panels(Findings())
    sectors = dict(panels.sectors) if panels is not None else {}
    for symbol, sector in sectors.items():
        findings.expect(sector in SECTORS, symbol, f"sector {sector!r} is not of the vocabulary")
    if panels is not None:
        for symbol in panels.symbols:
            findings.expect(symbol in sectors, symbol, "has no sector")
        for sector in SECTORS:
            if sector not in sectors.values():
                findings.warn(sector, "no name of the universe belongs to it")
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            _check_episode(subject, episode, sectors, _present(panels, episode.as_of_date), findings)
    findings.figures |= {"sectors": dict(sorted(Counter(sectors.values()).items())), "episodes": len(subject.episodes)}


def _present(panels: Panels | None, day: date) -> set[str]:
    """Return the sectors with names at a month-end; in small universes some have none."""
    if panels is None or day not in panels.covariance:
        return set()  # check_trading_days reports days that are not month-ends
    return {panels.sectors[symbol] for symbol in panels.symbols_at(day) if symbol in panels.sectors}


def _check_episode(
    subject: Subject, episode: Episode, sectors: Mapping[str, str], known: set[str], findings: Findings
) -> None:
    task_id, task_input = episode.task_id, episode.input
    limits = as_object(task_input.get("constraints"))
    caps = as_object(limits.get("sector_limits"))
    mapped = as_object(task_input.get("sector_mapping"))
    unknown = sorted((set(mapped.values()) | set(caps)) - set(SECTORS))
    findings.expect(not unknown, task_id, f"sectors outside the vocabulary: {', '.join(unknown)}")
    if caps and not mapped:
        findings.fail(task_id, "has sector_limits but no sector_mapping")
    elif caps:
        differ = sorted(set(caps) ^ set(mapped.values()))
        findings.expect(not differ, task_id, f"sector_limits and sector_mapping disagree on {', '.join(differ)}")
    if mapped and sectors:
        agrees = all(sectors.get(symbol) == sector for symbol, sector in mapped.items())
        findings.expect(agrees, task_id, "sector_mapping is not that of the panels")
    factors = set(as_array(limits.get("neutral_factors"))) - set(FACTORS)
    findings.expect(not factors, task_id, f"unknown factors: {', '.join(sorted(map(str, factors)))}")
    for ticker, betas in as_object(task_input.get("factor_exposures")).items():
        findings.expect(tuple(betas) == FACTORS, task_id, f"factor_exposures of {ticker} name other factors")
    if "sectors" in task_input:
        if known:
            findings.expect(set(task_input["sectors"]) == known, task_id, "its sectors are not those of the month-end")
        if subject.edition.has_truth:
            call = as_object(subject.edition.truth(task_id).expected_output.get("optimizer_call"))
            constraints = as_object(call.get("constraints"))
            named = {*as_object(constraints.get("sector_limits")), *as_array(constraints.get("excluded_sectors"))}
            strangers = sorted(map(str, named - set(task_input["sectors"])))
            findings.expect(not strangers, task_id, f"its call names sectors it does not list: {', '.join(strangers)}")


_WEIGHTS = {"earnings_yield": 0.25, "roe": 0.20, "momentum_12_1": 0.25, "eps_revision": 0.15, "low_volatility": 0.15}
_IC = 0.05
_PREMIUM = 0.05
_CUT = 3.0
_TOLERANCE = 1e-9
_YEAR, _MONTH = 252, 21


def check_expected_returns(subject: Subject, findings: Findings) -> None:
    """Check risk-free rate, premium and alpha of every name and month-end against their definitions and sum."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days, simple = simple_returns(panels)
    adjusted = panels.prices_of("adj_close").drop("date").to_numpy()
    for day in panels.month_ends:
        with examining(f"views {day}", findings):
            _check_day(panels, day, days.index(day), simple, adjusted, findings)
    findings.figures |= {"month_ends": len(panels.month_ends), "rows": panels.views.height}


def _check_day(
    panels: Panels, day: date, end: int, simple: np.ndarray, adjusted: np.ndarray, findings: Findings
) -> None:
    estimate = panels.covariance[day]
    columns = columns_of(panels, estimate)
    rows = panels.views.filter(pl.col("date") == day).sort("symbol")
    same = rows["symbol"].to_list() == sorted(estimate.symbols)
    findings.expect(same, f"views {day}", "does not cover every name once")
    if not same:
        return
    window = simple[end - _YEAR + 1 : end + 1, columns]
    deviation = np.sqrt(((window - window.mean(axis=0)) ** 2).sum(axis=0) / (_YEAR - 1) * _YEAR)
    total = np.sum([weight * _standardised(rows[name]) for name, weight in _WEIGHTS.items()], axis=0)
    score = _standardised(pl.Series(total))
    weights = panels.benchmark_weights.filter(pl.col("date") == day).sort("symbol")["weight"].to_numpy()
    # Beta to the benchmark by the covariance of the date, so that the benchmark's own premium is the stated one.
    covered = estimate.matrix() @ weights
    derived = {
        "low_volatility": -deviation,
        "momentum_12_1": adjusted[end - _MONTH, columns] / adjusted[end - _YEAR, columns] - 1,
        "annual_volatility": deviation,
        "composite_z": score,
        "risk_free": np.full(len(columns), panels.risk_free[day]),
        "equilibrium_premium": _PREMIUM * covered / (weights @ covered),
        "alpha": _IC * deviation * score,
    }
    derived["expected_return"] = derived["risk_free"] + derived["equilibrium_premium"] + derived["alpha"]
    for name, values in derived.items():
        off = np.abs(rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() - values)
        worst = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
        findings.widest("greatest_difference", 0.0 if np.isnan(off[worst]) else off[worst])
        findings.expect(
            off[worst] <= _TOLERANCE,
            f"{rows['symbol'][worst]} {day}",
            f"{name} is {rows[name][worst]} in the views and {values[worst]:.10g} derived again",
        )


def _standardised(signal: pl.Series) -> np.ndarray:
    """Return clipped z-scores over the names that have the signal; 0 for the others."""
    values = signal.drop_nulls().to_numpy()
    spread = math.sqrt(float(((values - values.mean()) ** 2).mean())) if len(values) else 0.0
    if spread <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return np.zeros(len(signal))
    return ((signal - float(values.mean())) / spread).clip(-_CUT, _CUT).fill_null(0.0).to_numpy()


_EXACT = 1e-8
_DUST = 1e-4
_RISK_FREE_SHARE = 0.5
"""Returns that are all below this share of the risk-free rate are daily, or alphas."""
_FIGURE = re.compile(r"(?<!S&P )\b(\d+(?:\.\d+)?)\s*(%|per cent|percent|basis points|bps?\b)?")
"""A number in text with its unit; "S&P 500" is excluded."""
_UNITS = {"": 1.0, "%": 100.0, "per cent": 100.0, "percent": 100.0, "basis points": 1e4, "bp": 1e4, "bps": 1e4}


def check_published_limits(subject: Subject, findings: Findings) -> None:
    """Check that the weights of published labels satisfy the limits of their inputs."""
    if subject.built:
        findings.skip("limits of built labels are checked when the labels are derived again")
        return

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_limits(episode, subject.input_of(episode), truth.expected_output, findings)

    each_label(subject, findings, examine)


def check_portfolio_units(subject: Subject, findings: Findings) -> None:
    """Check that expected returns, covariance and risk-free rate share a stated unit and horizon."""
    each_label(subject, findings, lambda episode, _: _examine_units(episode, subject.input_of(episode), findings))


def check_mandate_calls(subject: Subject, findings: Findings) -> None:
    """Check that a mandate's text and call contain the same numbers equally often."""

    def examine(episode: Episode, truth: Truth) -> None:
        _examine_call(episode, subject.input_of(episode), truth.expected_output, findings)

    each_label(subject, findings, examine)


def _examine_limits(episode: Episode, task_input: JsonObject, label: JsonObject, findings: Findings) -> None:
    named = (numbers(label.get(name)) for name in ("new_weights", "weights", "optimal_weights"))
    weights = next((found for found in named if found), None)
    if weights is None:
        return
    findings.add("labels")
    limits = as_object(task_input.get("constraints"))
    for name, excess in _excesses(weights, limits, task_input):
        findings.expect(excess <= _EXACT, episode.task_id, f"the label exceeds it by {excess:.2g}", name)


def _excesses(weights: Mapping[str, float], limits: JsonObject, task_input: JsonObject) -> Iterator[tuple[str, float]]:
    yield "fully_invested", abs(exact_sum(weights.values()) - 1)
    if limits.get("long_only", True):
        yield "long_only", -min(weights.values())
    if (cap := as_number(limits.get("max_weight"))) is not None:
        yield "max_weight", max(weights.values()) - cap
    held = sum(weight > _DUST for weight in weights.values())
    if (least := as_number(limits.get("min_names"))) is not None:
        yield "min_names", least - held
    sectors = as_object(task_input.get("sector_mapping"))
    for sector, most in numbers(limits.get("sector_limits")).items():
        yield (
            f"sector_limits.{sector}",
            exact_sum(w for key, w in weights.items() if sectors.get(key) == sector) - most,
        )
    before, turnover = numbers(task_input.get("current_portfolio")), as_number(limits.get("max_turnover"))
    if before and turnover is not None:
        moved = exact_sum(abs(weights.get(key, 0.0) - before.get(key, 0.0)) for key in weights.keys() | before.keys())
        yield "max_turnover", moved / 2 - turnover


def _examine_units(episode: Episode, task_input: JsonObject, findings: Findings) -> None:
    returns, rate = numbers(task_input.get("expected_returns")), as_number(task_input.get("risk_free_rate"))
    if not returns:
        return
    findings.add("inputs")
    if "units" not in as_object(task_input.get("conventions")):
        findings.fail(episode.task_id, "have no stated unit and horizon", "expected_returns")
    if rate is not None and rate > 0:
        highest = max(returns.values())
        message = f"are at most {highest:.4f} with an annual risk-free rate of {rate:.4f}: horizons differ"
        findings.expect(highest > _RISK_FREE_SHARE * rate, episode.task_id, message, "expected_returns")


def _examine_call(episode: Episode, task_input: JsonObject, label: JsonObject, findings: Findings) -> None:
    wording, call = task_input.get("scenario_description"), label.get("optimizer_call")
    if not isinstance(wording, str) or not is_object(call) or "conventions" in task_input or "sectors" in task_input:
        return  # texts of built editions are parsed when their labels are derived again
    findings.add("mandates")
    in_text = Counter(round(float(figure) / _UNITS[unit or ""], 9) for figure, unit in _FIGURE.findall(wording))
    in_call = Counter(round(value, 9) for value in _figures(call))
    for figure in sorted(in_text - in_call):
        message = f"the text states {figure:g} {_times(in_text[figure])}, the call {_times(in_call[figure])}"
        findings.fail(episode.task_id, message, "optimizer_call")
    for figure in sorted((in_call - in_text).keys() - {0.0, 1.0}):
        message = f"the call states {figure:g} {_times(in_call[figure])}, the text {_times(in_text[figure])}"
        findings.fail(episode.task_id, message, "optimizer_call")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "never"


def _figures(value: Any) -> Iterator[float]:
    if is_object(value):
        for item in value.values():
            yield from _figures(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


LEAST_BINDING = 0.25
"""Minimum share of a tier's episodes with a limit in which it binds."""
_MOVED = 1e-6


def check_limits_bind(subject: Subject, findings: Findings) -> None:
    """Check that each kind of limit binds in at least a quarter of a tier's constrained-optimisation episodes."""
    if not subject.built or not subject.edition.has_truth:
        findings.skip("only a built edition with its truth is examined")
        return
    binds: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for episode in subject.of("constrained_optimization"):
        with examining(episode.task_id, findings):
            task_input = subject.input_of(episode)
            problem = problem_from(task_input)
            label = rederive.vector(subject.edition.truth(episode.task_id).expected_output["weights"], problem.tickers)
            for name in stated_limits(problem):
                try:
                    other = optimise(without(problem, name), unique=False).weights
                except UndecidedError:
                    continue
                binds[episode.difficulty, name].append(float(np.abs(other - label).max()) > _MOVED)
    for (tier, name), found in binds.items():
        share = float(np.mean(found))
        findings.figures[f"{tier}_{name}"] = round(share, 3)
        findings.expect(share >= LEAST_BINDING, tier, f"{name} binds in {share:.0%} of the episodes that print it")

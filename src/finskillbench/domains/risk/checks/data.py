"""Checks of risk inputs: coverage, dates, point-in-time data and portfolios."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast

import numpy as np

from finskillbench.domains.checks.coverage import best_shift, episodes_and_files, nyse, simple_returns
from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.risk.inputs import HoldingsInput
from finskillbench.domains.risk.objects.recipes import TYPES
from finskillbench.domains.risk.rederive import FACTORS, turnover_of_trades, weights
from finskillbench.domains.risk.user_catalogs.books import user_books
from finskillbench.episode import Episode
from finskillbench.findings import Findings
from finskillbench.panels import Panels
from finskillbench.panels.market.estimates.views import WINDOW
from finskillbench.scoring.values import as_number, as_object

_VOLUME_SESSIONS = 21
_SESSIONS_A_YEAR = 252
_LEAST_SHARE = 0.15
"""Least share of the rarer verdict, so that a constant answer scores low."""
_PER_STRATUM = 4
"""Episodes per stratum that a subtask needs to cover every stratum."""
_MOST_OF_A_DATE = 0.25
_SUM = 1e-6
_ROUNDING = 1e-9
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def read_planted_fact(subject: Subject, episode: Episode, fact: str) -> str:
    """Return `portfolio_type` or `regime` from the truth, or from a release's metadata."""
    if not subject.built:
        return str(episode.metadata.get(fact))
    return str(subject.edition.truth(episode.task_id).verification.get(fact))


def drawn_episodes(subject: Subject, episodes: Sequence[Episode]) -> list[Episode]:
    """Return the episodes without user books, which need no balance."""
    user_ids = user_books(subject.edition.manifest)
    return [one for one in episodes if as_object(one.input.get("portfolio")).get("portfolio_id") not in user_ids]


def _known(subject: Subject) -> bool:
    return subject.edition.has_truth or not subject.built


def check_risk_coverage(subject: Subject, findings: Findings) -> None:
    """Check episode counts, coverage of types, regimes and tiers, and balance of verdicts."""
    episodes_and_files(subject, findings, "risk")
    if not subject.built:
        return
    telling = [episode.task_id for episode in subject.episodes if {"portfolio_type", "regime"} & set(episode.metadata)]
    for where in telling:
        findings.fail(where, "metadata reveal the portfolio's type or regime")
    for subtask in subject.domain.subtasks:
        difficulties = len({episode.difficulty for episode in subject.of(subtask.name)})
        _check_stratum(subtask.name, "difficulties", difficulties, 2, len(subject.of(subtask.name)), findings)
    if subject.edition.has_truth:
        _check_planted(subject, findings)
        _check_verdicts(subject, findings)


def _check_planted(subject: Subject, findings: Findings) -> None:
    regimes = {read_planted_fact(subject, episode, "regime") for episode in drawn_episodes(subject, subject.episodes)}
    for subtask in subject.domain.subtasks:
        episodes = drawn_episodes(subject, subject.of(subtask.name))
        types = Counter(read_planted_fact(subject, episode, "portfolio_type") for episode in episodes)
        subtask_regimes = {read_planted_fact(subject, episode, "regime") for episode in episodes}
        _check_stratum(subtask.name, "portfolio types", len(types), len(TYPES), len(episodes), findings)
        _check_stratum(subtask.name, "regimes", len(subtask_regimes), len(regimes), len(episodes), findings)
        unknown = sorted(set(types) - set(TYPES))
        findings.expect(not unknown, subtask.name, f"portfolios of unknown types: {', '.join(unknown)}")
        findings.figures.setdefault(subtask.name, {})["portfolio_types"] = dict(sorted(types.items()))


def _check_stratum(where: str, name: str, found: int, wanted: int, episodes: int, findings: Findings) -> None:
    least = min(wanted, episodes // _PER_STRATUM)
    findings.expect(found >= least, where, f"covers {found} of {wanted} {name}")


def _check_verdicts(subject: Subject, findings: Findings) -> None:
    verdicts: dict[str, list[bool]] = {"statuses": [], "overall_compliant": [], "post_trade_compliant": []}
    losses: list[bool] = []
    for episode in drawn_episodes(subject, subject.episodes):
        with examining(episode.task_id, findings):
            label = subject.edition.truth(episode.task_id).expected_output
            if episode.sub_task == "constraint_monitoring":
                verdicts["statuses"] += [entry["status"] == "PASS" for entry in label["constraints"]]
                verdicts["overall_compliant"].append(bool(label["overall_compliant"]))
            elif episode.sub_task == "risk_remediation":
                verdicts["post_trade_compliant"].append(bool(label["post_trade_compliant"]))
            elif episode.sub_task == "stress_testing":
                losses.append(label["estimated_pnl_pct"] < 0)
    for name, found in verdicts.items():
        good, least = sum(found), int(_LEAST_SHARE * len(found))
        findings.figures[name] = f"{good} of {len(found)}"
        balanced = least <= good <= len(found) - least
        findings.expect(balanced, name, f"{good} of {len(found)} are positive: a constant answer scores well")
    findings.figures["losses"] = f"{sum(losses)} of {len(losses)}"


def check_risk_dates(subject: Subject, findings: Findings) -> None:
    """Check that as-of dates are sessions of their regime, and that replays end before them."""
    panels = subject.panels(findings)
    for episode in subject.of("stress_testing"):
        with examining(episode.task_id, findings, fatal=subject.built):
            _check_window(episode, findings)
    if panels is None:
        return
    sessions = set(panels.prices["date"].to_list())
    days = sorted({episode.as_of_date for episode in subject.episodes})
    calendar = nyse(days[0], days[-1])
    for day in days:
        findings.expect(day in sessions and day in calendar, day, "the as-of date is not a trading session")
    allowed = set(panels.risk_dates)
    for episode in subject.episodes:
        day = episode.as_of_date
        if day not in allowed:
            findings.fail(episode.task_id, f"{day} is not a risk date of the panels")
        elif _known(subject) and (stated := read_planted_fact(subject, episode, "regime")) != panels.regimes[day]:
            findings.fail(episode.task_id, f"{day} is in regime {panels.regimes[day]}, not {stated}")
    for subtask in subject.domain.subtasks:
        seen = Counter(episode.as_of_date for episode in drawn_episodes(subject, subject.of(subtask.name)))
        if seen.total() >= _PER_STRATUM * len(TYPES):
            day, count = seen.most_common(1)[0]
            findings.expect(
                count <= _MOST_OF_A_DATE * seen.total(),
                subtask.name,
                f"{count} of {seen.total()} episodes share the date {day}",
            )
    findings.figures |= {
        "dates": len(days),
        "first": str(days[0]),
        "last": str(days[-1]),
        "regimes": dict(sorted(Counter(panels.regimes[day] for day in days if day in allowed).items())),
        "risk_dates": len(panels.risk_dates),
    }


def _check_window(episode: Episode, findings: Findings) -> None:
    scenario = episode.input["stress_scenario"]
    if scenario.get("type") != "historical_replay":
        findings.add("hypothetical")
        return
    window = replay_window(scenario)
    if window is None:
        findings.fail(episode.task_id, f"{scenario.get('scenario_id')} does not state its window")
        return
    findings.add("replays")
    findings.expect(
        window[1] < episode.as_of_date,
        episode.task_id,
        f"{scenario['scenario_id']} replays up to {window[1]}, after the as-of date {episode.as_of_date}",
    )


def replay_window(scenario: Mapping[str, Any]) -> tuple[date, date] | None:
    """Return first and last day named in a replay's texts, or None."""
    days = [date.fromisoformat(day) for day in _DAY.findall(f"{scenario.get('name')} {scenario.get('description')}")]
    return (min(days), max(days)) if len(days) > 1 else None


def check_risk_point_in_time(subject: Subject, findings: Findings) -> None:
    """Check that betas, volumes, benchmark, covariance and returns use no later data."""
    panels = subject.panels(findings)
    if panels is None:
        return
    days, simple = simple_returns(panels)
    at = {day: row for row, day in enumerate(days)}
    used = sorted({episode.as_of_date for episode in subject.episodes} & set(panels.risk_dates) & at.keys())
    known: dict[date, dict[str, Any]] = {}
    for day in used:
        with examining(str(day), findings):
            known[day] = _seen(panels, day)
            _check_estimates(panels, day, at[day], simple, known[day], findings)
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            _compare(episode, known.get(episode.as_of_date), findings)
    _check_known(panels, used, findings)
    findings.figures |= {"dates": len(used), "episodes": len(subject.episodes)}


def _seen(panels: Panels, day: date) -> dict[str, Any]:
    """Return the panels' data of a date, keyed as in the inputs."""
    market = panels.snapshot(day)
    tickers = list(market.tickers)

    def by_ticker(values: Any) -> dict[str, float]:
        return dict(zip(tickers, map(float, values), strict=True))

    return {
        "sector_mapping": dict(zip(tickers, market.sectors, strict=True)),
        "factor_exposures": {
            ticker: dict(zip(FACTORS, map(float, row), strict=True))
            for ticker, row in zip(tickers, market.betas, strict=True)
        },
        "benchmark_weights": by_ticker(market.benchmark),
        "average_daily_volume_usd": by_ticker(market.dollar_volume),
        "covariance_matrix": {"tickers": tickers, "ref": f"panels/covariance/{day}.npz"},
        "factor_volatility": _factor_volatility(panels, day),
    }


def _factor_volatility(panels: Panels, day: date) -> dict[str, float]:
    """Return annualised factor volatilities over the last year of sessions."""
    sessions = [one for one in panels.prices["date"].to_list() if one <= day][-WINDOW:]
    window = panels.factors.filter(panels.factors["date"].is_in(sessions)).drop_nulls(FACTORS)
    found: dict[str, float] = {}
    for factor in FACTORS:
        moves = window[factor].to_list()
        middle = math.fsum(moves) / len(moves)
        found[factor] = math.sqrt(math.fsum((one - middle) ** 2 for one in moves) / (len(moves) - 1) * _SESSIONS_A_YEAR)
    return found


def _compare(episode: Episode, known: Mapping[str, Any] | None, findings: Findings) -> None:
    for name, value in episode.input.items():
        table = as_object(value)
        if isinstance(table.get("ref"), str):
            dated = str(table.get("end", table["ref"].rsplit("/", 1)[-1].removesuffix(".npz")))
            findings.expect(
                dated <= str(episode.as_of_date),
                episode.task_id,
                f"{name} is dated {dated}, after {episode.as_of_date}",
            )
    for name in (known or {}).keys() & episode.input.keys():
        whole = (known or {})[name]
        if name == "factor_exposures" and episode.sub_task == "stress_testing":  # some betas are missing on purpose
            whole = {ticker: row for ticker, row in whole.items() if ticker in episode.input[name]}
        findings.expect(
            _same(episode.input[name], whole), episode.task_id, f"{name} differs from the panels at its date"
        )


def _same(actual: Any, known: Any) -> bool:
    """Compare tables up to rounding."""
    if isinstance(known, float):
        stated = as_number(actual)
        return stated is not None and abs(stated - known) <= _ROUNDING * max(1.0, abs(known))
    if not isinstance(known, dict):
        return actual == known
    table, expected = as_object(actual), cast("dict[str, Any]", known)
    return table.keys() == expected.keys() and all(_same(table[name], one) for name, one in expected.items())


def _check_estimates(
    panels: Panels, day: date, row: int, simple: np.ndarray, known: Mapping[str, Any], findings: Findings
) -> None:
    """Check covariance, betas and volumes of a date against the sessions before it."""
    tickers = list(known["sector_mapping"])
    columns = [panels.symbols.index(ticker) for ticker in tickers]
    estimate = panels.covariance[day]
    shift = best_shift(simple[:, [panels.symbols.index(symbol) for symbol in estimate.symbols]], row, estimate)
    later = "looks ahead" if shift > 0 else "is stale"
    findings.expect(shift == 0, f"covariance {day}", f"its window ends {shift:+d} sessions off: it {later}")
    window = slice(row - WINDOW + 1, row + 1)
    returns = simple[window][:, columns]
    findings.expect(np.isfinite(returns).all(), day, f"a name of the universe lacks one of {WINDOW} returns")
    _check_betas(panels, day, returns, window, known["factor_exposures"], findings)
    last = slice(row - _VOLUME_SESSIONS + 1, row + 1)
    traded = np.column_stack([_field(panels, "close", t)[last] * _field(panels, "volume", t)[last] for t in tickers])
    volume = np.array(list(known["average_daily_volume_usd"].values()))
    apart = np.abs(traded.mean(axis=0) - volume) / np.maximum(volume, 1.0)
    findings.expect(
        apart.max() <= _ROUNDING,
        f"{tickers[int(apart.argmax())]} {day}",
        f"average volume differs from that of the {_VOLUME_SESSIONS} sessions up to the date",
    )


def _field(panels: Panels, field: str, symbol: str) -> np.ndarray:
    return panels.prices[f"{field}:{symbol}"].to_numpy()


def _check_betas(
    panels: Panels, day: date, returns: np.ndarray, window: slice, exposures: Mapping[str, Any], findings: Findings
) -> None:
    """Compare betas with least squares of excess returns (252, n) on an intercept and six factors."""
    sessions = panels.prices["date"][window]
    table = panels.factors.filter(panels.factors["date"].is_in(sessions.implode()))
    if table.height < WINDOW or table.select(*FACTORS, "rf").null_count().sum_horizontal()[0]:
        findings.add("dates_without_all_factors")
        return
    design = np.column_stack([np.ones(WINDOW), table.sort("date").select(*FACTORS).to_numpy()])
    excess = returns - table.sort("date")["rf"].to_numpy()[:, None]
    expected = np.linalg.lstsq(design, excess, rcond=None)[0][1:].T
    stated = np.array([[betas[factor] for factor in FACTORS] for betas in exposures.values()])
    apart = float(np.abs(expected - stated).max())
    findings.widest("greatest_beta_difference", apart)
    findings.expect(apart <= 1e-8, day, f"a beta differs from the regression on the {WINDOW} sessions by {apart:.1e}")


def _check_known(panels: Panels, used: Sequence[date], findings: Findings) -> None:
    """Check that share counts were published by the date."""
    for day in used:
        rows = panels.benchmark_weights.filter(panels.benchmark_weights["date"] == day)
        for symbol, end, known in rows.select("symbol", "shares_as_of", "shares_known").iter_rows():
            if known > day:
                findings.fail(f"{symbol} {day}", f"shares of {end} were published only on {known}")


def check_risk_portfolios(subject: Subject, findings: Findings) -> None:
    """Check weights, tickers, NAV and neutral, unique portfolio ids."""
    seen: dict[tuple[str, date], tuple[str, Any]] = {}
    for episode in subject.episodes:
        with examining(episode.task_id, findings, fatal=subject.built):
            _check_portfolio(episode, findings, by_user=not drawn_episodes(subject, [episode]))
            portfolio = {name: value for name, value in episode.input["portfolio"].items() if name != "option_overlay"}
            identity = str(portfolio["portfolio_id"])
            first = seen.setdefault((identity, episode.as_of_date), (episode.task_id, portfolio))
            findings.expect(
                first[1] == portfolio, episode.task_id, f"{identity} differs from the portfolio in {first[0]}"
            )
    findings.figures |= {"portfolios": len(seen), "episodes": len(subject.episodes)}


def _check_portfolio(episode: Episode, findings: Findings, *, by_user: bool) -> None:
    task_input, where = cast("HoldingsInput", episode.input), episode.task_id
    portfolio, owned = task_input["portfolio"], weights(task_input)
    traded: Mapping[str, float] = portfolio.get("trades_this_month") or {}
    findings.expect(len(owned) == len(portfolio["holdings"]), where, "a ticker is held twice")
    strangers = sorted({*owned, *traded} - set(task_input["sector_mapping"]))
    findings.expect(not strangers, where, f"tickers outside the universe: {', '.join(strangers)}")
    nav, cash = portfolio["total_nav"], portfolio["cash_weight"]
    total = math.fsum(owned.values()) + cash
    findings.expect(abs(total - 1) <= _SUM, where, f"weights and cash sum to {total:.9f}")
    findings.expect(nav > 0 and math.isfinite(nav), where, f"NAV is {nav}, not a positive number")
    findings.expect(cash >= 0, where, f"cash is {cash:.6f}, below 0")
    findings.expect(all(weight != 0 for weight in owned.values()), where, "a holding has weight 0")
    findings.figures["fewest_holdings"] = min(findings.figures.get("fewest_holdings", 10**6), len(owned))
    findings.widest("largest_weight", max(map(abs, owned.values()), default=0.0))
    findings.widest("largest_traded", turnover_of_trades(traded.values()))
    telling = [kind for kind in TYPES if kind in str(portfolio["portfolio_id"])]
    findings.expect(by_user or not telling, where, f"the portfolio id reveals the type {', '.join(telling)}")

"""Cases of the suite's build whose law is not disclosed, and programs that play them with what an agent can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import agnostic_accounts
import agnostic_signals
import numpy as np

from finskillbench.arrays import Floats
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.tables import EpisodeTable
from finskillbench.episode import JsonObject, Profile
from finskillbench_desk.allocate.sources import GROUP_SIZE, GROUPS, AllocationBook
from finskillbench_desk.allocate.visible import read_visible, visible_book
from finskillbench_desk.domain import SUBTASKS
from finskillbench_desk.engines.trading.net_of_costs import optimum
from finskillbench_desk.market import market
from finskillbench_desk.trade_over_time.interactive import ADVANCE, open_state
from finskillbench_desk.trade_over_time.optimum import TradingSetup, from_json
from finskillbench_desk.trade_over_time.world import DECISIONS, RETURN_UNIT, SIGNAL_UNIT, SIGNALS

KINDS = {subtask.name: subtask for subtask in SUBTASKS if subtask.name != "committee_case"}
DAYS = tuple(date(2024, month, 28) for month in range(1, 13))


class Case(NamedTuple):
    """A built case with the input that an agent sees, tables included."""

    task: BuiltTask
    fields: dict[str, Any]
    seed: int

    @property
    def structure(self) -> str:
        return str(self.task.certificate["structure"])

    @property
    def disclosure(self) -> str:
        return self.task.episode.task_id.rpartition("_")[2]

    def score(self, answer: JsonObject) -> float:
        scorer = KINDS[self.task.episode.sub_task].scorers[Profile.CERTIFIED]
        return scorer(answer, self.task.truth, self.fields).value


Program = Callable[[Case], JsonObject]


def build_cases(kind: str, seed: int, count: int) -> Iterator[Case]:
    """Yield the first cases of a kind as the suite builds them, in a market of invented names."""
    panels = SimpleNamespace(universe=(), sectors={}, month_ends=DAYS)
    context = BuildContext(cast(Any, panels), seed, synthetic=True, episodes=count)
    build = KINDS[kind].build
    assert build is not None
    for task in build(context, market(context)):
        tables = {name: EpisodeTable(frame) for name, frame in task.tables.items()}
        yield Case(task, {**task.episode.input, **tables}, seed)


def trivial(case: Case) -> JsonObject:
    naive = KINDS[case.task.episode.sub_task].baselines.trivial
    assert naive is not None
    return naive.answer(case.fields)


def recipe(name: str) -> Program:
    """Return the program that submits a registered answer without judgement."""

    def play(case: Case) -> JsonObject:
        exploits = KINDS[case.task.episode.sub_task].examples.exploits
        assert exploits is not None
        return exploits(case.fields)[name]

    return play


def _thirds(amounts: Floats) -> Any:
    return np.argsort(np.argsort(-amounts)) * 3 // len(amounts)


_fits: dict[tuple[str, int, int, agnostic_signals.Settings], list[agnostic_signals.Model]] = {}


def _fitted(
    case: Case, decision: int, panel: agnostic_signals.Panel, settings: agnostic_signals.Settings
) -> list[agnostic_signals.Model]:
    """Return the models of a panel; programs that differ in `trust` only share them."""
    key = (case.task.episode.task_id, case.seed, decision, replace(settings, trust=1.0))
    if key not in _fits:
        _fits[key] = agnostic_signals.fit_models(panel, settings)
    return _fits[key]


# Allocation

ALLOCATE = agnostic_signals.Settings(
    forms=("level", "change 1", "rank", "sign", "extremes", "older 1", "product", "if high"),
    places=("market", "industry", "block", "size"),
    sizes=(0.1, 0.2),
    change=0.1,
)


def allocation_panel(fields: Mapping[str, Any], book: AllocationBook) -> agnostic_signals.Panel:
    seen = read_visible(fields)
    vendors = np.unique(fields["sources"].frame["vendor"].to_numpy(), return_inverse=True)[1]
    industry = book.group_of
    return agnostic_signals.Panel(
        values=seen.scores,
        valid=np.arange(len(seen.scores))[:, None] >= seen.start,
        targets=seen.residuals / book.specific,
        unit=book.specific.mean() / book.specific,
        vendor=vendors,
        places={
            "market": np.zeros_like(industry),
            "industry": industry,
            "block": industry // 3,
            "size": _thirds(book.benchmark),
        },
        block=2,
    )


def allocate(settings: agnostic_signals.Settings) -> Program:
    """Return the program that optimises the book under averaged forecasts."""

    def play(case: Case) -> JsonObject:
        book = visible_book(case.fields)
        panel = allocation_panel(case.fields, book)
        found = agnostic_signals.predict(panel, _fitted(case, 0, panel, settings), settings)
        scale = book.specific
        return weights_answer(book, found.mean[0] * scale, found.doubt * np.outer(scale, scale))

    return play


def allocate_textbook(case: Case) -> JsonObject:
    """Take in each industry the source with the largest t-value of its level over all quarters, at its estimate."""
    book, seen = visible_book(case.fields), read_visible(case.fields)
    scores = np.nan_to_num(seen.scores) * (np.arange(len(seen.scores))[:, None, None] >= seen.start)
    scaled = (scores[:-1] / book.specific[:, None]).reshape(len(seen.residuals), GROUPS, GROUP_SIZE, -1)
    target = (seen.residuals / book.specific).reshape(*scaled.shape[:3], 1)
    x, y = (scaled**2).sum(axis=(0, 2)), (scaled * target).sum(axis=(0, 2))
    best = (np.abs(y) / np.sqrt(np.maximum(x, 1e-9))).argmax(axis=1)
    effects = [
        scores[-1].reshape(GROUPS, GROUP_SIZE, -1)[group][:, source] * y[group, source] / x[group, source]
        for group, source in enumerate(best.tolist())
    ]
    return weights_answer(book, np.concatenate(effects))


def weights_answer(book: AllocationBook, alpha: Floats, doubt: Floats | None = None) -> JsonObject:
    weights = optimum(book.problem(alpha, doubt), unique=False).weights
    return {"weights": dict(zip(book.tickers, weights.tolist(), strict=True))}


# Trading over time

TRADE = agnostic_signals.Settings(
    forms=("level", "older 3", "older 6", "change 4", "change 8", "difference", "product", "if high"),
    places=("market", "sector", "block", "size", "volatility"),
    sizes=(0.03, 0.07),
    change=0.05,
)
REFITS = (0, 4, 8)
"""Decisions at which models are weighed again; between them only signals are new."""
WEEKS_PER_BLOCK = 25


class Record:
    """History of signals (weeks, n, S) and standardised residuals (weeks, n) that grows with each decision."""

    def __init__(self, fields: Mapping[str, Any], setup: TradingSetup) -> None:
        self._setup = setup
        self.signals, self.residuals = self._read(fields["history"], fields["factor_returns"])
        self.since = np.array([fields["signals"][name]["since"] - 1 for name in SIGNALS])
        vendors = [fields["signals"][name]["vendor"] for name in SIGNALS]
        self.vendor = np.unique(vendors, return_inverse=True)[1]
        past = self.signals * (np.arange(len(self.signals))[:, None, None] >= self.since)
        lagged = (past[1:] * past[:-1]).sum(axis=(0, 1)) / (past[:-1] ** 2).sum(axis=(0, 1))
        self.decay = np.clip(lagged, 0.3, 0.995)

    def add(self, fields: Mapping[str, Any]) -> None:
        signals, residuals = self._read(fields["news"], fields["news_factors"])
        self.signals, self.residuals = (
            np.concatenate(pair) for pair in ((self.signals, signals), (self.residuals, residuals))
        )

    def _read(self, rows: EpisodeTable, factor_rows: EpisodeTable) -> tuple[Floats, Floats]:
        risk, n = self._setup.risk, len(self._setup.tickers)
        frame = rows.frame
        factors = factor_rows.frame.select(risk.factors).to_numpy()
        returns = frame["next_return"].to_numpy().reshape(-1, n) / RETURN_UNIT
        signals = frame.select(SIGNALS).to_numpy().reshape(-1, n, len(SIGNALS)) / SIGNAL_UNIT
        return signals, (returns - factors @ risk.exposures.T) / risk.specific

    def values(self, newest: Floats, weeks: int) -> Floats:
        """Return signals known, the newest, and autoregressive forecasts up to `weeks` weeks in all."""
        ahead = np.arange(weeks - len(self.signals))[:, None, None]
        return np.concatenate([self.signals, newest * self.decay**ahead])


def _traded(case: Case, forecast: Callable[[Record, Floats, int, int], Floats]) -> JsonObject:
    """Play a case; `forecast` returns standardised effects (weeks left, n), given record, signals, and decision.

    The setup restates memo and tables; another tariff enters from its day on only.
    """
    hidden = case.task.hidden or {}
    state, setup = open_state(cast(Any, case.fields), hidden), from_json(hidden["desk"])
    record = Record(case.fields, setup)
    last = len(record.signals) + DECISIONS
    for decision in range(DECISIONS):
        fields = {**case.fields, **state.fields}
        if decision:
            record.add(fields)
        newest = fields["current"].frame.select(SIGNALS).to_numpy() / SIGNAL_UNIT
        found = forecast(record, newest, decision, last)[-(DECISIONS - decision) :]
        policy, held = setup.policy(decision), fields["current"].frame["holding"].to_numpy()
        book = policy.best(decision, policy.aim(decision, found * setup.risk.specific), held)
        trades = dict(zip(setup.tickers, (book - held).tolist(), strict=True))
        state.call(ADVANCE.name, {"trades": trades})
    return {"decisions": DECISIONS, "record": state.record}


def trade(settings: agnostic_signals.Settings) -> Program:
    """Return the program that follows the optimal policy under averaged forecasts."""

    def play(case: Case) -> JsonObject:
        setup = from_json((case.task.hidden or {})["desk"])
        sector, zeros = setup.sector_of, np.zeros(len(setup.tickers), dtype=np.int64)
        size, volatility = _thirds(setup.book.benchmark), _thirds(setup.risk.specific)
        places = {"market": zeros, "sector": sector, "block": sector // 3, "size": size, "volatility": volatility}
        models: list[agnostic_signals.Model] = []

        def forecast(record: Record, newest: Floats, decision: int, last: int) -> Floats:
            nonlocal models
            values = record.values(newest, last)
            valid = np.arange(last)[:, None] >= record.since
            unit = np.ones(len(zeros))
            panel = agnostic_signals.Panel(
                values, valid, record.residuals, unit, record.vendor, places, WEEKS_PER_BLOCK
            )
            if decision in REFITS:
                models = _fitted(case, decision, panel, settings)
            return agnostic_signals.predict(panel, models, settings).mean

        return _traded(case, forecast)

    return play


def trade_textbook(case: Case) -> JsonObject:
    """Regress on all signals over the whole record, and keep estimates with |t| above 2."""

    def forecast(record: Record, newest: Floats, decision: int, last: int) -> Floats:
        del decision
        design = record.signals.reshape(-1, len(SIGNALS))
        inverse = np.linalg.inv(design.T @ design)
        estimates = inverse @ (design.T @ record.residuals.ravel())
        kept = estimates * (np.abs(estimates) > 2.0 * np.sqrt(np.diag(inverse)))
        return record.values(newest, last)[len(record.signals) :] @ kept

    return _traded(case, forecast)


FEWER = ("level", "change 1", "product")
PROGRAMS: Mapping[str, Mapping[str, Program]] = {
    "allocate": {
        "agnostic": allocate(ALLOCATE),
        "less search": allocate(replace(ALLOCATE, forms=FEWER, layers=1)),
        "stronger shrinkage": allocate(replace(ALLOCATE, trust=0.5)),
        "some shrinkage": allocate(replace(ALLOCATE, trust=0.75)),
        "shorter memory": allocate(replace(ALLOCATE, change=0.3)),
        "textbook": allocate_textbook,
        "recipe": recipe("weights of evidence"),
    },
    "trade_over_time": {
        "agnostic": trade(TRADE),
        "less search": trade(replace(TRADE, forms=("level", "change 4", "product"), layers=1)),
        "stronger shrinkage": trade(replace(TRADE, trust=0.5)),
        "some shrinkage": trade(replace(TRADE, trust=0.75)),
        "shorter memory": trade(replace(TRADE, change=0.2)),
        "textbook": trade_textbook,
        "recipe": recipe("weights of evidence"),
    },
    "forensic_screen": {
        "agnostic": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.USUAL),
        "less search": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.FEWER),
        "stronger shrinkage": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.TIMID),
        "some shrinkage": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.CAUTIOUS),
        "trusting labels": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.TRUSTING),
        "as archived": lambda case: agnostic_accounts.screen(case.fields, agnostic_accounts.AS_ARCHIVED),
        "textbook": lambda case: agnostic_accounts.textbook(case.fields),
        "recipe": recipe("mechanical use of the scripts"),
    },
}

"""The fundamental episodes of the synthetic collection: counts, balance, proofs, and the generator as third witness."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling import sampled, thorough
from tests.sources.synthetic.truth import Public, filers_of, published, true_segments

from finskillbench.domains import subtask_named
from finskillbench.domains.building import BuildContext, BuiltTask
from finskillbench.domains.checks.agreement import leaf_by_leaf
from finskillbench.domains.fundamental.objects.reports import prepare_fundamental
from finskillbench.domains.fundamental.rederive.answers import margins, normalised, quality
from finskillbench.edition import Edition
from finskillbench.engines.accounting import task as engine
from finskillbench.episode import Episode, Profile
from finskillbench.panels import read_panels
from finskillbench.panels.filings.query import FactStore
from finskillbench.sources.edgar.collection import load_filings

Json = dict[str, Any]
NORM, EQ, DD = "normalization", "earnings_quality", "driver_decomposition"
COUNTS = {NORM: 244, EQ: 1002, DD: 997}
FLOWS = [
    "revenue",
    "cost_of_revenue",
    "gross_profit",
    "operating_income",
    "net_income",
    "sga",
    "rnd",
    "depreciation_amortization",
    "interest_expense",
    "income_tax",
    "operating_cash_flow",
    "capex",
    "eps_diluted",
    "diluted_shares",
]
INSTANTS = [
    "total_assets",
    "total_liabilities",
    "stockholders_equity",
    "current_assets",
    "current_liabilities",
    "receivables",
    "inventory",
    "ppe_net",
    "long_term_debt",
]


class Built:
    """The synthetic edition's fundamental tasks and panels, the filings behind it, and the truth behind those."""

    def __init__(self, edition: Edition, raw: Path) -> None:
        self.pools = edition.manifest["parameters"]["fundamental_pools"]
        self.panels = read_panels(edition.path / "panels")
        self.filings = load_filings(raw)
        self.tasks: dict[str, list[BuiltTask]] = {}
        for name in COUNTS:
            proofs = edition.certificates(name)
            self.tasks[name] = [
                BuiltTask(episode, edition.truth(episode.task_id), proofs[episode.task_id])
                for episode in edition.episodes([name])
            ]
        self.store = FactStore(self.panels.facts, self.panels.filings, self.panels.segments)
        self.filers = filers_of(1)

    def payload(self, episode: Episode) -> Json:
        """The input with its facts, as scripts get it."""
        reference = episode.input["filing_facts"]
        as_of, since = date.fromisoformat(reference["as_of"]), date.fromisoformat(reference["since"])
        facts = self.store.visible(reference["symbol"], as_of, since)
        return {**episode.input, "filing_facts": facts}

    def known(self, symbol: str, end: date, as_of: date, quarters: int = 1) -> dict[str, Public]:
        """What the generator knows to have been public about the quarter, or the year, that ends on a day."""
        filer = self.filers[symbol]
        if end not in filer.ends:
            return {}
        start = filer.starts[filer.ends.index(end) - quarters + 1]
        found = {
            metric: published(filer, metric, None if metric in INSTANTS else start, end, as_of)
            for metric in FLOWS + INSTANTS
        }
        return {metric: public for metric, public in found.items() if public is not None}

    def compared(self, symbol: str, end: date, before: date, as_of: date) -> tuple[dict[str, float], dict[str, float]]:
        """The figures of two quarters, of the earlier one those under the tag of the later one."""
        now, then = (self.known(symbol, day, as_of) for day in (end, before))
        alike = {m: public for m, public in then.items() if m not in now or now[m].tag == public.tag}
        return values(now), values(alike)


def values(figures: dict[str, Public]) -> dict[str, float]:
    """The figures without their tags."""
    return {metric: public.value for metric, public in figures.items()}


def differences(first: Json, second: Json) -> list[str]:
    """Paths of the leaves that two answers do not agree on."""
    return [leaf.path for leaf in leaf_by_leaf(first, second) if not leaf.agrees]


@pytest.fixture(scope="session")
def built(synthetic_edition: Edition, synthetic_raw: Path) -> Built:
    return Built(synthetic_edition, synthetic_raw)


# --- the draw ----------------------------------------------------------------------------------------------------


def test_every_subtask_has_its_episodes(built: Built) -> None:
    assert {name: len(tasks) for name, tasks in built.tasks.items()} == COUNTS
    ids = [task.episode.task_id for tasks in built.tasks.values() for task in tasks]
    assert len(set(ids)) == len(ids)


def test_the_two_derivations_agree_on_all_labels(built: Built) -> None:
    assert built.pools.keys() == COUNTS.keys()
    for name, figures in built.pools.items():
        assert figures["agreement"] >= 0.999, name
        assert figures["drawn"] == COUNTS[name]


@pytest.mark.parametrize("name", COUNTS)
def test_symbols_forms_and_years_come_up_evenly(built: Built, name: str) -> None:
    episodes = [task.episode for task in built.tasks[name]]
    symbols = Counter(episode.input["symbol"] for episode in episodes)
    forms = Counter(episode.input["form_type"] for episode in episodes)
    years = Counter(episode.as_of_date.year for episode in episodes)
    assert len(symbols) == 30
    assert set(forms) == {"10-Q", "10-K"}
    if name == NORM:  # a fifth of the filings: the draw is free to be even
        assert max(symbols.values()) - min(symbols.values()) <= 2
        assert abs(forms["10-Q"] - forms["10-K"]) <= 60
        full = [count for year, count in years.items() if 2016 <= year <= 2024]
        assert max(full) - min(full) <= 8
    else:  # nearly every filing
        assert min(symbols.values()) >= 20
        assert forms["10-K"] >= 200


def test_a_prefix_is_as_mixed_as_the_whole(built: Built) -> None:
    for tasks in built.tasks.values():
        first = [task.episode for task in tasks[:100]]
        assert len({episode.input["symbol"] for episode in first}) >= 25
        assert {episode.input["form_type"] for episode in first} == {"10-Q", "10-K"}


def _without_canary(task: BuiltTask) -> Episode:
    """The episode as it was drawn: the canary is the edition's."""
    metadata = {name: value for name, value in task.episode.metadata.items() if name != "canary"}
    return replace(task.episode, metadata=metadata)


@thorough
def test_the_same_seed_asks_the_same(built: Built) -> None:
    """From the panels as stored, and without the subtasks that the edition was built from before."""
    build = subtask_named(NORM).build
    assert build is not None
    context = BuildContext(built.panels, 1, built.filings)
    again = build(context, prepare_fundamental(context))
    assert [_without_canary(task) for task in again] == [_without_canary(task) for task in built.tasks[NORM]]
    # Parameters and proof are written where the build gathers the tasks.
    stored = zip(built.tasks[NORM], again, strict=True)
    bare = [replace(task.truth, proof={}, verification=alone.truth.verification) for task, alone in stored]
    assert [task.truth for task in again] == bare


# --- labels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COUNTS)
def test_every_label_follows_from_the_input(built: Built, name: str) -> None:
    answer = {NORM: engine.normalization, EQ: engine.earnings_quality, DD: engine.driver_decomposition}[name]
    for task in built.tasks[name][:150]:
        found, expected = answer(built.payload(task.episode)), task.truth.expected_output
        assert {key: found[key] for key in expected} == expected, task.episode.task_id


def test_normalisation_is_what_the_generator_printed(built: Built) -> None:
    for task in built.tasks[NORM]:
        given = task.episode.input
        end = date.fromisoformat(given["period_end"])
        quarters = 4 if given["form_type"] == "10-K" else 1
        figures = values(built.known(given["symbol"], end, task.episode.as_of_date, quarters))
        assert differences(task.truth.expected_output, {"metrics": normalised(figures)}) == [], task.episode.task_id


def test_earnings_quality_is_that_of_the_true_statements(built: Built) -> None:
    for task in sampled(built.tasks[EQ], 5):
        symbol, as_of = task.episode.input["symbol"], task.episode.as_of_date
        end = date.fromisoformat(task.episode.input["period_end"])
        ends = built.filers[symbol].ends
        before = ends[ends.index(end) - 4]
        now, then = built.compared(symbol, end, before, as_of)
        if "diluted_shares" not in now:
            years = [built.known(symbol, day, as_of, 4)["diluted_shares"].value for day in (end, before)]
            now, then = (one | {"diluted_shares": year} for one, year in zip((now, then), years, strict=True))
        assert differences(task.truth.expected_output, quality(now, then).answer) == [], task.episode.task_id


def test_drivers_are_those_of_the_true_statements_and_segments(built: Built) -> None:
    for task in sampled(built.tasks[DD], 5):
        symbol, as_of = task.episode.input["symbol"], task.episode.as_of_date
        end, before = (date.fromisoformat(task.episode.input[f"{which}_period_end"]) for which in ("current", "prior"))
        filer = built.filers[symbol]
        assert filer.ends.index(end) - filer.ends.index(before) == 1
        now, then = built.compared(symbol, end, before, as_of)
        expected = task.truth.expected_output
        assert expected["revenue_delta"] == now["revenue"] - then["revenue"]
        moved = {row["driver"]: row["delta_pp"] for row in expected["margin_drivers"]}
        true = {name: change for name, change in margins(now, then).items() if abs(change) >= 0.005}
        if abs(true.get("gross_margin", 1.0) + true.get("cogs_ratio", 1.0)) < 0.005:
            del true["cogs_ratio"]
        assert moved == pytest.approx(true), task.episode.task_id
        for row in expected["top_revenue_drivers"]:
            start, first = (filer.starts[filer.ends.index(day)] for day in (end, before))
            this = true_segments(filer, row["type"], start, end, as_of)[row["driver"]]
            that = true_segments(filer, row["type"], first, before, as_of)[row["driver"]]
            assert row["magnitude_usd"] == pytest.approx(this - that, abs=0.5), task.episode.task_id


def test_proofs_tell_of_two_derivations(built: Built) -> None:
    for tasks in built.tasks.values():
        for task in tasks:
            proof = task.truth.proof
            assert proof["kind"] == task.certificate["kind"] == "rederived"
            assert 0 <= proof["difference"] <= proof["tolerance"]
            assert proof["numbers"] >= 3
            assert differences(task.truth.expected_output, task.certificate["second"]) == []


# --- what the agent sees -----------------------------------------------------------------------------------------


def test_no_figure_of_the_label_is_in_what_is_said(built: Built) -> None:
    for name, tasks in built.tasks.items():
        for task in tasks:
            episode, expected = task.episode, task.truth.expected_output
            said = f"{episode.prompt} {episode.input} {episode.metadata}"
            sizes = expected["metrics"] if name == NORM else expected
            for value in sizes.values():
                if isinstance(value, float) and abs(value) >= 1000:
                    assert f"{value:.0f}" not in said
            for row in expected.get("top_revenue_drivers", ()):
                assert row["driver"] not in said


def test_tasks_are_of_the_day_of_their_filing(built: Built) -> None:
    filed = {
        (symbol, end): day
        for symbol, end, day in built.panels.filings.sort("filed", descending=True)
        .select("symbol", "period_end", "filed")
        .iter_rows()
    }
    for tasks in built.tasks.values():
        for task in tasks:
            given = task.episode.input
            end = date.fromisoformat(given.get("period_end") or given["current_period_end"])
            assert task.episode.as_of_date == filed[given["symbol"], end]
            assert given["filing_facts"]["as_of"] == task.episode.as_of_date.isoformat()
            assert date.fromisoformat(given["filing_facts"]["since"]) == end - timedelta(days=800)


# --- constant answers --------------------------------------------------------------------------------------------


def _mean(tasks: list[BuiltTask], name: str, profile: Profile, answer: Json) -> float:
    scorer = subtask_named(name).scorers[profile]
    return float(np.mean([scorer(answer, task.truth, task.episode.input).value for task in tasks]))


def test_constant_answers_do_badly(built: Built) -> None:
    tasks = built.tasks[EQ]
    names = list(tasks[0].truth.expected_output["piotroski_components"])
    for signal in (0, 1):
        answer = {
            "piotroski_score": 9 * signal,
            "piotroski_components": dict.fromkeys(names, signal),
            "beneish_m_score": -2.5,
            "beneish_flag": False,
            "accruals_ratio": -0.01,
            "income_quality_ratio": 1.2,
            "flags": [],
        }
        assert _mean(tasks, EQ, Profile.CERTIFIED, answer) <= 0.05
    for name, built_tasks in built.tasks.items():
        example = built_tasks[0].truth.expected_output
        assert _mean(built_tasks[1:], name, Profile.CERTIFIED, dict(example)) <= 0.1
        assert _mean(built_tasks, name, Profile.CERTIFIED, {}) == 0.0


@pytest.mark.parametrize("name", COUNTS)
def test_the_truth_earns_exactly_one(built: Built, name: str) -> None:
    scorer = subtask_named(name).scorers[Profile.CERTIFIED]
    for task in built.tasks[name]:
        assert scorer(task.truth.expected_output, task.truth, task.episode.input).value == 1.0


# --- altered labels ----------------------------------------------------------------------------------------------


def _altered(value: Any, rng: np.random.Generator) -> Any:
    """A copy of a label of which one number, signal or null is another."""
    if isinstance(value, dict):
        key = rng.choice([key for key, item in value.items() if item != []])
        return value | {key: _altered(value[key], rng)}
    if isinstance(value, list):
        place = int(rng.integers(len(value)))
        return [*value[:place], _altered(value[place], rng), *value[place + 1 :]]
    if isinstance(value, str):
        return f"{value}-"
    if value is None:
        return 1.0
    return 1 - value if value in (0, 1) else 1.001 * value


def test_every_altered_label_is_named(built: Built) -> None:
    """A hundred labels, one leaf of each altered: the derivation that `data validate` repeats differs from all."""
    rng = np.random.default_rng(5)
    tasks = [task for tasks in built.tasks.values() for task in tasks]
    for place in rng.choice(len(tasks), 100, replace=False):
        task = tasks[int(place)]
        again = subtask_named(task.episode.sub_task).rederive(built.payload(task.episode))
        label = task.truth.expected_output
        assert differences(label, again) == [], task.episode.task_id
        assert differences(_altered(label, rng), again), task.episode.task_id

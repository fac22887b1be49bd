"""The primitives: their worked example, what they refuse, and that they measure what they say."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import numpy as np
import pytest
from desk_tests.trade_over_time.cases import case, full_input, script, through_json, world_of

from finskillbench.domains.tables import EpisodeTable
from finskillbench.errors import InputError
from finskillbench_desk.domain import SKILLS
from finskillbench_desk.engines.panel import least_squares, posterior
from finskillbench_desk.trade_over_time.optimum import TradingSetup
from finskillbench_desk.trade_over_time.posterior import all_weeks, history_sums
from finskillbench_desk.trade_over_time.subtask import Trading, trading_tables
from finskillbench_desk.trade_over_time.world import COPY, SIGNALS

REFERENCE = SKILLS[0] / "references" / "trading.md"


def example() -> dict[str, Any]:
    text = REFERENCE.read_text(encoding="utf-8").split("## A worked example")[1]
    return json.loads(text[text.index("    {") :])


def test_the_worked_example_gives_the_numbers_that_the_reference_states() -> None:
    text = REFERENCE.read_text(encoding="utf-8").split("## A worked example")[1]
    given, target = example(), script("decay_target.py")
    variants = [{}, {"half_lives": {"fast": 100, "slow": 100}}, {"signals_age": 2}, {"impact_clip": 1}]
    stated = [float(each) for each in re.findall(r"\b\d+\.\d\d\b", text.split("    {")[0]) if each != "0.05"]
    found = [amount for change in variants for amount in target({**given, **change})["step"].values()]
    assert found == [each for each in stated if each not in (0.02,)]


def payload(task_input: dict[str, Any], *fields: str, **given: Any) -> dict[str, Any]:
    return through_json({**{name: task_input[name] for name in fields}, **given})


def test_decay_and_copies_are_measured_on_a_case() -> None:
    world = world_of("medium", 6)
    tables = trading_tables(world, TradingSetup.of(world), date(2018, 1, 1))
    given = {
        "history": EpisodeTable(tables["history"]),
        "signals": list(SIGNALS),
        "signal_unit": 100,
        "return_unit": 100_000,
    }
    measured = script("signal_decay.py")(through_json(given))["signals"]
    live = world.signals.live_from == 0
    for place, name in enumerate(SIGNALS):
        shown = measured[name]["autocorrelation"]
        assert shown == pytest.approx(world.signals.decay[place], abs=0.02)
        assert measured[name]["deviation"] == pytest.approx(1, abs=0.15)
        original = world.signals.copied[place]
        if original >= 0 and live[place] and live[original]:
            assert measured[name]["resembles"]["signal"] == SIGNALS[original]
            assert measured[name]["resembles"]["correlation"] == pytest.approx(COPY, abs=0.05)


@pytest.mark.slow
def test_the_worth_is_that_of_the_engine() -> None:
    task = case("easy", 0)
    given = full_input(task)
    call = payload(given, "history", "signals", "names", "factors", signal_unit=100, return_unit=100_000)
    worth = script("signal_worth.py")
    plain = worth({**call, "method": "least_squares"})
    ridge = worth({**call, "method": "ridge", "prior_deviation": 0.01, "prior_shape": dict.fromkeys(SIGNALS, 0.5)})
    shape = {**dict.fromkeys(SIGNALS, 1), "s01": 0}
    off = worth({**call, "method": "ridge", "prior_deviation": 0.01, "prior_shape": shape})
    assert off["coefficient"]["s01"] == 0
    assert all(abs(ridge["coefficient"][name]) < 1 for name in SIGNALS)
    t_before = np.abs(np.array(list(plain["coefficient"].values())) / np.array(list(plain["standard_error"].values())))
    shrunk = np.array(list(ridge["coefficient"].values())) / np.array(list(plain["coefficient"].values()))
    assert (shrunk[t_before > 3] < 1).all()
    world = world_of("easy", 0)
    tables = trading_tables(world, TradingSetup.of(world), date(2018, 1, 1))
    again = worth(
        through_json(
            {
                "history": EpisodeTable(tables["history"]),
                "names": EpisodeTable(tables["names"]),
                "signals": list(SIGNALS),
                "factors": dict(zip(world.risk.factors, world.risk.volatility.tolist(), strict=True)),
                "signal_unit": 100,
                "return_unit": 100_000,
                "method": "ridge",
                "prior_deviation": 0.02,
                "from_week": {
                    name: int(first) + 1 for name, first in zip(SIGNALS, world.signals.live_from, strict=True) if first
                },
            }
        )
    )
    of = all_weeks(history_sums(world))
    errors = np.sqrt(np.diag(least_squares(of)[1]))
    np.testing.assert_allclose(list(again["standard_error"].values()), errors, atol=1e-9)
    np.testing.assert_allclose(list(again["coefficient"].values()), posterior(of, np.full(30, 4e-4))[0], atol=1e-9)
    assert again["log_evidence"] == pytest.approx(posterior(of, np.full(30, 4e-4))[1], abs=1e-6)


def test_rows_of_news_are_added_to_the_history() -> None:
    task = case("easy", 0)
    given = full_input(task)
    frame = given["history"].frame
    cut = frame["week"] <= 300
    call = payload(given, "signals", "names", "factors", signal_unit=100, return_unit=100_000, method="least_squares")
    parts = through_json({"history": EpisodeTable(frame.filter(cut)), "news": EpisodeTable(frame.filter(~cut))})
    worth = script("signal_worth.py")
    whole = worth({**call, **through_json({"history": EpisodeTable(frame)})})["coefficient"]
    assert worth({**call, **parts})["coefficient"] == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"limit_from": ...}, "limit_from must be given"),
        ({"signals_age": None}, "signals_age must be given"),
        ({"capital": [100.0]}, "for every date left"),
        ({"half_lives": {"fast": 0, "slow": 1}}, "positive"),
        ({"half_lives": {"fast": 1, "slow": None}}, "slow must be a number"),
        ({"factors": {"oil": 0.1}}, "neither a column of names nor a sector"),
        ({"current": {"ticker": ["Y", "X"]}}, "same names in the same order"),
        ({"impact_clip": 0}, "impact_clip must be"),
        ({"decay": 0.5}, "decay_target: unknown decay; known are names"),
        ({"coefficient": {"fast": 0.05, "slow": 0.05, "other": 0}}, "coefficient: unknown other; known are fast, slow"),
        ({"coefficient": [0.05, 0.05]}, "coefficient must be an object"),
        ({"half_lives": [1, 16]}, "half_lives must be an object"),
        ({"aversion": 0.02}, "aversion must list"),
        ({"aversion": [0.02] * 5 + ["x"]}, "aversion must be a number"),
        ({"signals_age": -1}, "signals_age must be 0 or more"),
        ({"limit_from": 0}, "limit_from must be a whole number"),
        ({"limit_from": "now"}, "limit_from must be a number"),
        ({"signal_unit": 0}, "signal_unit must be positive"),
    ],
)
def test_what_decides_is_never_assumed(change: dict[str, Any], words: str) -> None:
    given = {**example(), **change}
    given = {name: value for name, value in given.items() if value is not ...}
    with pytest.raises(InputError, match=words):
        script("decay_target.py")(given)


def test_the_reference_lists_every_key_and_no_other() -> None:
    text = REFERENCE.read_text(encoding="utf-8").split("## What each script takes")[1].split("\n## ")[0]
    listed: dict[str, set[str]] = {}
    scripts: list[str] = []
    for row in text.splitlines():
        if row.startswith("| ") and "Script" not in row:
            owner, keys = row.split(" | ")[:2]
            named = re.findall(r"`(\w+)`", owner) or ["signal_decay", "signal_worth", "decay_target"] * ("all" in owner)
            scripts = named or scripts
            for name in scripts:
                listed.setdefault(name, set()).update(re.findall(r"`(\w+)`", keys))
    for name, keys in listed.items():
        with pytest.raises(InputError) as refused:
            script(f"{name}.py")({"nobody": 1})
        assert set(str(refused.value).partition("known are ")[2].split(", ")) == keys, name
    assert len(listed) == 3


def small_panel(**given: Any) -> dict[str, Any]:
    table = {"week": [1, 1, 2, 2], "ticker": ["X", "Y"] * 2, "fast": [1, 2, 3, 5], "next_return": [4, 3, 2, 9]}
    return {"history": table, "signals": ["fast"], "signal_unit": 1, "return_unit": 100, **given}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"window": 3}, "signal_decay: unknown window; known are history, signals,"),
        ({"spans": 0}, "spans must be a whole number from 1 to 2"),
        ({"spans": 1.5}, "spans must be a whole number"),
        ({"spans": [1, 2]}, "spans must be a number"),
        ({"news": [1, 2]}, "news must be an object"),
        ({"return_unit": -1}, "return_unit must be positive"),
    ],
)
def test_signal_decay_refuses_what_it_does_not_know(change: dict[str, Any], words: str) -> None:
    assert script("signal_decay.py")(small_panel())["used"] == {"weeks": 2, "names": 2}
    with pytest.raises(InputError, match=words):
        script("signal_decay.py")(small_panel(**change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prior": 0.02}, "signal_worth: unknown prior; known are history, signals,"),
        ({"prior_shape": [1]}, "prior_shape must be an object"),
        ({"prior_shape": {"fast": 1, "slow": 1}}, "prior_shape: unknown slow; known are fast"),
        ({"prior_shape": {"fast": -1}}, "prior_shape: a number is 0"),
        ({"prior_deviation": 0}, "prior_deviation must be positive"),
        ({"from_week": 2}, "from_week must be an object"),
        ({"from_week": {"slow": 2}}, "from_week: unknown slow; known are fast"),
        ({"method": "group_variance", "groups": {"fast": "A", "slow": "A"}}, "groups: unknown slow; known are fast"),
    ],
)
def test_signal_worth_refuses_what_it_does_not_know(change: dict[str, Any], words: str) -> None:
    names = {"ticker": ["X", "Y"], "specific_volatility": [0.03, 0.04]}
    call = small_panel(names=names, factors={}, method="ridge", prior_deviation=0.02)
    assert list(script("signal_worth.py")(call)["coefficient"]) == ["fast"]
    with pytest.raises(InputError, match=words):
        script("signal_worth.py")({**call, **change})


def test_no_script_returns_an_answer() -> None:
    result = script("decay_target.py")(example())
    assert not set(result) & {*Trading.model_fields, "trades", "record"}

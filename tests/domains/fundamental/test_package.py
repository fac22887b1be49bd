"""The fundamental-analysis package: its documents, and its scripts against the definitions in plain Python."""

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.domains.package import Mend, Package, set_at

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.engines.accounting.quality import BENEISH_COEFFICIENTS, COMPONENTS, FLAGS
from finskillbench.episode import JsonObject
from finskillbench.harness.conditions import Condition, mount
from finskillbench.harness.model import ToolCall
from finskillbench.harness.skills.lint import lint
from finskillbench.harness.skills.loader import curated, load_package, placebo
from finskillbench.harness.tools.contracts import tool_specs
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices
from finskillbench.sandbox.runner import ScriptRunner
from finskillbench.sources.edgar.numerals import CANONICAL, CANONICAL_TAGS

PACKAGE = Package("fundamental-analysis")
ROOT, run, recipe_of, refusal = PACKAGE.root, PACKAGE.run, PACKAGE.recipe_of, PACKAGE.refusal
SUB_TASKS = ("normalization", "earnings_quality", "driver_decomposition")
YEAR_AGO, BEFORE, NOW = "2023-03-31", "2023-12-31", "2024-03-31"
STARTS = {YEAR_AGO: "2023-01-01", BEFORE: "2023-10-01", NOW: "2024-01-01"}
FLOWS: dict[str, tuple[float, float, float]] = {
    "revenue": (900e6, 1_000e6, 1_100e6),
    "cost_of_revenue": (500e6, 560e6, 640e6),
    "gross_profit": (400e6, 440e6, 460e6),
    "operating_income": (120e6, 150e6, 140e6),
    "net_income": (80e6, 100e6, 90e6),
    "sga": (150e6, 160e6, 190e6),
    "rnd": (60e6, 62e6, 61e6),
    "depreciation_amortization": (40e6, 42e6, 44e6),
    "interest_expense": (8e6, 8e6, 9e6),
    "income_tax": (25e6, 30e6, 27e6),
    "operating_cash_flow": (95e6, 130e6, 70e6),
    "eps_diluted": (0.80, 0.99, 0.90),
    "diluted_shares": (100e6, 101e6, 100e6),
}
INSTANTS: dict[str, tuple[float, float, float]] = {
    "total_assets": (5_000e6, 5_200e6, 5_400e6),
    "total_liabilities": (3_000e6, 3_100e6, 3_300e6),
    "stockholders_equity": (2_000e6, 2_100e6, 2_100e6),
    "current_assets": (1_500e6, 1_600e6, 1_800e6),
    "current_liabilities": (900e6, 950e6, 1_200e6),
    "receivables": (450e6, 520e6, 640e6),
    "ppe_net": (2_100e6, 2_150e6, 2_200e6),
    "long_term_debt": (1_200e6, 1_210e6, 1_250e6),
}
"""Metric to its values of the quarters that end on YEAR_AGO, BEFORE and NOW."""
ENDS = (YEAR_AGO, BEFORE, NOW)
REGIONS = {"Americas": (600e6, 690e6), "Europe": (300e6, 290e6), "Asia": (100e6, 120e6)}


def row(metric: str, start: str | None, end: str, value: float, **changes: Any) -> JsonObject:
    """A fact as episodes hold it."""
    return {
        "metric": metric,
        "start": start,
        "end": end,
        "duration": "instant" if start is None else "quarterly",
        "value": value,
        "unit": "USD",
        "form": "10-Q",
        "filed": "2024-05-01",
        "accession": "0000000001-24-000007",
        "tag": "",
        "derived": False,
        **changes,
    }


def quarters() -> JsonObject:
    """The resolved input of all three subtasks: three quarters, and what must be told apart from them."""
    facts = [
        row(metric, STARTS[end], end, value)
        for metric, values in FLOWS.items()
        for end, value in zip(ENDS, values, strict=True)
    ]
    facts += [
        row(metric, None, end, value)
        for metric, values in INSTANTS.items()
        for end, value in zip(ENDS, values, strict=True)
    ]
    facts += [
        row("operating_cash_flow", "2023-10-01", NOW, 200e6, duration="half"),
        row("revenue", "2023-04-01", NOW, 4_100e6, duration="annual"),
        row("net_income", STARTS[NOW], NOW, 95e6, filed="2024-04-20", accession="0000000001-24-000003"),
    ]
    segments = [
        {
            "axis": "geographic_segment",
            "segment": name,
            "start": STARTS[end],
            "end": end,
            "duration": "quarterly",
            "value": value,
            "form": "10-Q",
            "filed": "2024-05-01",
            "accession": "0000000001-24-000007",
            "derived": False,
        }
        for name, values in REGIONS.items()
        for end, value in zip((BEFORE, NOW), values, strict=True)
    ]
    return {
        "symbol": "FIR",
        "period_end": NOW,
        "form_type": "10-Q",
        "current_period_end": NOW,
        "prior_period_end": BEFORE,
        "filing_facts": {"facts": facts, "segments": segments},
        "conventions": {},
    }


@pytest.fixture
def task() -> JsonObject:
    return quarters()


def at(end: str) -> dict[str, float]:
    """The figures of one quarter."""
    return {metric: values[ENDS.index(end)] for metric, values in (FLOWS | INSTANTS).items()}


def test_the_package_is_clean() -> None:
    assert lint(ROOT) == []


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_table_names_a_script_and_the_answers_keys(sub_task: str) -> None:
    recipe = recipe_of(sub_task)
    assert recipe.script in load_package(ROOT).scripts
    assert recipe.keys == tuple(subtask_named(sub_task).answer.model_fields)


def test_the_documents_say_what_the_engines_do() -> None:
    methods = load_package(ROOT).references["references/methods.md"]
    coefficients = dict(re.findall(r"^\| ([A-Z]+) \|.*\| (-?[\d.]+) \|$", methods, re.MULTILINE))
    assert {name: float(value) for name, value in coefficients.items()} == dict(BENEISH_COEFFICIENTS)
    assert tuple(re.findall(r"^\| (\w+) \|", methods, re.MULTILINE))[1:10] == COMPONENTS
    assert all(f"| {flag} |" in methods for flag in FLAGS)


def test_the_metrics_and_tags_of_the_documents_are_those_of_the_panel() -> None:
    table = load_package(ROOT).references["references/xbrl.md"].split("## What filers do")[0]
    rows = re.findall(r"^\| ([a-z_, ]+) \| ([A-Z].*) \|$", table, re.MULTILINE)
    assert len(rows) == 12
    assert {name for names, _ in rows for name in names.split(", ")} <= set(CANONICAL)
    tags = {tag for _, cell in rows for tag in re.findall(r"\b[A-Z][a-z]+(?:[A-Z][A-Za-z]+)+", cell)}
    assert tags - CANONICAL_TAGS == {"LiabilitiesAndStockholdersEquity"}


def test_normalization_matches_figures_to_the_quarter_and_the_latest_filing(task: JsonObject) -> None:
    now = at(NOW)
    metrics = run("normalization", task)["metrics"]
    assert metrics == {
        **{name: now[name] for name in list(metrics)[:8]},
        "operating_margin": round(140 / 1100, 10),
        "ebitda": 184e6,
    }
    assert (metrics["net_income"], metrics["operating_cash_flow"]) == (90e6, 70e6)


def test_earnings_quality_is_that_of_the_definitions(task: JsonObject) -> None:
    answer = run("earnings_quality", task)
    t, p = at(NOW), at(YEAR_AGO)
    signals = {
        "roa_positive": t["net_income"] > 0,
        "cfo_positive": t["operating_cash_flow"] > 0,
        "delta_roa_positive": t["net_income"] / t["total_assets"] > p["net_income"] / p["total_assets"],
        "accruals_negative": t["operating_cash_flow"] > t["net_income"],
        "delta_leverage_negative": t["long_term_debt"] / t["total_assets"] < p["long_term_debt"] / p["total_assets"],
        "delta_current_ratio_positive": t["current_assets"] / t["current_liabilities"]
        > p["current_assets"] / p["current_liabilities"],
        "no_dilution": t["diluted_shares"] <= p["diluted_shares"],
        "delta_gross_margin_positive": t["gross_profit"] / t["revenue"] > p["gross_profit"] / p["revenue"],
        "delta_asset_turnover_positive": t["revenue"] / t["total_assets"] > p["revenue"] / p["total_assets"],
    }
    assert answer["piotroski_components"] == {name: int(value) for name, value in signals.items()}
    assert answer["piotroski_score"] == sum(signals.values())
    m_score = (
        -4.84
        + 0.92 * (t["receivables"] / t["revenue"]) / (p["receivables"] / p["revenue"])
        + 0.528 * (p["gross_profit"] / p["revenue"]) / (t["gross_profit"] / t["revenue"])
        + 0.404
        * (1 - (t["current_assets"] + t["ppe_net"]) / t["total_assets"])
        / (1 - (p["current_assets"] + p["ppe_net"]) / p["total_assets"])
        + 0.892 * t["revenue"] / p["revenue"]
        + 0.115 * (40 / (40 + 2100)) / (44 / (44 + 2200))
        - 0.172 * (t["sga"] / t["revenue"]) / (p["sga"] / p["revenue"])
        + 4.679 * (t["net_income"] - t["operating_cash_flow"]) / t["total_assets"]
        - 0.327
        * ((t["long_term_debt"] + t["current_liabilities"]) / t["total_assets"])
        / ((p["long_term_debt"] + p["current_liabilities"]) / p["total_assets"])
    )
    assert answer["beneish_m_score"] == pytest.approx(m_score, abs=1e-10)
    assert answer["beneish_flag"] is (m_score > -1.78)
    assert answer["accruals_ratio"] == pytest.approx(20 / 5400)
    assert answer["income_quality_ratio"] == pytest.approx(70 / 90)
    assert answer["flags"] == []


def test_flags_are_raised_by_the_figures(task: JsonObject) -> None:
    changes = {
        "operating_cash_flow": -300e6,
        "net_income": 79e6,
        "receivables": 1_500e6,
        "long_term_debt": 1_500e6,
        "diluted_shares": 102e6,
    }
    for fact in task["filing_facts"]["facts"]:
        if fact["end"] == NOW and fact["duration"] != "half":
            fact["value"] = changes.get(fact["metric"], fact["value"])
    answer = run("earnings_quality", task)
    assert answer["piotroski_score"] == 2
    assert answer["flags"] == list(FLAGS)


def test_drivers_are_those_of_the_definitions(task: JsonObject) -> None:
    answer = run("driver_decomposition", task)
    assert (answer["revenue_delta"], answer["axis"]) == (100e6, "geographic_segment")
    given = [
        (item["driver"], item["type"], item["direction"], item["magnitude_usd"], item["contribution_pct"])
        for item in answer["top_revenue_drivers"]
    ]
    assert given == [
        ("Americas", "geographic_segment", "increase", 90e6, 90.0),
        ("Asia", "geographic_segment", "increase", 20e6, 20.0),
        ("Europe", "geographic_segment", "decrease", -10e6, -10.0),
    ]
    names = {
        "operating_margin": "operating_income",
        "gross_margin": "gross_profit",
        "sga_ratio": "sga",
        "rnd_ratio": "rnd",
        "da_ratio": "depreciation_amortization",
        "interest_ratio": "interest_expense",
        "tax_ratio": "income_tax",
    }
    t, p = at(NOW), at(BEFORE)
    change = {name: 100 * (t[metric] / t["revenue"] - p[metric] / p["revenue"]) for name, metric in names.items()}
    moved = {name: value for name, value in change.items() if abs(value) >= 0.005}
    assert {item["driver"]: item["delta_pp"] for item in answer["margin_drivers"]} == pytest.approx(moved, abs=1e-10)
    assert all((item["delta_pp"] > 0) == (item["direction"] == "increase") for item in answer["margin_drivers"])


@pytest.mark.parametrize("sub_task", SUB_TASKS)
def test_the_order_of_rows_changes_nothing(sub_task: str, task: JsonObject) -> None:
    before = run(sub_task, task)
    for rows in task["filing_facts"].values():
        rows.reverse()
    assert run(sub_task, task) == before


def test_what_is_not_filed_is_null_and_not_nought(task: JsonObject) -> None:
    task["filing_facts"]["facts"] = [
        fact for fact in task["filing_facts"]["facts"] if fact["metric"] not in {"gross_profit", "total_liabilities"}
    ]
    assert run("normalization", task)["metrics"]["total_liabilities"] is None
    quality = run("earnings_quality", task)
    assert quality["piotroski_components"]["delta_gross_margin_positive"] is None
    assert (quality["piotroski_score"], quality["beneish_m_score"], quality["beneish_flag"]) == (None, None, None)
    assert "gross_margin" not in {item["driver"] for item in run("driver_decomposition", task)["margin_drivers"]}


def on_a_saturday(task: JsonObject) -> None:
    """No period ends there."""
    task |= {"period_end": "2024-03-30", "current_period_end": "2024-03-30"}


@pytest.mark.parametrize("sub_task", SUB_TASKS)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_at("filing_facts", value=None), "filing_facts"),
        (set_at("filing_facts", value={"symbol": "FIR"}), "filing_facts.facts"),
        (set_at("filing_facts", "facts", value=[]), "FIR"),
        (set_at("filing_facts", "facts", 0, "value", value="much"), "row 0"),
        (set_at("filing_facts", "facts", 0, "end", value="March"), "March"),
        (set_at("filing_facts", "facts", 0, "start", value="2025-01-01"), "after"),
        (set_at("symbol", value=7), "symbol"),
        (on_a_saturday, "2024-03-31"),
    ],
)
def test_a_bad_task_is_one_line_and_code_2(
    sub_task: str, change: Mend, named: str, task: JsonObject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(task)
    assert named in refusal(sub_task, task, tmp_path, capsys)


def test_a_script_runs_from_the_command_line(task: JsonObject, tmp_path: Path) -> None:
    file = tmp_path / "in.json"
    file.write_text(json.dumps(PACKAGE.payload_of("earnings_quality", task)))
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "earnings_quality.py", "--input", file], capture_output=True, check=True
    )
    assert json.loads(done.stdout) == run("earnings_quality", task)


def test_the_scripts_start_no_threads_of_tables() -> None:
    code = "import finskillbench.engines.accounting.task, sys; raise SystemExit('polars' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_script_lists_the_metrics_of_an_episode(edition: Edition, warm: ScriptRunner) -> None:
    """Through the tool, which injects them: each is what the edition holds of it, and a wrong name is an error."""
    episode = edition.episodes(["normalization"])[0]
    held = edition.full_input(episode)
    mounted = mount(Condition.CURATED, curated(), placebo())
    box = Toolbox(episode, lambda: held, mounted, ToolServices(runner=warm, filings=edition.filings))

    def call(tool: str, **arguments: Any) -> JsonObject:
        offered = tool_specs(mounted, episode.skill)
        answered, _ = asyncio.run(box.call(ToolCall("1", tool, json.dumps(arguments)), offered))
        return json.loads(answered)

    def derived(**filters: Any) -> JsonObject:
        script = {"script_path": "scripts/derive_metrics.py", "inject_task_fields": ["symbol", "filing_facts"]}
        return call("run_skill_script", **script, input_data=filters)

    call("load_skill", skill_name=PACKAGE.name)
    end = episode.input["period_end"]
    rows = derived(metrics=["net_income", "total_assets"], period_end=end)["output"]["metrics"]
    assert {row["metric"] for row in rows} == {"net_income", "total_assets"}
    given = {(row["metric"], row["duration"], row["end"]): row for row in held["filing_facts"]["facts"]}
    assert all(row == given[row["metric"], row["duration"], end] for row in rows)
    assert "has no net_incme; it has " in derived(metrics=["net_incme"])["error"]

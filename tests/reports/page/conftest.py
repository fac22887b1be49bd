"""A run of an agent that tries to break out of every text it can leave in a page, and the pages of some runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import orjson
import polars as pl
import pytest
from tests.editions import write_edition
from tests.rows import synthetic_rows
from tests.sampling import THOROUGH
from tests.scoring.examples import truth

from finskillbench import load_edition, run
from finskillbench.analysis import results
from finskillbench.analysis.results import collect
from finskillbench.domains import domain_of, domains
from finskillbench.episode import Episode, Prompt
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.reports.figures.forest import Figure
from finskillbench.reports.page import WrittenPage, write_page
from finskillbench.reports.read import RunRows, read_run_rows

EVIL = '</script><script>window.broken=1</script><img src=x onerror="window.broken=2">\u202egnp.exe\u0007&amp;{{7*7}}'
SECRET = "PLANTED-TRUTH"
"""Stands in the truth of every episode and nowhere else."""


class Hostile:
    """Says and submits markup, and is called so as well."""

    name = "evil/<img src=x onerror=alert(1)>\u202e'\"&{{7*7}}"

    async def generate(self, messages, tools, tool_choice):
        if len(messages) < 4:
            return Turn(text=EVIL, tool_calls=(ToolCall("1", "get_task_data", '{"field": "<b><b onclick=x>"}'),))
        answer = orjson.dumps({"answer": orjson.dumps({"<svg onload=alert(1)>": EVIL}).decode()}).decode()
        return Turn(text=EVIL, tool_calls=(ToolCall("2", "submit_answer", answer),))


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> RunRows:
    """Three episodes under two conditions, played by `Hostile` and by a program."""
    folder = tmp_path_factory.mktemp("hostile")
    prompt, day = Prompt(f"Do it. {EVIL}", "Answer as JSON."), date(2025, 1, 31)
    tasks = []
    for name in ("tool_use_parameterization", "rebalancing", "normalization"):
        known, task_id = truth(name), f"{name}_1"
        label = replace(known, task_id=task_id, expected_output={"a": SECRET, **known.expected_output})
        tasks.append((Episode(task_id, domain_of(name).name, name, day, "easy", {}, prompt), label))
    edition = load_edition(write_edition(folder / "edition", tasks))
    run(edition, [Hostile(), "baseline/nop"], ["no_skill", "curated"], out=folder / "run")
    return read_run_rows(folder / "run")


@pytest.fixture(scope="session")
def hostile_page(hostile_run: RunRows, tmp_path_factory: pytest.TempPathFactory) -> WrittenPage:
    """The page of the hostile run, with a cause of failure that is hostile too."""
    results = collect(hostile_run.rows)
    causes = hostile_run.rows.select("model", "arguments", "condition", "task_id", "run_idx", cause=pl.lit(EVIL)).head(
        2
    )
    return write_page(results, tmp_path_factory.mktemp("page") / "hostile", [hostile_run], causes=causes)


@pytest.fixture(scope="session")
def whole_rows() -> pl.DataFrame:
    """Rows of nine models under three conditions: 17,820 in a thorough run, of eight episodes of each subtask else."""
    return synthetic_rows(episodes=None if THOROUGH else 8)


@pytest.fixture(scope="session")
def whole_page(whole_rows: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> WrittenPage:
    """The page of these rows; to draw its figures as PNG takes most of the time, so an ordinary run has stand-ins."""
    with pytest.MonkeyPatch.context() as patch:
        if not THOROUGH:
            patch.setattr(Figure, "png", lambda _: b"\x89PNG")
        return write_page(collect(whole_rows), tmp_path_factory.mktemp("page") / "whole")


SECOND = "risk_management"
"""Stands for a suite of another distribution."""
PROGRAMS = {"provider/model-1": "baseline/reference", "provider/model-2": "baseline/trivial"}


@pytest.fixture(scope="session")
def pages(whole_page: WrittenPage, tmp_path_factory: pytest.TempPathFactory) -> dict[str, WrittenPage]:
    """Pages of nine models, of programs alone, of one model, of a second suite, and of both suites."""
    programs = synthetic_rows(2, episodes=4).with_columns(
        model=pl.col("model").replace(PROGRAMS), status=pl.lit("scored"), incidents=pl.lit([], pl.List(pl.String))
    )
    one = synthetic_rows(2, ("no_skill", "curated"), episodes=8).filter(pl.col("model") == "provider/model-1")
    rows = {"programs": programs, "one": one}
    both = synthetic_rows(3, episodes=8)
    suites = {"second": both.filter(pl.col("domain") == SECOND), "both": both}
    registered = [replace(domain, suite="second") if domain.name == SECOND else domain for domain in domains()]
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "png", lambda _: b"\x89PNG")
        made = {name: write_page(collect(each), folder / name) for name, each in rows.items()}
        patch.setattr(results, "domains", lambda: registered)
        made |= {name: write_page(collect(each), folder / name) for name, each in suites.items()}
    return {"nine": whole_page, **made}


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is rendered as PNG, which takes most of the time of a page."""
    monkeypatch.setattr(Figure, "png", lambda _: b"")

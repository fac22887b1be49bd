"""What a page holds, and what it must not."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.reports.page.conftest import EVIL, PROGRAMS, SECRET
from tests.rows import synthetic_rows
from tests.sampling import THOROUGH, thorough

from finskillbench.analysis.results import collect
from finskillbench.errors import InputError
from finskillbench.reports.page import WrittenPage, write_page
from finskillbench.reports.page.headline import headline_of
from finskillbench.reports.page.sections.outcomes import outcome_figures
from finskillbench.reports.page.sections.spending import budget_figures, spending_figures
from finskillbench.reports.page.view import choose, view_of, views_of
from finskillbench.reports.read import RunRows

ELEMENTS = (
    "a body button caption circle code dd desc details div dl dt fieldset figure footer form g h1 h2 h3 head header "
    "html input label legend li line main meta nav noscript option p path pre rect script section select small span "
    "strong style summary svg table tbody td text th thead title tr ul"
)
"""The elements that our templates and drawings write; `b` and `img` are not among them."""


class Elements(HTMLParser):
    """Elements of a page and their attributes, as a browser would find them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}


def texts(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png")
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.mark.slow
def test_hostile_texts_are_texts(hostile_page: WrittenPage) -> None:
    files = texts(hostile_page.index.parent)
    assert len(files) > 15
    for name, text in files.items():
        found = Elements(text)
        assert found.names <= set(ELEMENTS.split()), name
        for attribute, value in found.attributes:
            assert not attribute.startswith("on"), name
            assert attribute != "style", name  # the policy would not let it through
            if attribute in ("href", "src"):
                assert re.match(r"#|figures/\w|\.\./index\.html$", value), (name, value)
        assert "\u202e" not in text, name
        assert "\u0007" not in text, name
    told = "".join(text for name, text in files.items() if name.startswith("episodes/"))
    for said in (
        "&lt;/script&gt;",
        "&lt;svg onload=alert(1)&gt;",
        "&lt;b&gt;&lt;b onclick=x&gt;",
        "&lt;img src=x onerror",
    ):
        assert said in told, said
    data = files["index.html"].partition('id="data">')[2].partition("</script>")[0]
    assert len(data) > 1_000
    assert not set("<>&") & set(data)
    (cause,) = filter(None, data_of(files["index.html"])["names"]["cause"])
    assert cause == EVIL.replace("\u202e", "\\x202e").replace("\u0007", "\\x07")
    assert "&lt;/script&gt;&lt;script&gt;window.broken=1" in files["index.html"]
    assert "{{7*7}}" in files["index.html"]


def test_a_page_lets_nothing_run_or_be_fetched_but_its_own(hostile_page: WrittenPage) -> None:
    for name, text in texts(hostile_page.index.parent).items():
        if not name.endswith(".html"):
            continue
        found = dict(Elements(text).attributes)
        policies = [value for attribute, value in Elements(text).attributes if value.startswith("default-src 'none';")]
        assert len(policies) == 1, found
        assert "unsafe" not in policies[0]
        assert "://" not in text


@pytest.mark.usefixtures("no_pictures")
def test_what_was_expected_is_in_the_page_and_not_without_truth(
    hostile_run: RunRows, hostile_page: WrittenPage, tmp_path: Path
) -> None:
    folder = hostile_page.index.parent
    assert "do not publish" in (folder / "index.html").read_text()
    assert sum(SECRET in text for text in texts(folder).values()) == hostile_page.episodes == 12
    without = write_page(collect(hostile_run.rows), tmp_path / "page", [hostile_run], truth=False)
    assert without.episodes == 12
    for name, text in texts(tmp_path / "page").items():
        assert SECRET not in text, name
        assert "do not publish" not in text, name


@pytest.mark.slow
def test_every_row_of_a_whole_run_is_in_five_megabytes(whole_rows: pl.DataFrame, whole_page: WrittenPage) -> None:
    rows, page = whole_rows, whole_page.index.read_bytes()
    if THOROUGH:  # what is beside the rows weighs little on the page of a whole run
        assert len(page) / rows.height * 20_000 < 5_000_000
    assert whole_page.size < 8_000_000
    data = data_of(page.decode())
    names, columns = data["names"], data["columns"]
    assert [names["entry"][place] for place in columns["entry"]] == rows["model"].to_list()
    assert [names["task_id"][place] for place in columns["task_id"]] == rows["task_id"].to_list()
    assert columns["score"] == rows["score"].to_list()
    assert columns["output"] == rows["total_output_tokens"].to_list()
    met = {int(place): [names["incident"][each] for each in kinds] for place, kinds in columns["incidents"].items()}
    assert met == {place: kinds for place, kinds in enumerate(rows["incidents"].to_list()) if kinds}


def test_every_figure_has_words_a_table_and_files(whole_page: WrittenPage) -> None:
    page, folder = whole_page.index.read_text(), whole_page.index.parent / "figures"
    figures = dict(re.findall(r'<figure id="(\w+)">(.*?)</figure>', page, re.DOTALL))
    assert {"gains_by_group", "gains_by_model", "baseline_and_gain", "cost_and_score", "status"} <= set(figures)
    for name, figure in figures.items():
        (words,) = set(re.findall(r"<desc[^>]*>(.+?)</desc>", figure, re.DOTALL))
        assert len(words) > 40, name
        assert figure.count("<tr>") > 1, name
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / f"{name}.svg").read_text().startswith("<svg")
    assert (folder / "heat_curated_minus_no_skill.svg").is_file()


def few(**changes: pl.Expr) -> pl.DataFrame:
    return synthetic_rows(2, episodes=3).with_columns(**changes)


HALF = pl.int_range(pl.len()) % 2 == 0
CURATED = pl.col("condition") == "curated"
ODD = {
    "one condition": few().filter(CURATED),
    "one episode": few().head(1),
    "all errors": few(status=pl.lit("error")),
    "programs": few(model=pl.col("model").replace(PROGRAMS)),
    "two harnesses": few(harness=pl.when(CURATED).then(pl.lit("hermes")).otherwise("harness")),
    "two editions": few(edition=pl.when(HALF).then(pl.lit("e" * 64)).otherwise("edition")),
    "no price": few(cost_usd=pl.lit(None, pl.Float64)),
    "half a price": few(cost_usd=pl.when(HALF).then(0.1)),
    "repeats": synthetic_rows(2, episodes=3, repeats=3),
    "own skills": few(condition=pl.col("condition").replace({"self_generated": "skill:mine"})),
}


@pytest.mark.slow
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("case", ODD)
def test_a_page_of_what_is_odd_says_nothing_false(case: str, tmp_path: Path) -> None:
    page = write_page(collect(ODD[case]), tmp_path / "page").index.read_text()
    shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(NaN|nan|inf|None|Infinity|undefined)\b", shown)
    assert "+0.000 [+0.000, +0.000]" not in shown
    told = {
        "one condition": "a difference is not available",
        "all errors": "No episode was scored",
        "half a price": "The cost of provider/model-1 under",
        "programs": "No language model took part",
        "two editions": "The rows have 2 editions",
    }
    assert told.get(case, "") in shown
    assert ('id="gains"' in shown) == (case not in ("one condition", "one episode", "all errors"))
    assert ("pass^k" in shown) == (case == "repeats")
    assert case != "all errors" or "0.000" not in shown


@thorough
@pytest.mark.usefixtures("no_pictures")
def test_a_hundred_models_fit(tmp_path: Path) -> None:
    page = write_page(collect(synthetic_rows(100, episodes=1)), tmp_path / "page")
    assert page.size < 8_000_000
    text = page.index.read_text()
    assert "Only the 24 of 100 with the highest means are drawn; the table has all." in text
    assert text.count('<th scope="row">provider/model-77</th>') >= 5


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match=r"neither empty nor a report page \(it has thesis\.tex\)"):
        write_page(collect(few()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.usefixtures("no_pictures")
def test_a_page_takes_the_place_of_the_one_before(hostile_run: RunRows, tmp_path: Path) -> None:
    results = collect(hostile_run.rows)
    assert write_page(results, tmp_path / "page", [hostile_run]).episodes == 12
    assert write_page(results, tmp_path / "page", [hostile_run], trajectories=0).episodes == 0
    assert not (tmp_path / "page" / "episodes").exists()


def test_the_worst_come_first_then_causes_then_the_best_then_the_middle() -> None:
    wanted = (pl.col("sub_task") == "rebalancing") & CURATED & (pl.col("model") == "provider/model-1")
    rows = few().filter(wanted)
    rows = pl.concat([rows, rows.with_columns(run_idx=pl.lit(1, pl.Int64))])
    scores = pl.Series([0.5, 0.1, 0.9, 0.4, 1.0, 0.2])
    rows = rows.with_columns(scores=pl.struct(paper=scores, strict=scores, certified=scores), status=pl.lit("scored"))
    view = view_of(collect(rows))
    causes = [None, None, None, "arithmetic", None, "arithmetic"]
    somewhere: list[Any] = [object()] * 6
    assert choose(view, causes, somewhere, None) == [0, 1, 4, 5]  # in the middle, worst, best, the worse arithmetic
    assert choose(view, causes, somewhere, 2) == [1, 4]
    assert choose(view, causes, somewhere, 0) == []
    assert choose(view, causes, somewhere, 99) == [0, 1, 2, 3, 4, 5]
    assert choose(view, causes, [None, None, *somewhere[2:]], 1) == [5]


def shown(page: WrittenPage) -> str:
    """The text of a page that a reader sees."""
    whole = re.sub(
        r"<script.*?</script>|<style.*?</style>|<details.*?</details>", "", page.index.read_text(), flags=re.DOTALL
    )
    return re.sub(r"<[^>]+>", " ", whole)


def test_a_page_of_programs_says_so_and_claims_nothing_for_models(pages: dict[str, WrittenPage]) -> None:
    text = shown(pages["programs"])
    assert "Calibration run: programs only." in text
    assert "baseline/reference, a program" in text
    assert "Score within a budget" not in text
    assert re.search(r"Status of episodes: scored 48 in each of 6 rows\.", text)
    for name, page in pages.items():
        assert (name in ("programs",)) == ("Calibration run" in shown(page))
        assert not re.search(r"\s--[a-z]|[+]\d[.]\d+ -", shown(page)), name


def test_suites_stand_apart(pages: dict[str, WrittenPage]) -> None:
    text = pages["both"].index.read_text()
    tables = re.findall(r"<table class=\"heat.*?</table>", text, re.DOTALL)
    assert [("rebalancing" in table, "stress testing" in table) for table in tables[:1] + tables[-1:]] == [
        (True, False),
        (False, True),
    ]
    assert all(("rebalancing" in table) != ("stress testing" in table) for table in tables)
    assert {
        "over 32 episodes of 4 subtasks of the second suite",
        "over 64 episodes of 8 subtasks of the paper suite",
    } <= {each.lower() for each in re.findall(r"Over \d+ episodes of \d+ subtasks of the \w+ suite", text)}


def test_a_gain_without_an_interval_has_its_sign_test() -> None:
    """8 of 8 episodes from 0 to 1 in 7 clusters: two-sided p is 2 / 2^7."""
    rows = synthetic_rows(1, ("no_skill", "curated"), episodes=8)
    score = pl.when(CURATED).then(1.0).otherwise(0.0)
    rows = rows.filter(pl.col("sub_task") == "rebalancing").with_columns(
        scores=pl.struct(paper=score, strict=score, certified=score),
        status=pl.lit("scored"),
        cluster=pl.format("c{}", pl.col("task_id").str.slice(-1).cast(pl.Int64).clip(0, 6)),
    )
    (headline,) = [headline_of(view) for view in views_of(collect(rows))]
    assert headline.tiles[0].value == "+1.000"
    assert headline.tiles[0].below == f"95 % interval n/a; sign test p = {2 / 2**7:.2g}"


@pytest.mark.usefixtures("no_pictures")
def test_the_subtitle_counts_the_rows_of_the_models_that_it_names(tmp_path: Path) -> None:
    rows = synthetic_rows(1, ("curated",), episodes=1)
    both = pl.concat([rows, rows.with_columns(model=pl.lit("baseline/nop"))])
    text = shown(write_page(collect(both), tmp_path / "page"))
    assert re.search(rf"provider/model-1; {rows.height} episodes, {rows.height} rows under curated, run on", text)


def test_a_row_with_two_incidents_counts_once() -> None:
    met = pl.Series([[], ["tool_failed", "rate_limit", "tool_failed"], ["rate_limit"]], dtype=pl.List(pl.String))
    rows = synthetic_rows(1, ("curated",), episodes=1).head(3).with_columns(incidents=met)
    causes = pl.DataFrame(schema=dict.fromkeys(("entry", "condition", "cause"), pl.String))
    figures = {each.table.name: each.table for each in outcome_figures(view_of(collect(rows)), causes)}
    table = figures["incidents"]
    assert {column.name: cell for column, cell in zip(table.columns, table.rows[0], strict=True)} == {
        "model": "provider/model-1",
        "condition": "curated",
        "none": 1,
        "rate_limit": 1,
        "tool_failed": 1,
    }


def test_means_of_tokens_state_the_rows_that_report_them_and_no_budget_stands_twice() -> None:
    rows = synthetic_rows(1, ("curated",), episodes=2)
    rows = rows.with_columns(
        total_output_tokens=pl.when(pl.int_range(pl.len()) < 5).then("total_output_tokens"),
        turns=1 + pl.int_range(pl.len()) % 12,
    )
    view = view_of(collect(rows))
    (tokens,) = [each.table for each in spending_figures(view) if each.table.name == "output_tokens"]
    assert tokens.rows[0][-1] == view.rows.filter("headline")["total_output_tokens"].count()
    (turns,) = [each.table for each in budget_figures(view) if each.table.name == "budget_turns"]
    assert turns.column("budget") == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0, 10.0, 12.0)


@pytest.mark.parametrize("raised", [0.0, 1.0])
def test_no_subtask_is_named_as_changed_where_none_moved(raised: float) -> None:
    score = pl.when(CURATED & (pl.col("sub_task") == "rebalancing")).then(raised).otherwise(0.0)
    rows = synthetic_rows(1, ("no_skill", "curated"), episodes=2).with_columns(
        scores=pl.struct(paper=score, strict=score, certified=score), status=pl.lit("scored")
    )
    (headline,) = [headline_of(view) for view in views_of(collect(rows))]
    assert ("It changed rebalancing most" in str(headline)) == bool(raised)
    assert ("It changed" in str(headline)) == bool(raised)

"""Pages for people: all that the input holds and nothing of the truth, and saved answers that become rows."""

from __future__ import annotations

import base64
import html
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect, sync_playwright
from tests.editions import write_edition
from tests.integrations.conftest import PLANTED
from tests.scoring.examples import truth

from finskillbench import cli
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import CANARY
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import InputError
from finskillbench.integrations.task_files.agreement import agreement, alpha
from finskillbench.integrations.task_files.answers import import_answers
from finskillbench.integrations.task_files.human import export_pages
from finskillbench.integrations.task_files.write import RECORD, readable_input
from finskillbench.runs.config import EpisodeSelection
from finskillbench.runs.execute.run import run

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
ONE = EpisodeSelection(limit=1)
TIMES = {"started": "2026-01-05T09:00:00.000Z", "ended": "2026-01-05T09:10:00.000Z", "seconds": 480.0}


@pytest.fixture
def pages(small_edition: Edition, tmp_path: Path) -> Path:
    chosen = EpisodeSelection(subtasks=["tool_use_parameterization"], limit=2)
    export_pages(small_edition, tmp_path / "pages", ["P01", "P02"], chosen, minutes=8)
    return tmp_path / "pages"


def tasks(folder: Path) -> dict[str, str]:
    return orjson.loads((folder / RECORD).read_bytes())["tasks"]


def right_answer(edition: Edition, task_id: str) -> str:
    return orjson.dumps(edition.truth(task_id).expected_output).decode()


def answer(folder: Path, participant: str, **answers: str | None) -> None:
    """Write the file that a page would save, with answers by the number of the task."""
    (identity,) = re.findall(r'data-export="(\w+)"', (folder / f"{participant}.html").read_text())
    saved: dict[str, Any] = {"export": identity, "participant": participant, "consented": TIMES["started"]}
    saved["episodes"] = {name: {**TIMES, "pauses": [], "answer": text} for name, text in answers.items()}
    (folder / f"{participant}.json").write_bytes(orjson.dumps(saved))


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _read(page: Path) -> str:
    """The text of a page with that of its files."""
    text = html.unescape(page.read_text())
    files = re.findall(r"data:text/csv;base64,([\w+/=]*)", text)
    return "\n".join([text, *(base64.b64decode(each).decode() for each in files)])


def test_a_page_holds_no_truth_and_no_metadata(small_edition: Edition, pages: Path) -> None:
    for page in sorted(pages.glob("*.html")):
        text = _read(page)
        assert not [planted for planted in PLANTED if planted in text]
        assert not [task_id for task_id in tasks(pages).values() if task_id in text]
        for name in tasks(pages):
            assert f'data-name="{name}"' in text


def test_pages_of_all_subtasks_hold_their_input_exactly_and_no_figure_of_the_truth(
    synthetic_edition: Edition, tmp_path: Path
) -> None:
    record = export_pages(synthetic_edition, tmp_path / "out", ["P01"], ONE)
    text = _read(tmp_path / "out" / "P01.html")
    numbers = set(map(float, re.findall(r"(?<![\w.])-?\d+\.?\d*(?:[eE][+-]?\d+)?", text)))
    for task_id in record.tasks.values():
        (episode,) = [one for one in synthetic_edition.episodes() if one.task_id == task_id]
        assert html.unescape(episode.prompt.task_description.splitlines()[0]) in text
        readable = readable_input(synthetic_edition, episode)
        given = set(_leaves(orjson.loads(orjson.dumps(readable, option=orjson.OPT_SERIALIZE_NUMPY))))
        assert {each for each in given if isinstance(each, float)} <= numbers
        hidden = set(_leaves(synthetic_edition.truth(task_id).expected_output)) - given
        assert not {each for each in hidden if isinstance(each, float) and len(repr(each)) > 12} & numbers, task_id


def test_texts_of_an_episode_are_data(tmp_path: Path) -> None:
    """Scripts stay text, long tables are whole in their file, and a matrix keeps the order of its names."""
    planted = "</textarea><script>alert(1)</script>\"'"
    matrix = {"tickers": ["AAA", "BBB"], "matrix": [[1.0, 0.25], [0.5, 2.0]]}
    long = [{"name": planted, "number": number} for number in range(600)]
    example = truth("rebalancing")
    day, prompt = date(2025, 1, 31), Prompt(planted, planted)
    given = {"matrix": matrix, "long": long, planted: 1}
    episode = Episode("t", "portfolio_construction", "rebalancing", day, "easy", given, prompt, {})
    edition = load_edition(write_edition(tmp_path / "edition", [(episode, replace(example, task_id="t"))], {}))
    export_pages(edition, tmp_path / "out", ["P01"], ONE)
    page = (tmp_path / "out" / "P01.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert CANARY in page
    files = [base64.b64decode(each).decode() for each in re.findall(r"text/csv;base64,([\w+/=]*)", page)]
    assert any(each.endswith(",AAA,BBB\nAAA,1.0,0.25\nBBB,0.5,2.0\n") for each in files)
    assert max(each.count("alert(1)") for each in files) == 600
    assert "600 rows, the first 500 shown" in page


def test_orders_differ_between_participants_and_are_the_same_again(small_edition: Edition, tmp_path: Path) -> None:
    people = [f"P{number:02d}" for number in range(1, 9)]
    for name in ("one", "again"):
        export_pages(small_edition, tmp_path / name, people, EpisodeSelection(sample=6))
    once, again = (
        [re.findall(r'data-name="(\d+)"', (tmp_path / name / f"{who}.html").read_text()) for who in people]
        for name in ("one", "again")
    )
    assert once == again
    assert len(set(map(tuple, once))) > 4
    assert all(sorted(order) == [f"{number:03d}" for number in range(1, 7)] for order in once)


def test_saved_answers_become_rows_of_the_participants(small_edition: Edition, pages: Path) -> None:
    (first, second), ids = tasks(pages), tasks(pages)
    answer(pages, "P02", **{first: right_answer(small_edition, ids[first]), second: None})
    rows = {row.task_id: row for row in import_answers(small_edition, pages)}
    assert {(row.model, row.harness, row.condition) for row in rows.values()} == {("human/P02", "human", "no_skill")}
    assert [rows[ids[name]].score for name in (first, second)] == [1.0, 0.0]
    assert rows[ids[second]].status == "incomplete_submission"
    one = rows[ids[first]]
    assert (one.latency_seconds, one.queue_seconds) == (480.0, 120.0)
    assert one.started is not None
    assert one.ended is not None
    assert (one.ended - one.started).total_seconds() == 600.0


def test_a_person_is_compared_with_a_program(
    small_edition: Edition, pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(pages, "P01", **{name: right_answer(small_edition, task_id) for name, task_id in tasks(pages).items()})
    out = tmp_path / "rows.parquet"
    assert cli.main(["score", str(small_edition.path), str(pages), "--out", str(out)]) == 0
    subtasks = ["tool_use_parameterization"]
    run(small_edition, ["baseline/nop"], ["no_skill"], subtasks, limit=2, out=tmp_path / "run")
    sides = ["--compare", "model", "baseline/nop", "human/P01"]
    assert cli.main(["compare", str(tmp_path / "run"), str(out), *sides, "--profile", "paper"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"headline +all .*0\.000 +1\.000 +\+1\.000", printed)
    assert "different harnesses: A finskillbench; B human." in printed


def test_saved_answers_that_do_not_fit_are_refused(small_edition: Edition, pages: Path) -> None:
    with pytest.raises(InputError, match=r"put P01\.json and others next to the pages"):
        list(import_answers(small_edition, pages))
    answer(pages, "P01")
    with pytest.raises(InputError, match="leave out --model"):
        list(import_answers(small_edition, pages, "mine"))
    (pages / "P01.json").rename(pages / "P02.json")
    with pytest.raises(InputError, match=r"P02\.json: answers of 'P01'"):
        list(import_answers(small_edition, pages))
    (pages / "P02.json").unlink()
    answer(pages, "P01")
    path = pages / "P01.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "export": "other"}))
    with pytest.raises(InputError, match="answers of 'P01' to export 'other'"):
        list(import_answers(small_edition, pages))
    answer(pages, "P01", **dict.fromkeys(tasks(pages)))
    saved = (pages / "P01.json").read_text()
    consent, start, one = f'"{TIMES["started"]}"', '"started":"2026', next(iter(tasks(pages)))
    for damaged, words in (
        (saved.replace("480.0", "-1.0"), "not answers saved by a page"),
        (saved[:40], "not answers saved by a page"),
        (saved.replace(f'"consented":{consent}', '"consented":null'), "not answers saved by a page.*consented"),
        (saved.replace(f'"{one}"', '"099"'), "task '099': not on the page"),
        (saved.replace(start, '"started":"2027'), "ended before it started"),
        (saved.replace("480.0", "480.1"), "480 seconds, more than 8 minutes"),
    ):
        (pages / "P01.json").write_text(damaged)
        with pytest.raises(InputError, match=rf"P01\.json: .*{words}"):
            list(import_answers(small_edition, pages))
    (pages / "P01.json").rename(pages / "P01 (1).json")
    with pytest.raises(InputError, match=r"P01 \(1\)\.json: of no participant in handout\.json"):
        list(import_answers(small_edition, pages))


def test_answers_still_fit_when_participants_are_added(small_edition: Edition, pages: Path, tmp_path: Path) -> None:
    chosen = EpisodeSelection(subtasks=["tool_use_parameterization"], limit=2)
    export_pages(small_edition, tmp_path / "more", ["P01", "P02", "P03"], chosen, minutes=8)
    assert (tmp_path / "more" / "P01.html").read_bytes() == (pages / "P01.html").read_bytes()
    for folder, participant in ((pages, "P01"), (tmp_path / "more", "P03")):
        answer(folder, participant, **dict.fromkeys(tasks(pages)))
    shutil.copyfile(pages / "P01.json", tmp_path / "more" / "P01.json")
    models = {row.model for row in import_answers(small_edition, tmp_path / "more")}
    assert models == {"human/P01", "human/P03"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--limit", "1"], "name each person once"),
        (["--limit", "1", "--participant", "P01", "--participant", "P01"], "name each person once"),
        (["--limit", "1", "--participant", "Jane Doe"], "name each person once"),
        (["--participant", "P01"], "add --sample N or --limit N"),
        (["--limit", "1", "--participant", "P01", "--condition", "curated"], "has no skills"),
        (["--limit", "1", "--participant", "P01", "--format", "folders"], "add --format human"),
    ],
)
def test_an_export_for_people_that_does_not_fit_is_refused(
    small_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    command = ["export-tasks", str(small_edition.path), str(tmp_path / "out"), "--format", "human", *arguments]
    assert cli.main(command) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


KRIPPENDORFF = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
"""Four observers and twelve units: Krippendorff (2011), example C."""


@pytest.mark.parametrize(("distance", "published"), [("binary_distance", 0.743), ("interval_distance", 0.849)])
def test_alpha_of_the_published_example(distance: str, published: float) -> None:
    pytest.importorskip("nltk", reason="the extra human is not installed")
    marks = [(who, unit, mark) for who, line in enumerate(KRIPPENDORFF) for unit, mark in enumerate(line) if mark]
    values = pl.DataFrame(marks, schema=["coder", "unit", "value"], orient="row")
    assert alpha(values, distance) == pytest.approx(published, abs=5e-4)


def _rows(*scores: tuple[str, str, float | None, str | None]) -> pl.DataFrame:
    names = ["model", "task_id", "score", "answer_digest"]
    return pl.DataFrame(scores, schema=names, orient="row")


def test_agreement_counts_episodes_that_two_participants_answered() -> None:
    pytest.importorskip("nltk", reason="the extra human is not installed")
    alone = [("human/A", "x", 1.0, "d"), ("human/B", "y", 0.5, "d"), ("human/B", "x", 0.0, None)]
    assert agreement(_rows(*alone)) is None
    both = [(who, task, score, "d") for who in ("human/A", "human/C") for task, score in (("p", 0.25), ("q", 1.0))]
    assert "2 participants on 2 episodes: 1.000 (scores, interval), 1.000 (full" in str(agreement(_rows(*alone, *both)))
    halves = [("human/A", "p", 0.2, "d"), ("human/C", "p", 0.4, "d"), *both[1:2], *both[3:]]
    assert re.search(r": 0\.\d+ \(scores, interval\), 1\.000 \(full", str(agreement(_rows(*halves))))
    equal = [(who, task, 0.5, "d") for who in ("human/A", "human/C") for task in "pq"]
    assert "undefined (all equal) (scores" in str(agreement(_rows(*equal)))


@pytest.fixture
def page(pages: Path) -> Iterator[Page]:
    """The page of P01 in a browser; it fetches nothing and reports no error."""
    if CHROMIUM is None:
        pytest.skip("no browser: apt-get install chromium, or name one by CHROMIUM")
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*QUIET])
        page = browser.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith("file:") else None)
        page.goto((pages / "P01.html").as_uri())
        yield page
        browser.close()
    assert [each for each in wrong if not each.startswith("blob:")] == []


@pytest.mark.slow
def test_a_person_answers_in_a_browser_and_scores(
    page: Page, pages: Path, small_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = tasks(pages)
    assert page.get_by_role("button", name="Start").is_disabled()
    page.get_by_label("I take part").check()
    page.get_by_role("button", name="Start").click()
    section = page.locator(".task:visible")
    first = section.get_attribute("data-name")
    assert first is not None
    right = right_answer(small_edition, ids[first])
    section.get_by_label("Answer", exact=True).fill(right[:-1])
    expect(section.get_by_role("status")).to_contain_text("Not valid JSON")
    section.get_by_label("Answer", exact=True).fill("{}")
    expect(section.get_by_role("status")).to_contain_text("Missing")
    for key in (section.get_attribute("data-required") or "none").split():
        expect(section.get_by_role("status")).to_contain_text(key)
    section.get_by_label("Answer", exact=True).fill(right)
    expect(section.get_by_role("status")).to_have_text("Valid JSON with the required keys")
    faults = [each for each in Axe().run(page).response["violations"] if each["impact"] in ("serious", "critical")]
    assert faults == []
    expect(page.get_by_role("timer")).not_to_have_text("0:00")
    page.get_by_role("button", name="Pause").click()
    assert section.count() == 0
    page.reload()
    page.get_by_role("button", name="Start or continue").click()
    assert section.get_by_label("Answer", exact=True).input_value() == right
    section.get_by_role("button", name="Submit and continue").click()
    assert section.get_attribute("data-name") != first
    page.once("dialog", lambda dialog: dialog.dismiss())
    section.get_by_role("button", name="Submit and continue").click()
    expect(page.locator("#where")).to_have_text("Task 2 of 2")
    page.once("dialog", lambda dialog: dialog.accept())
    section.get_by_role("button", name="Submit and continue").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("save your answers")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save answers").click()
    assert download.value.suggested_filename == "P01.json"
    download.value.save_as(pages / "P01.json")
    saved = orjson.loads((pages / "P01.json").read_bytes())["episodes"]
    assert next(iter(saved)) == first
    assert len(saved[first]["pauses"]) == 1
    assert [entry["answer"] for entry in saved.values()] == [right, None]

    out = tmp_path / "rows.parquet"
    assert cli.main(["score", str(small_edition.path), str(pages), "--out", str(out)]) == 0
    assert cli.main(["report", str(out)]) == 0
    assert "human/P01" in capsys.readouterr().out
    rows = {row["task_id"]: row for row in pl.read_parquet(out).to_dicts()}
    assert (rows[ids[first]]["model"], rows[ids[first]]["score"]) == ("human/P01", 1.0)
    assert rows[ids[first]]["latency_seconds"] >= 1.0
    assert sorted(row["score"] for row in rows.values()) == [0.0, 1.0]


@pytest.mark.slow
def test_a_task_is_submitted_at_its_time_limit(page: Page) -> None:
    page.clock.install()
    page.reload()
    page.get_by_label("I take part").check()
    page.get_by_role("button", name="Start or continue").click()
    page.clock.run_for("07:50")
    expect(page.locator("#where")).to_have_text("Task 1 of 2")
    page.clock.run_for("00:20")
    expect(page.get_by_role("heading", level=1)).to_have_text("Paused")
    page.clock.run_for("20:00")
    expect(page.locator("#where")).to_have_text("Task 2 of 2")
    assert page.locator(".task:visible").count() == 0


@pytest.mark.slow
def test_cells_of_a_spreadsheet_become_json(page: Page) -> None:
    page.get_by_label("I take part").check()
    page.get_by_role("button", name="Start").click()
    box = page.locator(".task:visible").get_by_label("Answer", exact=True)
    for cells, expected in (
        ("ABC\t0.25\r\nDEF\t-1e-3\n", {"ABC": 0.25, "DEF": -0.001}),
        ("symbol\tweight\tside\nABC\t0.5\tbuy", [{"symbol": "ABC", "weight": 0.5, "side": "buy"}]),
    ):
        box.fill("")
        box.evaluate(
            """(box, text) => { const data = new DataTransfer(); data.setData("text", text);
            box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, cancelable: true })); }""",
            cells,
        )
        assert orjson.loads(box.input_value()) == expected

"""The validation pack: it says what is known and what is not, refuses foreign evidence, and fits its paper."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import date
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from tests.reports.compare.cases import row, run
from tests.rows import synthetic_rows
from tests.sampling import sampled, thorough

from finskillbench import cli
from finskillbench.errors import InputError
from finskillbench.findings import State
from finskillbench.reports.read import RunRows
from finskillbench.reports.validation import read_audit, read_checks, write_pack
from finskillbench.reports.validation.subject import reference_of

TODAY = date(2026, 1, 2)
EVIL = '</style><script>window.broken=1</script><img src="https://x.example/y">{{7*7}}'
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHECKS = {
    "digest": "e" * 64,
    "passed": False,
    "counts": {},
    "checks": [
        {"domain": "edition", "check": "labels", "state": "PASS", "figures": {"labels": 2}},
        {
            "domain": "risk_management",
            "check": "stress_testing",
            "state": "FAIL",
            "figures": {},
            "findings": [{"state": "FAIL", "where": "s1", "message": "loss is 0.2, not 0.1", "field": "loss"}],
            "reason": "",
        },
    ],
}
AUDIT = {
    "digest": "e" * 64,
    "clean": False,
    "episodes": 2,
    "findings": 1,
    "seconds": 1.0,
    "checks": [
        {
            "domain": "all",
            "check": "leak",
            "state": "FAIL",
            "figures": {"episodes": 2},
            "findings": [{"episode": "r1", "field": "weights", "evidence": "stands in the prompt", "severity": "FAIL"}],
            "reason": "",
        }
    ],
}


class Text(HTMLParser):
    """The text of a page, the tags, and whatever they would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href") and value]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def small() -> RunRows:
    rows = [row(f"r{i}", 0.1 * i, condition=arm) for i in range(6) for arm in ("no_skill", "curated")]
    return run(*rows, row("s1", None, sub_task="stress_testing"), path="runs/mine")


def pack(runs: list[RunRows], out: Path, **evidence) -> Text:
    return Text(write_pack(runs, out, today=TODAY, **evidence).read_text(encoding="utf-8"))


def evidence(tmp_path: Path, content: dict, name: str) -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(content))
    return file


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    told = pack([small()], tmp_path).text
    for words in (
        "Validation: not run for this pack",
        "Audit: not run for this pack",
        "The labels were not validated for this pack.",
        "Not assessed: no episode was run more than once.",
        "mine: causes are not known, since it has no trajectories.",
        "Not run: without the programs baseline/... nobody knows what a score is worth.",
        "mine is a table without its run folder: prompts, mounts and libraries are not known.",
        "Only 92.3% of the rows have a verdict",
        "2026-01-02",
    ):
        assert words in told
    assert "nan" not in told.lower().split()


def test_what_was_found_of_the_edition_is_told(tmp_path: Path) -> None:
    checks = read_checks(evidence(tmp_path, CHECKS, "checks.json"))
    audit = read_audit(evidence(tmp_path, AUDIT, "audit.json"))
    assert (checks.passed, audit.clean, audit.count) == (False, False, 1)
    assert audit.checks[0].findings[0].state is State.FAIL
    told = pack([small()], tmp_path / "out", checks=checks, audit=audit).text
    assert "Validation of edition eeeeeeeeeeee: 1 of 2 checks failed; 0 with warnings, 0 skipped." in told
    assert "loss is 0.2, not 0.1" in told
    assert "stands in the prompt" in told
    assert "The validation of the labels failed: no result stands on them until it passes." in told
    assert "The audit found 1 defects of the edition." in told


def test_evidence_of_another_edition_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = read_checks(evidence(tmp_path, {**CHECKS, "digest": "f" * 64}, "checks.json"))
    with pytest.raises(InputError, match="--checks: is of edition ffffffffffff, and the rows are of eeeeeeeeeeee"):
        write_pack([small()], tmp_path / "out", today=TODAY, checks=other)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=r"checks.json: not what finskillbench audit EDITION --json FILE writes"):
        read_audit(tmp_path / "checks.json")
    with pytest.raises(InputError, match=r"absent.json: cannot be read .*data validate EDITION --json makes it"):
        read_checks(tmp_path / "absent.json")


def test_the_reference_hangs_on_every_row_and_not_on_their_order() -> None:
    rows = small().rows
    assert reference_of(rows) == reference_of(rows.reverse())
    assert reference_of(rows) != reference_of(rows.head(-1))
    sealed = synthetic_rows(1, episodes=2)
    altered = sealed.with_columns(digest=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("x")).otherwise("digest"))
    assert reference_of(sealed) != reference_of(altered)


def test_the_page_is_one_file_that_asks_for_nothing_and_runs_nothing(tmp_path: Path) -> None:
    evil = run(row("r1", 0.5, model=EVIL), row("r2", 0.1, model=EVIL), path="runs/mine")
    told = pack([evil], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["validation-pack.html"]
    assert {"script", "img", "link", "iframe"}.isdisjoint(told.tags)
    assert all(each.startswith("#") for each in told.fetched)
    assert "{{7*7}}" in told.text
    page = (tmp_path / "validation-pack.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in unescape(page)
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert {each.removeprefix("#") for each in told.fetched} <= ids


def test_sensitivity_leaves_each_model_out(tmp_path: Path) -> None:
    told = pack([RunRows(Path("runs/all"), synthetic_rows(3, episodes=4))], tmp_path).text
    for model in ("provider/model-1", "provider/model-2", "provider/model-3"):
        assert f"without {model} curated - no_skill" in told
    assert "every subtask weighs alike curated - no_skill" in told


def test_the_command(edition_run: Path, tmp_path: Path, capsys) -> None:
    arguments = ["report", str(edition_run), "--validation"]
    assert cli.main([*arguments, "--out", str(tmp_path / "pack"), "--fail-under", "headline=0.9"]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(tmp_path / "pack" / "validation-pack.html")]
    assert captured.err.splitlines()[-1].startswith("failed: headline of baseline/nop under no_skill is 0.0000")
    told = Text((tmp_path / "pack" / "validation-pack.html").read_text(encoding="utf-8")).text
    assert "every value is null, or nothing is there" in told
    assert "finskillbench show run" in told
    assert "No language model was run. Where models stand, this pack shows the program baseline/nop." in told
    assert cli.main(arguments) == 2
    assert "--validation writes one pack of everything into --out DIR" in capsys.readouterr().err


@pytest.fixture
def edition_run(tmp_path: Path, capsys) -> Path:
    from tests.editions import write_edition
    from tests.reports.validation.tasks import tasks

    folder = write_edition(tmp_path / "edition", tasks())
    models = ["--model", "baseline/nop", "--condition", "no_skill"]
    assert cli.main(["run", "--edition", str(folder), *models, "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    return tmp_path / "run"


@thorough
@pytest.mark.slow  # a browser starts
@pytest.mark.skipif(CHROMIUM is None, reason="no browser: apt-get install chromium, or name one by CHROMIUM")
@pytest.mark.parametrize("paper", sampled(["A4", "Letter"], 2))
def test_nothing_is_wider_than_its_paper_and_axe_finds_nothing_serious(tmp_path: Path, paper: str) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    file = write_pack([RunRows(Path("runs/all"), synthetic_rows(4, episodes=8, repeats=2))], tmp_path, today=TODAY)
    # What is left between the margins of 15 mm, at 96 pixels an inch.
    width = {"A4": 680, "Letter": 702}[paper]
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": width, "height": 900})
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text))
        page.goto(file.as_uri())
        found = Axe().run(page).response["violations"]
        page.emulate_media(media="print")
        widest = page.evaluate("Math.max(...[...document.querySelectorAll('table')].map(each => each.scrollWidth))")
        printed = page.pdf(format=paper)
        browser.close()
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    assert wrong == []
    assert widest <= width
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") > 5

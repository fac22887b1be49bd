"""The validation pack: it says what is known and what is not, refuses foreign evidence, and fits its paper."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
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
from finskillbench.domains import domain
from finskillbench.edition.checks.catalog import checks_of, names_of_audits
from finskillbench.errors import InputError
from finskillbench.publish.pack import write_pack
from finskillbench.publish.pack.subject import REVIEWED, reference_of
from finskillbench.reports.compare.gates import Threshold, ThresholdMeasure
from finskillbench.reports.evidence import read_audit, read_checks, read_criteria
from finskillbench.reports.read import RunRows, read_runs
from finskillbench.runs.postprocess.failures import FailureCause

ROOT = Path(__file__).parents[3]
TODAY = date(2026, 1, 2)
STATEMENTS = ("Supervisory", "Professional work", "What is not covered", "Demands of the literature")
"""Tables without figures."""
EVIL = '</style><script>window.broken=1</script><img src="https://x.example/y">{{7*7}}'
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
CHECKS = {
    "digest": "e" * 64,
    "levels": ["integrity", "labels"],
    "episodes": 2,
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
    "levels": ["integrity", "labels", "audit"],
    "episodes": 2,
    "checks": [
        {
            "domain": "all",
            "check": "leak",
            "state": "FAIL",
            "figures": {"episodes": 2},
            "findings": [{"where": "r1", "field": "weights", "message": "stands in the prompt", "state": "FAIL"}],
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
        if self.tags[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def small() -> RunRows:
    rows = [row(f"r{i}", 0.1 * i, condition=arm) for i in range(6) for arm in ("no_skill", "curated")]
    return run(*rows, row("s1", None, sub_task="stress_testing"), path="runs/mine")


def pack(runs: list[RunRows], out: Path, **evidence) -> Text:
    return Text(write_pack(runs, out, today=TODAY, **evidence).path.read_text(encoding="utf-8"))


def evidence(tmp_path: Path, content: dict, name: str) -> Path:
    file = tmp_path / name
    file.write_text(json.dumps(content))
    return file


def test_what_is_not_known_is_stated(tmp_path: Path) -> None:
    text = pack([small()], tmp_path).text
    for words in (
        "SR 26-2",
        "Generative and agentic AI are outside the scope",
        f"last reviewed on {REVIEWED.isoformat()}",
        "Validation: not run for this pack",
        "Audit: not run for this pack",
        "No acceptance criteria were supplied",
        "Not assessed: no episode was run more than once.",
        "mine: causes are not known; the run has no trajectories.",
        "No baseline program was run",
        "mine is a table without its run folder: prompts, skills and libraries are not known.",
        "The rows of mine carry no digests. Later alteration cannot be excluded.",
        "92.3% of the rows of the models have a verdict, fewer than 95%.",
        "2026-01-02",
    ):
        assert words in text
    assert "SR 11-7" in text.split("They replaced ")[1][:9]
    assert text.count("SR 11-7") == 1
    assert {"nan", "nobody", "whoever"}.isdisjoint(text.lower().split())
    assert "exact enough" not in text


def test_checks_not_run_are_listed_and_failed_ones_warned_of(tmp_path: Path) -> None:
    checks = read_checks(evidence(tmp_path, CHECKS, "checks.json"))
    audit = read_audit(evidence(tmp_path, AUDIT, "audit.json"))
    assert (checks.passed, audit.passed, audit.count) == (False, False, 1)
    text = pack([small()], tmp_path / "out", checks=checks, audit=audit).text
    # The rows are of two domains: nine of their subtasks, their own checks, and the labels of the whole edition.
    there = [domain(name) for name in ("portfolio_construction", "risk_management")]
    every = 1 + sum(len(checks_of(one)) for one in there)
    assert f"Validation of edition eeeeeeeeeeee: 2 of {every} checks run, 1 failed. Not run: " in text
    names = names_of_audits(one.name for one in there)
    assert f"Audit of edition eeeeeeeeeeee: 1 of {len(names)} checks run, 1 failed. Not run: rederived, sol" in text
    assert f"Audit: {len(names) - 1} of {len(names)} checks of the edition were not run." in text
    assert f"Validation: 1 of {every} checks failed. Results are not supported until they pass." in text
    assert "loss is 0.2, not 0.1" in text
    assert "FAIL Audit leak 1 r1 weights stands in the prompt" in text


def test_a_check_of_several_domains_counts_once_by_its_gravest_state(tmp_path: Path) -> None:
    one = {**AUDIT["checks"][0], "findings": []}
    states = {"all": "PASS", "portfolio_construction": "WARN", "risk_management": "PASS"}
    checks = [{**one, "domain": name, "check": "unique", "state": state} for name, state in states.items()]
    checks += [{**one, "check": "solvable", "state": "PASS"}]
    audit = read_audit(evidence(tmp_path, {**AUDIT, "checks": checks}, "audit.json"))
    text = pack([small()], tmp_path / "out", audit=audit).text
    # Applicable, run, not run, passed, with warnings, failed: the last three make up those that were run.
    assert re.search(r"Audit (\d+) 2 \d+ 1 1 0 ", text)


def test_a_skipped_check_is_not_run(tmp_path: Path) -> None:
    one = {**AUDIT["checks"][0], "state": "SKIP", "findings": [], "reason": "no other edition"}
    audit = read_audit(evidence(tmp_path, {**AUDIT, "checks": [one]}, "audit.json"))
    assert "Audit of edition eeeeeeeeeeee: 0 of " in pack([small()], tmp_path / "out", audit=audit).text


@pytest.mark.parametrize(("clusters", "warned"), [(2, True), (19, True), (20, False)])
def test_few_clusters_are_warned_of_on_the_cover(tmp_path: Path, clusters: int, warned: bool) -> None:
    rows = [row(f"r{i}", 0.1 * (i % 7), cluster=f"c{i % clusters}") for i in range(max(3, clusters))]
    cover = pack([run(*rows)], tmp_path).text.split("Contents")[0]
    assert (f"Small sample: {len(rows)} scored headline episodes in {clusters} clusters" in cover) is warned


def test_few_clusters_are_counted_by_their_effective_number(tmp_path: Path) -> None:
    rows = [row(f"r{i}", 0.1 * (i % 7), cluster=f"c{max(0, i - 100)}") for i in range(130)]
    # 101 episodes share a cluster, 29 stand alone: 130 squared over 101 squared and 29.
    assert (
        "130 scored headline episodes in 30 clusters (1.7 effective; m, curated)" in pack([run(*rows)], tmp_path).text
    )


def test_an_unknown_count_of_tokens_is_not_zero(tmp_path: Path) -> None:
    unknown = {"total_input_tokens": None, "total_output_tokens": None}
    rows = [row("r1", 0.5), row("r2", 0.5, **unknown), row("r1", 0.5, model="n", **unknown)]
    text = pack([run(*rows)], tmp_path).text
    assert "m curated 2 110 (50 %)" in text
    assert "n curated 1 not reported (0 %)" in text


def test_challengers_are_every_other_model_condition_and_program(tmp_path: Path) -> None:
    scores = {
        ("m", "curated"): [0.5, 0.6, 0.7, 0.5],
        ("m", "no_skill"): [0.1, 0.1, 0.3, 0.2],
        ("n", "curated"): [0.9, 0.9, 0.9, 0.8],
        ("baseline/nop", "no_skill"): [0.0, 0.0, 0.1, 0.0],
    }
    rows = [
        row(f"r{i}", score, model=model, condition=condition)
        for (model, condition), each in scores.items()
        for i, score in enumerate(each)
    ]
    text = pack([run(*rows)], tmp_path).text.split("Strongest challenger of each kind")[1]
    assert "m curated condition no_skill +0.400 [" in text
    assert "m curated model n -0.300 [" in text
    assert "m curated baseline baseline/nop under no_skill +0.550 [" in text
    assert "n curated model m +0.300 [" in text
    assert re.search(r"m curated model n -0\.300 \[\S+ \S+\] 4 4 challenger higher", text)
    alone = pack([run(row("r1", 0.5))], tmp_path).text
    assert "Not assessed: the runs hold no other model, condition or baseline." in alone


def test_criteria_are_judged_and_printed(tmp_path: Path) -> None:
    file = tmp_path / "criteria.toml"
    file.write_text(
        '[[criterion]]\nmean = 0.2\nlower_bound = 0.2\n[[criterion]]\npart = "risk_management"\ncoverage = 1\n'
    )
    wanted = read_criteria(file)
    assert [(each.part, each.measure, each.limit) for each in wanted] == [
        ("headline", ThresholdMeasure.MEAN, 0.2),
        ("headline", ThresholdMeasure.LOWER_BOUND, 0.2),
        ("risk_management", ThresholdMeasure.COVERAGE, 1.0),
    ]
    written = write_pack([small()], tmp_path / "out", today=TODAY, criteria=wanted)
    text = Text(written.path.read_text(encoding="utf-8")).text
    assert [each.outcome.holds for each in written.judged] == [True, False, False]
    assert "FAIL: 1 of 3 criteria are met." in text
    assert "headline m curated Mean score, at least 0.2000 0.2500 PASS" in text
    assert "risk_management m curated Share of rows with a verdict, at least 1.0000 0.0000 FAIL" in text
    programs = run(row("r1", 0.9, model="baseline/reference"), row("r1", 0.0, model="baseline/nop"))
    judged = write_pack([programs], tmp_path / "out", today=TODAY, criteria=wanted[:1]).judged
    assert [each.model for each in judged] == ["baseline/reference"]  # other programs are challengers


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "missing required field `criterion`"),
        ("criterion = []", r"length >= 1 - at `\$.criterion`"),
        ("[[criterion]]", "criterion 1: has no limit; set one of mean, lower_bound, coverage, incidents"),
        ("[[criterion]]\nmean = 60", r"<= 1.0 - at `\$.criterion\[0\].mean`"),
        ("[[criterion]]\nmean = nan", r"at `\$.criterion\[0\].mean`"),
        ("[[criterion]]\nmedian = 0.5", "unknown field `median`"),
        ("criterion = " + "[" * 100_000, "not TOML"),
        ("#" * 2**19, "larger than"),
        ("\xff", "not TOML"),
    ],
)
def test_a_bad_file_of_criteria_is_refused_in_one_line(tmp_path: Path, content: str, match: str) -> None:
    file = tmp_path / "criteria.toml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=match) as error:
        read_criteria(file)
    assert str(error.value).startswith(str(file))
    assert len(str(error.value).splitlines()) == 1


def test_the_example_of_the_documentation_is_read(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "validation-pack.md").read_text(encoding="utf-8")
    file = tmp_path / "criteria.toml"
    file.write_text(page.split("```toml")[1].split("```")[0])
    found = read_criteria(file)
    assert {each.measure for each in found} == {*ThresholdMeasure}
    assert found[-1][:3] == ("risk_management", "no_skill", 0.4)


def test_a_criterion_on_what_was_not_run_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "criteria.toml"
    file.write_text('[[criterion]]\npart = "fundamental_analysis"\nmean = 0.5\n')
    with pytest.raises(InputError, match=r"criteria\.toml, criterion 1: no rows of fundamental_analysis under"):
        write_pack([small()], tmp_path / "out", today=TODAY, criteria=read_criteria(file))
    assert not (tmp_path / "out").exists()


def test_the_body_of_the_largest_pack_has_at_most_5000_words(edition_run: Path, tmp_path: Path, monkeypatch) -> None:
    """Nine models, their repeats, five programs, every cause of failure, and an audit full of findings."""
    models = synthetic_rows(9, episodes=6, repeats=2)
    programs = [
        models.filter(pl.col("model") == "provider/model-1").with_columns(model=pl.lit(f"baseline/{name}"))
        for name in ("trivial", "heuristic", "reference", "nop", "textbook")
    ]
    (one,) = read_runs([edition_run])
    rows = pl.concat([models, *programs])
    plain = {"arguments": "{}", "task_id": "task", "run_idx": 0, "score": 0.1, "evidence": "word " * 15}
    causes = (
        models.select("model", "condition")
        .unique()
        .join(pl.DataFrame({"cause": [*FailureCause]}), how="cross")
        .with_columns(**{name: pl.lit(value) for name, value in plain.items()}, causes=pl.concat_list("cause"))
    )
    monkeypatch.setattr("finskillbench.publish.pack.chapters.failures_of", lambda path: causes)
    found = [{**AUDIT["checks"][0]["findings"][0], "message": "word " * 20}] * 200
    audit = {**AUDIT, "digest": "0" * 64, "checks": [{**AUDIT["checks"][0], "findings": found}] * 39}
    limits = [Threshold("headline", "curated", 0.99, measure) for measure in ThresholdMeasure] * 6
    written = write_pack(
        [replace(one, rows=rows, missing=3)],
        tmp_path / "out",
        today=TODAY,
        checks=read_checks(evidence(tmp_path, {**CHECKS, "digest": "0" * 64}, "checks.json")),
        audit=read_audit(evidence(tmp_path, audit, "audit.json")),
        criteria=limits,
    )
    body = written.path.read_text(encoding="utf-8").split('<section id="appendix">')[0]
    assert len(Text(body).text.split()) <= 5_000
    assert "the appendix has all" in body


def test_every_table_of_figures_names_its_population(tmp_path: Path) -> None:
    written = write_pack([RunRows(Path("runs/all"), synthetic_rows(2, episodes=3, repeats=2))], tmp_path, today=TODAY)
    tables = written.path.read_text(encoding="utf-8").split('<h3 class="table">')[1:]
    assert len(tables) > 10
    assert [each[:40] for each in tables if "Population: " not in each and not each.startswith(STATEMENTS)] == []


def test_evidence_of_another_edition_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = read_checks(evidence(tmp_path, {**CHECKS, "digest": "f" * 64}, "checks.json"))
    with pytest.raises(InputError, match="--checks: is of edition ffffffffffff, and the rows are of eeeeeeeeeeee"):
        write_pack([small()], tmp_path / "out", today=TODAY, checks=other)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match=r"checks.json: not the output of finskillbench audit EDITION --json FILE"):
        read_audit(tmp_path / "checks.json")
    with pytest.raises(
        InputError, match=r"absent.json: cannot be read .*create it with finskillbench data validate EDITION --json"
    ):
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
    text = pack([evil], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["validation-pack.html"]
    assert {"script", "img", "link", "iframe"}.isdisjoint(text.tags)
    assert all(each.startswith("#") for each in text.fetched)
    assert "{{7*7}}" in text.text
    page = (tmp_path / "validation-pack.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in unescape(page)
    ids = set(re.findall(r'id="([^"]+)"', page))
    assert {each.removeprefix("#") for each in text.fetched} <= ids


def test_sensitivity_leaves_each_model_out(tmp_path: Path) -> None:
    text = pack([RunRows(Path("runs/all"), synthetic_rows(3, episodes=4))], tmp_path).text
    for model in ("provider/model-1", "provider/model-2", "provider/model-3"):
        assert f"without {model} curated - no_skill" in text
    assert "equal weight of subtasks curated - no_skill" in text


def test_the_command(edition_run: Path, tmp_path: Path, capsys) -> None:
    arguments = ["report", str(edition_run), "--format", "validation"]
    assert cli.main([*arguments, "--out", str(tmp_path / "pack"), "--fail-under", "headline=0.9"]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [str(tmp_path / "pack" / "validation-pack.html")]
    assert captured.err.splitlines()[-1].startswith("failed: headline of baseline/nop under no_skill is 0.0000")
    text = Text((tmp_path / "pack" / "validation-pack.html").read_text(encoding="utf-8")).text
    assert "every value is null, or the answer is empty" in text
    assert "finskillbench show RUN" in text
    assert "No language model was run. The program baseline/nop takes the place of a model." in text
    assert cli.main(arguments) == 2
    assert "--format validation writes a whole document into --out DIR" in capsys.readouterr().err


def test_the_command_exits_with_1_where_a_criterion_is_not_met(edition_run: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "criteria.toml"
    arguments = ["report", str(edition_run), "--criteria", str(file)]
    for mean, code in ((0.0, 0), (0.5, 1)):
        file.write_text(f"[[criterion]]\nmean = {mean}\n")
        assert cli.main([*arguments, "--format", "validation", "--out", str(tmp_path / "pack")]) == code
    assert "failed: headline of baseline/nop under no_skill is 0.0000, below 0.5" in capsys.readouterr().err
    assert cli.main(arguments) == 1  # in every format


@pytest.fixture
def edition_run(tmp_path: Path, capsys) -> Path:
    from tests.editions import write_edition
    from tests.publish.pack.tasks import tasks

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

    rows = [RunRows(Path("runs/all"), synthetic_rows(4, episodes=8, repeats=2))]
    file = write_pack(rows, tmp_path, today=TODAY).path
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

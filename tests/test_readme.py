"""What the README and the pages of docs/ name is there, and their tables are those of the code.

Their blocks of code are run by tests/website/test_blocks.py; here that Python of the README that ends in a table.
"""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest
from tests.small_rows import table

from finskillbench.edition import Edition
from finskillbench.harness.conditions import Condition
from finskillbench.harness.failures import OTHER_POLICIES, PROVIDER_POLICIES
from finskillbench.reports.report import report

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RUNNING = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
PAGES = {path.relative_to(ROOT).as_posix(): path for path in sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))}


def test_its_python_runs(edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """The agent of the README plays one subtask, earns something, and the table is printed."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", README, re.DOTALL))
    (tmp_path / "editions").mkdir()
    (tmp_path / "editions" / "seven").symlink_to(edition.path)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "curated - no_skill" in printed
    rows = pl.read_parquet(tmp_path / "runs" / "my-agent" / "rows.parquet")
    assert rows["model"].unique().to_list() == ["agent/my_agent"]
    assert rows["status"].unique().to_list() == ["scored"]
    means = dict(rows.group_by("condition").agg(pl.col("score").mean()).iter_rows())
    assert means["curated"] > 0.99


def test_its_table_is_the_one_that_a_run_of_the_programs_prints() -> None:
    programs = [f"baseline/{name}" for name in ("reference", "heuristic", "trivial", "nop")]
    arms = ("no_skill", "curated")
    rows = [(name, arm, "infeasibility_detection", "i0", 0.5, 0.5) for name in programs for arm in arms]
    printed = str(report(table(*rows, *((*row[:2], "rebalancing", "r0", 0.5, 0.5) for row in rows)))).splitlines()
    shown = README[README.index("```\nSubtask") :].splitlines()[1:5]
    assert [line.split() for line in shown[:1]] == [printed[2].split()]
    assert [line.split()[0] for line in shown[2:]] == [line.split()[0] for line in printed[5:7]]
    assert all(len(line) == len(shown[0]) for line in shown)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    """Every relative link and every `make ...` of a page leads somewhere."""
    text = PAGES[page].read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"(?:`|^    )make ([\w-]+)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link, anchor in set(re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]+)?\)", _without_code(text))):
        target = PAGES[page].parent / link if link else PAGES[page]
        assert target.exists(), link
        assert not anchor or anchor[1:] in _anchors(target.read_text(encoding="utf-8")), f"{link}{anchor}"


def _without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|^    .*?$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def _anchors(text: str) -> set[str]:
    """The anchors of a page's heads as GitHub, and the site, make them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_addresses_of_elsewhere_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """They are not asked for; whoever reads the log sees which there are. None is without a host or unencrypted."""
    texts = {name: _without_code(path.read_text(encoding="utf-8")) for name, path in PAGES.items()}
    found = {url: name for name, text in texts.items() for url in re.findall(r"\]\((http[^)\s]+)\)", text)}
    with capsys.disabled():
        print("\naddresses of elsewhere:", *sorted(found))
    assert all(re.match(r"https://[\w.-]+\.\w+/", f"{url}/") for url in found), found


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_of_the_house_exist(page: str) -> None:
    """A page that says where things are names files and folders that are there."""
    text = PAGES[page].read_text(encoding="utf-8")
    for path in set(re.findall(r"`((?:src|tests|docs|examples|benchmarks|requirements)/[\w./-]+)`", text)):
        assert (ROOT / path).exists(), path
    for path in set(re.findall(r"`((?:domains|edition|engines|harness|panels|runs|sandbox|sources)/[\w./-]+)`", text)):
        assert (ROOT / "src" / "finskillbench" / path).exists(), path


def test_its_table_of_failures_is_the_table() -> None:
    """Every row of the failure policy stands in the page as the code has it, and no other."""
    yes = {True: "yes", False: "no"}
    wanted = [
        f"| {name} | {each.meaning} | {yes[each.retried]} | {yes[each.graded]} | {each.stops} | {each.shown} |"
        for name, each in {**PROVIDER_POLICIES, **OTHER_POLICIES}.items()
    ]
    start = RUNNING.index("| cause | what it is |")
    assert RUNNING[start:].split("\n\n")[0].splitlines()[2:] == wanted


def test_its_conditions_are_the_conditions() -> None:
    """The table of arms names each of them once."""
    assert re.findall(
        r"^\| `(\w+)` \| .*\|$", RUNNING[RUNNING.index("## Conditions") :].split("## Runs")[0], re.MULTILINE
    ) == [condition.value for condition in Condition]

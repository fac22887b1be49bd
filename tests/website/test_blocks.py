"""Every block of code of every page runs, or says above it why it does not and is at least held to the command line.

An ordinary run of the tests reads all blocks and runs two cheap pages; a thorough one runs all of them.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import shlex
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.fixtures import Alone
from tests.sampling import THOROUGH, thorough
from tests.website import scene
from website.blocks import Block, BlockError, blocks_of, run_shell
from website.commands import walk
from website.journeys import EDITION, FOLDER, builds_the_edition, play, tutorials

import finskillbench
from finskillbench.cli import main
from finskillbench.edition import Edition, load_edition

ROOT = scene.ROOT
FILES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("packages/*/docs/*.md"))]
PAGES = {path.relative_to(ROOT).as_posix(): blocks_of(path.read_text(encoding="utf-8"), path.name) for path in FILES}
PYTHON = {"README.md": (), "docs/reports.md": ("rows",), "docs/running.md": ("edition", "my_agent")}
"""Pages whose Python is run by another test, or uses names that its reader has."""
CHEAP = {"docs/raw-data.md"}
"""Pages that need no edition."""


def _commands(block: Block, variables: Mapping[str, str]) -> Iterator[list[str]]:
    """The words of every call of the program in a block, up to what the shell does with its output."""
    text = re.sub(r"\$\(.*?\)", "1", block.text.replace("\\\n", " "))
    text = re.sub(r"\$([A-Z]+)", lambda found: variables.get(found[1], ""), text)
    for line in re.sub(r"cat > .*?\nEND\n?", "", text + "\n", flags=re.DOTALL).splitlines():
        words = shlex.split(line, comments=True) if line.strip().startswith("finskillbench ") else []
        if words:
            end = next((n for n, word in enumerate(words) if word in (">", "|", "&&", ";")), len(words))
            yield words[1:end]


def _in_sentences(page: str) -> Iterator[Block]:
    """The commands in the sentences of a page, each as a block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in re.finditer(r"(?<!`)`(finskillbench [^`]+)`", text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, line, "bash", " ".join(found[1].split()), None)


def _examples(words: tuple[str, ...], epilog: str) -> Block:
    """The examples of a command's help, without their remarks."""
    lines = epilog.replace("\b", "").partition(":")[2].replace(", then: ", "\n").splitlines()
    text = "\n".join(re.sub(r" {3,}\(.*\)$", "", line).strip() for line in lines)
    return Block(" ".join(words), 0, 0, "bash", text.replace("\\\n", "\\\n  "), None)


HELP = {" ".join(words): _examples(words, command.epilog or "") for words, command in walk()}
"""The examples of every help text."""
ABSENT = {
    "leaderboard build": "bundles of others",
    "drive": "an agent of the reader",
    "serve": "a client that connects",
    "data fetch": "the network",
    "data import": "the published release",
    "data build": "minutes",
    "demo": "minutes",
    "audit": "minutes",
    "data validate": "minutes",
    "doctor": "an answer that depends on the machine",
    "data doctor": "raw files",
    "skills eval": "a model for minutes",
    "submit": "an SSH key",
    "short-form": "runs of ten models",
}
"""Commands whose examples need what a test has not; their options are checked as of all."""
NOT_RUN = ("openai/", "mine/model", "inspect view", "results_all", "--shard", "some-program", "--catalog")
"""Words of examples that need a key, another program or minutes."""


@pytest.mark.slow
@pytest.mark.parametrize("page", [*PAGES, *HELP])
def test_every_command_of_a_page_is_one_with_such_options(page: str) -> None:
    """Read as the command line reads it: the command exists, it has these options, each with its value.

    Pages, the commands in their sentences, and the examples of help texts.
    """
    known = dict(walk())
    every = [HELP[page]] if page in HELP else [*PAGES[page], *([] if page == "CHANGELOG.md" else _in_sentences(page))]
    blocks = [block for block in every if block.language == "bash"]
    assert page not in HELP or f"finskillbench {page}" in HELP[page].text
    told = [re.findall(r'^([A-Z]+)="?([^"\n]*(?:\n +[^"]*)?)"?$', block.text, re.MULTILINE) for block in blocks]
    variables = {name: " ".join(value.split()) for found in told for name, value in found}
    for block in blocks:
        for words in _commands(block, variables):
            path = next((tuple(words[:length]) for length in (1, 2) if tuple(words[:length]) in known), None)
            assert path is not None, f"{block}: {' '.join(words)}"
            command, rest = known[path], list(words[len(path) :])
            context = command.make_context("finskillbench", [], resilient_parsing=True)
            _, left, _ = command.make_parser(context).parse_args(rest)
            assert not left, f"{block}: {left} is too much for {' '.join(words)}"


def test_every_other_block_is_what_it_says() -> None:
    """JSON, TOML and Python are read; targets of make and files of ours exist; what is not run says why."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for block in (block for blocks in PAGES.values() for block in blocks):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "python":
            compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)
        elif block.language == "bash":
            for target in re.findall(r"^make ([\w-]+)", block.text, re.MULTILINE):
                assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{block}: make {target}"
            for path in re.findall(r"(?:python|sh|bash) ((?:benchmarks|examples)/\S+)", block.text):
                assert (ROOT / path).exists(), f"{block}: {path}"
        else:
            assert block.language in ("text", "yaml", "csv"), f"{block}: {block.language}"
        assert block.not_run is None or len(block.not_run.split()) > 1, f"{block}: says too little"


def test_how_many_run_and_how_many_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers, for whoever reads a log; what needs a key, a container or other programs is the smaller part."""
    counted = Counter(_fate(page, block) for page, blocks in PAGES.items() for block in blocks)
    with capsys.disabled():
        print("\nblocks of the pages:", ", ".join(f"{number} {fate}" for fate, number in counted.most_common()))
    assert counted["run"] + counted["run where thorough"] > counted["read, not run"]


def _fate(page: str, block: Block) -> str:
    if block.language == "bash" and "journeys" not in page and scene.stands_in(block):
        return "run with a stand-in" if THOROUGH else "run with a stand-in where thorough"
    if block.not_run:
        return "read, not run"
    if block.language == "text":
        return "shown"
    ordinary = page in CHEAP or (page == "README.md" and block.language == "python")
    return "run" if THOROUGH or ordinary or block.language in ("json", "toml") else "run where thorough"


def _stands_for(folder: Path, raw: Path) -> dict[str, str]:
    first = json.loads((folder / EDITION / "episodes" / "rebalancing.jsonl").read_bytes().splitlines()[0])
    editions = {"EDITION": str(EDITION), "KNOWN": str(EDITION), "OTHER": "editions/eight"}
    return {"DIR": str(raw), "TASK_ID": first["task_id"], **editions}


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if scene.runnable(PAGES[page]) and "journeys" not in page])
def test_the_commands_of_a_page_run(
    page: str, synthetic_edition: Edition, synthetic_raw: Path, alone: Alone, tmp_path: Path
) -> None:
    """One after another in one shell, in a folder where lies what the page speaks of."""
    folder = _scene(alone, synthetic_edition, tmp_path)
    stands_for = _stands_for(folder, synthetic_raw)
    if page == "docs/raw-data.md":
        stands_for = {"OUT": "raw", "DIR": "raw"}
    ready = [scene.staged(block, stands_for, _given) for block in scene.runnable(PAGES[page])]
    cache = scene.cache_with_default(tmp_path / "cache", folder / EDITION)
    run_shell([scene.prelude(), *ready], folder, {"XDG_CACHE_HOME": str(cache)})


def _given(line: str) -> bool:
    """Whether a line builds the edition that lies there already."""
    return line.startswith("finskillbench data build --seed 7 --out editions/seven")


def _scene(alone: Alone, edition: Edition, tmp_path: Path) -> Path:
    """A copy of the folder that all processes of a test run share."""
    with alone("scene") as shared:
        made = shared / "scene"
        if not made.exists():
            scene.make(edition.path, shared / "scene.partial").rename(made)
    return Path(shutil.copytree(made, tmp_path / "here", symlinks=True))


@thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page, blocks in PAGES.items() if any(block.language == "python" for block in blocks)]
)
def test_the_python_of_a_page_runs(
    page: str, synthetic_edition: Edition, alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one namespace, with the names that the reader of the page has from the README."""
    folder = _scene(alone, synthetic_edition, tmp_path)
    monkeypatch.chdir(folder)

    async def my_agent(task: Any, tools: Any) -> dict[str, Any]:
        return {"weights": {}}

    edition = finskillbench.load_edition(folder / EDITION)
    space: dict[str, Any] = {"Path": Path, "run": finskillbench.run, "edition": edition, "my_agent": my_agent}
    space |= {"rows": pl.read_parquet("runs/mine/rows.parquet"), "models": ["baseline/reference"]}
    for block in PAGES[page]:
        if block.language == "python" and block.not_run is None:
            waiting = eval(compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), space)
            if inspect.isawaitable(waiting):
                asyncio.run(waiting)


@thorough
@pytest.mark.slow
def test_what_a_page_shows_as_printed_is_printed(
    synthetic_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan of docs/running.md to the last figure, which is the published ones'; of docs/skills.md every head."""
    edition = ["--edition", str(scene.first_episodes(synthetic_edition.path, tmp_path / "seven", 2))]
    arms = ["--condition", "no_skill", "--condition", "curated"]
    assert main(["plan", *edition, "--model", "openai/gpt-5", *arms, "--limit", "2"]) == 0
    (shown,) = [block.text for block in PAGES["docs/running.md"] if block.text.startswith("Expected ")]
    assert shown in capsys.readouterr().out
    ours = ROOT / "src" / "finskillbench" / "domains" / "risk" / "skill" / "risk-management"
    model = ["--model", "baseline/reference", "--limit", "1", "--out", str(tmp_path / "run")]
    assert main(["skills", "eval", str(ours), *edition, *model]) == 0
    printed = capsys.readouterr().out.splitlines()
    (shown,) = [block.text for block in PAGES["docs/skills.md"] if block.text.startswith("episodes of ")]
    heads = [line for line, rule in pairwise(shown.splitlines()) if set(rule) == {"-", " "}]
    assert len(heads) == 2
    for head in heads:
        assert head.split() in [line.split() for line in printed], head
    for word in re.findall(r"^([A-Z][\w ]+):", shown, re.MULTILINE):
        assert any(line.startswith(word) for line in printed), word


@thorough
@pytest.mark.slow
def test_the_examples_of_every_help_text_run(
    synthetic_edition: Edition, alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    """One after another in the folder that they speak of; a check may have found something."""
    folder = _scene(alone, synthetic_edition, tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(scene.cache_with_default(tmp_path / "cache", folder / EDITION)))
    shutil.copytree(EDITION, "editions/seven-again")
    Path("report").mkdir()
    Path("report", "index.html").touch()
    Path("run.toml").write_text('edition = "editions/seven"\nmodel = ["baseline/nop"]\nlimit = 1\n')
    assert main(["audit", str(EDITION), "--check", "distinct", "--json", "audit.json"]) in (0, 1)
    episodes = load_edition(folder / EDITION).episodes(["unconstrained_optimization", "normalization"])
    names = {"TASK_ID": episodes[0].task_id, "fa_norm_AAPL_2024-03-30": episodes[-1].task_id}
    failed: list[str] = []
    for block in (block for page, block in HELP.items() if page not in ABSENT):
        for words in _commands(block, {}):
            if not any(word in " ".join(words) for word in NOT_RUN):
                for name, value in names.items():
                    words = [word.replace(name, value) for word in words]
                files = [sorted(map(str, Path().glob(word))) if "*" in word else [word] for word in words]
                if main([word for each in files for word in each]) not in (0, 1):
                    failed.append(f"{' '.join(words)}: {capsys.readouterr().err.splitlines()[-1:]}")
    assert failed == []


@thorough
@pytest.mark.slow
def test_a_page_that_needs_no_edition_runs(tmp_path: Path) -> None:
    for page in CHEAP:
        ready = [scene.staged(block, {"OUT": "raw", "DIR": "raw"}, _given) for block in scene.runnable(PAGES[page])]
        assert ready
        run_shell([scene.prelude(), *ready], tmp_path)
    assert (tmp_path / "raw" / "README.md").read_text(encoding="utf-8").startswith("# ")


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("page", tutorials(), ids=lambda page: page.stem)
def test_a_tutorial_ends_in_its_figure(page: Path, synthetic_edition: Edition, tmp_path: Path) -> None:
    """As it stands, on an edition that is built already: every episode is scored, skills help, the figure says so."""
    figure = play(page, tmp_path, synthetic_edition.path).read_text(encoding="utf-8")
    assert figure.startswith("<svg")
    (file,) = tmp_path.glob("runs/*/rows.parquet")
    rows = pl.read_parquet(file)
    assert rows["status"].unique().to_list() == ["scored"]
    means = dict(rows.group_by("condition").agg(pl.col("score").mean()).iter_rows())
    assert means.pop("no_skill") < min(means.values())
    (difference,) = re.findall(r"<desc>[^<]*?([+-]\d\.\d+)", figure)  # the first: the headline, or the least of a map
    assert float(difference) > 0


def test_every_tutorial_builds_the_edition_and_says_the_line_to_change() -> None:
    for page in tutorials():
        blocks = blocks_of(page.read_text(encoding="utf-8"), page.name)
        assert sum(builds_the_edition(block) for block in blocks) == 1
        assert page.read_text(encoding="utf-8").count("this is the one line to change**") == 1
    assert [page.stem for page in tutorials()] == ["bring-an-agent", "evaluate-a-skill", "run-a-model"]
    assert FOLDER.is_dir()


def test_a_block_that_fails_is_named_with_what_it_printed(tmp_path: Path) -> None:
    text = (
        "# A\n\n    echo one\n\ntext\n\n<!-- not run: is away -->\n\n    make none\n\n```bash\necho two\nfalse\n```\n"
    )
    blocks = blocks_of(text, "page.md")
    assert [(block.first, block.language, block.not_run) for block in blocks] == [
        (3, "bash", None),
        (9, "bash", "is away"),
        (11, "bash", None),
    ]
    with pytest.raises(BlockError, match=r"page\.md:11: exit code 1\necho two\nfalse\ntwo"):
        run_shell(scene.runnable(blocks), tmp_path)

"""The folder that the pages speak of: editions, runs, skills and raw files under the names that their commands use."""

from __future__ import annotations

import gzip
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.editions import first_episodes
from website.blocks import Block

from finskillbench import load_edition, run
from finskillbench.cli import main
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn, Usage
from finskillbench.runs.plan import defaults

ROOT = Path(__file__).resolve().parents[2]
HOSTED = ("openai/gpt-5", "anthropic/claude-opus-4", "provider/model")
"""Models of which pages show runs; a stand-in plays under their names."""
RUNS = ("mine", "a", "b", "before", "after", "main", "branch")
FOUND_SOMETHING = ("audit", "compare", "data doctor", "data validate", "data canary")
"""Commands whose exit code 1 is an answer: a check found something."""


class StandIn:
    """Submits an empty portfolio, under the name of a hosted model."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        return Turn(
            tool_calls=(ToolCall("1", "submit_answer", '{"answer": "{}"}'),),
            usage=Usage(input_tokens=900, output_tokens=9),
        )


def make(edition: Path, folder: Path) -> Path:
    """Make the folder: three episodes of each subtask of an edition, and runs of one each under three conditions."""
    seven = first_episodes(edition, folder / "editions" / "seven", 3)
    first_episodes(edition, folder / "editions" / "eight", 2)
    for name in ("my-skills/mine", "skills/v1/one", "skills/v2/two"):
        assert main(["skills", "new", str(folder / name)]) == 0
    models = [*map(StandIn, HOSTED), "baseline/reference"]
    arms, given = ["no_skill", "curated"], {"mine": folder / "my-skills"}
    made = run(load_edition(seven), models, arms, skills=given, limit=1, out=folder / "runs" / "mine")
    assert "error" not in made.rows["status"]
    for name in RUNS[1:]:
        shutil.copytree(folder / "runs" / "mine", folder / "runs" / name)
    (folder / "editions" / "held-out").symlink_to("seven")
    (folder / "bundles").mkdir()
    bundle = ["--out", str(folder / "bundles" / "lab.zip"), "--name", "Lab", "--edition", str(seven), "--unsigned"]
    bundle += ["--partial", "one episode of each subtask"]
    assert main(["submit", str(folder / "runs" / "mine"), *bundle]) == 0
    (folder / "corpus").mkdir()
    with gzip.open(folder / "corpus" / "part-00.jsonl.gz", "wt") as corpus:
        corpus.write('{"text": "nothing of ours"}\n')
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    return folder


def cache_with_default(cache: Path, edition: Path) -> Path:
    """Put an edition where the default one is kept, under the name that it has for the code of today."""
    code = vars(defaults)["code_digest"](vars(defaults)["_BUILDERS"])
    folder = cache / "finskillbench" / "editions"
    folder.mkdir(parents=True)
    (folder / f"synthetic-{code[:12]}").symlink_to(edition.absolute())
    return cache


def runnable(blocks: Sequence[Block]) -> list[Block]:
    """The blocks for the shell that a test runs."""
    return [block for block in blocks if block.language == "bash" and block.not_run is None]


def staged(block: Block, stands_for: Mapping[str, str], given: Callable[[str], bool]) -> Block:
    """A block with what its capitals stand for, and without the lines that make what is given already."""
    kept = [line for line in block.text.splitlines() if not given(line)]
    text = re.sub(r" \[OTHER \.\.\.\]", "", "\n".join(kept))
    for word, value in stands_for.items():
        text = re.sub(rf"(?<=\s){word}(?=\s|$)", value, text)
    return Block(block.page, block.first, block.last, block.language, text, None)


def prelude() -> Block:
    """Lets the checks say that they found something, which ends no page."""
    answers = "|".join(f'"{name} "*' for name in FOUND_SOMETHING)
    text = f"""finskillbench() {{
    command finskillbench "$@" || {{
        code=$?
        case "$* " in {answers}) [ $code = 1 ] ;; *) return $code ;; esac
    }}
}}"""
    return Block("prelude", 0, 0, "bash", text, None)

"""The folder that the pages speak of: editions, runs, skills and raw files under the names that their commands use."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.editions import first_episodes
from website.blocks import Block

from finskillbench import load_edition, run
from finskillbench.cli import main
from finskillbench.episode import PAPER_SUITE
from finskillbench.runs.plan import streams

ROOT = Path(__file__).resolve().parents[2]
HOSTED = ("openai/gpt-5", "anthropic/claude-opus-4", "provider/model")
"""Models of which pages show runs; a stand-in plays under their names."""
SUBTASKS = ("unconstrained_optimization", "constraint_monitoring", "stress_testing", "normalization")
RUNS = ("mine", "a", "b", "before", "after", "main", "branch")
NEEDS_KEY = "needs a key of the provider"
"""Why most blocks do not run as they stand: a stand-in of the model's name plays them instead."""
_STANDS_IN = {r"openai/gpt-5": "standin:gpt", r"anthropic/claude-[\w-]+": "standin:claude"}
_ASKS_THE_PROVIDER = ("--batch", "--response-cache", "--harness hermes")
"""What only a provider's own model can do."""
STANDIN = """
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.providers.prices import Price


class StandIn:
    price = Price(1.0, 0.1, 1.0, 2.0)

    def __init__(self, name):
        self.name = name

    async def generate(self, messages, tools, tool_choice):
        used = Usage(input_tokens=900, output_tokens=9, cost_usd=0.001)
        return Turn(tool_calls=(ToolCall("1", "submit_answer", '{"answer": "{}"}'),), usage=used)


gpt, claude = StandIn("openai/gpt-5"), StandIn("anthropic/claude-sonnet-4-5")
"""
FOUND_SOMETHING = ("audit", "compare", "data diff", "data doctor", "data validate", "data canary")
"""Commands whose exit code 1 is an answer: a check found something."""


def make(edition: Path, folder: Path) -> Path:
    """Make the folder: two episodes of each subtask of an edition, and runs of some under three conditions."""
    seven = first_episodes(edition, folder / "editions" / "seven", 2)
    first_episodes(edition, folder / "editions" / "eight", 1)
    for name in ("my-skills/mine", "skills/v1/one", "skills/v2/two"):
        assert main(["skills", "new", str(folder / name)]) == 0
    space: dict[str, Any] = {}
    exec(STANDIN, space)
    models = [*map(space["StandIn"], HOSTED), "baseline/reference"]
    arms, given = ["no_skill", "curated"], {"mine": folder / "my-skills"}
    made = run(load_edition(seven), models, arms, SUBTASKS, skills=given, limit=1, out=folder / "runs" / "mine")
    assert "error" not in made.rows["status"]
    for name in RUNS[1:]:
        shutil.copytree(folder / "runs" / "mine", folder / "runs" / name)
    first = json.loads((seven / "episodes" / "rebalancing.jsonl").read_bytes().splitlines()[0])
    (folder / "answers.jsonl").write_text(json.dumps({"task_id": first["task_id"], "answer": "{}"}) + "\n")
    (folder / "corpus").mkdir()
    with gzip.open(folder / "corpus" / "part-00.jsonl.gz", "wt") as corpus:
        corpus.write('{"text": "nothing of ours"}\n')
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    (folder / "standin.py").write_text(STANDIN)
    return folder


def cache_with_default(cache: Path, edition: Path) -> Path:
    """Put an edition where the default one is kept, under the name that it has for the code of today."""
    code = vars(streams)["code_digest"](vars(streams)["_BUILDERS"])
    folder = cache / "finskillbench" / "editions"
    folder.mkdir(parents=True)
    (folder / f"{PAPER_SUITE}-{code[:12]}").symlink_to(edition.absolute())
    return cache


def runnable(blocks: Sequence[Block]) -> list[Block]:
    """The blocks for the shell that a test runs: as they stand, or with a stand-in for a hosted model."""
    return [block for block in blocks if block.language == "bash" and (block.not_run is None or stands_in(block))]


def stands_in(block: Block) -> bool:
    """Whether a block that needs a key is played by a stand-in."""
    return block.not_run == NEEDS_KEY and not any(word in block.text for word in _ASKS_THE_PROVIDER)


def staged(block: Block, stands_for: Mapping[str, str], given: Callable[[str], bool]) -> Block:
    """A block with what its capitals stand for, and without the lines that make what is given already."""
    kept = [line for line in block.text.splitlines() if not given(line)]
    if stands_in(block):
        kept = [line for line in kept if not line.startswith("make ")]
    text = re.sub(r" \[OTHER \.\.\.\]", "", "\n".join(kept))
    for name, standin in _STANDS_IN.items() if stands_in(block) else ():
        text = re.sub(rf"(?<=--model ){name}(?=\s|$)", standin, text)
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

"""Blocks of code in a Markdown page: found, told apart, and run as a reader would run them.

A block is fenced, with its language, or indented by four spaces. One that cannot run where the tests run has a comment
above it that says why: `<!-- not run: needs a key of the provider -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_COMMANDS = (
    "bash cat cd chromium cp cyclonedx-py docker echo export finskillbench git harbor ls make mkdir pip printf python "
    "sbatch sh skillevaluator"
)
SHELL_STARTS = frozenset(_COMMANDS.split(" "))
"""First words by which an indented block is one for the shell, beside `NAME=value`; others show a file or a picture."""
_REASON = re.compile(r"<!-- not run: (.+?) -->\s*$")
_MARK = "\x1e"
"""Stands before the output of each block: no command of ours prints it."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block: `language` is bash, python, json ..., or text where none is said; lines are counted from 1."""

    page: str
    first: int
    last: int
    language: str
    text: str
    not_run: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.first}"


class BlockError(Exception):
    """A block of a page ended with an error; the message has its place and what it printed."""


def blocks_of(markdown: str, page: str) -> list[Block]:
    """Every block of a page, in order."""
    lines = markdown.splitlines()
    found: list[Block] = []
    reason: str | None = None
    place = 0
    while place < len(lines):
        line = lines[place]
        if line.lstrip().startswith("```"):
            last = next(n for n in range(place + 1, len(lines)) if lines[n].lstrip() == "```")
            language = line.strip("` ").split(" ")[0] or "text"
            text = "\n".join(lines[place + 1 : last])
        elif line.startswith("    ") and (place == 0 or not lines[place - 1].strip()) and line.strip():
            last = _end_of_indented(lines, place)
            text = "\n".join(each[4:] for each in lines[place : last + 1])
            shell = text.split()[0] in SHELL_STARTS or re.match(r"[A-Za-z_]+=", text)
            language = "bash" if shell else "text"
        else:
            told = _REASON.match(line)
            reason = told[1] if told else reason if not line.strip() else None
            place += 1
            continue
        found.append(Block(page, place + 1, last + 1, language, text, reason))
        reason, place = None, last + 1
    return found


def _end_of_indented(lines: Sequence[str], start: int) -> int:
    """The last line of the indented block that begins at `start`: empty lines belong to it where it goes on."""
    last = start
    for number in range(start + 1, len(lines)):
        if lines[number].startswith("    "):
            last = number
        elif lines[number].strip():
            break
    return last


def run_shell(blocks: Sequence[Block], folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    """Run blocks for the shell one after another in one shell, where `finskillbench` is that of this interpreter.

    Returns what each printed, both streams together.

    Raises
    ------
    BlockError : a command failed; the blocks after it were not run.
    """
    script = ["set -euo pipefail"]
    for block in blocks:
        script += [f"printf '{_MARK}'", block.text]
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    printed = done.stdout.split(_MARK)[1:]
    if done.returncode:
        failed = blocks[max(len(printed) - 1, 0)]
        raise BlockError(
            f"{failed}: exit code {done.returncode}\n{failed.text}\n{printed[-1] if printed else done.stdout}"
        )
    return printed

"""The live view: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import re
from dataclasses import replace

from rich.console import Console
from tests.runs.examples import row

from finskillbench.cli.display.progress import Display
from finskillbench.episode import Status
from finskillbench.runs.execute.progress import start_progress

ROW = row(model="m/a", total_input_tokens=1_500, total_output_tokens=20, cost_usd=0.25)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def play(*, terminal: bool) -> tuple[str, Clock]:
    clock, out = Clock(), io.StringIO()
    board = start_progress(["m/a"] * 4 + ["m/b"], [ROW])
    console = Console(file=out, force_terminal=terminal, width=120, color_system=None)
    with Display(console, clock=clock) as display:
        display(board, None)
        for step in range(1, 3):
            clock.now += 6
            board.models["m/a"].ran += 1
            board.models["m/a"].add(replace(ROW, status=Status.ERROR if step == 2 else Status.SCORED, cost_usd=0.5))
            display(board, ROW)
        board.models["m/b"].add(replace(ROW, cost_usd=None))
        board.notice = "interrupted: finishing 2 episodes"
        display(board, None)
        display(board, None)
    return out.getvalue(), clock


def test_off_a_terminal_a_short_line_comes_at_most_every_ten_seconds() -> None:
    printed, _ = play(terminal=False)
    assert printed.splitlines() == [
        "Running 4 of 5 episodes",
        "3 of 5 episodes, 1 error, USD 1.25, 0:00:12 left",
        "interrupted: finishing 2 episodes",
    ]


def test_on_a_terminal_there_is_a_bar_for_each_model() -> None:
    printed, _ = play(terminal=True)
    text = re.sub(r"\x1b\[[0-9?]*[A-Za-z]", "", printed)
    assert re.search(r"m/a ━+ +3 of 4 episodes, 1 error, USD 1.25, 0:00:06 left", text)
    assert re.search(r"m/b +0 of 1 episodes, 0 errors, cost unknown", text)
    assert printed.count("interrupted: finishing 2 episodes") == 1

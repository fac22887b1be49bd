"""What a killed process had spent: it is known when the run goes on, never too cheaply."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from finskillbench.errors import InputError
from finskillbench.harness.conditions import Condition
from finskillbench.harness.model import Usage
from finskillbench.runs.plan.items import Item
from finskillbench.runs.store.dropped import FILE as DROPPED
from finskillbench.runs.store.dropped import read_dropped, spent
from finskillbench.runs.store.in_flight import FILE, InFlight, recover

ITEMS = [Item("fake/paid", Condition.NO_SKILL, f"pc_uncon_{number:03}", 0) for number in range(3)]
USAGE = Usage(input_tokens=1_000, output_tokens=50, cost_usd=0.25)

PROGRAM = """
import asyncio, importlib.util, os, sys, time
from pathlib import Path
spec = importlib.util.spec_from_file_location("parts", sys.argv[1])
parts = importlib.util.module_from_spec(spec)
spec.loader.exec_module(parts)
from finskillbench.harness.model import ToolCall, Turn, Usage
from finskillbench.harness.providers.prices import Price
from finskillbench.runs.execute.run import run

class Endless(parts.Paid):
    calls = 0
    async def generate(self, messages, tools, tool_choice):
        await asyncio.sleep(0.001)
        Endless.calls += 1
        if Endless.calls > 40:
            print(Endless.calls - 1, flush=True)
            time.sleep(60)
        read = ToolCall("r", "get_task_data", '{"field": "number"}')
        return Turn(tool_calls=(read,), usage=Usage(input_tokens=1_000, output_tokens=50))

run(parts.standard_edition(), [Endless(price=Price(2.0, 0.2, 2.5, 10.0))], ["no_skill"], out=Path(sys.argv[2]),
    max_concurrency=5, max_cost=100.0)
"""


def test_kill_9_does_not_make_a_budget_forget(tmp_path: Path) -> None:
    parts, out = Path(__file__).with_name("conftest.py"), tmp_path / "run"
    command = [sys.executable, "-c", PROGRAM, str(parts), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        calls = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    paid = calls * (1_000 * 2.0 + 50 * 10.0) / 1e6
    assert spent(out, {}) < paid
    assert recover(out) == 5
    # Five calls had been set aside for and not answered: they count at their upper bounds.
    assert paid <= spent(out, {}) < paid + 5 * 0.2
    assert recover(out) == 0


def test_what_was_closed_is_not_counted_again(tmp_path: Path) -> None:
    file = InFlight(tmp_path)
    for item in ITEMS:
        file.note(item, calls=0, usage=Usage(cost_usd=0.0), lost_usd=0.0, reserved_usd=0.5)
    file.note(ITEMS[0], calls=1, usage=USAGE, lost_usd=0.0)
    file.end(ITEMS[1])
    file.end(ITEMS[1])
    file.close()
    assert recover(tmp_path) == 2
    lines = read_dropped(tmp_path / DROPPED)
    assert [(line["task_id"], line["why"], line["cost_usd"], line["lost_usd"]) for line in lines] == [
        ("pc_uncon_000", "killed", 0.25, 0.0),
        ("pc_uncon_002", "killed", 0.0, 0.5),
    ]
    assert recover(tmp_path) == 0
    assert (tmp_path / FILE).read_bytes() == b""


def test_a_torn_last_line_is_dropped_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    file = InFlight(tmp_path)
    file.note(ITEMS[0], calls=1, usage=USAGE, lost_usd=0.0)
    file.close()
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    assert recover(tmp_path) == 1
    path.write_bytes(b"{}\n" + whole)
    with pytest.raises(InputError, match=r"in_flight\.jsonl, line 1"):
        recover(tmp_path)

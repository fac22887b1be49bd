"""Scratch folders: what they hold, and that removing them never holds up a call or the event loop."""

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from finskillbench.sandbox import runner as runner_module
from finskillbench.sandbox import scratch
from finskillbench.sandbox.limits import ScriptLimits
from finskillbench.sandbox.runner import ScriptRunner

Write = Callable[..., Path]

LITTER = """
    import os
    def main(payload):
        for number in range(10**9):
            os.mkdir(f"d{number}")
"""


def test_scratch_folders_of_any_shape_go(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    folder = tmp_path / "scratch"
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    program = "import os\nfor _ in range(1200):\n    os.mkdir('d' * 99); open('f', 'w').close(); os.chdir('d' * 99)"
    subprocess.run([sys.executable, "-c", program], cwd=folder, check=True)
    scratch.remove(folder)
    assert not folder.exists()
    assert (outside / "kept").exists()
    scratch.remove(folder)


@pytest.mark.slow
def test_removing_gives_up_in_time_and_the_bin_goes_on(tmp_path: Path) -> None:
    """Every level counts: a runner's folder holds scripts' folders, which hold what the scripts made."""
    root = tmp_path / "root"
    for number in range(3000):
        (root / "call" / f"d{number}" / "deeper").mkdir(parents=True)
    for folder in (root / "call", root):
        assert not scratch.remove(folder, 0.001)
        assert len(list((root / "call").iterdir())) > 1000
    bin_ = scratch.ScratchCleaner()
    bin_.discard(root)
    (deleter,) = bin_.pids
    assert Path(f"/proc/{deleter}/stat").read_text().rpartition(")")[2].split()[3] == str(deleter), "own session"
    bin_.close(60.0)
    assert not root.exists()
    assert bin_.pids == ()


def for_ever(folder: Path, seconds: float = math.inf) -> bool:
    """A removal that takes longer than anyone waits."""
    time.sleep(min(seconds, 20.0))
    return False


def test_a_call_does_not_wait_for_the_litter_of_the_last(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a kernel that cannot bound it. A server that removed the litter itself would be taken for hung here."""
    monkeypatch.setattr(runner_module, "_HANG_SECONDS", 2.0)
    (tmp_path / "unbounded.py").write_text(
        "import math, time\n"
        "from script_server import scratch\nfrom script_server.guards import confine\n"
        "confine.bound_folder = lambda *arguments: False\n"
        "def for_ever(folder, seconds=math.inf):\n"
        "    time.sleep(min(seconds, 20.0))\n"
        "    return False\n"
        "scratch.remove = for_ever\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    litter = write("import os\ndef main(payload):\n    os.makedirs('a/b')\n    return {'at': os.getcwd()}\n")

    async def story(runner: ScriptRunner) -> tuple[list[int | None], list[Path]]:
        servers, folders = [runner.server_pid], []
        for _ in range(3):
            result = await runner.run(litter, b"{}")
            assert result.output is not None, result.error
            servers.append(runner.server_pid)
            folders.append(Path(result.output["at"]))
        return servers, folders

    with ScriptRunner(ScriptLimits(wall_seconds=1.0), 1, preload=("unbounded",)) as runner:
        servers, folders = asyncio.run(story(runner))
        # The runner's own side: what the server has left is not removed in the event loop either.
        monkeypatch.setattr(scratch, "remove", for_ever)
    assert len(set(servers)) == 1
    assert len(set(folders)) == 3
    assert not any(folder.exists() or folder.parent.exists() for folder in folders)


def test_a_scratch_folder_holds_so_much_and_no_more(runner: ScriptRunner, write: Write) -> None:
    fill = """
        def main(payload):
            for number in range(100):
                with open(f"f{number}", "wb") as file:
                    file.write(bytes(1_000_000))
    """
    many, much = (asyncio.run(runner.run(write(text), b"{}")) for text in (LITTER, fill))
    if "wall time" in (many.error or ""):
        pytest.skip("this kernel does not let the runner mount, so nothing bounds a script's files but its time")
    for result in (many, much):
        assert "raised OSError: [Errno 28] No space left on device" in (result.error or "")

"""CPU time and memory of `finskillbench export`, per finished episode.

    python benchmarks/inspect_export.py [EPOCHS]   default: 10; 31 make 4,030 episodes (needs the extra llm)

The reference agent plays ten episodes of each of the 13 subtasks with its skills, EPOCHS times, and the run is
exported in a process of its own. All episodes go into one log, which is the most that is held at once.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from finskillbench.edition import build_edition
from finskillbench.runs.execute.run import run

_CHILD = """
import re, sys, time
from pathlib import Path
from finskillbench.integrations.logs import export_run

def peak():  # not getrusage, whose maximum begins with that of the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

before, start = peak(), time.process_time()
(log,) = export_run(Path(sys.argv[1]), Path(sys.argv[2]))
print(time.process_time() - start, before, peak(), log.stat().st_size / 1e6)
"""


def main(epochs: int) -> None:
    """Export one run and print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        edition = build_edition(source="synthetic", seed=1, out=Path(folder) / "edition")
        out = Path(folder) / "run"
        episodes = run(edition, ["baseline/reference"], ["curated"], limit=10, epochs=epochs, out=out).rows.height
        command = [sys.executable, "-c", _CHILD, str(out), str(Path(folder) / "logs")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds, before, peak, megabytes = map(float, done.stdout.split())
    print(f"{episodes} episodes in one log of {megabytes:.1f} MB")
    print(f"    {seconds * 1e3 / episodes:.1f} CPU ms an episode")
    print(f"    peak {peak:.0f} MB, of which {before:.0f} MB are Inspect and the tables imported")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)

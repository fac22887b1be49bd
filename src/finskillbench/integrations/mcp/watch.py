"""A process beside a run: kills the agents that are under way, with what they started, when the run dies.

A run that is killed outright cannot do that itself, and its agents would go on spending. Run by its path with
`python -I`; reads lines from its input: `+ PID FOLDER` when an agent is started, `- PID` when it has ended.
"""

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    """Take notes until the run closes its end, however it ends; then kill what is left and remove its folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    running: dict[int, str] = {}
    for line in sys.stdin:
        sign, pid, folder = line.rstrip("\n").split(" ", 2)
        if sign == "+":
            running[int(pid)] = folder
        else:
            running.pop(int(pid), None)
    for pid, folder in running.items():
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()

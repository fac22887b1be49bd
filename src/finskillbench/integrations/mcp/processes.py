"""Programs that run beside the commands of agents, by their path with `python -I`: they import nothing of this package.

`processes.py bridge ADDRESS` is what an MCP client starts: it passes bytes on between its own input and output and the
socket of an episode. `processes.py watch` runs beside a run and kills the agents that are under way, with what they
started, when the run dies: a run that is killed outright cannot do that itself, and its agents would go on spending.
"""

import os
import sys

_CHUNK = 65_536


def bridge(address: str) -> None:
    """Pass on what comes until the episode is over."""
    import socket
    import threading

    def forward() -> None:
        try:
            while chunk := os.read(0, _CHUNK):
                wire.sendall(chunk)
            wire.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the episode is over

    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(address)
        threading.Thread(target=forward, daemon=True).start()
        with open(1, "wb", buffering=0, closefd=False) as out:
            while chunk := wire.recv(_CHUNK):
                while chunk:
                    chunk = chunk[out.write(chunk) :]


def watch() -> None:
    """Read `+ PID FOLDER` and `- PID` lines until the run closes its end; then kill what is left, remove its folder."""
    import contextlib
    import shutil
    import signal

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
    try:
        watch() if sys.argv[1] == "watch" else bridge(sys.argv[2])
    except OSError as error:
        sys.exit(f"the episode is over ({error.strerror})")

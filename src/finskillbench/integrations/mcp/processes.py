"""Helper programs for commands of agents, started by path with `python -I`; they import nothing of this package.

An MCP client starts `processes.py bridge ADDRESS`, which connects its input and output to the socket of an episode.
`processes.py watch` accompanies a run and kills its agents if the run is killed.
"""

import os
import sys

_CHUNK = 65_536


def bridge(address: str) -> None:
    """Forward bytes in both directions until the episode is over."""
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
    """Read `+ PID FOLDER` and `- PID` lines until the pipe closes; then kill the rest and remove their folders."""
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

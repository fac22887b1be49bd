"""A program that an MCP client starts: passes bytes on between its own input and output and the socket of an episode.

Run by its path with `python -I`: it imports nothing of this package, so that it starts in a few milliseconds.
"""

import os
import socket
import sys
import threading

_CHUNK = 65_536


def _forward(wire: socket.socket) -> None:
    """From the client to the episode."""
    try:
        while chunk := os.read(0, _CHUNK):
            wire.sendall(chunk)
        wire.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the episode is over


def main(address: str) -> None:
    """Pass on what comes until the episode is over."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(address)
        threading.Thread(target=_forward, args=(wire,), daemon=True).start()
        with open(1, "wb", buffering=0, closefd=False) as out:
            while chunk := wire.recv(_CHUNK):
                while chunk:
                    chunk = chunk[out.write(chunk) :]


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"the episode is over ({error.strerror})")

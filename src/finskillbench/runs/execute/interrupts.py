"""Ctrl-C twice: the first is a request, the second an order; so is a request to terminate."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def interrupts(ask: Callable[[], None], order: Callable[[], None]) -> Generator[None]:
    """While this lasts, the first SIGINT calls `ask`, each later one and SIGTERM call `order`, in the running loop.

    Outside the main thread, which alone receives signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    asked = False

    def interrupted() -> None:
        nonlocal asked
        (order if asked else ask)()
        asked = True

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    loop.add_signal_handler(signal.SIGINT, interrupted)
    loop.add_signal_handler(signal.SIGTERM, order)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            if handler is not None:
                signal.signal(number, handler)

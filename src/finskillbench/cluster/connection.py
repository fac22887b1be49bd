"""A connection to a cluster whose workers have been looked at: every one runs this version of this library.

Whatever is wrong is one line that names the scheduler or the worker, and the remedy.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import logging
import platform
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from finskillbench.errors import InputError

EXTRA = 'make cluster, or: pip install "finskillbench[cluster]"'
CONNECT_SECONDS = 10.0
"""How long a scheduler may take to answer, and a cluster to have its first worker."""
ANSWER_SECONDS = 600.0
"""How long a worker may take to say what it has: it may have to import everything, or to finish a task of others."""
GONE = (OSError, RuntimeError, KeyError, ValueError)
"""What Dask raises where a scheduler or a client is gone: lost connections, closed clients, unknown queues."""
_LIBRARIES = ("numpy", "scipy", "polars", "clarabel", "pydantic", "msgspec", "orjson")
"""What a truth, a row or a message can depend on."""


def require_extra() -> None:
    """Refuse a cluster, as `InputError`, where the package that speaks with it is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise InputError(f"--cluster needs the extra cluster; install it: {EXTRA}")


@cache
def facts() -> Mapping[str, str]:
    """What must be the same in all processes that work together: this library to the byte, and what it stands on.

    It is looked at once, when a process is first asked: what it has imported does not change after that either.
    """
    found = {"python": ".".join(platform.python_version_tuple()[:2]), "finskillbench": version("finskillbench")}
    found |= {name: version(name) for name in _LIBRARIES}
    return found | {"code": _code_digest()}


def _code_digest() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).resolve().parents[1]
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Connection:
    """A scheduler and what it says of its workers.

    Parameters
    ----------
    address : of the scheduler, as the user gave it.
    client : an asynchronous client of Dask's, which comes without types.
    """

    def __init__(self, address: str, client: Any) -> None:
        self.address, self.client = address, client
        self._facts = facts()

    async def workers(self) -> tuple[str, ...]:
        """Addresses of the worker processes that are there now; raises `InputError` where the scheduler is gone."""
        try:
            told = await self.client.scheduler.identity(n_workers=-1)
        except OSError as error:
            raise InputError(
                f"--cluster {self.address}: the scheduler is gone ({error}); start it, the same command goes on"
            ) from None
        return tuple(told["workers"])

    async def first_workers(self, seconds: float = CONNECT_SECONDS) -> tuple[str, ...]:
        """The workers, of which the first may take some time to come.

        Raises
        ------
        InputError : there is none.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while not (found := await self.workers()):
            if clock() >= until:
                raise InputError(
                    f"--cluster {self.address}: it has no workers; start some: dask worker {self.address} --nthreads 1"
                )
            await asyncio.sleep(0.1)
        return found

    def on(self, worker: str, function: Callable[..., Any], *arguments: Any, key: object = None) -> Any:
        """The future of a task that runs on one worker and nowhere else, and is not tried again where it fails."""
        return self.client.submit(
            *(function, *arguments), key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    async def outcome(self, future: Any) -> object:
        """What a future of Dask's came to, or the error that it ended with."""
        ends = cast("list[object]", await asyncio.gather(future, return_exceptions=True))
        return ends[0]

    async def outcomes(self, futures: Mapping[str, Any]) -> dict[str, Any]:
        """What futures by worker came to, or the errors that they ended with.

        Raises
        ------
        InputError : a worker does not answer.
        """
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                ends = await asyncio.gather(*futures.values(), return_exceptions=True)
        except TimeoutError:
            silent = [worker for worker, each in futures.items() if not each.done()]
            raise InputError(
                f"worker {(silent or list(futures))[0]}: no answer in {ANSWER_SECONDS:g} seconds; is it busy "
                "with other tasks, or gone? the same command tries again"
            ) from None
        return dict(zip(futures, ends, strict=True))

    async def ask(self, workers: Sequence[str], function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """What a function returns on each of some workers; errors as of `outcomes`, and those of the function."""
        ends = await self.outcomes({worker: self.on(worker, function, *arguments) for worker in workers})
        for end in ends.values():
            if isinstance(end, BaseException):
                raise end
        return list(ends.values())

    async def check(self, workers: Sequence[str]) -> None:
        """Look at workers.

        Raises
        ------
        InputError : one lacks this library, or has another version of it or of what it stands on.
        """
        found = await self.ask(workers, _look())
        for worker, told in zip(workers, found, strict=True):
            if problem := self._problem(told):
                raise InputError(f"worker {worker}: {problem}")

    def _problem(self, told: Mapping[str, str]) -> str:
        if "missing" in told:
            return f"finskillbench cannot be imported there ({told['missing']}); install this version on every worker"
        for name, here in self._facts.items():
            if (there := told.get(name)) != here:
                what = "finskillbench of the same number but other code" if name == "code" else f"{name} {there}"
                return f"it has {what}, the driver has {here}; install the same on both"
        return ""


def _look() -> Callable[[], dict[str, str]]:
    """A function that finds itself without this library, since it travels by value as every inner one does."""

    def look() -> dict[str, str]:
        try:
            from finskillbench.cluster.connection import facts as found
        except ImportError as error:
            return {"missing": str(error)}
        return dict(found())

    return look


@asynccontextmanager
async def connected(address: str) -> AsyncGenerator[Connection]:
    """Connect to a scheduler and look at all of its workers.

    Raises
    ------
    InputError : the extra is not installed, nobody answers, there are no workers, or one of them will not do.
    """
    require_extra()
    from distributed import Client

    make: Any = Client  # it comes without types
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)  # what fails is told in a line of ours
    try:
        client = await make(address, asynchronous=True, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        log.setLevel(before)
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"--cluster {address}: no scheduler answers there ({told}); start one with: dask scheduler"
        ) from None
    try:
        connection = Connection(address, client)
        await connection.check(await connection.first_workers())
        yield connection
    finally:
        with suppress(OSError, TimeoutError):
            await client.close()
        log.setLevel(before)

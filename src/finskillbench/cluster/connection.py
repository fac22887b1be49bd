"""Connection to a Dask cluster; its workers must all run this version of the library."""

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
"""Timeout of the scheduler's first answer and of the first worker's arrival."""
ANSWER_SECONDS = 600.0
"""Timeout of a worker's answer: it may import everything or finish a task of another client first."""
GONE = (OSError, RuntimeError, KeyError, ValueError)
"""Exceptions Dask raises for lost connections, closed clients and unknown queues."""
_LIBRARIES = ("numpy", "scipy", "polars", "clarabel", "pydantic", "msgspec", "orjson")
"""Packages that a truth, a row or a message can depend on."""


def require_cluster_extra() -> None:
    """Raise `InputError` if the package `distributed` is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise InputError(f"--cluster needs the extra cluster; install it: {EXTRA}")


@cache
def facts() -> Mapping[str, str]:
    """Return versions and a code digest, cached per process; cooperating processes must have equal ones."""
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
    """A scheduler and its workers.

    Parameters
    ----------
    address : of the scheduler, as the user gave it.
    client : an asynchronous Dask client, which is untyped.
    """

    def __init__(self, address: str, client: Any) -> None:
        self.address, self.client = address, client
        self._facts = facts()

    async def workers(self) -> tuple[str, ...]:
        """Return the current workers' addresses; raise `InputError` if the scheduler is gone."""
        try:
            identity = await self.client.scheduler.identity(n_workers=-1)
        except OSError as error:
            raise InputError(
                f"--cluster {self.address}: the scheduler is gone ({error}); start it and rerun the command to resume"
            ) from None
        return tuple(identity["workers"])

    async def first_workers(self, seconds: float = CONNECT_SECONDS) -> tuple[str, ...]:
        """Wait for the first worker and return all; raise `InputError` if none appears in time."""
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while not (found := await self.workers()):
            if clock() >= until:
                raise InputError(
                    f"--cluster {self.address}: the scheduler has no workers; "
                    f"start one: dask worker {self.address} --nthreads 1"
                )
            await asyncio.sleep(0.1)
        return found

    def on(self, worker: str, function: Callable[..., Any], *arguments: Any, key: object = None) -> Any:
        """Submit a task to one worker only, without retries, and return its future."""
        return self.client.submit(
            *(function, *arguments), key=key, workers=[worker], allow_other_workers=False, pure=False, retries=0
        )

    async def outcome(self, future: Any) -> object:
        """Return the result of a Dask future, or the error it ended with."""
        ends = cast("list[object]", await asyncio.gather(future, return_exceptions=True))
        return ends[0]

    async def outcomes(self, futures: Mapping[str, Any]) -> dict[str, Any]:
        """Return each future's result or error, by worker; raise `InputError` if a worker does not answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                ends = await asyncio.gather(*futures.values(), return_exceptions=True)
        except TimeoutError:
            silent = [worker for worker, each in futures.items() if not each.done()]
            raise InputError(
                f"worker {(silent or list(futures))[0]}: no answer in {ANSWER_SECONDS:g} seconds; check "
                "that it is alive and not busy, then rerun the command"
            ) from None
        return dict(zip(futures, ends, strict=True))

    async def ask(self, workers: Sequence[str], function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Run a function on each worker and return the results; raise as `outcomes`, and the function's errors."""
        ends = await self.outcomes({worker: self.on(worker, function, *arguments) for worker in workers})
        for end in ends.values():
            if isinstance(end, BaseException):
                raise end
        return list(ends.values())

    async def check(self, workers: Sequence[str]) -> None:
        """Raise `InputError` if a worker lacks this library, or has another version of it or of a dependency."""
        found = await self.ask(workers, _look())
        for worker, reported in zip(workers, found, strict=True):
            if problem := self._problem(reported):
                raise InputError(f"worker {worker}: {problem}")

    def _problem(self, reported: Mapping[str, str]) -> str:
        if "missing" in reported:
            return f"cannot import finskillbench ({reported['missing']}); install this version on every worker"
        for name, expected in self._facts.items():
            if (there := reported.get(name)) != expected:
                what = "different finskillbench code under the same version" if name == "code" else f"{name} {there}"
                return f"has {what}, the driver has {expected}; install the same version on both"
        return ""


def _look() -> Callable[[], dict[str, str]]:
    """Return a self-contained function; as an inner function it is pickled by value, without this library."""

    def look() -> dict[str, str]:
        try:
            from finskillbench.cluster.connection import facts as found
        except ImportError as error:
            return {"missing": str(error)}
        return dict(found())

    return look


@asynccontextmanager
async def connected(address: str) -> AsyncGenerator[Connection]:
    """Connect to a scheduler and check all of its workers; raise `InputError` if any of this fails."""
    require_cluster_extra()
    from distributed import Client

    make: Any = Client  # untyped
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)  # failures are reported in our own message
    try:
        client = await make(address, asynchronous=True, set_as_default=False, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        log.setLevel(before)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"--cluster {address}: no scheduler answers ({reason}); start one with: dask scheduler"
        ) from None
    try:
        connection = Connection(address, client)
        await connection.check(await connection.first_workers())
        yield connection
    finally:
        with suppress(OSError, TimeoutError):
            await client.close()
        log.setLevel(before)

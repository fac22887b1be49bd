"""Inside the forked child: confine it, wait for one order, run `main(payload)`, leave what came of it, end.

Nothing here returns to the server's code. Payload and result stay in a file in memory that the call's owner has made
and the server only hands on, so that no later child can find them in what it was forked from. What kind of result it
is leaves through a pipe, behind a token that only this call has, so that nothing a script prints or leaves behind on
other descriptors can pass for a result.
"""

import contextlib
import fcntl
import json
import math
import os
import socket
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from . import frames
from .guards import calls, confine
from .limits import Limits, size

try:
    from orjson import loads
except ImportError:  # in an interpreter of somebody's own
    from json import loads

TOKEN_BYTES = 16
# What follows the token.
RESULT, FAILURE, NOTHING = b"R", b"E", b"N"

MODULE = "called_script"
_RESULT_FD, _ORDER_FD = 3, 4
_CHUNK = 1024 * 1024
_ERROR_CHARS, _TRACEBACK_CHARS = 600, 8_000
# Where the kernel lets us bound a scratch folder it holds this many files of the largest size, of this many in all.
_SCRATCH_FILES_FULL, _SCRATCH_ENTRIES = 4, 4096


class BadResult(Exception):  # noqa: N818 - says what came back, nothing was raised by the script
    """`main` returned something that is not a JSON object of finite numbers."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What the warm parent tells every child at its fork.

    `guards` says which hold here, `readable` what a script may read besides its own package and with which rights,
    `threads` whether it may start threads, `base_memory` the address space of the parent in bytes, `server` the
    parent's process id, `codes` the scripts it has compiled, by digest, `warm_up` the work that a child does before its
    order comes. `forget` drops in a child what the parent's loop holds of other calls.
    """

    limits: Limits
    guards: Mapping[str, bool]
    readable: Sequence[tuple[Path, int]]
    threads: bool
    base_memory: int
    keep_reading: bool
    server: int
    codes: dict[str, types.CodeType]
    warm_up: Callable[[], None]
    forget: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Order:
    """One call: the script's path and text, the digest of both, and folders that are open to this call alone."""

    script: Path
    digest: str
    source: bytes
    folders: tuple[Path, ...]


def send_order(channel: socket.socket, order: Order, descriptors: Sequence[int]) -> None:
    """Hand `order` to a waiting child, with the descriptors of its memory file and of the pipe for what it prints."""
    folders = [str(folder) for folder in order.folders]
    header = {"script": str(order.script), "digest": order.digest, "folders": folders}
    data = memoryview(frames.encode(header, order.source))
    sent = socket.send_fds(channel, [data], descriptors)
    if sent < len(data):  # a child that has all of it may have hung up by now
        channel.sendall(data[sent:])


def run_child(setting: Setting, token: bytes, scratch: Path, order: int, result: int, *, warm: bool) -> NoReturn:
    """Confine this process, wait for an order on the socket `order`, carry it out, end; never returns."""
    status = 1
    limits = setting.limits
    script, memory = Path(), -1
    try:
        setting.forget()  # first: it closes descriptors, whose numbers are given again below
        _take_descriptors(order, result)
        channel = socket.socket(fileno=_ORDER_FD)
        rules = _confine(setting, scratch)
        # Every page that is first written after a fork is copied then: some 800 of them, 4 ms, in the course of a
        # small optimisation. Doing one while nobody waits takes that out of the call; else it is a quarter of what the
        # call costs.
        if warm:
            with contextlib.suppress(Exception):
                setting.warm_up()
        task, memory = _await_order(channel)
        script, code = task.script, setting.codes.get(task.digest)
        setting.codes.clear()  # a script reaches its callers, and what they hold
        if rules is not None:
            for folder in (_package(script), *task.folders):
                confine.add_rule(rules, folder, confine.FS_READ)
            confine.landlock(rules)
        _send(token, memory, *_outcome(task, memory, code, limits))
        status = 0
    except BaseException as error:  # noqa: BLE001 - this process must end here, not in the server's loop
        with contextlib.suppress(BaseException):
            _send(token, memory, FAILURE, _failure(error, script, limits))
    finally:
        os._exit(status)


def _package(script: Path) -> Path:
    """What a script may read of its own: the folder above `scripts`, or the one it lies in."""
    return script.parent.parent if script.parent.name == "scripts" else script.parent


def _take_descriptors(order: int, result: int) -> None:
    """Put the channels where they belong, nothing on the standard streams, and close everything else."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    wanted = [nothing, nothing, nothing, result, order]
    # Out of the way first, so that no target is still needed as a source.
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in wanted]
    for target, source in enumerate(high):
        os.dup2(source, target, inheritable=target < _RESULT_FD)
    os.closerange(len(high), os.sysconf("SC_OPEN_MAX"))


def _confine(setting: Setting, scratch: Path) -> int | None:
    """User, limits, kernel calls; returns the rules for files, which are applied once the script is known."""
    confine.bound_folder(scratch, _SCRATCH_FILES_FULL * setting.limits.file_bytes, _SCRATCH_ENTRIES)
    os.chdir(scratch)
    os.environ.update(HOME=str(scratch), TMPDIR=str(scratch))
    confine.drop_privileges(keep_reading=setting.keep_reading)
    if os.getppid() != setting.server:
        os._exit(1)  # it died before the signal at its death was asked for
    limits = setting.limits
    confine.limit_resources(
        cpu_seconds=math.ceil(limits.cpu_seconds),
        memory_bytes=setting.base_memory + limits.memory_bytes,
        file_bytes=limits.file_bytes,
        threads=setting.threads,
    )
    rules = confine.rules(setting.readable, scratch)
    if setting.guards["calls"]:
        calls.restrict(threads=setting.threads)
    return rules


def _await_order(channel: socket.socket) -> tuple[Order, int]:
    """The order, and the descriptor of the memory file that comes with it; prints go where they should from here on."""
    reader = frames.FrameReader()
    received: list[int] = []
    with channel:
        while True:
            data, descriptors, _, _ = socket.recv_fds(channel, _CHUNK, 2)
            received += descriptors
            if not data:
                os._exit(0)  # no order will come: the server is done with this child
            for header, source in reader.feed(data):
                memory, printed = received
                for stream in (1, 2):
                    os.dup2(printed, stream)
                os.close(printed)
                folders = tuple(map(Path, header["folders"]))
                return Order(Path(header["script"]), header["digest"], source, folders), memory


def _outcome(order: Order, memory: int, code: types.CodeType | None, limits: Limits) -> tuple[bytes, bytes]:
    """Kind and body of what the script gave; an exception of the script is an outcome too."""
    try:
        payload = loads(os.pread(memory, os.fstat(memory).st_size, 0))
    except ValueError as error:
        return FAILURE, f"the payload is not JSON: {error}".encode()
    if not isinstance(payload, dict):
        return FAILURE, f"the payload is a JSON {type(payload).__name__}, expected an object".encode()
    try:
        result = _main(order, code)(payload)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if result is None:
            return NOTHING, b""
        body = encode_result(result)
    except BaseException as error:  # noqa: BLE001 - SystemExit and KeyboardInterrupt are the script's doing as well
        return FAILURE, _failure(error, order.script, limits)
    limit = limits.result_bytes
    if len(body) > limit:
        return FAILURE, f"returned {size(len(body))} of JSON, more than the {size(limit)} allowed".encode()
    return RESULT, body


def _main(order: Order, code: types.CodeType | None) -> Any:
    """Execute the script as a module and take its `main`."""
    sys.dont_write_bytecode = True
    sys.argv = [str(order.script)]
    # As `python script.py` would: a script may import its neighbours.
    sys.path.insert(0, str(order.script.parent))
    module = types.ModuleType(MODULE)
    module.__file__ = str(order.script)
    sys.modules[MODULE] = module
    exec(code or compile_script(order.source, order.script), module.__dict__)
    main = getattr(module, "main", None)
    if not callable(main):
        raise BadResult("has no function main(payload: dict) -> dict")
    return main


def compile_script(source: bytes, script: Path) -> types.CodeType:
    """The code of a script, with its path as file name so that errors can name the line."""
    return compile(source, str(script), "exec", dont_inherit=True)


def encode_result(result: object) -> bytes:
    """JSON of what `main` returned; BadResult, naming the place, unless it is an object of finite JSON values."""
    if not isinstance(result, dict):
        raise BadResult(f"returned {type(result).__name__}, expected an object")
    try:
        _check(cast("dict[object, object]", result), "")
        return json.dumps(result, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadResult(f"returned something that is not JSON: {error}") from None
    except RecursionError:
        raise BadResult("returned an object that is nested too deeply or contains itself") from None


def _check(value: object, where: str) -> None:
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            if not isinstance(key, str):
                raise BadResult(f"returned a key of type {type(key).__name__} at {where or 'the top'}, expected text")
            _check(item, f"{where}.{key}" if where else key)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(cast("Sequence[object]", value)):
            _check(item, f"{where}[{index}]")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise BadResult(f"returned {value} at {where}, expected finite numbers")
    elif not (value is None or isinstance(value, str | int)):
        raise BadResult(f"returned a value of type {type(value).__name__} at {where}, which is not JSON")


def _failure(error: BaseException, script: Path, limits: Limits) -> bytes:
    """One line on an exception for the agent, and behind it the traceback for the log."""
    trace = ""
    # The exception belongs to the script: putting it into words may raise, or need memory that is not there.
    with contextlib.suppress(BaseException):
        trace = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS:]
    line = " ".join(_describe(error, script, limits).split())
    return f"{line}\n{trace}".encode("utf-8", "backslashreplace")


def _describe(error: BaseException, script: Path, limits: Limits) -> str:
    """One line on an exception, with the last line of the script that it passed through."""
    if isinstance(error, BadResult):
        return str(error)
    if isinstance(error, MemoryError):
        return f"used more than {size(limits.memory_bytes)} of memory"
    line, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == str(script):
            line = step.tb_lineno
        step = step.tb_next
    if isinstance(error, SyntaxError) and line is None:
        line = error.lineno
    place = f" ({script.name}:{line})" if line is not None else ""
    try:
        text = " ".join(str(error).split())[:_ERROR_CHARS]
    except Exception:  # noqa: BLE001 - __str__ belongs to the script
        text = "an error that cannot be shown"
    if isinstance(error, SystemExit):
        return f"called sys.exit({text}) instead of returning an object{place}"
    return f"raised {type(error).__name__}: {text}{place}" if text else f"raised {type(error).__name__}{place}"


def _send(token: bytes, memory: int, kind: bytes, body: bytes) -> None:
    """Leave the body in the memory file, in place of the payload, and say of what kind it is."""
    os.ftruncate(memory, 0)
    os.pwrite(memory, body, 0)
    os.write(_RESULT_FD, token + kind)

"""Code of the forked child: confine it, wait for one request, run `main(payload)`, send the result, exit.

Control never returns to the server's code. Payload and result stay in a memory file that the server only forwards, so
that later children cannot read them. The result's kind goes through a pipe after a token of this call, so that script
output cannot pass for a result.
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
from .limits import ScriptLimits, format_size

try:
    from orjson import loads
except ImportError:  # custom interpreters may lack orjson
    from json import loads

TOKEN_BYTES = 16
# Message kinds, sent after the token.
RESULT, FAILURE, NOTHING = b"R", b"E", b"N"

MODULE = "called_script"
_RESULT_FD, _REQUEST_FD = 3, 4
_CHUNK = 1024 * 1024
_ERROR_CHARS, _TRACEBACK_CHARS = 600, 8_000
# Size of a bounded scratch folder: this many files of the largest size, and this many entries.
_SCRATCH_FILES_FULL, _SCRATCH_ENTRIES = 4, 4096


class BadResult(Exception):  # noqa: N818 - names the result, not an error of the script
    """`main` returned no JSON object of finite numbers."""


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """Settings that children inherit at the fork.

    `guards` states which guards hold, `readable` the readable paths with their rights, `base_memory` the parent's
    address space in bytes, `server` its process id. `codes` holds compiled scripts by digest. `warm_up` is the child's
    work before its request; `forget` drops the parent's data of other calls.
    """

    limits: ScriptLimits
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
class CallRequest:
    """One call: the script's path and source, their digest, and the folders readable in this call."""

    script: Path
    digest: str
    source: bytes
    folders: tuple[Path, ...]


def send_request(channel: socket.socket, request: CallRequest, descriptors: Sequence[int]) -> None:
    """Send a request to a waiting child, with the descriptors of its memory file and output pipe."""
    folders = [str(folder) for folder in request.folders]
    header = {"script": str(request.script), "digest": request.digest, "folders": folders}
    data = memoryview(frames.encode_frame(header, request.source))
    sent = socket.send_fds(channel, [data], descriptors)
    if sent < len(data):  # the child may have closed after reading everything
        channel.sendall(data[sent:])


def run_child(
    config: ChildConfig, token: bytes, scratch: Path, request_fd: int, result_fd: int, *, warm: bool
) -> NoReturn:
    """Confine this process, wait for a request, execute it and exit; never returns."""
    status = 1
    limits = config.limits
    script, memory = Path(), -1
    try:
        config.forget()  # first: closes descriptors whose numbers are reused below
        _take_descriptors(request_fd, result_fd)
        channel = socket.socket(fileno=_REQUEST_FD)
        rules = _confine(config, scratch)
        # The first write to a page after a fork copies it: about 800 pages, 4 ms, in a small optimisation. Running one
        # while idle
        # saves that time, a quarter of the call.
        if warm:
            with contextlib.suppress(Exception):
                config.warm_up()
        task, memory = _await_request(channel)
        script, code = task.script, config.codes.get(task.digest)
        config.codes.clear()  # scripts can reach their callers' objects
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
    """Return the package folder a script may read: the parent of `scripts`, or the script's own folder."""
    return script.parent.parent if script.parent.name == "scripts" else script.parent


def _take_descriptors(request_fd: int, result_fd: int) -> None:
    """Move the channels to fixed descriptors, redirect standard streams to null, and close the rest."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    wanted = [nothing, nothing, nothing, result_fd, request_fd]
    # Duplicate above the targets first, so that no target is still a source.
    high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10) for descriptor in wanted]
    for target, source in enumerate(high):
        os.dup2(source, target, inheritable=target < _RESULT_FD)
    os.closerange(len(high), os.sysconf("SC_OPEN_MAX"))


def _confine(config: ChildConfig, scratch: Path) -> int | None:
    """Drop privileges, limit resources and kernel calls; return the file rules, to be applied after the request."""
    confine.bound_folder(scratch, _SCRATCH_FILES_FULL * config.limits.file_bytes, _SCRATCH_ENTRIES)
    os.chdir(scratch)
    os.environ.update(HOME=str(scratch), TMPDIR=str(scratch))
    confine.drop_privileges(keep_reading=config.keep_reading)
    if os.getppid() != config.server:
        os._exit(1)  # the server died before the death signal was set
    limits = config.limits
    confine.limit_resources(
        cpu_seconds=math.ceil(limits.cpu_seconds),
        memory_bytes=config.base_memory + limits.memory_bytes,
        file_bytes=limits.file_bytes,
        threads=config.threads,
    )
    rules = confine.file_rules(config.readable, scratch)
    if config.guards["calls"]:
        calls.restrict(threads=config.threads)
    return rules


def _await_request(channel: socket.socket) -> tuple[CallRequest, int]:
    reader = frames.FrameReader()
    received: list[int] = []
    with channel:
        while True:
            data, descriptors, _, _ = socket.recv_fds(channel, _CHUNK, 2)
            received += descriptors
            if not data:
                os._exit(0)  # the server no longer needs this child
            for header, source in reader.feed(data):
                memory, printed = received
                for stream in (1, 2):
                    os.dup2(printed, stream)
                os.close(printed)
                folders = tuple(map(Path, header["folders"]))
                return CallRequest(Path(header["script"]), header["digest"], source, folders), memory


def _outcome(
    request: CallRequest, memory: int, code: types.CodeType | None, limits: ScriptLimits
) -> tuple[bytes, bytes]:
    """Run the script and return the kind and body of its result; exceptions are results too."""
    try:
        payload = loads(os.pread(memory, os.fstat(memory).st_size, 0))
    except ValueError as error:
        return FAILURE, f"the payload is not JSON: {error}".encode()
    if not isinstance(payload, dict):
        return FAILURE, f"the payload is a JSON {type(payload).__name__}, expected an object".encode()
    try:
        result = _main(request, code)(payload)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if result is None:
            return NOTHING, b""
        body = encode_result(result)
    except BaseException as error:  # noqa: BLE001 - includes SystemExit and KeyboardInterrupt
        return FAILURE, _failure(error, request.script, limits)
    limit = limits.result_bytes
    if len(body) > limit:
        return (
            FAILURE,
            f"returned {format_size(len(body))} of JSON, more than the {format_size(limit)} allowed".encode(),
        )
    return RESULT, body


def _main(request: CallRequest, code: types.CodeType | None) -> Any:
    sys.dont_write_bytecode = True
    sys.argv = [str(request.script)]
    # As with `python script.py`, scripts may import siblings.
    sys.path.insert(0, str(request.script.parent))
    module = types.ModuleType(MODULE)
    module.__file__ = str(request.script)
    sys.modules[MODULE] = module
    exec(code or compile_script(request.source, request.script), module.__dict__)
    main = getattr(module, "main", None)
    if not callable(main):
        raise BadResult("has no function main(payload: dict) -> dict")
    return main


def compile_script(source: bytes, script: Path) -> types.CodeType:
    """Compile a script; errors then name its path and line."""
    return compile(source, str(script), "exec", dont_inherit=True)


def encode_result(result: object) -> bytes:
    """Encode the result of `main` as JSON; BadResult names the location of an invalid value."""
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


def _failure(error: BaseException, script: Path, limits: ScriptLimits) -> bytes:
    """Return one line for the agent, then the traceback for the log."""
    trace = ""
    # Formatting the script's exception may itself raise, or run out of memory.
    with contextlib.suppress(BaseException):
        trace = "".join(traceback.format_exception(error))[-_TRACEBACK_CHARS:]
    line = " ".join(_describe(error, script, limits).split())
    return f"{line}\n{trace}".encode("utf-8", "backslashreplace")


def _describe(error: BaseException, script: Path, limits: ScriptLimits) -> str:
    """Describe an exception in one line, with the last line of the script in its traceback."""
    if isinstance(error, BadResult):
        return str(error)
    if isinstance(error, MemoryError):
        return f"used more than {format_size(limits.memory_bytes)} of memory"
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
    """Write the body to the memory file, then its kind to the pipe."""
    os.ftruncate(memory, 0)
    os.pwrite(memory, body, 0)
    os.write(_RESULT_FD, token + kind)

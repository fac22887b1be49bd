"""Resource limits and result type of scripts. Standard library only: the warm process imports this module."""

from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Limits of one call, in seconds and bytes.

    CPU time is enforced in whole seconds, rounded up. `memory_bytes` counts address space beyond the warm parent's,
    `file_bytes` one file, `result_bytes` the returned JSON, `payload_bytes` the input JSON, `printed_bytes` the kept
    output.
    """

    wall_seconds: float = 10.0
    cpu_seconds: float = 10.0
    memory_bytes: int = GIB
    file_bytes: int = 16 * MIB
    result_bytes: int = 4 * MIB
    payload_bytes: int = 64 * MIB
    printed_bytes: int = 4 * KIB

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0 or value == float("inf"):
                raise ValueError(f"ScriptLimits.{name} is {value}: give a positive finite number")


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """Result of one call.

    `output` is the returned object if `ok`, else None; `error` is one line if not `ok`, else None. `seconds` is wall
    time without queueing. `printed` is the beginning of the output streams.
    """

    ok: bool
    output: JsonObject | None
    error: str | None
    seconds: float
    printed: str = ""


def format_size(count: float) -> str:
    """Format a byte count: 1 GiB, 1.5 MiB, 812 bytes."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"

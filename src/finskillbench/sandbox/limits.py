"""What a script may use, and what comes back from one. Standard library only: the warm process imports it."""

from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call of a script may use.

    `wall_seconds` and `cpu_seconds` are seconds (CPU time is enforced in whole seconds, rounded up); the rest are
    bytes. `memory_bytes` counts address space beyond what the warm parent already holds, `file_bytes` one file,
    `result_bytes` the JSON that `main` returns, `payload_bytes` the JSON it is given, `printed_bytes` how much
    of what it prints is kept.
    """

    wall_seconds: float = 10.0
    cpu_seconds: float = 10.0
    memory_bytes: int = GIB
    file_bytes: int = 16 * MIB
    result_bytes: int = 4 * MIB
    payload_bytes: int = 64 * MIB
    printed_bytes: int = 4 * KIB

    def __post_init__(self) -> None:
        """Refuse limits that could not be enforced: ValueError names the field."""
        for name in self.__slots__:
            value = getattr(self, name)
            if not value > 0 or value == float("inf"):
                raise ValueError(f"Limits.{name} is {value}: give a positive finite number")


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What one call of a script gave.

    `output` is the object `main` returned when `ok`, else None; `error` is one line when not `ok`, else None.
    `seconds` is the wall time of the script itself, without queueing. `printed` is the beginning of what the
    script wrote to its output streams, which is never part of the result.
    """

    ok: bool
    output: JsonObject | None
    error: str | None
    seconds: float
    printed: str = ""


def size(count: float) -> str:
    """`count` bytes for a reader: 1 GiB, 1.5 MiB, 812 bytes."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"

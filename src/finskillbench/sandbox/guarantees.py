"""What the sandbox guarantees where: the guards in words, and the places by the guards that they lack.

`finskillbench doctor` prints the first of a machine, SECURITY.md shows both. What a machine really has is tried by the
server (`ready`), never looked up here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard: what it keeps from a script, by which means, and the same in a line for `doctor`."""

    keeps: str
    by: str
    line: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where scripts may run: the guards that are missing there, and what is said of them."""

    where: str
    lacks: frozenset[str]
    told: str

    @property
    def scripts_of_others(self) -> str:
        """Whether scripts that did not ship with finskillbench, and code of agents, run there."""
        return "refused" if self.lacks else "run"


GUARDS: Mapping[str, Guard] = MappingProxyType(
    {
        "files": Guard(
            "everything but the interpreter, the libraries, its own package (to read) and a scratch folder that goes "
            "with the call",
            "Landlock, Linux 5.13",
            "scripts read the libraries and their own package, nothing else (Landlock, Linux 5.13)",
        ),
        "calls": Guard(
            "whatever the kernel offers beyond computing and files: sockets, processes and threads, signals, tracing, "
            "limits of others, shared memory, queues, locks on files, keys, mounts, io_uring, bpf, changing rights, "
            "times or owners of files",
            "a seccomp list of what is allowed, x86_64 and aarch64",
            "scripts ask the kernel only for what is on a list (seccomp; x86_64 and aarch64)",
        ),
        "network": Guard(
            "connections, also by calls that nobody thought of",
            "a network namespace without interfaces; else the list",
            "scripts have no network (a namespace of their own, or the list above)",
        ),
        "processes": Guard(
            "forks, threads, other programs",
            "resource limits and the list",
            "scripts start no processes and threads",
        ),
    }
)

PLACES = (
    Place("Linux with Landlock, as superuser or ordinary user", frozenset(), "all"),
    Place(
        "the same without user namespaces, or in a container (no capabilities, no namespaces; Docker's default)",
        frozenset(),
        "all; the network by the list of calls alone",
    ),
    Place(
        "Linux without Landlock (older, or switched off), or in a sandbox that hides it",
        frozenset({"files"}),
        "not `files`: truth and keys are as readable as to the user",
    ),
    Place(
        "Linux on other processors",
        frozenset({"calls"}),
        "not `calls`; without namespaces not `network` either",
    ),
    Place(
        "macOS (its code path tried on Linux, not on a Mac)",
        frozenset({"files", "calls", "network"}),
        "`processes` only, and as superuser none",
    ),
)
"""From the most that is guaranteed to the least."""

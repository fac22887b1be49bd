"""Guarantees of the sandbox: its guards, and the platforms with the guards they lack.

Source of the tables in `finskillbench doctor` and SECURITY.md. The server tests the guards of an actual machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard: the resources it denies, the mechanism, and a one-line summary for `doctor`."""

    keeps: str
    by: str
    line: str


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform, its missing guards, and a summary."""

    where: str
    lacks: frozenset[str]
    summary: str

    @property
    def untrusted_scripts(self) -> str:
        """State if third-party scripts and agents' code run here."""
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
            "kernel services beyond computing and files: sockets, processes and threads, signals, tracing, "
            "limits of others, shared memory, queues, locks on files, keys, mounts, io_uring, bpf, changing rights, "
            "times or owners of files",
            "a seccomp list of what is allowed, x86_64 and aarch64",
            "scripts ask the kernel only for what is on a list (seccomp; x86_64 and aarch64)",
        ),
        "network": Guard(
            "connections of any kind",
            "a network namespace without interfaces; else the list",
            "scripts have no network (a namespace of their own, or the list above)",
        ),
        "processes": Guard(
            "forks, threads, other programs", "resource limits and the list", "scripts start no processes and threads"
        ),
    }
)

PLATFORMS = (
    Platform("Linux with Landlock, as superuser or ordinary user", frozenset(), "all"),
    Platform(
        "the same without user namespaces, or in a container (no capabilities, no namespaces; Docker's default)",
        frozenset(),
        "all; the network by the list of calls alone",
    ),
    Platform(
        "Linux without Landlock (older, or switched off), or in a sandbox that hides it",
        frozenset({"files"}),
        "not `files`: truth and keys are as readable as to the user",
    ),
    Platform("Linux on other processors", frozenset({"calls"}), "not `calls`; without namespaces not `network` either"),
    Platform(
        "macOS (its code path tried on Linux, not on a Mac)",
        frozenset({"files", "calls", "network"}),
        "`processes` only, and as superuser none",
    ),
)
"""From most to least protected."""

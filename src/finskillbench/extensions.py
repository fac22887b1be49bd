"""Registry of everything that installed distributions add through entry points; nothing is imported before its use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from finskillbench.errors import InputError

DOMAINS = "finskillbench.domains"
"""Objects of `finskillbench.domains.Domain` or `Extension`."""
COMMANDS = "finskillbench.commands"
"""Objects of `typer.Typer`, a command or a group of commands; the name `data.NAME` adds to the group `data`."""
REPORTS = "finskillbench.reports"
"""Objects of `finskillbench.reports.report.ReportFormat`, by the name that `report --format` takes."""
HARNESSES = "finskillbench.harnesses"
"""Classes of `finskillbench.harness.loop.Harness`, made of an interpreter or None; by the name of `run --harness`."""
PRICES = "finskillbench.prices"
"""Objects of `finskillbench.fetch.prices.PriceProvider`, by the name that `data fetch --prices` takes."""

GROUPS = (DOMAINS, COMMANDS, REPORTS, HARNESSES, PRICES)
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Registered:
    """An entry point; `taken_by` says who else has its name."""

    entry: EntryPoint
    taken_by: str = ""

    def __str__(self) -> str:
        return f"entry point {self.entry.name} ({self.entry.value}){_distribution(self.entry)}"

    def load(self, *kinds: type[Kind]) -> Kind:
        """Import and return the object, which is an instance of one of `kinds`.

        Raises
        ------
        InputError : the name is taken, the import fails, or the object is something else.
        """
        if self.taken_by:
            raise InputError(f"{self}: its name is taken by {self.taken_by}; rename it, or uninstall one of the two")
        try:
            found = self.entry.load()
        except Exception as error:  # third-party code may fail in any way
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"{self}: cannot be loaded ({reason}); fix or uninstall the package") from error
        if not isinstance(found, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise InputError(f"{self}: is a {type(found).__name__}, not a {wanted}; fix or uninstall the package")
        return found


def registered(group: str, reserved: Collection[str] = ()) -> dict[str, Registered]:
    """Return the entry points of a group by name, in alphabetical order; `reserved` names are those of finskillbench.

    An entry point whose name is reserved or registered twice is listed and fails when it is loaded.
    """
    found: dict[str, Registered] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        if entry.name in found:
            found[entry.name] = replace(found[entry.name], taken_by=str(Registered(entry)))
        else:
            found[entry.name] = Registered(entry, "finskillbench" if entry.name in reserved else "")
    return found


def _distribution(entry: EntryPoint) -> str:
    return f" of {entry.dist.name} {entry.dist.version}" if entry.dist is not None else ""

"""Registry of extensions that installed distributions add through entry points; each is imported on first use."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from finskillbench.errors import InputError

DOMAINS = "finskillbench.domains"
"""Objects of `finskillbench.domains.Domain` or `Extension`."""
COMMANDS = "finskillbench.commands"
"""Objects of `typer.Typer`: a command or a command group. The name `data.NAME` adds to the group `data`."""
REPORTS = "finskillbench.reports"
"""Objects of `finskillbench.reports.report.ReportFormat`, by the name that `report --format` takes."""
HARNESSES = "finskillbench.harnesses"
"""Classes of `finskillbench.harness.loop.Harness`, built from an interpreter or None; by the name of `run --harness`.
"""
PRICES = "finskillbench.prices"
"""Objects of `finskillbench.fetch.prices.PriceProvider`, by the name that `data fetch --prices` takes."""

GROUPS = (DOMAINS, COMMANDS, REPORTS, HARNESSES, PRICES)
Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Registered:
    """An entry point; `taken_by` names the holder of its name, if that is taken."""

    entry: EntryPoint
    taken_by: str = ""

    def __str__(self) -> str:
        return f"entry point {self.entry.name} ({self.entry.value}){_distribution(self.entry)}"

    def load(self, *kinds: type[Kind]) -> Kind:
        """Import and return the object; raise `InputError` if this fails or it is of no kind in `kinds`."""
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


def registered_extensions(group: str, reserved: Collection[str] = ()) -> dict[str, Registered]:
    """Return a group's entry points by name, in alphabetical order.

    A name that is `reserved` or registered twice is listed, and fails on loading.
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

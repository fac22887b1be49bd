"""Command groups that distributions extend through entry points of `finskillbench.commands`."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command_from_info, get_group_from_info
from typer.models import TyperInfo

from finskillbench.errors import InputError
from finskillbench.extensions import COMMANDS, Registered, registered_extensions

_SECTIONS = {
    "Start": ("demo", "doctor", "inspect"),
    "Evaluate": ("plan", "run", "merge", "rescore", "skills", "score", "export-tasks", "drive", "serve"),
    "Report": ("report", "compare", "show", "failures", "short-form", "export"),
    "Editions": ("data", "audit"),
    "Publish": ("submit", "leaderboard"),
}
"""Sections of the root help; commands not listed follow under "Other"."""


class ExtensibleGroup(TyperGroup):
    """Command group that imports an extension's commands when one is called or the help lists them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.builtin_names = frozenset(self.commands)

    def list_commands(self, ctx: Any) -> list[str]:
        """Import every registered command and return all names; warn about commands that cannot be imported."""
        for name, entry in self._registered(ctx).items():
            try:
                self._add(name, entry)
            except InputError as error:
                print(f"warning: {error}", file=sys.stderr)
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if unknown, after importing all others for suggestions."""
        if cmd_name not in self.commands:
            entry = self._registered(ctx).get(cmd_name)
            if entry is None:
                self.list_commands(ctx)
            else:
                self._add(cmd_name, entry)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands into the help, those of the root group by section."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        visible = {name: each for name, each in commands.items() if not each.hidden}
        width = formatter.width - 6 - max(map(len, visible))
        known = {name for names in _SECTIONS.values() for name in names}
        sections = {**_SECTIONS, "Other": [name for name in visible if name not in known]}
        for title, names in (sections if ctx.parent is None else {"Commands": visible}).items():
            rows = [(name, visible[name].get_short_help_str(width)) for name in names if name in visible]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def _registered(self, context: Any) -> dict[str, Registered]:
        """Return the entry points of this group that are not imported yet."""
        prefix = "" if context.parent is None else f"{context.info_name}."
        found = registered_extensions(COMMANDS, [f"{prefix}{name}" for name in self.builtin_names])
        in_group = {name.removeprefix(prefix): entry for name, entry in found.items() if name.startswith(prefix)}
        imported = self.commands.keys() - self.builtin_names
        return {name: entry for name, entry in in_group.items() if "." not in name and name not in imported}

    def _add(self, name: str, entry: Registered) -> None:
        app = entry.load(typer.Typer)
        if app.registered_callback or app.registered_groups or len(app.registered_commands) != 1:
            info = TyperInfo(app, name=name)
            command: Any = get_group_from_info(
                info, pretty_exceptions_short=False, rich_markup_mode=None, suggest_commands=True
            )
        else:
            (info,) = app.registered_commands
            command = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)
        command.name = name
        self.add_command(command, name)

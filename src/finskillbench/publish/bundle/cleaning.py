"""What must not leave the machine with a bundle: keys, by their value or by their looks, and the user's own folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from finskillbench.redaction import redactor_of_process, without_keys

Clean = Callable[[str], str]


def cleaner() -> Clean:
    """Take out the secrets of this process, what looks like a key of a provider, and the user's own folder.

    The latter two because a run may be submitted by another process than the one that knew its keys.
    """
    redact = redactor_of_process()
    home = str(Path.home())
    own = re.compile(rf"{re.escape(home)}(?=/)") if len(home) > 1 else None

    def clean(text: str) -> str:
        text = without_keys(redact(text))
        return own.sub("~", text) if own is not None else text

    return clean

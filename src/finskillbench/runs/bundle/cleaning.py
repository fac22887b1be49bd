"""What must not leave the machine with a bundle: keys, by their value or by their looks, and the user's own folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from finskillbench.redaction import REDACTED, redactor_of_process

Clean = Callable[[str], str]
_LOOKS = (
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
"""How the keys of providers begin: a run may be submitted by another process than the one that knew its keys."""
_KEY = re.compile("|".join(f"(?:{each})" if not each.startswith("(?i)") else f"(?i:{each[4:]})" for each in _LOOKS))


def cleaner() -> Clean:
    """Take out the secrets of this process, what looks like a key of a provider, and the user's own folder."""
    redact = redactor_of_process()
    home = str(Path.home())
    own = re.compile(rf"{re.escape(home)}(?=/)") if len(home) > 1 else None

    def clean(text: str) -> str:
        text = _KEY.sub(REDACTED, redact(text))
        return own.sub("~", text) if own is not None else text

    return clean

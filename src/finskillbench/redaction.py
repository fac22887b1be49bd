"""Removal of secrets from outside text before it is stored or shown.

A server may echo the key it received in an error, an answer or a header. Secrets are the values of all environment
variables with a secret-like name. A model may disguise a key. For secrets that are long enough to be no ordinary word,
these forms count: any case, other characters in between, reversed, base64 and URL-encoded.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

REDACTED = "[redacted]"
_NAMED_LIKE_ONE = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE", re.IGNORECASE)
_SHORTEST = 8
"""Shorter values are ordinary words, not secrets."""

_SHORTEST_CORE = 12
"""Minimum alphanumeric characters for matching a secret with other characters in between."""
_BETWEEN = r"[^0-9A-Za-z]{0,24}"
_NOT_IN_CORE = re.compile(r"[^0-9a-z]+")

_LOOKS = (
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\b(?:gsk_|xai-|pplx-|r8_)[A-Za-z0-9]{20,}",
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{30,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bhf_[A-Za-z0-9]{30,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\bAIza[0-9A-Za-z_-]{35}",
    r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"(?i)\bbearer\s+[A-Za-z0-9._~+/-]{20,}",
    r"(?<=://)[^\s/?#@:\"'<>`\\]*:[^\s/?#@\"'<>`\\]+(?=@)",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
"""Key prefixes of providers, and passwords in addresses."""
_KEY = re.compile("|".join(f"(?:{each})" if not each.startswith("(?i)") else f"(?i:{each[4:]})" for each in _LOOKS))


class Redactor:
    """Replaces secrets in text, in all forms that the module lists."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = [*secrets]
        forms = {form for secret in known for form in _forms(secret)}
        # Longest first, so that a contained shorter secret cannot split a longer one.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        cores = {each for secret in known for form in _encoded(secret) for each in _cores(form)}
        self._cores = sorted(cores, key=lambda core: (-len(core), core))

    def __call__(self, text: str) -> str:
        """Return the text without secrets; the same object if it has none."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        if self._cores:
            core = _NOT_IN_CORE.sub("", text.lower())
            if any(each in core for each in self._cores):
                text = self._spaced.sub(REDACTED, text)
        return text

    @cached_property
    def _spaced(self) -> re.Pattern[str]:
        """Match a core with other characters in between; compiled on first use."""
        return re.compile("|".join(map(_BETWEEN.join, self._cores)), re.IGNORECASE | re.ASCII)


def logger(name: str) -> logging.Logger:
    """Return a logger that redacts messages and tracebacks before any handler, including Inspect's, sees them."""
    made = logging.getLogger(name)
    made.addFilter(_without_secrets)
    return made


def named_like_a_secret(name: str) -> bool:
    """Test whether a variable or parameter name indicates a key, a token or a password."""
    return _NAMED_LIKE_ONE.search(name) is not None


def without_keys(text: str) -> str:
    """Return the text without provider keys and passwords in addresses."""
    return _KEY.sub(REDACTED, text)


def redactor_of_process() -> Redactor:
    """Return a redactor for the secrets in this process's environment."""
    named = (value.strip() for name, value in os.environ.items() if named_like_a_secret(name))
    return Redactor(value for value in named if _is_secret(value))


def cleaner() -> Callable[[str], str]:
    """Return a function that removes secrets of this process, texts like provider keys, and the home path.

    Patterns are needed because another process than the one that knew the keys may publish a run.
    """
    redact = redactor_of_process()
    home = str(Path.home())
    home_pattern = re.compile(rf"{re.escape(home)}(?=/)") if len(home) > 1 else None

    def clean(text: str) -> str:
        text = without_keys(redact(text))
        return home_pattern.sub("~", text) if home_pattern is not None else text

    return clean


def _is_secret(value: str) -> bool:
    """Test a secret-like variable's value: long enough, and not the path of an existing file."""
    if len(value) < _SHORTEST:
        return False
    try:
        return not (value.startswith(("/", "~")) and Path(value).expanduser().exists())
    except (OSError, RuntimeError, ValueError):
        return True


def _forms(secret: str) -> set[str]:
    raw = secret.encode("utf-8", "surrogateescape")
    basic = base64.b64encode(raw).decode()
    escaped = secret.encode("unicode_escape").decode()
    plain = {secret, quote(secret, safe=""), basic, escaped, escaped.replace("/", "\\/")}
    if any(_cores(secret)):  # covers the others
        return plain
    return {form for each in plain for one in (each, each.upper(), each.lower()) for form in (one, one[::-1])}


def _encoded(secret: str) -> Iterator[str]:
    """Yield a secret, its URL-encoded form, and its base64 at each alignment."""
    raw = secret.encode("utf-8", "surrogateescape")
    yield from (secret, quote(secret, safe=""))
    for before in range(3):
        text = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # Characters that also encode a neighbour's bits are left out.
        whole = (before + len(raw)) * 8 // 6
        yield text[-(-before * 8 // 6) : whole]


def _cores(form: str) -> Iterator[str]:
    """Yield the lower-case alphanumeric characters of a form, forwards and backwards; nothing for short forms."""
    core = _NOT_IN_CORE.sub("", form.lower())
    if form.isascii() and len(core) >= _SHORTEST_CORE and not core.isdecimal():
        yield from (core, core[::-1])


def _without_secrets(record: logging.LogRecord) -> bool:
    redact = redactor_of_process()
    record.msg, record.args = redact(record.getMessage()), None
    if record.exc_info:
        record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
    return True

"""Secrets of this process, taken out of every text that comes from outside before it is stored or shown.

A server may send back what it was sent, the key among it: in an error, in an answer, in a header. What counts as a
secret is the value of every environment variable that is named like one.

A model may also write a key in another form to have it kept. Of a secret that is long enough to be no ordinary word,
letters of either case, with anything but letters and digits between them, read forwards or backwards, count as the
secret; so do its base64 and its URL-encoded form.
"""

from __future__ import annotations

import base64
import logging
import os
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

REDACTED = "[redacted]"
_NAMED_LIKE_ONE = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE", re.IGNORECASE)
_SHORTEST = 8
"""Shorter values are no secrets, and taking them out would mangle ordinary words."""

_SHORTEST_CORE = 12
"""Letters and digits from which on a secret is found with other characters between them."""
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
"""How the keys of providers begin, and where an address holds a password."""
_KEY = re.compile("|".join(f"(?:{each})" if not each.startswith("(?i)") else f"(?i:{each[4:]})" for each in _LOOKS))


class Redactor:
    """Replaces secrets in texts, in every form that the module names."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = [*secrets]
        forms = {form for secret in known for form in _forms(secret)}
        # The longest first, so that none is cut by a shorter one that it contains.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        cores = {each for secret in known for form in _encoded(secret) for each in _cores(form)}
        self._cores = sorted(cores, key=lambda core: (-len(core), core))

    def __call__(self, text: str) -> str:
        """The text without any secret; the same object where there is none."""
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
        """Match a core with other characters between its own; compiled for the first text that holds one."""
        return re.compile("|".join(map(_BETWEEN.join, self._cores)), re.IGNORECASE | re.ASCII)


def logger(name: str) -> logging.Logger:
    """The logger of a module, whose lines and tracebacks lose the secrets before any handler sees them.

    Handlers of others too, Inspect's among them: what they write is not ours to clean.
    """
    made = logging.getLogger(name)
    made.addFilter(_without_secrets)
    return made


def named_like_a_secret(name: str) -> bool:
    """Whether a variable or a parameter of this name holds a key, a token or a password."""
    return _NAMED_LIKE_ONE.search(name) is not None


def without_keys(text: str) -> str:
    """The text without what looks like a key of a provider or a password in an address, whoever's it is."""
    return _KEY.sub(REDACTED, text)


def redactor_of_process() -> Redactor:
    """The redactor for what the environment of this process holds now."""
    named = (value.strip() for name, value in os.environ.items() if named_like_a_secret(name))
    return Redactor(value for value in named if _is_secret(value))


def _is_secret(value: str) -> bool:
    """Whether a value named like a secret is one: it is long enough, and no path of a file that holds one."""
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
    if any(_cores(secret)):  # which covers the others
        return plain
    return {form for each in plain for one in (each, each.upper(), each.lower()) for form in (one, one[::-1])}


def _encoded(secret: str) -> Iterator[str]:
    """Yield a secret, its URL-encoded form, and its base64 wherever it stands in what is encoded."""
    raw = secret.encode("utf-8", "surrogateescape")
    yield from (secret, quote(secret, safe=""))
    for before in range(3):
        text = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # Characters that hold bits of a neighbour are not the secret's own.
        whole = (before + len(raw)) * 8 // 6
        yield text[-(-before * 8 // 6) : whole]


def _cores(form: str) -> Iterator[str]:
    """Yield the letters and digits of a form in small letters, forwards and backwards; none of one that is short."""
    core = _NOT_IN_CORE.sub("", form.lower())
    if form.isascii() and len(core) >= _SHORTEST_CORE and not core.isdecimal():
        yield from (core, core[::-1])


def _without_secrets(record: logging.LogRecord) -> bool:
    redact = redactor_of_process()
    record.msg, record.args = redact(record.getMessage()), None
    if record.exc_info:
        record.exc_text = redact(logging.Formatter().formatException(record.exc_info))
    return True

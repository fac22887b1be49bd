"""What a bundle may say in words: it is shown to strangers, on a page and in tables."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from finskillbench.errors import InputError
from finskillbench.harness.models import Entry, canonical
from finskillbench.harness.trace import OURS
from finskillbench.publish.bundle.manifest import Manifest, Submitter

_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Cn")
"""Categories of characters that are not visible, or that reverse the direction of a line."""
LONGEST = 200
"""Characters of anything that is shown."""


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments that an entry may state: options of a model, its allowance, its harness; no others are shown."""

    base_url: str | None = None
    seed: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    model_args: Mapping[str, Any] | None = None
    turns: int | None = None
    token_budget: int | None = None
    harness: str = OURS


def refuse_words(what: str, text: str) -> None:
    """Refuse hidden characters, blanks at the ends, and what a spreadsheet takes for a formula.

    Raises
    ------
    InputError : naming what it is.
    """
    if any(unicodedata.category(each) in _HIDDEN for each in text):
        raise InputError(f"{what}: {text[:60]!a} holds a character that cannot be seen; leave it out")
    if text != text.strip() or not text:
        raise InputError(f"{what}: {text[:60]!a} begins or ends with a blank; leave it out")
    if not text[0].isalnum():  # a spreadsheet takes = + - @ for the beginning of a formula
        raise InputError(f"{what}: {text[:60]!a} must begin with a letter or a digit")


def check_shown(manifest: Manifest) -> None:
    """Refuse a manifest of which anything that is shown is no plain text.

    Raises
    ------
    InputError : naming the field.
    """
    check_submitter(manifest.submitter)
    if manifest.partial is not None:
        refuse_long("partial", manifest.partial)
    for condition, mounted in manifest.mounts.items():
        for package in mounted.packages:
            refuse_long(f"a package under {condition}", package)


def refuse_long(what: str, text: str) -> None:
    """Refuse words as `refuse_words` does, and more of them than anybody reads.

    Raises
    ------
    InputError : naming what it is.
    """
    refuse_words(what, text)
    if len(text) > LONGEST:
        raise InputError(f"{what}: {text[:60]!a}... is longer than {LONGEST} characters")


def check_submitter(submitter: Submitter) -> None:
    """Refuse a name, a contact or an address that no page can show.

    Raises
    ------
    InputError : naming the field.
    """
    refuse_words("name", submitter.name)
    if submitter.contact is not None:
        refuse_words("contact", submitter.contact)
    if submitter.url is not None:
        refuse_words("url", submitter.url)
        try:
            parts = urlsplit(submitter.url)
            plain = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        except ValueError:
            plain = False
        if not plain or any(each.isspace() or each in "<>\"'\\`" for each in submitter.url):
            raise InputError(f"url: {submitter.url[:60]!a} is no address that begins with http:// or https://")


def check_entry(where: Path, entry: Entry) -> Arguments:
    """The arguments of an entry that tables can show.

    Raises
    ------
    InputError : its name cannot be shown; its arguments are none, not as runs write them, or not of a known name.
    """
    try:
        refuse_words("model", entry.model)
        said = msgspec.json.decode(entry.arguments, type=Arguments)
        if canonical(entry.said) != entry.arguments:
            raise ValueError("not as runs write them")
        for name, value in entry.said.items():
            refuse_words(name, value if isinstance(value, str) else f"a{value}")
    except InputError as error:
        raise InputError(f"{where}: {entry.model[:80]!a}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: the arguments of {entry.model[:80]!a}: {error}") from None
    return said

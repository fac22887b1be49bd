"""What a bundle may say in words: it is shown to strangers, on a page and in tables."""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

from finskillbench.errors import InputError
from finskillbench.runs.bundle.manifest import Submitter

_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp", "Cn")
"""Categories of characters that nobody sees, or that turn a line around."""


def refuse_words(what: str, text: str) -> None:
    """Refuse a name that could be taken for something else: hidden characters, blanks at its ends, a formula.

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

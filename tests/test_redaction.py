"""Secrets are taken out of texts in every form that a server or a model may give them, and nothing else is."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable
from urllib.parse import quote

import pytest

from finskillbench.redaction import REDACTED, Redactor

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "reversed": lambda key: key[::-1],
    "upper case": str.upper,
    "lower case": str.lower,
    "capitals turned": str.swapcase,
    "spaced": " ".join,
    "a letter a line": "\n".join,
    "with commas": ", ".join,
    "spaced, reversed and in capitals": lambda key: " ".join(key[::-1].upper()),
    "in two halves": lambda key: f"{key[: len(key) // 2]}\n  {key[len(key) // 2 :]}",
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "base64 of a pair": lambda key: base64.urlsafe_b64encode(f"me:{key}!".encode()).decode(),
    "base64, reversed": lambda key: base64.b64encode(key.encode()).decode()[::-1],
    "URL-encoded": lambda key: quote(key, safe=""),
    "URL-encoded, in small letters": lambda key: quote(key, safe="").lower(),
}
ALPHABET = string.ascii_letters + string.digits + "-_+/=."


def core(text: str) -> str:
    return "".join(each for each in text.lower() if each.isalnum())


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_redacted_in_this_form(form: str) -> None:
    draw = random.Random(form)
    for _ in range(12):
        key = "sk-" + "".join(draw.choices(ALPHABET, k=draw.randint(20, 60))) + "aZ9"
        written = FORMS[form](key)
        found = Redactor([key])(f"The key is {written} and the rest stays.")
        assert REDACTED in found
        assert found.startswith("The key is ")
        assert found.endswith(" and the rest stays.")
        # A base64 of more than the key keeps its neighbours, and letters that hold bits of both.
        assert len(core(found)) <= len(core("The key is and the rest stays redacted")) + 14


def test_a_short_secret_is_redacted_whole_in_each_case_and_backwards() -> None:
    redact = Redactor(["hunter-22"])
    assert redact("hunter-22 HUNTER-22 22-retnuh") == " ".join([REDACTED] * 3)
    assert redact("hunter 22") == "hunter 22"


def test_numbers_and_prose_stay() -> None:
    redact = Redactor(["1234567890123456", "sk-planted-5fb2/c9+A=="])
    text = (
        '{"weights": [0.1234567890123, 1234.567890123457, 12, 34, 56, 78, 90]} The planted key sk is planted in 5 beds.'
    )
    assert redact(text) is text
    assert Redactor([])(text) is text

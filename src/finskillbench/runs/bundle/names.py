"""Names that a reader would take for another's: told by what can be seen of them.

After Unicode's security mechanisms (UTS 39), of which the letters are kept that look like Latin ones in most faces.
"""

from __future__ import annotations

import re
import unicodedata

UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xFFF0, 0xFFF9),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
"""Letters, marks and signs that are drawn as nothing, or as a blank."""
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "DESERET")
"""Alphabets of which letters look like those of another."""
_WORD = re.compile(r"\w+")
_CYRILLIC = dict(
    zip("авекмнорстухіјѕһԁԛԝӏҽгАВЕКМНОРСТУХІЈЅҺԀԚԜӀҼ", "abekmhopctyxijshdqwlerABEKMHOPCTYXIJSHDQWLE", strict=True)
)
_GREEK = dict(zip("αβγεικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "abyeikvoptuxwABEZHIKMNOPTYX", strict=True))
_LETTERS = str.maketrans({**_CYRILLIC, **_GREEK})
_DIGITS = str.maketrans("01i", "oll")


def folded(name: str) -> str:
    """A name as it is told from others: two that look alike are the same.

    Without blanks, signs, marks and case; wide and other forms as the plain letter, letters that look Latin as Latin,
    and 0 and 1 as the letters that they look like.
    """
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name)).translate(_LETTERS).casefold()
    letters = "".join(each for each in plain.translate(_LETTERS) if each.isalnum() and each not in UNSEEN)
    return letters.translate(_DIGITS).replace("rn", "m").replace("vv", "w")


def mixed_word(text: str) -> str | None:
    """The first word with letters of two alphabets that look alike; None where there is none."""
    for word in _WORD.findall(unicodedata.normalize("NFKC", text)):
        alphabets = {unicodedata.name(each, "").partition(" ")[0] for each in word if each.isalpha()}
        if len(alphabets.intersection(_ALIKE)) > 1:
            return word
    return None

"""Figures as the page prints them: the numeric transformations of the Inline XBRL Transformation Registry.

Source: XBRL International, Transformation Registry 1 to 5 (`ixt`), and the SEC's own `ixt-sec:numwordsen`. A name is
the same transformation in every version of the registry, with or without hyphens.
"""

import re

_BLANKS = re.compile(r"\s+")
_DOT = frozenset({"numdotdecimal", "numcommadot", "numspacedot", "numdotdecimalin"})
"""A dot before the decimals; commas, blanks or apostrophes between the thousands."""
_COMMA = frozenset({"numcommadecimal", "numdotcomma", "numspacecomma", "numcomma"})
"""A comma before the decimals; dots, blanks or apostrophes between the thousands."""
_ZERO = frozenset({"fixedzero", "zerodash", "numdash"})
"""Whatever is printed (a dash, "no") is zero."""

# fmt: off
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# fmt: on
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    "no": 0,
    "none": 0,
    "a": 1,
    "an": 1,
}
_POWERS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def transformed(text: str, name: str) -> str:
    """The digits, with a dot before the decimals, that a figure stands for.

    Parameters
    ----------
    text : what the page prints, without the sign (an attribute of the element says it).
    name : the transformation without its prefix, empty where the document names none.

    Raises
    ------
    ValueError : the text is not what the transformation reads, or the transformation is not known.
    """
    kind = name.replace("-", "").lower()
    if kind in _ZERO:
        return "0"
    if kind == "numwordsen":
        return str(_words(text))
    digits = _BLANKS.sub("", text).replace("'", "").replace("’", "")
    if kind in _DOT:
        digits = digits.replace(",", "")
    elif kind in _COMMA:
        digits = digits.replace(".", "").replace(",", ".")
    elif kind:
        raise ValueError(f"{text!r} is to be read by the transformation {name!r}, which is not known here")
    if not re.fullmatch(r"\d+\.?\d*|\.\d+", digits):
        raise ValueError(f"{text!r}" + (f" under the transformation {name!r}" if name else ""))
    return digits


def _words(text: str) -> int:
    """The number that English words spell: "one hundred and twenty-one" is 121."""
    total = group = 0
    words = re.findall(r"[a-z]+", text.lower())
    if not words:
        raise ValueError(f"{text!r} is not a number in words")
    for word in words:
        if word in _WORDS:
            group += _WORDS[word]
        elif word == "hundred":
            group = 100 * (group or 1)
        elif word in _POWERS:
            total, group = total + (group or 1) * _POWERS[word], 0
        elif word != "and":
            raise ValueError(f"{text!r} is not a number in words")
    return total + group

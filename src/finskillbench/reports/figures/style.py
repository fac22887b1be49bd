"""The colours of figures, in light and in dark, in one place; the page's own style is in its folder.

Series are told apart by shape and dash as well as by colour (after Okabe & Ito, safe for the colour-blind); scales go
from one end to the other in eleven steps, each with the letter colour that has more contrast on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

STEPS = 10
"""A scale has so many steps beside its first."""
FAMILY = 'Lato, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif'


class Pair(NamedTuple):
    """A colour in light and one in dark."""

    light: str
    dark: str


INK = Pair("#1d2733", "#e6ebf1")
QUIET = Pair("#566373", "#a3b1c0")
RULE = Pair("#d9dfe6", "#36414d")
ZERO = Pair("#7b8794", "#8592a0")
PAPER = Pair("#ffffff", "#151b22")
SERIES = (
    Pair("#5b6877", "#a3b1c0"),
    Pair("#0068a8", "#5cb3ee"),
    Pair("#b5540a", "#f0a04b"),
    Pair("#00775a", "#3fc6a0"),
    Pair("#9b3d7d", "#e08fc4"),
    Pair("#6a5acd", "#a99cff"),
    Pair("#8a6d00", "#d9c14a"),
    Pair("#b0303a", "#ff8088"),
)
"""The first is for what others are measured against."""
DASHES = ("", "", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4")
_SCORE = (Pair("#f3f6f9", "#1d252e"), Pair("#86bbd8", "#2f6f95"), Pair("#08406b", "#bfe3fa"))
_LOSS, _EVEN, _GAIN = Pair("#a8460a", "#f2a15a"), Pair("#f3f3f1", "#232b34"), Pair("#005f8a", "#6cc3ee")


def rules(*, dark: bool | None, used: Collection[str] | None = None) -> str:
    """The style sheet of figures: in light, in dark, or (None) following the `color-scheme` of the page.

    A file of its own has fixed colours, of the classes that it used; in the page both stand in `light-dark()`.
    """

    def colour(pair: Pair) -> str:
        return f"light-dark({pair.light},{pair.dark})" if dark is None else pair.dark if dark else pair.light

    lines = [
        f".ink{{fill:{colour(INK)}}}",
        f".quiet{{fill:{colour(QUIET)}}}",
        f".rule{{stroke:{colour(RULE)};fill:none}}",
        f".zero{{stroke:{colour(ZERO)};fill:none}}",
        f".level{{stroke:{colour(QUIET)};fill:none;stroke-dasharray:5 4}}",
        f".thin{{stroke:{colour(ZERO)};fill:none;stroke-width:1;opacity:.6}}",
        f".edge{{stroke:{colour(PAPER)};stroke-width:1}}",
        f".none{{fill:{colour(PAPER)};stroke:{colour(RULE)}}}",
        ".bold{font-weight:700}",
        ".small{font-size:11px}",
    ]
    for place, pair in enumerate(SERIES):
        dash = f";stroke-dasharray:{DASHES[place]}" if DASHES[place] else ""
        lines.append(f".f{place}{{fill:{colour(pair)}}}")
        lines.append(f".o{place}{{stroke:{colour(pair)};fill:none;stroke-width:1.8}}")
        lines.append(f".d{place}{{stroke:{colour(pair)};fill:none;stroke-width:1.8{dash}}}")
        lines.append(f".b{place}{{fill:{colour(pair)};opacity:.14}}")
    for name, fill in _scales():
        letters = Pair(_letters(fill.light), _letters(fill.dark))
        lines.append(f".{name}{{fill:{colour(fill)};background-color:{colour(fill)}}}")
        lines.append(f".on-{name}{{fill:{colour(letters)};color:{colour(letters)}}}")
    return "\n".join(line for line in lines if used is None or line[1 : line.index("{")] in used)


def score_step(value: float) -> str:
    """The class of a score between 0 and 1."""
    return f"h{round(min(max(value, 0.0), 1.0) * STEPS)}"


def difference_step(value: float) -> str:
    """The class of a difference between -1 and 1; half of the scale is reached at 0.5."""
    step = round(min(max(value, -1.0), 1.0) * STEPS)
    return f"l{-step}" if step < 0 else f"g{step}"


def _scales() -> Iterator[tuple[str, Pair]]:
    for step in range(STEPS + 1):
        part = step / STEPS
        low, high, local = (0, 1, part * 2) if part <= 0.5 else (1, 2, part * 2 - 1)
        yield f"h{step}", _between(_SCORE[low], _SCORE[high], local)
        yield f"g{step}", _between(_EVEN, _GAIN, part)
        if step:
            yield f"l{step}", _between(_EVEN, _LOSS, part)


def _between(one: Pair, other: Pair, part: float) -> Pair:
    return Pair(_mixed(one.light, other.light, part), _mixed(one.dark, other.dark, part))


def _mixed(one: str, other: str, part: float) -> str:
    ends = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * part):02x}" for low, high in ends)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def _letters(fill: str) -> str:
    """Black or white, whichever has more contrast on a colour: always at least 4.5 (WCAG 2.2, 1.4.3)."""
    light = luminance(fill)
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance of a colour `#rrggbb`, 0 to 1 (WCAG 2.2)."""
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (each / 255 for each in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

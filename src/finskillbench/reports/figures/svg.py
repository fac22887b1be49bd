"""SVG and PNG drawings whose parts have classes instead of colours, and the colours of all figures.

Series differ by shape and dash as well as by colour (after Okabe & Ito, safe for the colour-blind). Scales have eleven
steps, each with the text colour of higher contrast.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from markupsafe import escape

from finskillbench.runs.postprocess.show import printable

STEPS = 10
"""Steps of a colour scale after the first."""
FAMILY = 'Lato, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif'


class Pair(NamedTuple):
    """A colour in light and one in dark mode."""

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
"""The first is for the reference."""
DASHES = ("", "", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4")
_SCORE = (Pair("#f3f6f9", "#1d252e"), Pair("#86bbd8", "#2f6f95"), Pair("#08406b", "#bfe3fa"))
_LOSS, _EVEN, _GAIN = Pair("#a8460a", "#f2a15a"), Pair("#f3f3f1", "#232b34"), Pair("#005f8a", "#6cc3ee")


def rules(*, dark: bool | None, used: Collection[str] | None = None) -> str:
    """Return the style sheet of figures: light, dark, or (None) following the page's `color-scheme`.

    A standalone file has fixed colours for its `used` classes only; pages use `light-dark()`.
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
        letters = Pair(_text_colour(fill.light), _text_colour(fill.dark))
        lines.append(f".{name}{{fill:{colour(fill)};background-color:{colour(fill)}}}")
        lines.append(f".on-{name}{{fill:{colour(letters)};color:{colour(letters)}}}")
    return "\n".join(line for line in lines if used is None or line[1 : line.index("{")] in used)


def score_step(value: float) -> str:
    """Return the class of a score between 0 and 1."""
    return f"h{round(min(max(value, 0.0), 1.0) * STEPS)}"


def difference_step(value: float) -> str:
    """Return the class of a difference between -1 and 1; half of the scale is reached at 0.5."""
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


def _text_colour(fill: str) -> str:
    """Return black or white for contrast on a colour: always at least 4.5 (WCAG 2.2, 1.4.3)."""
    light = luminance(fill)
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour `#rrggbb`, 0 to 1 (WCAG 2.2)."""
    linear = [
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in (each / 255 for each in _channels(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]
SIZE = 13
"""Font size in pixels."""
CHARACTER_WIDTH = SIZE * 0.54
"""Mean character width in pixels."""
_CLASSES = re.compile('class="([^"]*)"')
_ZOOM = 1.5
_MARKS = ("circle", "square", "diamond", "triangle", "down", "plus", "bar", "cross")


class Drawing:
    """Parts in drawing order; lengths in pixels from the upper left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width = width
        self.height = height
        self._parts: list[str] = []

    @contextmanager
    def tooltip(self, text: str) -> Generator[None]:
        """Group parts under a tooltip."""
        self._parts.append(f"<g><title>{_escaped(text)}</title>")
        yield
        self._parts.append("</g>")

    def line(self, start: Point, end: Point, kind: str, *, behind: bool = False) -> None:
        """Draw a straight line; `behind` puts it under everything drawn before."""
        (x1, y1), (x2, y2) = start, end
        part = f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
        self._parts.insert(0 if behind else len(self._parts), part)

    def rect(self, corner: Point, width: float, height: float, kind: str) -> None:
        x, y = corner
        self._parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"/>'
        )

    def path(self, points: Sequence[Point], kind: str, *, closed: bool = False) -> None:
        """Draw straight lines from point to point."""
        segments = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._parts.append(f'<path class="{kind}" d="M{segments}{"Z" if closed else ""}"/>')

    def text(self, place: Point, text: str, kind: str = "ink", anchor: Anchor = "start", most: float = 0) -> None:
        """Write text on its base line; with `most`, in two small lines if longer than so many pixels.

        Longer text is cut, with the full text as a tooltip.
        """
        x, y = place
        anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
        if not most or len(text) <= int(most / CHARACTER_WIDTH):
            self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{anchored}>{_escaped(text)}</text>')
            return
        capacity = int(most / (CHARACTER_WIDTH * 0.85))
        first = max(text.rfind(each, 0, capacity) for each in " /-_:.") + 1 or capacity
        last = text[first:] if len(text) - first <= capacity else text[first : first + capacity - 1] + "…"
        for line, lower in ((text[:first], -6), (last, 5)):
            whole = f"<title>{_escaped(text)}</title>" if last.endswith("…") else ""
            self._parts.append(
                f'<text class="{kind} small" x="{x:.1f}" y="{y + lower:.1f}"{anchored}>{_escaped(line)}{whole}</text>'
            )

    def centred(self, place: Point, text: str, width: float) -> None:
        """Write text centred below an axis, wrapped to `width`; see `lines_of`."""
        x, y = place
        for number, line in enumerate(lines_of(text, width)):
            self.text((x, y + 15 * number), line, "quiet", "middle")

    def slanted(self, place: Point, text: str) -> None:
        """Write text above a column, rising to the right."""
        x, y = place
        turned = f'transform="rotate(-38 {x:.1f} {y:.1f})"'
        self._parts.append(f'<text class="ink" x="{x:.1f}" y="{y:.1f}" {turned}>{_escaped(text)}</text>')

    def upright(self, place: Point, text: str) -> None:
        """Write vertical text next to an axis, read from below."""
        x, y = place
        turned = f'transform="rotate(-90 {x:.1f} {y:.1f})" text-anchor="middle"'
        self._parts.append(f'<text class="quiet" x="{x:.1f}" y="{y:.1f}" {turned}>{_escaped(text)}</text>')

    def mark(self, place: Point, series: int, size: float = 4.5) -> None:
        """Draw the mark of a series, with its shape and colour."""
        x, y = place
        shape, kind = _MARKS[series % len(_MARKS)], f"f{series % len(_MARKS)} edge"
        if shape == "circle":
            self._parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"/>')
            return
        corners: dict[str, list[Point]] = {
            "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
            "triangle": [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
            "down": [(0, 1.2), (1.1, -0.9), (-1.1, -0.9)],
            "plus": [(-1.2, -0.4), (1.2, -0.4), (1.2, 0.4), (-1.2, 0.4)],
            "bar": [(-0.4, -1.2), (0.4, -1.2), (0.4, 1.2), (-0.4, 1.2)],
            "cross": [(-1.1, -0.5), (0.5, -1.1), (1.1, 0.5), (-0.5, 1.1)],
        }
        self.path([(x + size * dx, y + size * dy) for dx, dy in corners[shape]], kind, closed=True)

    def legend(
        self, names: Sequence[str], place: Point, *, first: int = 0, lines: bool = False, width: float = 0
    ) -> float:
        """Draw marks with names, in rows of `width`; return the height used.

        `first` is the series of the first name.
        """
        x, y = place
        for series, name in enumerate(names, first):
            item_width = 34 + len(name) * SIZE * 0.58
            if width and x > place[0] and x + item_width > place[0] + width:
                x, y = place[0], y + 18
            if lines:
                self.line((x - 7, y), (x + 7, y), f"d{series % len(_MARKS)}")
            self.mark((x, y), series)
            self.text((x + 12, y + 4.5), name, "ink")
            x += item_width
        return y - place[1] + 18

    def inline(self, name: str, title: str, description: str, kind: str) -> str:
        """Return the element for a page with `rules` in its style; `name` is unique there."""
        return (
            f'<svg class="figure {kind}" viewBox="0 0 {self.width:.0f} {self.height:.0f}" role="img" '
            f'aria-labelledby="{name}-title {name}-words" font-size="{SIZE}">'
            f'<title id="{name}-title">{_escaped(title)}</title><desc id="{name}-words">{_escaped(description)}</desc>'
            f"{''.join(self._parts)}</svg>"
        )

    def file(self, title: str, description: str) -> str:
        """Return a standalone file in light colours, with the title above the drawing."""
        above = 34
        used = {kind for part in self._parts for kinds in _CLASSES.findall(part) for kind in kinds.split()}
        style = rules(dark=False, used={*used, "ink", "bold"})
        width, height = self.width, self.height + above
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img" font-size="{SIZE}">\n<title>{_escaped(title)}</title>\n'
            f"<desc>{_escaped(description)}</desc>\n<style>\ntext{{font-family:{FAMILY}}}\n{style}\n</style>\n"
            f'<rect width="100%" height="100%" fill="{PAPER.light}"/>\n'
            f'<text class="ink bold" x="12" y="22" font-size="15">{_escaped(title)}</text>\n'
            f'<g transform="translate(0 {above})">\n{chr(10).join(self._parts)}\n</g>\n</svg>\n'
        )


def lines_of(text: str, width: float) -> list[str]:
    """Wrap text to lines of at most `width` pixels."""
    return textwrap.wrap(text, int(width / CHARACTER_WIDTH)) or [""]


def png(svg: str) -> bytes:
    """Convert `Drawing.file` to PNG at 1.5 times its size; Lato makes text the same on every machine.

    Characters missing in Lato, such as Chinese ones in a model's name, use system fonts.
    """
    import font_lato
    import resvg_py

    fonts = Path(font_lato.__file__).with_name("files")
    files = [str(fonts / f"Lato-{weight}.ttf") for weight in ("Regular", "Bold")]
    return resvg_py.svg_to_bytes(
        svg_string=svg, zoom=_ZOOM, font_files=files, font_family="Lato", sans_serif_family="Lato"
    )


def _escaped(text: str) -> str:
    return str(escape(printable(text)))

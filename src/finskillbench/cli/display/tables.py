"""Plain aligned tables of figures."""

from __future__ import annotations

from collections.abc import Sequence


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """Lines of a table under its header: the first `words` columns flush left, the figures flush right."""
    table = [header, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        pairs = enumerate(zip(cells, widths, strict=True))
        return "  ".join(
            text.ljust(width) if place < words else text.rjust(width) for place, (text, width) in pairs
        ).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)])

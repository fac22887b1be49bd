"""A table as LaTeX with the rules of the package booktabs, for a paper to include."""

from __future__ import annotations

import re

from finskillbench.reports.formats.cells import cell_text, titled
from finskillbench.reports.tables.base import Cell, Column, Kind, Table

LATEX_ABSENT = "---"
_MINUS = re.compile(r"-(?=\d)")
"""A hyphen before a figure, which is to be a minus sign."""
_MARKS = {
    "\\": r"\textbackslash{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # at the start of a row it would be an argument of the line break before it
    "†": r"$\dagger$",
}


def render_latex(table: Table) -> str:
    """A `table` float with its caption, its label `tab:NAME` and its notes; needs `\\usepackage{booktabs}`."""
    aligned = "".join("l" if column.kind is Kind.TEXT else "r" for column in table.columns)
    head = " & ".join(_escaped(titled(column)) for column in table.columns)
    rows = [" & ".join(map(_cell, table.columns, row)) for row in table.rows]
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        f"\\caption{{{_escaped(table.title)}}}",
        f"\\label{{tab:{table.name}}}",
        f"\\begin{{tabular}}{{{aligned}}}",
        r"\toprule",
        f"{head} \\\\",
        r"\midrule",
        *(f"{row} \\\\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *(f"\\par\\smallskip\\footnotesize {_escaped(note)}" for note in table.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(column: Column, cell: Cell) -> str:
    text = cell_text(column, cell, absent=LATEX_ABSENT)
    if column.kind is Kind.TEXT:
        return _escaped(text)
    # In LaTeX's own encoding of letters a bare < is an inverted exclamation mark.
    return _MINUS.sub("$-$", text).replace("%", r"\%").replace("<", "$<$")


def _escaped(text: str) -> str:
    return "".join(_MARKS.get(mark, mark) for mark in text)

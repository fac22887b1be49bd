"""Figures: their scales, their colours, and that a drawing is well-formed whatever it is called."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finskillbench.reports.figures.bars import draw_heat
from finskillbench.reports.figures.forest import WIDE, Figure, ForestLine, draw_forest
from finskillbench.reports.figures.scatter import Scale, log_ticks, ticks
from finskillbench.reports.figures.svg import STEPS, Drawing, difference_step, luminance, rules, score_step
from finskillbench.reports.tables.base import Column, Estimate, Kind, Table

ENDS = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


def test_round_values_are_marked() -> None:
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(-0.03, 0.21) == [0.0, 0.05, 0.1, 0.15, 0.2]
    assert log_ticks(800.0, 30_000.0) == [1_000.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0]
    assert log_ticks(1e-3, 1e6) == [10.0**power for power in range(-3, 7)]


@given(ENDS, st.floats(1e-3, 1e6))
def test_marks_lie_between_the_ends_and_are_few(low: float, width: float) -> None:
    found = ticks(low, low + width)
    assert 1 <= len(found) <= 12
    assert found == sorted(set(found))
    assert all(low - 1e-6 * width <= each <= low + width * (1 + 1e-6) for each in found)


def test_a_scale_is_a_line_or_equal_ratios() -> None:
    assert Scale(0.0, 2.0, 100.0, 300.0)(0.5) == 150.0
    assert Scale(1.0, 100.0, 0.0, 10.0, log=True)(10.0) == pytest.approx(5.0)
    assert Scale(0.0, 1.0, 50.0, 10.0)(7.0) == 10.0  # what lies outside is put at the end
    assert Scale(3.0, 3.0, 0.0, 10.0)(3.0) == 5.0


@pytest.mark.parametrize("dark", [False, True])
def test_letters_can_be_read_on_every_colour_of_a_scale(dark: bool) -> None:
    sheet = rules(dark=dark)
    fills = dict(re.findall(r"^\.([hlg]\d+)\{fill:(#\w{6})", sheet, re.MULTILINE))
    letters = dict(re.findall(r"^\.on-([hlg]\d+)\{fill:(#\w{6})", sheet, re.MULTILINE))
    assert len(fills) == len(letters) == 3 * STEPS + 2
    for name, fill in fills.items():
        high, low = sorted((luminance(fill), luminance(letters[name])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, name


def test_steps_go_from_one_end_to_the_other() -> None:
    assert [score_step(value) for value in (-1.0, 0.0, 0.5, 1.0, 1.2)] == ["h0", "h0", "h5", "h10", "h10"]
    assert [difference_step(value) for value in (-1.0, -0.3, -0.04, 0.04, 1.0)] == ["l10", "l3", "g0", "g0", "g10"]


@given(st.text(max_size=40))
def test_a_drawing_is_well_formed_whatever_it_says(text: str) -> None:
    drawing = Drawing(100, 100)
    drawing.text((0, 10), text, most=60)
    with drawing.tooltip(text):
        drawing.mark((5, 5), 3)
    drawing.legend([text], (0, 0))
    table = Table("name", text, (Column("a", "A"),), (("x",),))
    figure = Figure(table, text, lambda _: drawing)
    for svg in (figure.svg(), f"<g>{figure.inline()}</g>"):
        root = ElementTree.fromstring(svg)
        assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
            *("svg", "title", "desc", "style", "rect", "text", "g", "path", "circle")
        }


def test_an_estimate_without_an_interval_has_a_mark_and_no_line() -> None:
    sure, unsure = ForestLine("a", [Estimate(0.2, 0.1, 0.3)]), ForestLine("b", [Estimate(0.2)])
    unknown = ForestLine("c", [None])

    def drawn(line: ForestLine) -> tuple[int, int, str]:
        svg = draw_forest([("all", [line])], ["x"], "axis", WIDE).inline("n", "t", "w", "wide")
        said = re.findall(r'class="(?:ink|quiet)"[^>]*>([^<]*)</text>', svg)
        return (
            svg.count('class="o1"'),
            svg.count('class="f1 edge"'),
            next(each for each in said if each.startswith("+0.200") or each == "-"),
        )

    assert drawn(sure) == (3, 1, "+0.200 [+0.100, +0.300]")
    assert drawn(unsure) == (0, 1, "+0.200 [n/a]")
    assert drawn(unknown) == (0, 0, "-")


def test_what_cannot_be_said_has_no_colour_in_a_heat_map() -> None:
    svg = draw_heat(["m"], ["a", "b"], [[None, -0.5]], differences=True).inline("n", "t", "w", "wide")
    assert 'class="none"' in svg
    assert 'class="l5"' in svg
    assert "-0.50" in svg


def test_a_figure_is_the_same_picture_again() -> None:
    drawing = Drawing(60, 30)
    drawing.text((2, 20), "−0.5")
    figure = Figure(Table("n", "T", (Column("a", "A", Kind.SCORE),), ((0.5,),)), "words", lambda _: drawing)
    assert figure.png() == figure.png()
    assert figure.png().startswith(b"\x89PNG")

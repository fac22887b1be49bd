"""What a notebook shows: short reprs, HTML that nothing can break out of, and tables that hold the same numbers."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.small_rows import simple, table

from finskillbench.edition import Edition
from finskillbench.edition.checks.catalog import CheckReport, Level
from finskillbench.findings import Check, CheckState, Finding
from finskillbench.notebook import Bar, drawn_interval, html_table
from finskillbench.reports.report import report
from finskillbench.reports.tables.base import Estimate, render_text
from finskillbench.runs.execute.run import run


def _texts(html: str) -> list[list[str]]:
    """The cells of a table, row by row; what is no well-formed tree fails."""
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    assert not list(tree.iter("script"))
    return [["".join(cell.itertext()).strip() for cell in row] for row in tree.iter("tr")]


def test_a_table_escapes_what_it_is_given() -> None:
    html = html_table(["<a>"], [["<script>alert(1)</script>"]], caption="x & <b>", notes=["1 < 2"])
    assert _texts(html) == [["<a>"], ["<script>alert(1)</script>"]]


def _noisy() -> list[tuple[Any, ...]]:
    rows = simple(model="mine/<m>", count=12)
    return [(*row[:4], row[4] + 0.01 * (place * place % 7), row[5]) for place, row in enumerate(rows)]


def test_a_report_shows_one_table_everywhere() -> None:
    found = report(table(*_noisy()))
    assert repr(found) == "Report(certified: 24 rows, 1 models, no_skill, curated)"
    assert str(found) == render_text(found.overview)
    head, first, _ = _texts(found._repr_html_())
    assert head == ["Subtask", "Episodes", "no_skill", "curated", "curated - no_skill"]
    assert " ".join(first) in " ".join(render_text(found.overview).split())
    change = found.overview.column("curated_minus_no_skill")[0]
    assert isinstance(change, Estimate)
    frame = found.to_polars().filter(sub_task="rebalancing")
    assert frame["reference"].to_list() == [None, None, "no_skill"]
    assert frame.row(2, named=True)["mean"] == change.value
    assert (frame["low"][2], frame["high"][2]) == change[1:] != (None, None)
    assert "mine/&lt;m&gt;" in found._repr_html_()


def test_an_interval_is_drawn_where_it_is() -> None:
    tree = ElementTree.fromstring(drawn_interval(0.5, (0.25, 1.0), 1.0))
    zero, spread = tree.iter("line")
    (dot,) = tree.iter("circle")
    assert (zero.get("x1"), spread.get("x1"), spread.get("x2"), dot.get("cx")) == ("80.0", "100.0", "160.0", "120.0")
    assert "line" not in drawn_interval(0.0, None, 1.0).replace("<line", "", 1)


def test_a_difference_of_nothing_looks_like_nothing() -> None:
    found = report(table(*simple(gain=0.0)))
    assert set(re.findall(r'cx="([\d.]+)"', found._repr_html_())) == {"80.0"}


def test_a_run_and_an_edition_are_told_in_a_line(synthetic_edition: Edition, tmp_path: Path) -> None:
    counts = synthetic_edition.manifest["counts"]
    assert repr(synthetic_edition).endswith(f": {sum(counts.values())} episodes of {len(counts)} subtasks)")
    assert _texts(synthetic_edition._repr_html_())[1:] == [[name, str(count)] for name, count in counts.items()]
    frame = synthetic_edition.to_polars()
    assert frame["task_id"].to_list() == [episode.task_id for episode in synthetic_edition.episodes()]
    assert dict(frame.group_by("sub_task").len().iter_rows()) == counts
    out = tmp_path / "mine"
    result = run(synthetic_edition, ["baseline/nop"], ["no_skill"], ["rebalancing"], limit=2, out=out)
    assert repr(result) == f"RunResult({str(out)!r}: 2 rows; ran 2)"
    assert _texts(result._repr_html_())[1][:2] == ["baseline/nop", "no_skill"]
    assert result.to_polars().equals(result.rows)
    assert repr(replace(result, ran=0, kept=2, errors=1)).endswith("2 rows; kept 2, errors 1)")


def test_reports_list_their_findings() -> None:
    found = (Finding(CheckState.FAIL, "pc_1", "weights <sum> to 2", "weights"), Finding(CheckState.WARN, "pc_2", "odd"))
    checks = (
        Check("risk", "units", CheckState.FAIL, {"episodes": 7}, found),
        Check("risk", "spec", CheckState.PASS, {}),
    )
    report = CheckReport("d" * 64, tuple(Level), 7, checks)
    assert repr(report) == "CheckReport(dddddddddddd: 1 findings in 7 episodes)"
    head, first, second = _texts(report._repr_html_())
    assert len(head) == len(first) == len(second)
    assert first[0] == "units"
    assert report.to_polars()["episode"].to_list() == ["pc_1", "pc_2"]
    assert report.to_polars()["evidence"][0] == "weights <sum> to 2"


def test_a_bar_shows_in_a_notebook_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    handle = SimpleNamespace(update=shown.append)

    def display(content: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(content)
        return handle

    shell = type("ZMQInteractiveShell", (), {})()
    bar = Bar()
    bar.show("building panels")
    assert shown == []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    bar.show("1 of 4 episodes", 1, 4)
    bar.show("<all>")
    assert shown == ['<progress value="1" max="4"></progress> 1 of 4 episodes', "<progress></progress> &lt;all&gt;"]

"""`finskillbench data explain`."""

from __future__ import annotations

import pytest

from finskillbench import cli
from finskillbench.edition.load import Edition


def test_a_figure_is_explained_by_its_facts_its_rule_and_its_witnesses(
    synthetic_edition: Edition, capsys: pytest.CaptureFixture[str]
) -> None:
    for task in synthetic_edition.episodes(["normalization"])[:5]:
        wanted = synthetic_edition.truth(task.task_id).expected_output["metrics"]["total_liabilities"]
        assert cli.main(["data", "explain", str(synthetic_edition.path), task.task_id, "total_liabilities"]) == 0
        first, figure, rule, *others = capsys.readouterr().out.splitlines()
        assert first == f"total_liabilities, on {task.input['period_end']}:"
        assert float(figure.split()[0]) == pytest.approx(wanted, rel=1e-11)
        assert rule.startswith("  rule: ")
        accession = figure.rsplit(" ", 3)[1].rstrip(",")
        assert any(accession in line for line in others)
        assert any(line.startswith("  witness: ") and line.endswith("agrees") for line in others)
        assert not any("refuted" in line for line in others)


@pytest.mark.parametrize(
    ("prefix", "metric", "message"),
    [
        ("fa_norm", "goodwill", "goodwill is not a metric of normalization; choose one of"),
        ("pc_", "revenue", "whose labels use no filings"),
        ("nothing", "revenue", "has no episode nothing; `finskillbench inspect"),
    ],
)
def test_what_cannot_be_explained_is_one_line(
    synthetic_edition: Edition, prefix: str, metric: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = (one.task_id for one in synthetic_edition.episodes() if one.task_id.startswith(prefix))
    assert cli.main(["data", "explain", str(synthetic_edition.path), next(named, prefix), metric]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1

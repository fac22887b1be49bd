"""That the tables of desk cases are what their inputs say."""

from __future__ import annotations

from finskillbench.domains.checks.examination import Subject, examining
from finskillbench.domains.tables import Table
from finskillbench.findings import Findings


def tables(subject: Subject, findings: Findings) -> None:
    """Every table that an input names is there, with the rows and columns that the input says."""
    for episode in subject.episodes:
        with examining(episode.task_id, findings):
            for name, value in subject.input_of(episode).items():
                if isinstance(value, Table):
                    stated = episode.input[name]
                    same = (value.rows, list(value)) == (stated["rows"], stated["columns"])
                    findings.expect(same, episode.task_id, f"its table {name} has other rows or columns than it says")

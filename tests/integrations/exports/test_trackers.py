"""MLflow and Weights & Biases are told what tables say, and the libraries read it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.reports.compare.cases import row, run
from tests.sampling import thorough

from finskillbench import integrations
from finskillbench.analysis.results import collect
from finskillbench.errors import InputError
from finskillbench.integrations.exports import TrackerRun, export_mlflow, export_wandb, tracker_runs
from finskillbench.reports.read import RunRows


@pytest.fixture
def small() -> RunRows:
    """Eight episodes of one subtask and one of another, under two conditions; one more failed."""
    scores = [0.1 * i for i in range(8)]
    rows = [row(f"r{i}", score, condition="no_skill") for i, score in enumerate(scores)]
    rows += [row(f"r{i}", score + 0.03 * (i % 3)) for i, score in enumerate(scores)]
    rows += [row("s1", 0.5, sub_task="stress_testing", cost_usd=0.1), row("s2", None, sub_task="stress_testing")]
    return run(*rows, path="runs/mine")


def arms(small: RunRows) -> list[TrackerRun]:
    return tracker_runs(small, collect(small.rows))


def test_the_metrics_of_an_arm_by_hand(small: RunRows) -> None:
    before, after = arms(small)
    assert (before.name, after.name) == ("m no_skill", "m curated")
    assert before.metrics["score/headline"] == pytest.approx(0.35)
    assert after.metrics["score/subtask/stress_testing"] == 0.5
    assert "score/subtask/stress_testing_low" not in after.metrics  # of one episode no interval can be said
    assert after.metrics["gain/domain/portfolio_construction"] == pytest.approx(0.21 / 8)
    assert after.metrics["gain/headline_low"] < after.metrics["gain/headline"] < after.metrics["gain/headline_high"]
    assert after.parameters["gain_over"] == "no_skill"
    assert (after.metrics["rows"], after.metrics["errors"], after.metrics["episodes"]) == (10, 1, 9)
    assert "cost_usd" not in after.metrics  # of most rows it is not known
    assert not [name for name in before.metrics if name.startswith("gain/")]


def test_without_the_library_the_remedy_is_said(small: RunRows, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(integrations, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'finskillbench\[mlflow\]'"):
        export_mlflow(small, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@thorough
@pytest.mark.slow
def test_mlflow_reads_back_what_was_told(small: RunRows, tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    pytest.importorskip("sqlalchemy", reason="the extra mlflow is not installed")
    from mlflow.tracking import MlflowClient

    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("<p>")
    out = tmp_path / "store"
    parent, *children = export_mlflow(small, out, attach=[page])
    client: Any = MlflowClient(tracking_uri=f"sqlite:///{out}/mlflow.db")
    experiment = client.get_experiment_by_name("mine")
    assert {each.info.run_id for each in client.search_runs([experiment.experiment_id])} == {parent, *children}
    for arm, child in zip(arms(small), children, strict=True):
        found = client.get_run(child)
        assert found.data.metrics == pytest.approx(dict(arm.metrics))
        assert found.data.params == dict(arm.parameters)
        assert found.data.tags["mlflow.parentRunId"] == parent
        assert found.info.status == "FINISHED"
    assert {each.path for each in client.list_artifacts(parent)} == {"page", "rows.csv", "tables"}
    export_mlflow(small, out)  # a store that is there grows
    assert len(client.search_runs([experiment.experiment_id])) == 6


@thorough
@pytest.mark.slow
def test_wandb_reads_back_what_was_told(small: RunRows, tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    folders = export_wandb(small, tmp_path / "store")
    for arm, folder in zip(arms(small), folders, strict=True):
        records = list(_records(next(folder.glob("*.wandb")).read_bytes()))
        (begun,) = (each.run for each in records if each.WhichOneof("record_type") == "run")
        assert (begun.run_group, begun.display_name) == ("mine", arm.name)
        config = {item.key: json.loads(item.value_json) for item in begun.config.update}
        assert {name: config[name] for name in arm.parameters} == dict(arm.parameters)
        summary: dict[str, Any] = {}
        for record in records:
            for item in record.summary.update:
                summary[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        assert {name: summary[name] for name in arm.metrics} == pytest.approx(dict(arm.metrics))
    assert (folders[0] / "files" / "tables").is_dir()
    assert not (folders[1] / "files" / "rows.csv").exists()


def _records(data: bytes) -> Any:
    """The records of an offline run: chunks of LevelDB's log format in blocks of 32 KiB, behind seven bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    place, gathered = 7, b""
    while place + 7 <= len(data):
        if (left := 32768 - place % 32768) < 7:
            place += left
            continue
        size, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        gathered += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole one, or the last part of one
            yield Record.FromString(gathered)
            gathered = b""

"""The folder for a data set hub: complete, readable by others' tools, and without anything that labels follow from."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import mlcroissant
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from tests.publish.hub.conftest import PLANTED, SEED

from finskillbench.cli import main
from finskillbench.edition import Edition, load_edition
from finskillbench.edition.store import CANARY
from finskillbench.errors import EditionError, InputError
from finskillbench.publish.hub import export_hub
from finskillbench.publish.hub.metadata import croissant
from finskillbench.publish.hub.shards import EPISODE_COLUMNS, GUID, write_episode_shards

TODAY = date(2026, 1, 2)


@pytest.fixture
def hub(marked: Edition, tmp_path: Path) -> Path:
    export_hub(marked, tmp_path / "hub", today=TODAY)
    return tmp_path / "hub"


def front_matter(folder: Path) -> dict:
    _, told, _ = (folder / "README.md").read_text().split("---\n", 2)
    return yaml.safe_load(told)


@pytest.mark.parametrize("what", PLANTED)
def test_nothing_that_labels_follow_from_is_in_the_folder(what: str, marked: Edition, hub: Path, everything) -> None:
    secret = PLANTED[what].encode()
    assert any(secret in content for content in everything(marked.path).values()) or "seed" in what
    assert not [name for name, content in everything(hub).items() if secret in content]


def test_every_column_is_one_of_what_an_agent_may_see(marked: Edition, hub: Path) -> None:
    rows = pl.read_parquet(hub / "data" / "*" / "*.parquet")
    assert rows.columns == [each.name for each in EPISODE_COLUMNS]
    for row, episode in zip(rows.sort("task_id").iter_rows(named=True), sorted_episodes(marked), strict=True):
        assert json.loads(row["input"]) == episode.input
        told = row["task_description"], row["output_instructions"]
        assert told == (episode.prompt.task_description, episode.prompt.output_instructions)
        assert (row["task_id"], row["domain"], row["sub_task"]) == (episode.task_id, episode.skill, episode.sub_task)
        assert (row["as_of_date"], row["difficulty"]) == (episode.as_of_date, episode.difficulty)
        assert row["references"] == ["panels/c.npz"]
        assert json.loads(row["answer_schema"])["type"] == "object"


def sorted_episodes(edition: Edition) -> list:
    return sorted(edition.episodes(), key=lambda each: each.task_id)


def test_the_canary_stands_in_every_row_and_every_shard(hub: Path) -> None:
    for path in (hub / "data").rglob("*.parquet"):
        assert pq.read_schema(path).metadata[b"canary"] == CANARY.encode()
        assert set(pl.read_parquet(path)["canary"]) == {CANARY}
    assert CANARY in (hub / "README.md").read_text()
    assert CANARY in json.loads((hub / "croissant.json").read_bytes())["description"]


def test_the_card_names_every_configuration_with_its_files(marked: Edition, hub: Path) -> None:
    told = front_matter(hub)
    assert (told["license"], told["language"], told["size_categories"]) == ("apache-2.0", ["en"], ["n<1K"])
    assert "question-answering" in told["task_categories"]
    configs = {each["config_name"]: each["data_files"] for each in told["configs"]}
    assert list(configs) == ["all", *marked.sub_tasks]
    for name, files in configs.items():
        (only,) = files
        rows = sum(pl.read_parquet(path).height for path in hub.glob(only["path"]))
        assert (only["split"], rows) == ("test", 6 if name == "all" else 3)


def test_the_example_of_the_card_runs(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (hub / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(hub)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().splitlines()[1] == "['expected_returns', 'covariance']"


NEURIPS = ("dataLimitations", "dataBiases", "personalSensitiveInformation", "dataUseCases", "dataSocialImpact")
"""Fields of responsible use that NeurIPS 2026 requires, with `hasSyntheticData` and two of PROV."""
LOAD = """
import sys
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import DatasetCard
names = get_dataset_config_names(sys.argv[1])
DatasetCard.load(f"{sys.argv[1]}/README.md")
print(*[f"{name}={load_dataset(sys.argv[1], name, split='test').num_rows}" for name in names])
"""


def test_the_hub_registers_a_leaderboard_for_each_configuration(marked: Edition, hub: Path) -> None:
    found = yaml.safe_load((hub / "eval.yaml").read_text())
    assert found.keys() == {"name", "description", "evaluation_framework", "tasks"}
    assert found["evaluation_framework"] == "harbor"
    names = [each["config_name"] for each in front_matter(hub)["configs"]]
    assert found["tasks"] == [{"id": name, "config": name, "split": "test"} for name in names]


def test_hugging_face_loads_every_configuration(hub: Path, tmp_path: Path) -> None:
    python = Path(__file__).parents[3] / ".venv-receivers" / "bin" / "python"
    if not python.exists():
        pytest.skip("needs make receivers")
    places = {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
    done = subprocess.run([python, "-c", LOAD, hub], capture_output=True, text=True, check=True, env=places)
    assert done.stdout.split() == ["all=6", "unconstrained_optimization=3", "stress_testing=3"]


def test_croissant_states_responsible_use(hub: Path) -> None:
    subprocess.run(
        [Path(sys.executable).with_name("mlcroissant"), "validate", "--jsonld", hub / "croissant.json"], check=True
    )
    metadata = mlcroissant.Dataset(str(hub / "croissant.json")).metadata
    assert (str(metadata.ctx.conforms_to.value), metadata.data_use_cases is None) == (
        "http://mlcommons.org/croissant/1.1",
        False,
    )
    document = json.loads((hub / "croissant.json").read_bytes())
    assert all(document[f"rai:{name}"] for name in NEURIPS)
    assert document["rai:hasSyntheticData"] is True
    assert document["prov:wasDerivedFrom"]
    assert document["prov:wasGeneratedBy"]["name"].startswith("finskillbench data build, version ")


def test_croissant_of_an_imported_release_claims_no_proof(marked: Edition) -> None:
    release = replace(marked, manifest={**marked.manifest, "source": {"kind": "release"}})
    document = json.loads(croissant(release, (), (), today=TODAY))
    assert document["rai:dataAnnotationProtocol"] == "Labels are those of the release; they carry no proof."
    assert document["prov:wasGeneratedBy"]["name"].startswith("finskillbench data import, version ")
    assert document["rai:hasSyntheticData"] is False


def test_croissant_reads_the_records_back(marked: Edition, hub: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = mlcroissant.Dataset(str(hub / "croissant.json"))
    assert data.metadata.ctx.issues.report() == ""
    assert not caplog.records
    for name in marked.sub_tasks:
        rows = pl.read_parquet(hub / "data" / name / "*.parquet")
        found = list(data.records(name))
        assert [each[f"{name}/task_id"].decode() for each in found] == rows["task_id"].to_list()
        assert [each[f"{name}/input"].decode() for each in found] == rows["input"].to_list()
        assert [each[f"{name}/as_of_date"].date() for each in found] == rows["as_of_date"].to_list()


def test_croissant_notices_an_altered_shard(hub: Path) -> None:
    path = next((hub / "data" / "stress_testing").iterdir())
    pl.read_parquet(path).with_columns(difficulty=pl.lit("hard")).write_parquet(path)
    data = mlcroissant.Dataset(str(hub / "croissant.json"))
    with pytest.raises(mlcroissant.GenerationError, match="Download") as refused:
        list(data.records("stress_testing"))
    assert "not identical with the reference" in str(refused.value.__cause__)
    assert len(list(data.records("unconstrained_optimization"))) == 3


def test_many_shards_are_one_configuration(marked: Edition, tmp_path: Path) -> None:
    shards = write_episode_shards(marked, tmp_path / "cut", most=1)
    assert [shard.rows for shard in shards] == [1] * 6
    assert shards[1].path == "data/unconstrained_optimization/test-00001-of-00003.parquet"
    (tmp_path / "cut" / "croissant.json").write_bytes(croissant(marked, shards, (), today=TODAY))
    data = mlcroissant.Dataset(str(tmp_path / "cut" / "croissant.json"))
    found = {each["stress_testing/task_id"].decode() for each in data.records("stress_testing")}
    assert found == {f"stress_testing_{number}" for number in range(3)}


def test_the_checksums_are_those_of_all_files(hub: Path) -> None:
    subprocess.run(["sha256sum", "-c", "--quiet", "checksums.sha256"], cwd=hub, check=True)
    listed = {line.split("  ", 1)[1] for line in (hub / "checksums.sha256").read_text().splitlines()}
    files = {path.relative_to(hub).as_posix() for path in hub.rglob("*") if path.is_file()}
    assert files == {*listed, "checksums.sha256"}


def test_the_copy_inside_is_the_edition_for_agents(marked: Edition, hub: Path, tmp_path: Path) -> None:
    copy = load_edition(hub / "edition")
    assert (copy.digest, copy.has_truth, copy.manifest["seed"]) == (marked.digest, False, None)
    assert copy.episodes() == marked.episodes()
    assert main(["export-tasks", str(hub / "edition"), str(tmp_path / "handed-out"), "--limit", "1"]) == 0
    assert main(["score", str(hub / "edition"), str(tmp_path / "handed-out")]) == 2


def test_the_same_edition_makes_the_same_bytes(marked: Edition, hub: Path, tmp_path: Path, everything) -> None:
    export_hub(marked, tmp_path / "again", today=TODAY)
    assert everything(tmp_path / "again") == everything(hub)


def test_truth_is_a_configuration_of_its_own_where_it_is_asked_for(
    marked: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str], everything
) -> None:
    out = tmp_path / "open"
    assert main(["data", "export", str(marked.path), "--hub", str(out), "--with-truth"]) == 0
    assert "contains the expected answers; do not publish it" in capsys.readouterr().err
    labels = pl.read_parquet(out / "truth" / "*" / "*.parquet")
    assert labels.height == 6
    assert set(labels["canary"]) == {CANARY}
    assert "expected answers" in (out / "truth" / "WARNING.txt").read_text()
    assert front_matter(out)["configs"][-1]["config_name"] == "truth"
    assert "**This folder contains the expected answers**" in (out / "README.md").read_text()
    data = mlcroissant.Dataset(str(out / "croissant.json"))
    first = next(iter(data.records("truth-stress_testing")))
    assert PLANTED["truth"] in first["truth-stress_testing/expected_output"].decode()
    # The copy for agents stays without, and what nobody needs to score is nowhere.
    assert not load_edition(out / "edition").has_truth
    for what in ("certificate", "stage", "catalog", "seed"):
        assert not [name for name, content in everything(out).items() if PLANTED[what].encode() in content]


def test_an_edition_without_truth_has_none_to_add(hub: Path, tmp_path: Path) -> None:
    public = load_edition(hub / "edition")
    with pytest.raises(EditionError, match="has no truth/"):
        export_hub(public, tmp_path / "open", today=TODAY, truth=True)
    assert not (tmp_path / "open").exists()
    export_hub(public, tmp_path / "again", today=TODAY)


def test_a_folder_that_is_taken_is_refused(marked: Edition, hub: Path) -> None:
    with pytest.raises(InputError, match="not an empty folder"):
        export_hub(marked, hub, today=TODAY)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either --public --out PATH"),
        (["--hub", "a", "--out", "b"], "give either --public --out PATH"),
        (["--hub", "a", "--public"], "--public needs --out"),
        (["--out", "b", "--with-truth", "--public"], "--with-truth needs --hub"),
        (["--out", "b"], "makes public copies only"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    arguments: list[str], said: str, marked: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", "export", str(marked.path), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not {"a", "b"} & {each.name for each in tmp_path.iterdir()}


def test_a_small_seed_is_warned_of(marked: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "export", str(marked.path), "--hub", str(tmp_path / "a")]) == 0
    assert "seed" not in (said := capsys.readouterr()).err
    assert str(SEED) not in said.out + said.err
    manifest = marked.path / "manifest.json"
    told = {**json.loads(manifest.read_bytes()), "seed": 7}
    from finskillbench.edition.store import write_sealed

    del told["seal"]
    write_sealed(marked.path, told)
    assert main(["data", "export", str(marked.path), "--public", "--out", str(tmp_path / "b")]) == 0
    assert "small enough to be found by trial" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["plain", "gzip", "parquet", "upper", "cut"])
def test_files_that_hold_the_canary_are_named(
    form: str, hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import gzip

    text = f"{'x' * (2**20 - 10)}{GUID} and more".encode()
    content = {
        "plain": CANARY.encode(),
        "gzip": gzip.compress(CANARY.encode()),
        "parquet": next((hub / "data").rglob("*.parquet")).read_bytes(),
        "upper": CANARY.upper().encode(),
        "cut": text,  # over the border of two pieces that are read one by one
    }[form]
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "marked").write_bytes(content)
    (tmp_path / "corpus" / "clean").write_text("finskillbench:canary:00000000-0000-0000-0000-000000000000")
    assert main(["data", "canary", str(tmp_path / "corpus")]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'corpus' / 'marked'}\n"
    assert main(["data", "canary", str(tmp_path / "corpus" / "clean")]) == 0


def test_a_file_that_is_not_there_has_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "canary", str(tmp_path / "nothing")]) == 2
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8bxx")
    assert main(["data", "canary", str(tmp_path / "broken.gz")]) == 2
    assert "cannot be read" in capsys.readouterr().err

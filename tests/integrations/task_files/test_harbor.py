"""Harbor tasks: truth only where the verifier and the oracle are, scores as rewards, and Harbor's own classes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from finskillbench import cli
from finskillbench.edition import Edition
from finskillbench.edition.store import CANARY
from finskillbench.edition.withheld import export_public
from finskillbench.errors import InputError
from finskillbench.integrations.task_files import ANSWER, IMAGE
from finskillbench.integrations.task_files.harbor import MATERIAL, NUMERIC, PLACE, HarborImages
from finskillbench.integrations.task_files.verify import rewards
from finskillbench.integrations.task_files.write import export_tasks
from finskillbench.runs.config import EpisodeSelection

ROOT = Path(__file__).parents[3]
HARBOR = ROOT / ".venv-harbor" / "bin" / "python"
ONE = EpisodeSelection(limit=1)
DIGEST = f"python@sha256:{'0' * 64}"


@pytest.fixture(scope="module")
def tasks(synthetic_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, str]:
    """One task of each subtask, with task ids."""
    out = tmp_path_factory.mktemp("harbor") / "tasks"
    record = export_tasks(synthetic_edition, out, "curated", chosen=ONE, harbor=HarborImages(DIGEST))
    return {out / name: task_id for name, task_id in record.tasks.items()}


@pytest.fixture
def verify(tmp_path: Path) -> Callable[..., dict[str, float]]:
    """Run scripts of a task with a folder in place of the root of a container, and return the rewards."""

    def run(script: Path, root: Path) -> None:
        text = re.sub(r" /(tests|solution|workspace|logs)\b", rf" {root}/\1", script.read_text())
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        subprocess.run(["sh", "-c", text], check=True, cwd=root, env={"PATH": path})

    def verify(task: Path, answer: str | None = None, *, oracle: bool = False) -> dict[str, float]:
        root = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        (root / "logs" / "verifier").mkdir(parents=True)
        (root / "workspace").mkdir()
        for name in ("tests", "solution"):
            (root / name).symlink_to(task / name)
        if answer is not None:
            (root / "workspace" / ANSWER).write_text(answer)
        if oracle:
            run(task / "solution" / "solve.sh", root)
        run(task / "tests" / "test.sh", root)
        return orjson.loads((root / "logs" / "verifier" / "reward.json").read_bytes())

    return verify


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_agents_see_what_a_copy_without_truth_gives(
    synthetic_edition: Edition, tasks: dict[Path, str], tmp_path: Path
) -> None:
    public = export_public(synthetic_edition, tmp_path / "public")
    export_tasks(public, tmp_path / "plain", "curated", chosen=ONE)
    for task in tasks:
        plain, seen = _files(tmp_path / "plain" / task.name), _files(task / MATERIAL)
        assert seen == {name: data for name, data in plain.items() if name not in ("prompt.md", "CANARY.txt")}
        assert {path.name for path in (task / "environment").iterdir()} == {"Dockerfile", "workspace"}
        # Harbor removes a first line with the word, so that no agent reads it.
        first, instruction = (task / "instruction.md").read_text().split("\n", 1)
        assert first == f"<!-- {CANARY} -->"
        assert instruction == plain["prompt.md"].decode().replace("This folder", f"The working directory `{PLACE}`")


def test_rewards_are_scores(
    synthetic_edition: Edition, tasks: dict[Path, str], verify: Callable[..., dict[str, float]], tmp_path: Path
) -> None:
    for task in tasks:
        assert rewards(task / "tests", task / "solution" / ANSWER)["reward"] == pytest.approx(1.0, abs=1e-9), task.name
    task, task_id = next(each for each in tasks.items() if each[1].startswith("fa_norm"))
    assert verify(task, oracle=True)["reward"] == 1.0
    assert verify(task) == {"raw": -1.0, "reward": 0.0}
    for text in ("", "{}", "no JSON", "[1]", '{"revenue": NaN}'):
        (tmp_path / ANSWER).write_text(text)
        assert rewards(task / "tests", tmp_path / ANSWER)["reward"] == 0.0
    metrics = synthetic_edition.truth(task_id).expected_output["metrics"]
    partial = orjson.dumps({"metrics": {**metrics, "net_income": 1.0}}).decode()
    answers, out = tmp_path / "answers.jsonl", tmp_path / "rows.jsonl"
    answers.write_bytes(orjson.dumps({"task_id": task_id, "answer": partial}))
    assert cli.main(["score", str(synthetic_edition.path), str(answers), "--out", str(out)]) == 0
    rows = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    (row,) = [row for row in rows if row["task_id"] == task_id]
    found = verify(task, partial)
    assert 0 < found["reward"] == row["scores"]["certified"] < 1
    parts = row["details"]["certified"]
    assert found.items() >= {name: part for name, part in parts.items() if isinstance(part, float)}.items()


def test_harbor_accepts_every_task(synthetic_edition: Edition, tasks: dict[Path, str]) -> None:
    if not HARBOR.exists():
        pytest.skip("needs Harbor 0.26 in .venv-harbor")
    export = next(iter(tasks)).parent
    done = subprocess.run(
        [HARBOR, Path(__file__).with_name("harbor_check.py"), export], check=True, capture_output=True
    )
    found = orjson.loads(done.stdout)
    assert found["files"] == {"metric.py": True}
    assert found["tasks"].keys() == {task.name for task in tasks}
    assert found["registry"] == [f"0.1.0+{synthetic_edition.digest[:12]}", dict.fromkeys(found["tasks"], True)]
    for name, task in found["tasks"].items():
        assert (task["name"], task["findings"], task["digest"]) == (f"finskillbench/{name}", [], True)
        assert (task["agent"], task["verifier"]) == ("no-network", ["tests", True, "no-network"])
        assert task["instruction"].startswith("You are an investment analyst")


def test_means_count_missing_rewards(tasks: dict[Path, str], tmp_path: Path) -> None:
    lines, out = tmp_path / "rewards.jsonl", tmp_path / "metric.json"
    lines.write_text('{"raw": -1, "reward": 0.5}\nnull\n{"reward": 1}\n')
    metric = next(iter(tasks)).parent / "metric.py"
    subprocess.run([sys.executable, metric, "-i", lines, "-o", out], check=True)
    assert orjson.loads(out.read_bytes()) == {"mean": 0.5}


def test_packages_are_pinned() -> None:
    pinned = (ROOT / "requirements" / "run.txt").read_text()
    assert all(f"\n{requirement} " in pinned for requirement in NUMERIC)
    assert f"BASE={IMAGE}\n" in (ROOT / "Dockerfile").read_text()


def test_exports_without_rewards_are_refused(
    synthetic_edition: Edition, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    public = export_public(synthetic_edition, tmp_path / "public")
    export = ["--limit", "1", "--format", "harbor"]
    assert cli.main(["export-tasks", str(public.path), str(tmp_path / "no"), *export]) == 2
    assert "has no truth/" in capsys.readouterr().err.splitlines()[-1]
    assert cli.main(["export-tasks", str(public.path), str(tmp_path / "no"), "--image", IMAGE]) == 2
    assert "add --format harbor" in capsys.readouterr().err
    wheel = tmp_path / "another-1-py3-none-any.whl"
    wheel.touch()
    with pytest.raises(InputError, match="none of finskillbench,"):
        export_tasks(synthetic_edition, tmp_path / "no", chosen=ONE, harbor=HarborImages(wheels=(wheel,)))
    for arguments, words in (("a b", ()), "is not an image name"), ((IMAGE, (tmp_path / "absent",)), "is not a wheel"):
        with pytest.raises(InputError, match=words):
            HarborImages(*arguments)
    assert not (tmp_path / "no").exists()

"""What a release holds: the trial tells a file too few, one too many, and one with other bytes; the metadata."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from release.trial import VERSIONS, TrialError, compare, digests, files_of_wheel, interpreters, tracked_files

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_kind_of_data_is_among_the_tracked_files() -> None:
    names = set(tracked_files())
    for part in (
        "py.typed",
        "domains/risk/skill/risk-management/SKILL.md",
        "domains/risk/skill/risk-management/scripts/stress_test.py",
        "harness/skills/placebo/",
        "sources/raw/template/",
        "reports/page/templates/",
        "publish/pack/templates/",
        "domains/risk/catalog/",
    ):
        assert any(name.startswith(f"finskillbench/{part}") for name in names), part


def test_every_kind_of_data_of_the_desk_is_among_the_tracked_files() -> None:
    names = set(tracked_files("finskillbench_desk"))
    for part in ("py.typed", "skills/mandate-review/scripts/run_rules.py", "skills/mandate-review/evals/", "placebo/"):
        assert any(name.startswith(f"finskillbench_desk/{part}") for name in names), part


def test_a_wheel_is_held_to_the_repository(tmp_path: Path) -> None:
    wanted = tracked_files()
    wheel = tmp_path / "finskillbench-0-py3-none-any.whl"
    with ZipFile(wheel, "w") as archive:
        for name in wanted:
            archive.write(ROOT / "src" / name, name)
        archive.writestr("finskillbench-0.dist-info/RECORD", "")
    compare(files_of_wheel(wheel), wanted, "wheel")
    found = files_of_wheel(wheel)
    for altered, said in (
        ({name: digest for name, digest in found.items() if name != "finskillbench/py.typed"}, r"missing \['finskill"),
        ({**found, "finskillbench/notes.json": ""}, r"too many \['finskillbench/notes\.json'\]"),
        ({**found, "finskillbench/py.typed": ""}, r"other bytes \['finskillbench/py\.typed'\]"),
    ):
        with pytest.raises(TrialError, match=said):
            compare(altered, wanted, "wheel")


def test_an_interpreter_is_found_where_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the search path, or where pyenv keeps it: its shim is on the search path and refuses to start."""
    shim, kept = tmp_path / "shims" / "python3.99", tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python"
    for path, code in ((shim, "exit 127"), (kept, "exit 0")):
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{code}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(shim.parent))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert list(interpreters("3.99")) == [str(kept)]
    shim.write_text("#!/bin/sh\nexit 0\n")
    assert list(interpreters("3.99")) == [str(shim), str(kept)]
    assert list(interpreters("3.9")) == []


def test_an_edition_of_other_bytes_is_told_from_the_first(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "truth").mkdir(parents=True)
        (tmp_path / name / "truth" / "rebalancing.jsonl").write_text("0.1")
    first = digests(tmp_path / "first")
    compare(digests(tmp_path / "second"), first, "edition")
    (tmp_path / "second" / "truth" / "rebalancing.jsonl").write_text("0.10000000000000002")
    with pytest.raises(TrialError, match=r"^edition: .*other bytes \['truth/rebalancing\.jsonl'\]"):
        compare(digests(tmp_path / "second"), first, "edition")


def test_the_metadata_name_what_is_there() -> None:
    """No address that nobody has registered; the versions of Python are those of the range."""
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert all(url in cited for url in PROJECT.get("urls", {}).values())
    assert f"version: {PROJECT['version']}" in cited
    versions = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert tuple(versions) == VERSIONS == ("3.11", "3.12", "3.13")
    assert PROJECT["requires-python"] == ">=3.11,<3.14"

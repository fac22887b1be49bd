"""`finskillbench data fetch`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
import pytest_socket
from tests.fetch.conftest import AGENT
from tests.fetch.internet import Internet, once_each
from tests.fetch.world import World
from tests.sampling import thorough

from finskillbench import cli
from finskillbench.edition.build import build_edition
from finskillbench.edition.load import load_edition
from finskillbench.fetch.collect import derive_statements
from finskillbench.sources.companies.universe import SecurityRecord

pytestmark = pytest.mark.enable_socket
MONTHS = ["--from", "2025-12", "--to", "2025-12"]


@pytest.fixture
def world(synthetic_raw: Path) -> World:
    pytest_socket.enable_socket()
    return World(synthetic_raw)


def test_a_fetch_says_what_it_has_and_what_comes_next(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Agent and configuration by environment; a refusal of the only price provider is one line and exit code 2."""
    names, raw = tmp_path / "names.txt", tmp_path / "raw"
    names.write_text(sorted(world.ciks)[0])
    monkeypatch.setenv("FINSKILLBENCH_USER_AGENT", AGENT)
    command = ["data", "fetch", *MONTHS, "--universe", str(names), "--out", str(raw)]
    with Internet(world, lambda url, times: "page" if "yahoo" in url else "") as net:
        monkeypatch.setenv("FINSKILLBENCH_SOURCES", str(net.configuration(tmp_path, "attempts = 2")))
        assert cli.main(command) == 2
        told = capsys.readouterr().err.splitlines()[-1]
        assert told.startswith("error: http://127.0.0.1")
        assert "a page in place of JSON: 'Busy We are down for maintenance'" in told
        net.fault = lambda url, times: ""
        assert cli.main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("note: fred/DFF.csv is left out: ")
    assert shown[-2].endswith(f"MB: {raw}")
    assert shown[-1] == f"Next: finskillbench data build --source raw-dir --raw-dir {raw} --out EDITION"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([], "FINSKILLBENCH_USER_AGENT"),
        (["--seed", "3"], "--seed needs --build EDITION"),
        (["--prices-dir", "."], "--prices-dir needs --prices csv"),
        (["--user-agent", AGENT, "--prices", "csv"], "--prices-dir DIR"),
        (["--user-agent", AGENT, "--config", "none.toml"], "none.toml: cannot be read"),
        (["--user-agent", AGENT, "--universe", "none.txt"], "none.txt: no such file"),
    ],
)
def test_what_it_cannot_do_is_one_line(
    more: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("FINSKILLBENCH_USER_AGENT", "FINSKILLBENCH_SOURCES"):
        monkeypatch.delenv(name, raising=False)
    assert cli.main(["data", "fetch", *MONTHS, "--out", "raw", *more]) == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


@thorough
@pytest.mark.slow
def test_from_nothing_to_the_edition_of_the_same_files(world: World, tmp_path: Path) -> None:
    """One command, a third of whose questions go wrong once; every label is that of the files themselves."""
    reference = tmp_path / "reference"
    shutil.copytree(world.raw, reference)
    for symbol, cik in world.ciks.items():
        (reference / "prices" / f"{symbol}.csv").write_text(world.reference(symbol))
        facts = reference / "companyfacts" / f"CIK{cik}.json"
        (reference / "statements_derived" / f"{symbol}.json").write_bytes(
            derive_statements(facts, SecurityRecord(symbol, symbol))
        )
    start = "import sys; from finskillbench.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with Internet(world, once_each(3, 1 / 3, ("429", "500", "page", "cut", "reset", "garbage", "empty"))) as net:
        config = str(net.configuration(tmp_path))
        raw, out = str(tmp_path / "raw"), str(tmp_path / "edition")
        window = ["--from", "2017-01", "--to", "2025-12", "--universe", "sp500", "--config", config]
        command = ["data", "fetch", *window, "--user-agent", AGENT, "--out", raw, "--build", out]
        subprocess.run([sys.executable, "-c", start, *command], env=environment, check=True)
    fetched = load_edition(Path(out))
    assert fetched.manifest["source"]["provenance"]
    # The reference has every document; reports of two years before the window are enough for those that are in it.
    filed = (date(2017, 1, 1), date(2025, 12, 31))
    whole = build_edition(source="raw-dir", raw_dir=reference, out=tmp_path / "whole", filed=filed)
    for name, digest in whole.manifest["files"].items():
        if name.startswith(("episodes/", "truth/", "certificates/")):
            assert fetched.manifest["files"][name] == digest, name

"""The bill of materials: every pin with its hashes, no address, the same bytes each time."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_pin_is_in_it_with_every_hash(tmp_path: Path) -> None:
    from release.sbom import bill, main  # two seconds, which not every process of a test run should take

    main(tmp_path / "dist" / "sbom.cdx.json")
    text = (tmp_path / "dist" / "sbom.cdx.json").read_text(encoding="utf-8")
    made = json.loads(text)
    assert {(part["name"], part["version"]) for part in made["components"]} == set(
        re.findall(r"^([\w.-]+)(?:\[.+\])?==([\w.+!-]+)", PINS, re.MULTILINE)
    )
    hashes = [each["content"] for part in made["components"] for each in part["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", PINS))
    root = made["metadata"]["component"]
    assert (root["name"], root["version"]) == ("finskillbench", PROJECT["version"])
    (direct,) = [each["dependsOn"] for each in made["dependencies"] if each["ref"] == "finskillbench"]
    assert {ref.partition("==")[0] for ref in direct} == {
        re.split("[>=]", asked)[0] for asked in PROJECT["dependencies"]
    }
    assert re.findall(r"https?://[^\"]+", text) == ["http://cyclonedx.org/schema/bom-1.6.schema.json"]
    assert bill(PROJECT, PINS) == text


def test_what_is_not_pinned_is_refused() -> None:
    from release.sbom import bill

    with pytest.raises(ValueError, match=r"polars: in pyproject\.toml and not pinned with hashes; run make lock"):
        bill(PROJECT, re.sub(r"^polars==.*?(?=^\w)", "", PINS, flags=re.MULTILINE | re.DOTALL))

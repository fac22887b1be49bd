"""A bill of materials of what a run needs: every pinned package with its hashes, as CycloneDX 1.6 JSON.

    python -m release.sbom dist/sbom.cdx.json

It is made of requirements/run.txt and pyproject.toml alone: no network, no address, the same bytes for the same files.
"""

from __future__ import annotations

import re
import sys
import tomllib
import uuid
from pathlib import Path
from typing import Any

import orjson
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(
    r"^([\w.-]+)(?:\[[^\]\n]*\])?==([\w.+!-]+)((?:\s*;[^\\\n]*)?)((?:\s*\\\n\s+--hash=sha256:[0-9a-f]{64})+)",
    re.MULTILINE,
)


def bill(project: dict[str, Any], pins: str) -> str:
    """The bill as JSON, checked against the schema.

    Parameters
    ----------
    project : the table `project` of pyproject.toml.
    pins : the text of a lock file with hashes.

    Raises
    ------
    ValueError : a requirement of the project is not pinned, or the bill is not after the schema.
    """
    parts = [_part(*pin) for pin in _PIN.findall(pins)]
    direct = {canonicalize_name(Requirement(asked).name) for asked in project["dependencies"]}
    if absent := sorted(direct - {canonicalize_name(part.name) for part in parts}):
        raise ValueError(f"{', '.join(absent)}: in pyproject.toml and not pinned with hashes; run make lock")
    bom = Bom(components=parts)
    bom.metadata.component = Component(
        name=project["name"],
        version=project["version"],
        description=project["description"],
        type=ComponentType.APPLICATION,
        licenses=[DisjunctiveLicense(id=project["license"])],
        bom_ref=project["name"],
        purl=PackageURL("pypi", name=project["name"], version=project["version"]),
    )
    bom.register_dependency(bom.metadata.component, [part for part in parts if canonicalize_name(part.name) in direct])
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_OID, f"{project['name']} {project['version']}\n{pins}")
    made = orjson.loads(JsonV1Dot6(bom).output_as_string())
    del made["metadata"]["timestamp"]
    text = orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n"
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"the bill is not after the schema: {problem}")
    return text


def _part(name: str, version: str, marker: str, hashes: str) -> Component:
    """One pin; a package has several where markers choose: by platform, or by version of Python."""
    return Component(
        name=name,
        version=version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{name}=={version}",
        purl=PackageURL("pypi", name=canonicalize_name(name), version=version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=each) for each in re.findall("[0-9a-f]{64}", hashes)],
        properties=[Property(name="python:marker", value=marker.strip(" ;"))] if marker.strip() else [],
    )


def main(out: Path) -> None:
    """Write the bill beside `out` and put it there when it is whole."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = bill(project, (ROOT / "requirements" / "run.txt").read_text(encoding="utf-8"))
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(out.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(out)
    print(f"{out}: finskillbench {project['version']} and {len(orjson.loads(text)['components'])} pinned packages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Data set card, `eval.yaml` and Croissant metadata (MLCommons, version 1.1 with RAI 1.0) of an exported edition.

A configuration of one shard refers to that file, whose digest readers check; one of several, to a set of files.
Sources: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html,
https://docs.mlcommons.org/croissant/docs/croissant-rai-spec.html, https://huggingface.co/docs/hub/eval-results
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
import yaml

from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY
from finskillbench.publish.hub.shards import DATA, EPISODE_COLUMNS, SPLIT, TRUTH, TRUTH_COLUMNS, HubColumn, HubShard

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LICENCES = {
    "synthetic": "Apache-2.0. All companies, prices and filings are fictional.",
    "raw-dir": (
        "the panels were made of raw files of other publishers: check the terms of the price provider before you "
        "distribute the folder. The texts of the tasks are Apache-2.0."
    ),
}


def card(edition: Edition, shards: Sequence[HubShard], labels: Sequence[HubShard]) -> str:
    """Return README.md of the folder."""
    return f"---\n{_front_matter(edition, shards, labels)}---\n\n{_body(edition, shards, labels)}"


def _front_matter(edition: Edition, shards: Sequence[HubShard], labels: Sequence[HubShard]) -> str:
    synthetic = edition.manifest["source"]["kind"] == "synthetic"
    episodes = sum(shard.rows for shard in shards)
    configs = [_config("all", f"{DATA}/*/*.parquet", default=True)]
    configs += [_config(name, f"{DATA}/{name}/*.parquet") for name in _configs(shards)]
    configs += [_config(TRUTH, f"{TRUTH}/*/*.parquet")] if labels else []
    fields: dict[str, Any] = {
        "license": "apache-2.0" if synthetic else "other",
        "language": ["en"],
        "pretty_name": "FinSkillBench",
        "task_categories": ["question-answering", "table-question-answering"],
        "size_categories": [next((name for most, name in SIZES if episodes < most), "n>1M")],
        "tags": [
            "finance",
            "agents",
            "benchmark",
            "evaluation",
            "point-in-time",
            *(["synthetic"] if synthetic else []),
        ],
        "configs": configs,
    }
    # JSON is valid YAML and needs no manual quoting.
    return "".join(f"{name}: {orjson.dumps(value).decode()}\n" for name, value in fields.items())


def _config(name: str, pattern: str, *, default: bool = False) -> dict[str, Any]:
    files = [{"split": SPLIT, "path": pattern}]
    return {"config_name": name, "data_files": files, **({"default": True} if default else {})}


def _configs(shards: Iterable[HubShard]) -> list[str]:
    return list(dict.fromkeys(shard.config for shard in shards))


def _body(edition: Edition, shards: Sequence[HubShard], labels: Sequence[HubShard]) -> str:
    days = sorted({episode.as_of_date for episode in edition.episodes()})
    kind = edition.manifest["source"]["kind"]
    names = _configs(shards)
    rows = "\n".join(f"| `{name}` | {sum(each.rows for each in shards if each.config == name):,} |" for name in names)
    columns = "\n".join(f"| `{each.name}` | {each.kind} | {each.meaning} |" for each in EPISODE_COLUMNS)
    example = next((shard for shard in shards), None)
    return _BODY.format(
        canary=CANARY,
        digest=edition.digest,
        kind=kind,
        first=days[0],
        last=days[-1],
        count=f"{sum(shard.rows for shard in shards):,}",
        subtasks=rows,
        columns=columns,
        example=example.path if example else "",
        licence=_LICENCES.get(kind, "see the terms of the release that the edition was imported from."),
        held=_WITH_TRUTH if labels else _WITHOUT_TRUTH,
    )


_WITHOUT_TRUTH = """\
Not in this folder: the labels (`truth/`), the certificates that prove them, the states of interactive episodes, user
files of the build, and the seed of the build. `edition/manifest.json` lists the SHA-256 of the withheld files, so that
their owner can later prove that they were not changed.

Limits of withholding: a synthetic edition can be built again from its seed. A small or published seed can be found by
trial, one drawn at random from 63 bits cannot. Every episode can be solved from its input by a program that follows
the published procedures. Withheld labels stay out of training data and prompts; they do not prove the author of an
answer."""
_WITH_TRUTH = """\
> **This folder contains the expected answers**, in the configuration `truth`. A model that was trained on them cannot
> be measured with them. Do not publish this folder while a leaderboard uses the edition.

Not in this folder: the certificates that prove the labels, the states of interactive episodes, user files of the
build, and the seed of the build."""
_BODY = """\
# FinSkillBench

Episodes of FinSkillBench, a benchmark of investment-management agents and their skills: portfolio construction, risk
management, fundamental analysis. {count} episodes, as of {first} to {last}, of the edition

    {digest}

(source: {kind}). Licence: {licence}

## Not for training

    {canary}

This string is in every row, in the metadata of every shard and here. A model that was trained on these episodes can
no longer be measured with them: please exclude every document that contains it. `finskillbench data canary FILE...`
lists such files.

## Withheld parts

{held}

## Episodes

| configuration | episodes |
|---|---|
{subtasks}

`all` is every one of them. The only split is `test`.

| column | type | meaning |
|---|---|---|
{columns}

`json` columns are text that contains JSON. A part of an input that is too large for a row is a reference,
`{{"ref": "panels/..."}}` or `{{"table": "tables/..."}}`, to a file of the folder `edition`, listed in `references`.

The lines of `edition/episodes` have an additional field, `metadata`, by which reports are stratified: as published in
an imported release, else without parts of the truth. Agents never see it.

## Load the episodes

```python
import json

import polars as pl

episodes = pl.read_parquet("{example}")
first = episodes.row(0, named=True)
print(first["task_id"], first["as_of_date"], first["task_description"][:80])
print(list(json.loads(first["input"])))
```

By `datasets`: `load_dataset("<this repository>", "all", split="test")`; by Croissant:
`mlcroissant.Dataset("croissant.json")`.

## Run agents

The folder `edition` is the public edition for agents:

    finskillbench data info edition
    finskillbench inspect edition TASK_ID
    finskillbench export-tasks edition tasks --condition curated
    finskillbench run --edition edition --model MODEL --condition no_skill --condition curated --out runs/mine

Answers are judged with the labels: by `finskillbench score` with the full edition, or by a leaderboard after
`finskillbench submit`.

## Verify the files

    sha256sum -c checksums.sha256
"""


def benchmark(shards: Sequence[HubShard]) -> str:
    """Return `eval.yaml`, which registers the data set as a benchmark of Hugging Face: a leaderboard per configuration.

    The framework is Harbor, whose rewards are our scores. The scorers that the Hub offers for Inspect compare texts.
    """
    names = ["all", *_configs(shards)]
    fields = {
        "name": "FinSkillBench",
        "description": (
            "Investment management by agents, with and without skills: mean certified score, from 0 to 1. Labels are "
            "withheld; Harbor tasks with their verifiers are made by finskillbench export-tasks."
        ),
        "evaluation_framework": "harbor",
        "tasks": [{"id": name, "config": name, "split": SPLIT} for name in names],
    }
    return yaml.safe_dump(fields, sort_keys=False, width=1000)


CONFORMS_TO = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
PARQUET = "application/x-parquet"
LICENCE = "https://spdx.org/licenses/Apache-2.0.html"
_DATA_TYPES = {"text": "sc:Text", "json": "sc:Text", "date": "sc:Date", "texts": "sc:Text"}
_CROISSANT_PROPERTIES = """
arrayShape citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet format includes
isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate
separator source subField transform
"""
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _CROISSANT_PROPERTIES.split()},
}

_RAI: dict[str, Any] = orjson.loads(Path(__file__).with_name("responsible_use.json").read_bytes())
"""Statements on responsible use, which NeurIPS 2026 requires with `_origin`."""
_RELEASE: dict[str, Any] = {
    "rai:dataAnnotationProtocol": "Labels are those of the release; they carry no proof.",
    "rai:dataBiases": "Those of the release: no episode was dropped.",
}
"""Statements that differ for imported releases."""
_ORIGINS = {
    "synthetic": "Nothing: companies, prices and filings are fictional and come from a seed.",
    "raw-dir": "Raw files of other publishers; the manifest in edition/ names kind and digests.",
    "release": "A published release; the manifest in edition/ names its digest.",
}


def _origin(edition: Edition) -> dict[str, Any]:
    kind = edition.manifest["source"]["kind"]
    command = "import" if kind == "release" else "build"
    made_by = f"finskillbench data {command}, version {edition.manifest['versions']['finskillbench']}"
    return {
        **(_RELEASE if kind == "release" else {}),
        "rai:hasSyntheticData": kind == "synthetic",
        "prov:wasDerivedFrom": _ORIGINS[kind],
        "prov:wasGeneratedBy": {"@type": "prov:Activity", "name": made_by},
    }


def croissant(edition: Edition, shards: Sequence[HubShard], labels: Sequence[HubShard], *, today: date) -> bytes:
    """Return the metadata as JSON-LD."""
    sets: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    for part, columns, written in ((DATA, EPISODE_COLUMNS, shards), (TRUTH, TRUTH_COLUMNS, labels)):
        for config, each in groupby(written, key=lambda shard: shard.config):
            members = list(each)
            files += map(_file, members)
            if len(members) > 1:
                files.append(_file_set(part, config))
            sets.append(_record_set(part, config, columns, members))
    document: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "FinSkillBench",
        "description": (
            f"Episodes of FinSkillBench, a benchmark of investment-management agents: edition {edition.digest}. "
            f"They must not become training data; their rows are marked by {CANARY}."
        ),
        "conformsTo": CONFORMS_TO,
        "version": version("finskillbench"),
        "datePublished": today.isoformat(),
        "inLanguage": "en",
        "keywords": ["finance", "benchmark", "agents", "portfolio construction", "risk management", "filings"],
        "citeAs": "The FinSkillBench authors. FinSkillBench.",
        **({"license": LICENCE} if edition.manifest["source"]["kind"] == "synthetic" else {"license": "see README.md"}),
        **_RAI,
        **_origin(edition),
        "distribution": files,
        "recordSet": sets,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _file(shard: HubShard) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": shard.path,
        "name": shard.path.replace("/", "-"),
        "contentUrl": shard.path,
        "contentSize": f"{shard.size} B",
        "encodingFormat": PARQUET,
        "sha256": shard.digest,
    }


def _file_set(part: str, config: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{part}/{config}",
        "name": f"{part}-{config}-shards",
        "encodingFormat": PARQUET,
        "includes": f"{part}/{config}/*.parquet",
    }


def _record_set(part: str, config: str, columns: Sequence[HubColumn], shards: Sequence[HubShard]) -> dict[str, Any]:
    name = config if part == DATA else f"{part}-{config}"
    source = {"fileObject": {"@id": shards[0].path}} if len(shards) == 1 else {"fileSet": {"@id": f"{part}/{config}"}}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "key": {"@id": f"{name}/task_id"},
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{name}/{column.name}",
                "name": column.name,
                "description": column.meaning,
                "dataType": _DATA_TYPES[column.kind],
                **({"repeated": True} if column.kind == "texts" else {}),
                "source": {**source, "extract": {"column": column.name}},
            }
            for column in columns
        ],
    }

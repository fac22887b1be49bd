"""The data set card (YAML and text) and Croissant metadata (MLCommons, version 1.0) of an exported edition.

A configuration of one shard is read from that file, whose digest readers check; of several, from a set of files.
Source: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from itertools import groupby
from typing import Any

import orjson

from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY
from finskillbench.publish.hub.shards import DATA, EPISODE_COLUMNS, SPLIT, TRUTH, TRUTH_COLUMNS, Column, Shard

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LICENCES = {
    "synthetic": "Apache-2.0. All companies, prices and filings are fictional.",
    "raw-dir": (
        "the panels were made of raw files that somebody else published: check the terms of the price provider before "
        "you pass the folder on. The words of the tasks are Apache-2.0."
    ),
}


def card(edition: Edition, shards: Sequence[Shard], labels: Sequence[Shard]) -> str:
    """README.md of the folder."""
    return f"---\n{_front_matter(edition, shards, labels)}---\n\n{_body(edition, shards, labels)}"


def _front_matter(edition: Edition, shards: Sequence[Shard], labels: Sequence[Shard]) -> str:
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
    # JSON is YAML too, and leaves nothing to quote by hand.
    return "".join(f"{name}: {orjson.dumps(value).decode()}\n" for name, value in fields.items())


def _config(name: str, pattern: str, *, default: bool = False) -> dict[str, Any]:
    files = [{"split": SPLIT, "path": pattern}]
    return {"config_name": name, "data_files": files, **({"default": True} if default else {})}


def _configs(shards: Iterable[Shard]) -> list[str]:
    return list(dict.fromkeys(shard.config for shard in shards))


def _body(edition: Edition, shards: Sequence[Shard], labels: Sequence[Shard]) -> str:
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
Not in this folder: the labels (`truth/`), the certificates that prove them, what moves an episode on that is played
move by move, what somebody brought to the build, and the seed of the build. `edition/manifest.json` lists the SHA-256
of the files that were held back, so that whoever holds them can show later that they were not changed.

What this does not hide. A synthetic edition can be built again by whoever finds its seed: a small or published one is
found by trying, one drawn at random from 63 bits is not. And every episode can be solved from what it shows, by a
program that follows the published procedures: holding labels back keeps them out of training data and out of prompts,
it does not prove who wrote an answer."""
_WITH_TRUTH = """\
> **This folder holds the expected answers**, in the configuration `truth`. A model that has read them cannot be
> measured with them. Do not publish it for an edition that a leaderboard holds out.

Not in this folder: the certificates that prove the labels, what moves an episode on that is played move by move, what
somebody brought to the build, and the seed of the build."""
_BODY = """\
# FinSkillBench

Episodes of FinSkillBench, a benchmark of investment-management agents and of the skills they use: building portfolios,
watching risk, reading filings. {count} episodes, as of {first} to {last}, of the edition

    {digest}

(source: {kind}). Licence: {licence}

## Not for training

    {canary}

This string stands in every row, in the metadata of every shard and here. A model that was trained on these episodes can
no longer be measured with them: please leave out every document that contains it. `finskillbench data canary FILE...`
says which files do.

## What is held back

{held}

## Episodes

| configuration | episodes |
|---|---|
{subtasks}

`all` is every one of them. The only split is `test`.

| column | type | meaning |
|---|---|---|
{columns}

`json` columns are text that holds JSON. A part of an input that is too large for a row is a reference,
`{{"ref": "panels/..."}}` or `{{"table": "tables/..."}}`, to a file of the folder `edition`, listed in `references`.

The lines of `edition/episodes` have a field more, `metadata`, by which reports tell strata: as it was published where a
release was imported, else without anything of the truth. No agent is ever shown it.

## Load it

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

## Play it

The folder `edition` is what agents are handed:

    finskillbench data info edition
    finskillbench read edition TASK_ID
    finskillbench handout edition handed-out --condition curated
    finskillbench run --edition edition --model MODEL --condition no_skill --condition curated --out runs/mine

Answers are judged where the labels are: `finskillbench score` by whoever holds the edition with its truth, and
`finskillbench submit` for a leaderboard.

## Check it

    sha256sum -c checksums.sha256
"""


CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
PARQUET = "application/x-parquet"
LICENCE = "https://spdx.org/licenses/Apache-2.0.html"
_DATA_TYPES = {"text": "sc:Text", "json": "sc:Text", "date": "sc:Date", "texts": "sc:Text"}
_TERMS = """
citeAs column equivalentProperty extract field fileObject fileProperty fileSet format includes isLiveDataset
jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate separator source
subField transform
"""
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
}


def croissant(edition: Edition, shards: Sequence[Shard], labels: Sequence[Shard], *, today: date) -> bytes:
    """The metadata as JSON-LD."""
    sets: list[dict[str, Any]] = []
    files: list[dict[str, Any]] = []
    for part, columns, written in ((DATA, EPISODE_COLUMNS, shards), (TRUTH, TRUTH_COLUMNS, labels)):
        for config, each in groupby(written, key=lambda shard: shard.config):
            members = list(each)
            files += map(_file, members)
            if len(members) > 1:
                files.append(_file_set(part, config))
            sets.append(_record_set(part, config, columns, members))
    told: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": "FinSkillBench",
        "description": (
            f"Episodes of FinSkillBench, a benchmark of investment-management agents: edition {edition.digest}. "
            f"They must not become training data; rows that hold them are marked by {CANARY}."
        ),
        "conformsTo": CONFORMS_TO,
        "version": version("finskillbench"),
        "datePublished": today.isoformat(),
        "inLanguage": "en",
        "keywords": ["finance", "benchmark", "agents", "portfolio construction", "risk management", "filings"],
        "citeAs": "The FinSkillBench authors. FinSkillBench.",
        **({"license": LICENCE} if edition.manifest["source"]["kind"] == "synthetic" else {"license": "see README.md"}),
        "distribution": files,
        "recordSet": sets,
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2) + b"\n"


def _file(shard: Shard) -> dict[str, Any]:
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


def _record_set(part: str, config: str, columns: Sequence[Column], shards: Sequence[Shard]) -> dict[str, Any]:
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

"""Croissant metadata (MLCommons, version 1.0): every shard with its digest, every column with its type.

A configuration of one shard is read from that file, whose digest readers check; of several, from a set of files.
Source: https://docs.mlcommons.org/croissant/docs/croissant-spec.html
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from itertools import groupby
from typing import Any

import orjson

from finskillbench.edition.load import Edition
from finskillbench.edition.store import CANARY
from finskillbench.publish.hub.shards import DATA, EPISODE_COLUMNS, TRUTH, TRUTH_COLUMNS, Column, Shard

CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
PARQUET = "application/x-parquet"
LICENCE = "https://spdx.org/licenses/Apache-2.0.html"
_TYPES = {"text": "sc:Text", "json": "sc:Text", "date": "sc:Date", "texts": "sc:Text"}
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
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
                "dataType": _TYPES[column.kind],
                **({"repeated": True} if column.kind == "texts" else {}),
                "source": {**source, "extract": {"column": column.name}},
            }
            for column in columns
        ],
    }

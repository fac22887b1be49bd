"""The facts panel with the standard library's json and pandas: what one writes first, and what it costs.

The simpler half of the definitions of `finskillbench.panels.filings.facts`: periodic reports only, the metric's own
unit, aliases in order with the weak ones filling gaps, sums where a filing gives only the parts, a row for every new
value of a period, quarters by difference of year-to-date figures with a row for every change of a parent. It adds no
statement up to find its total, and asks of no difference whether it stands on one basis: the ratio errs in its favour,
and the few figures that differ are those.
"""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

Json = dict[str, Any]

FORMS = [form + suffix for form in ("10-Q", "10-QT", "10-K", "10-KT", "20-F", "40-F") for suffix in ("", "/A")]
LENGTHS = {"quarterly": (70, 125), "half": (150, 200), "nine_months": (235, 290), "annual": (340, 380)}
APART = (70, 125)
PERIOD = ["symbol", "metric", "start", "end"]
COLUMNS = [
    *("symbol", "metric", "rank", "weak", "tag", "taxonomy", "unit", "start", "end", "value", "accession"),
    *("fiscal_year", "fiscal_period", "form", "filed"),
]
NEVER = pd.Timestamp("2200-01-01")


def build(files: Mapping[str, Path], table: Json) -> pd.DataFrame:
    """The panel one company at a time, as its files come: one row per version of a figure, reported and derived.

    files : symbol -> companyfacts JSON, plain or gzipped. table : `metrics` of metrics.json.
    """
    return pd.concat([build_at_once({symbol: path}, table) for symbol, path in files.items()])


def build_at_once(files: Mapping[str, Path], table: Json) -> pd.DataFrame:
    """The same with every company in one frame, so that each step is one call: what pandas can do at its best."""
    rows: list[tuple[Any, ...]] = []
    for symbol, path in files.items():
        data = path.read_bytes()
        rows += _rows(symbol, json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["facts"], table)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    for name in ("start", "end", "filed"):
        frame[name] = pd.to_datetime(frame[name])
    frame = frame[(frame["end"] <= frame["filed"]) & ~(frame["start"] > frame["end"])]
    summed = [_sums(frame, metric, entry) for metric, entry in table.items() if "fallbacks" in entry]
    frame = pd.concat([frame, *summed])
    versions = _versions(frame[~frame["metric"].map(lambda name: table[name].get("part", False))])
    additive = [name for name, entry in table.items() if entry["kind"] == "flow" and entry.get("additive", True)]
    derived = _differences(versions[versions["metric"].isin(additive)])
    known = versions.groupby(PERIOD, dropna=False)["filed"].min().rename("reported").reset_index()
    derived = derived.merge(known, on=PERIOD, how="left")
    derived = derived[~(derived["reported"] <= derived["filed"])].drop(columns="reported")
    return pd.concat([versions.assign(derived=versions["rank"] < 0, parents=""), derived.assign(derived=True)])


def _rows(symbol: str, facts: Json, table: Json) -> list[tuple[Any, ...]]:
    found = []
    for metric, entry in table.items():
        for rank, alias in enumerate(entry["aliases"]):
            taxonomy, tag = alias["tag"].split(":")
            parts = _parts(facts, taxonomy, tag, alias)
            given = facts.get(taxonomy, {}).get(tag, {}).get("units", {}).get(entry["unit"], ())
            for row in given:
                flow = "start" in row
                if row["form"] not in FORMS or flow != (entry["kind"] == "flow") or row["accn"] in parts:
                    continue
                found.append(
                    (
                        *(symbol, metric, rank, alias.get("weak", False), tag, taxonomy, entry["unit"]),
                        *(row.get("start"), row["end"], float(row["val"]), row["accn"]),
                        *(row["fy"], row["fp"], row["form"], row["filed"]),
                    )
                )
    return found


def _parts(facts: Json, taxonomy: str, tag: str, alias: Json) -> set[str]:
    """Accessions of the filings in which a tag is only a part of its metric."""

    def given(name: str) -> dict[tuple[Any, ...], float]:
        units = facts.get(taxonomy, {}).get(name, {}).get("units", {}).values()
        return {(row["accn"], row.get("start"), row["end"]): row["val"] for rows in units for row in rows}

    found = {key[0] for other in alias.get("unless", ()) for key in given(other.split(":")[1])}
    if "below" in alias:
        mine = given(tag)
        for other in alias["below"]:
            values = given(other.split(":")[1]).items()
            found |= {key[0] for key, value in values if key in mine and value > mine[key]}
    return found


def _sums(frame: pd.DataFrame, metric: str, entry: Json) -> pd.DataFrame:
    """Rows of a metric from its terms in one filing, by the first of its sums."""
    same = ["symbol", "accession", "start", "end"]
    total = None
    for term, sign in entry["fallbacks"][0]["terms"].items():
        part = frame[frame["metric"] == term].sort_values("rank").drop_duplicates(same)
        part = part.assign(signed=sign * part["value"]).set_index(same)
        if total is None:
            total = part
        elif term in entry["fallbacks"][0].get("optional", ()):
            total = total.assign(signed=total["signed"].add(part["signed"].reindex(total.index).fillna(0.0)))
        else:
            total = total.loc[total.index.intersection(part.index)]
            total = total.assign(signed=total["signed"].add(part["signed"].reindex(total.index)))
    assert total is not None
    total = total.reset_index().drop(columns="value").rename(columns={"signed": "value"})
    return total.assign(metric=metric, rank=len(entry["aliases"]), weak=True, tag="", unit=entry["unit"])[COLUMNS]


def _versions(frame: pd.DataFrame) -> pd.DataFrame:
    """A row for every new value of a period, in order of filing."""
    frame = frame.sort_values(["filed", "rank", "accession"], ascending=[True, False, True])
    frame = frame.drop_duplicates([*PERIOD, "filed"], keep="last")
    best = frame.groupby(PERIOD, dropna=False)["rank"].cummin()
    frame = frame[~frame["weak"] | (frame["rank"] <= best)]
    before = frame.groupby(PERIOD, dropna=False)["value"].shift()
    frame = frame[before.isna() | (frame["value"] != before)]
    days = (frame["end"] - frame["start"]).dt.days + 1
    kinds = [days.between(*span) for span in LENGTHS.values()]
    names = np.select([days.isna(), *kinds], ["instant", *LENGTHS], default="other")
    return frame.assign(duration=names, until=frame.groupby(PERIOD, dropna=False)["filed"].shift(-1).fillna(NEVER))


def _differences(versions: pd.DataFrame) -> pd.DataFrame:
    """Longer year-to-date figures less the shorter, for every span of days over which both were current."""
    longer = versions[versions["duration"].isin(["half", "nine_months", "annual"])]
    shorter = versions[versions["duration"].isin(["quarterly", "half", "nine_months"])]
    pairs = longer.merge(shorter, on=["symbol", "metric", "start"], suffixes=("", "_short"))
    apart = (pairs["end"] - pairs["end_short"]).dt.days
    pairs = pairs[apart.between(*APART) & (pairs["tag"] == pairs["tag_short"])]
    known = pairs[["filed", "filed_short"]].max(axis=1)
    pairs = pairs[known < pairs[["until", "until_short"]].min(axis=1)]
    known = pairs[["filed", "filed_short"]].max(axis=1)
    parents = pairs["accession"] + " less " + pairs["accession_short"]
    found = pairs.assign(
        start=pairs["end_short"] + pd.Timedelta(days=1),
        value=pairs["value"] - pairs["value_short"],
        filed=known,
        duration="quarterly",
        parents=parents,
    )
    found = found.sort_values("filed").drop_duplicates([*PERIOD, "filed"], keep="last")
    before = found.groupby(PERIOD)["value"].shift()
    return found[before.isna() | (found["value"] != before)][[*COLUMNS, "duration", "parents"]]

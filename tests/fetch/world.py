"""What the public sources would serve of a raw collection, each in its own format.

Written from the sources' documentation, in the direction opposite to the code under test: that makes files of answers,
this makes answers of files.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from tests.fetch.internet import Served

NOT_THERE = Served(404, b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>')
KEPT = 6
"""Filings in a filer's list; older ones are on its page."""


@dataclass(frozen=True)
class Row:
    """A session: prices adjusted for later splits, `adjusted` for later dividends as well, `paid` on today's shares."""

    day: date
    opening: float
    high: float
    low: float
    close: float
    adjusted: float
    volume: int
    paid: float
    split: float


class World:
    """The answers of every source about a collection; `parts` says which of several downloads a folder serves."""

    def __init__(
        self, raw: Path, keys: Mapping[str, str] | None = None, parts: Mapping[str, str] | None = None
    ) -> None:
        self.raw = raw
        self.keys = keys or {}
        self.parts = parts or {}
        self.rows = cache(self._rows)

    @cached_property
    def ciks(self) -> dict[str, str]:
        """CIK by symbol."""
        table = csv.DictReader(io.StringIO((self.raw / "constituents" / "constituents.csv").read_text()))
        return {row["Symbol"].replace(".", "-"): row["CIK"].zfill(10) for row in table}

    def __call__(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Served:
        _, source, *rest = path.split("/")
        match source:
            case "sec" | "sec_data" if "@" not in headers.get("user-agent", ""):
                return Served(403, b"<html><title>SEC.gov | Undeclared Automated Tool</title></html>")
            case "sec_data" if rest[0] == "submissions":
                return self.submissions(rest[1])
            case "sec_data":
                return self.text(f"companyfacts/{rest[-1]}")
            case "sec" if rest[-1] == "company_tickers.json":
                listed = ({"cik_str": int(cik), "ticker": name, "title": name} for name, cik in self.ciks.items())
                return Served(200, json.dumps(dict(enumerate(listed))).encode())
            case "sec":
                return self.archive(rest[3], rest[4], rest[5])
            case "french":
                return self.factors(rest[-1])
            case "fred":
                return self.series(query)
            case "constituents":
                return self.text("constituents/constituents.csv")
            case "yahoo":
                return self.yahoo(rest[-1], query)
            case "tiingo":
                return self.tiingo(rest[2], query, headers)
            case _:
                return NOT_THERE

    def text(self, name: str) -> Served:
        """A file of the collection, wherever it lies below its folder."""
        folder, _, file = name.partition("/")
        found = sorted((self.raw / folder / self.parts.get(folder, "")).rglob(f"{file}*"))
        if not found:
            return NOT_THERE
        data = found[0].read_bytes()
        return Served(200, gzip.decompress(data) if found[0].suffix == ".gz" else data)

    def submissions(self, name: str) -> Served:
        """The newest filings of a filer, or the page of the older ones. Every other report is inline."""
        whole = self.text(f"submissions/{name[:13]}.json")
        if whole.status != 200:
            return whole
        record = json.loads(whole.body)
        recent = record["filings"]["recent"]
        recent.setdefault("isXBRL", [int(form.startswith("10-")) for form in recent["form"]])
        inline = [int(self.is_inline(accession)) for accession in recent["accessionNumber"]]
        recent["isInlineXBRL"] = inline
        recent["primaryDocument"] = [f"d{accession[-6:]}.htm" for accession in recent["accessionNumber"]]
        newest = {column: values[:KEPT] for column, values in recent.items()}
        older = {column: values[KEPT:] for column, values in recent.items()}
        if "-submissions-" in name:
            return Served(200, json.dumps(older).encode())
        days = older["filingDate"]
        pages = [
            {
                "name": f"{name[:13]}-submissions-001.json",
                "filingCount": len(days),
                "filingFrom": min(days),
                "filingTo": max(days),
            }
        ]
        record["filings"] = {"recent": newest, "files": pages if days else []}
        return Served(200, json.dumps(record).encode())

    @staticmethod
    def is_inline(accession: str) -> bool:
        return int(accession[-2:]) % 2 == 0

    @cached_property
    def _instances(self) -> dict[str, Path]:
        """Instance files by accession without dashes."""
        found: dict[str, Path] = {}
        for path in (self.raw / "xbrl").rglob("*.xml*"):
            named = re.search(r"\d{10}-\d{2}-\d{6}", str(path.relative_to(self.raw)))
            if named:
                found[named.group().replace("-", "")] = path
        return found

    def archive(self, cik: str, accession: str, name: str) -> Served:
        """A file of a filing's folder."""
        instance = self._instances.get(accession)
        if instance is None or not instance.exists():
            return NOT_THERE
        inline = self.is_inline(accession)
        called = f"d{accession[-6:]}_htm.xml" if inline else f"co-{accession[:8]}.xml"
        if name == "index.json":
            names = [
                f"{accession}-index.html",
                "co_lab.xml",
                "co_pre.xml",
                "co.xsd",
                called,
                "R1.xml",
                "FilingSummary.xml",
            ]
            items = [
                {"last-modified": "2026-01-01 00:00:00", "name": one, "type": "text.gif", "size": ""} for one in names
            ]
            where = f"/Archives/edgar/data/{cik}/{accession}"
            return Served(200, json.dumps({"directory": {"name": where, "item": items}}).encode())
        return self.text(f"xbrl/{instance.name}") if name == called else NOT_THERE

    def factors(self, name: str) -> Served:
        """An archive of the data library with its one CSV."""
        stem = name.removesuffix("_CSV.zip")
        file = self.raw / "famafrench" / f"{stem}.csv"
        if not file.exists():
            return NOT_THERE
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(f"{stem}.csv"), file.read_bytes())
        return Served(200, buffer.getvalue())

    def series(self, query: Mapping[str, str]) -> Served:
        """fredgraph.csv within its dates; of a series that there is none of, a page with 404."""
        found = self.text(f"fred/{query['id']}.csv")
        if found.status != 200:
            return Served(404, b"<!DOCTYPE html><html><title>Error - St. Louis Fed</title></html>")
        head, *rows = found.body.decode().splitlines()
        chosen = [row for row in rows if query["cosd"] <= row[:10] <= query["coed"]]
        return Served(200, ("\n".join([head, *chosen]) + "\n").encode())

    def _rows(self, symbol: str) -> tuple[Row, ...]:
        """Sessions of a price file of yfinance's adjusted kind, with the dividends put back into the close."""
        served = self.text(f"prices/{symbol}.csv")
        if served.status != 200:
            return ()
        cells = [row for row in csv.DictReader(io.StringIO(served.body.decode())) if row["Date"] >= "2015"]
        rows: list[Row] = []
        factor = 1.0
        for place in range(len(cells) - 1, -1, -1):
            cell = cells[place]
            close, paid = float(cell["Close"]), float(cell.get("Dividends") or 0)
            whole = [float(cell[name] or 0) / factor for name in ("Open", "High", "Low")]
            split = float(cell.get("Stock Splits") or 0)
            day = date.fromisoformat(cell["Date"][:10])
            rows.append(Row(day, *whole, close / factor, close, int(float(cell["Volume"])), paid, split))
            if paid and place:
                factor *= 1 - paid / (float(cells[place - 1]["Close"]) / factor + paid)
        return tuple(reversed(rows))

    def reference(self, symbol: str) -> str:
        """The prices of a symbol as yfinance writes them without adjusting: what a fetch should come to."""
        lines = ["Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits"]
        for row in self.rows(symbol):
            cells = (row.opening, row.high, row.low, row.close, row.adjusted, row.volume, row.paid, row.split)
            lines.append(f"{row.day},{','.join(map(repr, cells))}")
        return "\n".join(lines) + "\n"

    def yahoo(self, symbol: str, query: Mapping[str, str]) -> Served:
        """/v8/finance/chart: parallel lists, times of the opening, one session of nulls."""
        first, last = (datetime.fromtimestamp(int(query[name]), UTC).date() for name in ("period1", "period2"))
        rows = [row for row in self.rows(symbol) if first <= row.day < last]
        if not rows:
            error = {"code": "Not Found", "description": "No data found, symbol may be delisted"}
            return Served(404, json.dumps({"chart": {"result": None, "error": error}}).encode())
        offset = -18000
        stamps = [int(datetime.combine(row.day, time(14, 30), UTC).timestamp()) for row in rows]
        events: dict[str, Any] = {"dividends": {}, "splits": {}}
        for row, stamp in zip(rows, stamps, strict=True):
            if row.paid:
                events["dividends"][str(stamp)] = {"amount": row.paid, "date": stamp}
            if row.split not in (0.0, 1.0):
                ratio = {"numerator": row.split, "denominator": 1.0, "splitRatio": f"{row.split:g}:1"}
                events["splits"][str(stamp)] = {"date": stamp, **ratio}
        holiday = stamps[-1] + 86400
        quote = {
            "open": [*(row.opening for row in rows), None],
            "high": [*(row.high for row in rows), None],
            "low": [*(row.low for row in rows), None],
            "close": [*(row.close for row in rows), None],
            "volume": [*(row.volume for row in rows), None],
        }
        result = {
            "meta": {"currency": "USD", "symbol": symbol, "gmtoffset": offset, "dataGranularity": "1d"},
            "timestamp": [*stamps, holiday],
            "events": {name: found for name, found in events.items() if found},
            "indicators": {"quote": [quote], "adjclose": [{"adjclose": [*(row.adjusted for row in rows), None]}]},
        }
        return Served(200, json.dumps({"chart": {"result": [result], "error": None}}).encode())

    def tiingo(self, symbol: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Served:
        """/tiingo/daily/SYMBOL/prices: prices as traded beside adjusted ones."""
        if headers.get("authorization") != f"Token {self.keys.get('tiingo')}":
            return Served(401, b'{"detail":"Invalid token."}')
        rows = self.rows(symbol.upper())
        if not rows:
            return Served(404, json.dumps({"detail": f"Error: Ticker '{symbol}' not found"}).encode())
        found: list[dict[str, Any]] = []
        later = 1.0
        for row in reversed(rows):
            fraction = row.adjusted / row.close
            values = {"open": row.opening, "high": row.high, "low": row.low, "close": row.close}
            found.insert(
                0,
                {
                    "date": f"{row.day}T00:00:00.000Z",
                    **{name: value * later for name, value in values.items()},
                    "volume": round(row.volume / later),
                    **{f"adj{name.title()}": value * fraction for name, value in values.items()},
                    "adjClose": row.adjusted,
                    "adjVolume": row.volume,
                    "divCash": row.paid * later,
                    "splitFactor": row.split or 1.0,
                },
            )
            later *= row.split or 1.0
        inside = [one for one in found if query["startDate"] <= one["date"][:10] <= query["endDate"]]
        return Served(200, json.dumps(inside).encode())


def without(world: World, *symbols: str) -> World:
    """The same world, in which nobody has prices of some symbols."""
    other = World(world.raw, world.keys, world.parts)
    other.rows = cache(lambda symbol: () if symbol in symbols else world.rows(symbol))
    return other

"""Configuration of the sources, the months to fetch, and validation of response bodies."""

from __future__ import annotations

import io
import re
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Self, TypeAlias
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from finskillbench.errors import InputError
from finskillbench.sources.files import DEFAULT_START, json_object, one_line

Check: TypeAlias = Callable[[bytes], None]
"""Raises `ContentError` about an invalid body."""
_SHOWN = 80
_TAG = re.compile(r"<[^>]*>|<!--.*?-->", re.DOTALL)
_UNSHOWN = re.compile(r"<(style|script)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)


class ContentError(Exception):
    """An invalid response body; `final`: a retry will not help, `permanent`: nor will other requests to the source."""

    def __init__(self, message: str, *, final: bool = False, permanent: bool = False) -> None:
        super().__init__(message)
        self.final, self.permanent = final or permanent, permanent


class NoDataError(ContentError):
    """A successful response that reports that the source has no such data."""


def excerpt(body: bytes) -> str:
    """Return the start of a page or message on one line, without tags."""
    text = body[:4000].decode("utf-8", "replace")
    text = one_line(_TAG.sub(" ", _UNSHOWN.sub(" ", text))) if _is_page(body) else one_line(text)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _is_page(body: bytes) -> bool:
    start = body[:1000].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) or (
        start.startswith((b"<?xml", b"<!--")) and b"<html" in start and b"xbrl" not in body[:20_000].lower()
    )


def refuse_page(body: bytes, wanted: str) -> None:
    """Refuse an empty body, and an HTML page in place of `wanted`."""
    if not body.strip():
        raise ContentError(f"an empty body in place of {wanted}")
    if _is_page(body):
        raise ContentError(f"a page in place of {wanted}: {excerpt(body)!r}")


def json_of(body: bytes) -> object:
    refuse_page(body, "JSON")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ContentError(f"not JSON ({error.msg}): {excerpt(body)!r}") from None


def object_of(body: bytes) -> dict[str, object]:
    record = json_object(json_of(body))
    if record is None:
        raise ContentError(f"not a JSON object: {excerpt(body)!r}")
    return record


def check_cik(record: dict[str, object], cik: int) -> None:
    """Refuse a record of another filer than `cik`."""
    stated = record.get("cik")
    if str(stated).lstrip("0") != str(cik):
        raise ContentError(f"the record of CIK {stated!r} in place of CIK {cik}")


def checked_csv(body: bytes, headers: Collection[str]) -> str:
    """Return the text of a CSV body with one of the headers and complete rows."""
    refuse_page(body, "CSV")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ContentError("bytes that are not UTF-8 in place of CSV") from None
    head, _, rows = text.partition("\n")
    if head.strip() not in headers:
        raise ContentError(f"not the header {next(iter(headers))!r} but {excerpt(body)!r}")
    fields = head.count(",")
    last = rows.rstrip("\r\n").rpartition("\n")[2]
    if not last.strip():
        raise ContentError("a header without rows")
    if last.count(",") != fields:
        raise ContentError(f"the last row is cut off: {last.strip()[:40]!r}")
    return text


def unzipped(body: bytes) -> bytes:
    """Extract the only CSV of a zip archive and verify its checksum."""
    refuse_page(body, "a zip archive")
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(names) != 1:
                raise ContentError(f"{len(names)} CSV files in the archive where one is expected", final=True)
            return archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ContentError(f"not a complete zip archive ({error}): {excerpt(body)!r}") from None


SEC_LIMIT = 10.0
"""Requests per second that the SEC allows one user over all of its hosts (sec.gov/os/accessing-edgar-data)."""
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("an address begins with https:// and names a host")
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise ValueError("an address begins with https://, except on this machine")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("an address has no user, password or query; keys come from the environment")
    return text.rstrip("/")


Address = Annotated[str, AfterValidator(_address)]
_Positive = Annotated[float, Field(gt=0)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Addresses(_Table):
    """Base address of each source."""

    sec: Address = "https://www.sec.gov"
    sec_data: Address = "https://data.sec.gov"
    french: Address = "https://mba.tuck.dartmouth.edu/pages/faculty/ken.french/ftp"
    fred: Address = "https://fred.stlouisfed.org"
    constituents: Address = (
        "https://raw.githubusercontent.com/datasets/s-and-p-500-companies/main/data/constituents.csv"
    )
    yahoo: Address = "https://query1.finance.yahoo.com"
    tiingo: Address = "https://api.tiingo.com"

    def hosts(self, source: str) -> frozenset[str]:
        """Return the hosts, with ports, of a source; none for a provider of another package."""
        fields = ("sec", "sec_data") if source == "sec" else (source,)
        return frozenset(urlsplit(str(getattr(self, name))).netloc for name in fields if name in Addresses.model_fields)


class RequestLimits(_Table):
    """Limits on rate, retries, time and size of requests.

    sec_per_second : to all hosts of the SEC together; others_per_second : to each other source. longest_wait_seconds :
        limits backoff, which doubles from first_wait_seconds, and `Retry-After`.
    timeout_seconds : of silence; deadline_seconds : of one attempt. largest_bytes : of one decompressed response.
    """

    sec_per_second: _Positive = 8.0
    others_per_second: _Positive = 2.0
    attempts: Annotated[int, Field(ge=1, le=20)] = 6
    first_wait_seconds: Annotated[float, Field(ge=0)] = 1.0
    longest_wait_seconds: Annotated[float, Field(ge=0)] = 600.0
    timeout_seconds: _Positive = 30.0
    deadline_seconds: _Positive = 600.0
    largest_bytes: Annotated[int, Field(gt=0)] = 512 * 2**20
    workers: Annotated[int, Field(ge=1, le=16)] = 4


class Redirects(_Table):
    """Additional hosts to which a source may redirect."""

    sec: tuple[str, ...] = ()
    french: tuple[str, ...] = ()
    fred: tuple[str, ...] = ()
    constituents: tuple[str, ...] = ()
    yahoo: tuple[str, ...] = ("query2.finance.yahoo.com",)
    tiingo: tuple[str, ...] = ()


class Configuration(_Table):
    """Tables `[addresses]`, `[requests]` and `[redirects]`, with the public sources as defaults."""

    addresses: Addresses = Addresses()
    requests: RequestLimits = RequestLimits()
    redirects: Redirects = Redirects()

    @model_validator(mode="after")
    def _within_the_limit(self) -> Self:
        """Enforce the SEC's rate limit for SEC hosts; mirrors are exempt."""
        hosts = self.redirect_hosts("sec")
        if self.requests.sec_per_second > SEC_LIMIT and any("sec.gov" in host.lower() for host in hosts):
            raise ValueError(f"requests.sec_per_second: the SEC allows at most {SEC_LIMIT:g} requests a second")
        return self

    def redirect_hosts(self, source: str) -> frozenset[str]:
        """Return all hosts from which responses of a source are accepted."""
        further: tuple[str, ...] = getattr(self.redirects, source, ())
        return self.addresses.hosts(source) | frozenset(further)


def read_configuration(path: Path | None) -> Configuration:
    """Read a TOML configuration (None: the defaults); InputError names what is invalid."""
    if path is None:
        return Configuration()
    try:
        return Configuration.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML ({error}); repair it") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        problem = first["msg"].removeprefix("Value error, ")
        named = f"{where}: " if where else ""
        raise InputError(f"{path}: {named}{problem}; docs/fetching.md lists every key") from None


EARLIEST = DEFAULT_START.replace(year=DEFAULT_START.year + 1)
"""First month that can be fetched: builds skip data before `DEFAULT_START`, and a date needs a year of history."""
_REPORTS_BEFORE = 24
"""Months of reports before the window: a fourth quarter needs its year, and the year before for comparison."""


@dataclass(frozen=True, slots=True)
class Window:
    """Whole months, from the first day of one to the last day of another."""

    first: date
    last: date

    @property
    def prices_from(self) -> date:
        """First day of prices, factors and rates: that of builds, so that every regime is covered."""
        return DEFAULT_START

    @property
    def reports_from(self) -> date:
        """First filing day of the reports whose XBRL documents are fetched."""
        months = self.first.year * 12 + self.first.month - 1 - _REPORTS_BEFORE
        return date(months // 12, months % 12 + 1, 1)


def window_of(start: str, end: str, today: date) -> Window:
    """Return the window of two completed months, YYYY-MM; InputError if they are invalid or not over."""
    first, last = _month("--from", start), _month("--to", end)
    last = (last + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    if last < first:
        raise InputError(f"--from {start} is after --to {end}; exchange them")
    if first < EARLIEST:
        raise InputError(f"--from {start}: builds read nothing before {DEFAULT_START}; take {EARLIEST:%Y-%m} or later")
    if last >= today:
        raise InputError(
            f"--to {end} is not over yet, and its files would differ from day to day; take an earlier month"
        )
    return Window(first, last)


def _month(option: str, text: str) -> date:
    if re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text) is None:
        raise InputError(f"{option} {text}: not a month; write YYYY-MM, such as 2026-07")
    return date(int(text[:4]), int(text[5:]), 1)

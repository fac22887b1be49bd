"""HTTP client of all sources: rate limits, retries, restricted redirects, redacted keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import cast
from urllib.parse import urljoin, urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, stop_when_event_set

from finskillbench.errors import DownloadError
from finskillbench.fetch.configuration import Check, Configuration, ContentError, NoDataError, excerpt
from finskillbench.redaction import redactor_of_process


class RateLimiter:
    """Spaces requests of all threads evenly, at most `rate` per second, since the SEC does not publish its windows."""

    def __init__(
        self, rate: float, *, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._gap = 1.0 / rate
        self._clock, self._sleep = clock, sleep
        self._next = clock()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Sleep until the next request is allowed, or until `sleep` returns true because it was interrupted."""
        while True:
            with self._lock:
                now = self._clock()
                if now >= self._next:
                    self._next = now + self._gap
                    return
                left = self._next - now
            if self._sleep(left):
                return

    def pause(self, seconds: float) -> None:
        """Block all requests for some seconds, as the source demanded."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5
_RATE_LIMITED = (403, 429)
"""Status codes with which the SEC rejects excessive request rates."""
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_DEFAULT_USER_AGENT = "Mozilla/5.0 (compatible; finskillbench)"
"""User agent for sources other than the SEC; some answer 429 to agents without this prefix."""


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """One HTTP request to a source.

    source : selects rate limit and allowed redirects. headers : for the host of `url` only, never stored; may hold a
        key.
    check : validates the body. absent : text in a body of HTTP 400 that means that the source has no such data.
    """

    source: str
    url: str
    check: Check
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    absent: bytes = b""


@dataclass(frozen=True, slots=True)
class SourceResponse:
    """Body of a response with its cache validators; the body is None where the source reports no change."""

    body: bytes | None
    etag: str = ""
    last_modified: str = ""
    retrieved: str = ""


class AbsentError(DownloadError):
    """The source reports that it has no such data (404, 410, or a message)."""


class _RetryableError(Exception):
    """A failed attempt to repeat after `wait` seconds; `permanent` if the source rejects every request."""

    def __init__(self, message: str, *, wait: float | None = None, permanent: bool = False) -> None:
        super().__init__(message)
        self.wait, self.permanent = wait, permanent


class Client:
    """HTTP client and context manager; `agent` identifies the user to the SEC by name and email address."""

    def __init__(
        self, configuration: Configuration, agent: str, sleep: Callable[[float], object] | None = None
    ) -> None:
        self._configuration = configuration
        self._agent = agent
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        limits = configuration.requests
        self._paces: dict[str, RateLimiter] = {}
        self._lock = threading.Lock()
        self._http = httpx.Client(
            timeout=httpx.Timeout(limits.timeout_seconds),
            follow_redirects=False,
            trust_env=True,
            limits=httpx.Limits(max_connections=limits.workers * 2),
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()
        self._http.close()

    def stop(self) -> None:
        """Interrupt all waits and abort their requests."""
        self._stopped.set()

    @staticmethod
    def now() -> str:
        """Return the current time in UTC as it is recorded."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def get(self, request: SourceRequest, *, etag: str = "", last_modified: str = "") -> SourceResponse:
        """Request until a valid response arrives or retrying is pointless; validators may yield "not changed".

        Raises
        ------
        AbsentError : the source has no such data.
        DownloadError : any other failure that retries do not mend, with address and response.
        """
        conditional = {
            name: value
            for name, value in (("If-None-Match", etag), ("If-Modified-Since", last_modified if not etag else ""))
            if value
        }
        limits = self._configuration.requests
        attempts = Retrying(
            stop=stop_after_attempt(limits.attempts) | stop_when_event_set(self._stopped),
            wait=self._wait,
            retry=retry_if_exception_type(_RetryableError),
            sleep=self._rest,
            reraise=True,
        )
        try:
            return attempts(self._attempt, request, conditional)
        except _RetryableError as error:
            often = f", {limits.attempts} times" if limits.attempts > 1 and not self._stopped.is_set() else ""
            message = self._redacted(request, f"{error}{often}; run the same command to resume")
            raise DownloadError(message, permanent=error.permanent) from None

    def _rest(self, seconds: float) -> None:
        self._sleep(seconds)

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt: exponential backoff or `Retry-After`, up to the limit."""
        limits = self._configuration.requests
        error = cast("_RetryableError", state.outcome.exception()) if state.outcome is not None else None
        backoff = limits.first_wait_seconds * 2.0 ** (state.attempt_number - 1)
        retry_after = error.wait if error is not None and error.wait is not None else 0.0
        return min(max(backoff, retry_after), limits.longest_wait_seconds)

    def _pace(self, source: str) -> RateLimiter:
        limits = self._configuration.requests
        with self._lock:
            if source not in self._paces:
                rate = limits.sec_per_second if source == "sec" else limits.others_per_second
                self._paces[source] = RateLimiter(rate, sleep=self._sleep)
            return self._paces[source]

    def _attempt(self, request: SourceRequest, conditional: Mapping[str, str]) -> SourceResponse:
        url, origin_host = request.url, urlsplit(request.url).netloc
        for _ in range(_MAX_REDIRECTS + 1):
            if self._stopped.is_set():
                raise DownloadError(self._redacted(request, "stopped; run the same command to resume"), permanent=True)
            self._pace(request.source).wait()
            headers = {"User-Agent": self._agent if request.source == "sec" else _DEFAULT_USER_AGENT, **conditional}
            if urlsplit(url).netloc == origin_host:
                headers |= request.headers
            try:
                with self._http.stream("GET", url, headers=headers) as response:
                    if response.status_code in _REDIRECTS:
                        url = self._redirected(request, url, response)
                        continue
                    return self._received(request, response, conditional)
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise _RetryableError(_describe_error(error)) from None
        raise DownloadError(self._redacted(request, f"more than {_MAX_REDIRECTS} redirects; check the address"))

    def _redirected(self, request: SourceRequest, url: str, response: httpx.Response) -> str:
        """Return the target of a redirect; DownloadError if its host is not allowed."""
        target = urljoin(url, response.headers.get("Location", ""))
        parts = urlsplit(target)
        allowed = {urlsplit(request.url).netloc, *self._configuration.redirect_hosts(request.source)}
        if parts.netloc not in allowed or parts.scheme != urlsplit(request.url).scheme or parts.username:
            where = f"{parts.scheme}://{parts.hostname or 'nowhere'}"
            remedy = f"if that is correct, add the host to the configuration under redirects.{request.source}"
            raise DownloadError(
                self._redacted(request, f"redirected to {where}, which is not a host of this source; {remedy}")
            )
        return target

    def _received(
        self, request: SourceRequest, response: httpx.Response, conditional: Mapping[str, str]
    ) -> SourceResponse:
        status = response.status_code
        marks = {"etag": response.headers.get("ETag", ""), "last_modified": response.headers.get("Last-Modified", "")}
        now = self.now()
        if status == 304 and conditional:
            return SourceResponse(None, **marks, retrieved=now)
        body = self._body(response)
        if status in (404, 410) or (status == 400 and request.absent and request.absent in body):
            raise AbsentError(self._redacted(request, f"not found (HTTP {status})"))
        if status in _RETRIED or (status in _RATE_LIMITED and request.source == "sec"):
            wait = _retry_after(response.headers.get("Retry-After", ""))
            if status in (*_RATE_LIMITED, 503):
                limits = self._configuration.requests
                self._pace(request.source).pause(min(wait or limits.first_wait_seconds, limits.longest_wait_seconds))
            hint = "; wait ten minutes and check the user agent" if status == 403 else ""
            problem = f"refused with HTTP {status}, {excerpt(body)!r}{hint}"
            raise _RetryableError(problem, wait=wait, permanent=status in _RATE_LIMITED)
        if status in (401, 402, 403):
            problem = f"refused with HTTP {status}, {excerpt(body)!r}; check the key and its permissions"
            raise DownloadError(self._redacted(request, problem), permanent=True)
        if status != 200:
            raise DownloadError(self._redacted(request, f"answered with HTTP {status}, {excerpt(body)!r}"))
        try:
            request.check(body)
        except NoDataError as error:
            raise AbsentError(self._redacted(request, f"not found ({error})")) from None
        except ContentError as error:
            if error.final:
                raise DownloadError(self._redacted(request, f"{error}"), permanent=error.permanent) from None
            raise _RetryableError(f"served {error}") from None
        return SourceResponse(body, **marks, retrieved=now)

    def _body(self, response: httpx.Response) -> bytes:
        """Return the decompressed body within the limits of size and time; httpx rejects truncated ones."""
        limits = self._configuration.requests
        until = time.monotonic() + limits.deadline_seconds
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limits.largest_bytes:
                raise _RetryableError(f"more than {limits.largest_bytes:,} bytes")
            if time.monotonic() > until:
                raise _RetryableError(f"still sending after {limits.deadline_seconds:g} seconds")
            if self._stopped.is_set():
                raise _RetryableError("stopped")
        return bytes(body)

    @staticmethod
    def _redacted(request: SourceRequest, problem: str) -> str:
        return redactor_of_process()(f"{request.url}: {problem}")


def _describe_error(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "timed out"
    if isinstance(error, httpx.DecodingError):
        return "a body that cannot be decompressed"
    detail = str(error) or type(error).__name__
    return f"the connection failed ({detail})"


def _retry_after(text: str) -> float | None:
    """Parse a `Retry-After` header, a number of seconds or a date, as seconds."""
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None

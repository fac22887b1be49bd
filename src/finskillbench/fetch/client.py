"""One client for all sources: paced, patient, suspicious of redirects, and silent about keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import cast
from urllib.parse import urljoin, urlsplit

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_any,
    stop_when_event_set,
)

from finskillbench.errors import DownloadError
from finskillbench.fetch.configuration import Check, Configuration, ContentError, NothingError, first_words
from finskillbench.redaction import redactor_of_process


class Pace:
    """Spaces requests evenly: no second ever holds more than `per_second` of them, however many threads ask.

    Evenly rather than in bursts, because the SEC counts in windows that nobody knows.
    """

    def __init__(
        self,
        per_second: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._gap = 1.0 / per_second
        self._clock, self._sleep = clock, sleep
        self._next = clock()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Sleep until it is the caller's turn, or until `sleep` says that it was woken."""
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
        """Let nobody ask for so many seconds: the source said so."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


_REDIRECTS = (301, 302, 303, 307, 308)
_FEW_HOPS = 5
_LIMITED = (403, 429)
"""The SEC answers who asks too often with either of them."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_AGENT = "Mozilla/5.0 (compatible; finskillbench)"
"""What other sources than the SEC are told: some answer 429 to agents that do not begin so."""


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask for.

    source : whose pace and redirects hold. url : without any key. headers : sent with it, a key among them; never
    stored and never sent to another host. check : of the body. absent : words of a refusal (HTTP 400) by which the
    source says that it has no such thing.
    """

    source: str
    url: str
    check: Check
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    absent: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came: the body, `None` where the source says that it has not changed; its marks for the next time."""

    body: bytes | None
    etag: str = ""
    last_modified: str = ""
    retrieved: str = ""


class AbsentError(DownloadError):
    """The source says that it has no such thing (404, 410, or in words)."""


class _UnansweredError(Exception):
    """An attempt that may be made again, after `wait` seconds where the source said so.

    `hopeless` : where no attempt succeeds, the source refuses everything.
    """

    def __init__(self, message: str, *, wait: float | None = None, hopeless: bool = False) -> None:
        super().__init__(message)
        self.wait, self.hopeless = wait, hopeless


class Client:
    """Asks; use it as a context. `agent` is what the SEC is told: a name and an address to write to."""

    def __init__(
        self, configuration: Configuration, agent: str, sleep: Callable[[float], object] | None = None
    ) -> None:
        self._configuration = configuration
        self._agent = agent
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        limits = configuration.requests
        self._paces: dict[str, Pace] = {}
        self._lock = threading.Lock()
        self._http = httpx.Client(
            timeout=httpx.Timeout(limits.timeout_seconds),
            follow_redirects=False,
            trust_env=True,
            limits=httpx.Limits(max_connections=limits.workers * 2),
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._http.close()

    def stop(self) -> None:
        """End every wait: whoever waits gives up."""
        self._stopped.set()

    @staticmethod
    def now() -> str:
        """The moment, UTC, as it is written down."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def ask(self, question: Question, *, etag: str = "", last_modified: str = "") -> Answer:
        """Ask until there is an answer that is right, or no hope of one.

        With the marks of an earlier answer the source may say that nothing has changed.

        Raises
        ------
        AbsentError : there is no such thing.
        DownloadError : anything else that attempts do not mend, naming the address and what came.
        """
        conditional = {
            name: value
            for name, value in (("If-None-Match", etag), ("If-Modified-Since", last_modified if not etag else ""))
            if value
        }
        limits = self._configuration.requests
        attempts = Retrying(
            stop=stop_any(stop_after_attempt(limits.attempts), stop_when_event_set(self._stopped)),
            wait=self._wait,
            retry=retry_if_exception_type(_UnansweredError),
            sleep=self._rest,
            reraise=True,
        )
        try:
            return attempts(self._attempt, question, conditional)
        except _UnansweredError as error:
            often = f", {limits.attempts} times" if limits.attempts > 1 and not self._stopped.is_set() else ""
            told = self._told(question, f"{error}{often}; the same command resumes")
            raise DownloadError(told, hopeless=error.hopeless) from None

    def _rest(self, seconds: float) -> None:
        self._sleep(seconds)

    def _wait(self, state: RetryCallState) -> float:
        """Seconds before the next attempt: what the source asked for, or doubled each time; within the limit."""
        limits = self._configuration.requests
        error = cast("_UnansweredError", state.outcome.exception()) if state.outcome is not None else None
        own = limits.first_wait_seconds * 2.0 ** (state.attempt_number - 1)
        asked = error.wait if error is not None and error.wait is not None else 0.0
        return min(max(own, asked), limits.longest_wait_seconds)

    def _pace(self, source: str) -> Pace:
        limits = self._configuration.requests
        with self._lock:
            if source not in self._paces:
                rate = limits.sec_per_second if source == "sec" else limits.others_per_second
                self._paces[source] = Pace(rate, sleep=self._sleep)
            return self._paces[source]

    def _attempt(self, question: Question, conditional: Mapping[str, str]) -> Answer:
        url, own = question.url, urlsplit(question.url).netloc
        for _ in range(_FEW_HOPS + 1):
            if self._stopped.is_set():
                raise DownloadError(self._told(question, "given up; the same command resumes"), hopeless=True)
            self._pace(question.source).wait()
            headers = {"User-Agent": self._agent if question.source == "sec" else _AGENT, **conditional}
            if urlsplit(url).netloc == own:
                headers |= question.headers
            try:
                with self._http.stream("GET", url, headers=headers) as response:
                    if response.status_code in _REDIRECTS:
                        url = self._redirected(question, url, response)
                        continue
                    return self._received(question, response, conditional)
            except (httpx.TransportError, httpx.DecodingError) as error:
                raise _UnansweredError(_in_words(error)) from None
        raise DownloadError(self._told(question, f"more than {_FEW_HOPS} redirects; check the address"))

    def _redirected(self, question: Question, url: str, response: httpx.Response) -> str:
        """Where a redirect leads, if the source may lead there."""
        target = urljoin(url, response.headers.get("Location", ""))
        parts = urlsplit(target)
        allowed = {urlsplit(question.url).netloc, *self._configuration.redirect_hosts(question.source)}
        if parts.netloc not in allowed or parts.scheme != urlsplit(question.url).scheme or parts.username:
            where = f"{parts.scheme}://{parts.hostname or 'nowhere'}"
            remedy = f"if that is right, list the host in the configuration under redirects.{question.source}"
            raise DownloadError(self._told(question, f"redirected to {where}, which is none of its hosts; {remedy}"))
        return target

    def _received(self, question: Question, response: httpx.Response, conditional: Mapping[str, str]) -> Answer:
        status = response.status_code
        marks = {"etag": response.headers.get("ETag", ""), "last_modified": response.headers.get("Last-Modified", "")}
        now = self.now()
        if status == 304 and conditional:
            return Answer(None, **marks, retrieved=now)
        body = self._body(response)
        if status in (404, 410) or (status == 400 and question.absent and question.absent in body):
            raise AbsentError(self._told(question, f"not there (HTTP {status})"))
        if status in _AGAIN or (status in _LIMITED and question.source == "sec"):
            wait = _retry_after(response.headers.get("Retry-After", ""))
            if status in (*_LIMITED, 503):
                limits = self._configuration.requests
                self._pace(question.source).pause(min(wait or limits.first_wait_seconds, limits.longest_wait_seconds))
            hint = "; wait ten minutes and check the user agent" if status == 403 else ""
            told = f"refused with HTTP {status}, {first_words(body)!r}{hint}"
            raise _UnansweredError(told, wait=wait, hopeless=status in _LIMITED)
        if status in (401, 402, 403):
            told = f"refused with HTTP {status}, {first_words(body)!r}; check the key and what it may ask for"
            raise DownloadError(self._told(question, told), hopeless=True)
        if status != 200:
            raise DownloadError(self._told(question, f"answered with HTTP {status}, {first_words(body)!r}"))
        try:
            question.check(body)
        except NothingError as error:
            raise AbsentError(self._told(question, f"not there ({error})")) from None
        except ContentError as error:
            if error.lasting:
                raise DownloadError(self._told(question, f"{error}"), hopeless=error.hopeless) from None
            raise _UnansweredError(f"served {error}") from None
        return Answer(body, **marks, retrieved=now)

    def _body(self, response: httpx.Response) -> bytes:
        """The body, unpacked, within the limits of size and time; httpx refuses one shorter than it was announced."""
        limits = self._configuration.requests
        until = time.monotonic() + limits.deadline_seconds
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > limits.largest_bytes:
                raise _UnansweredError(f"more than {limits.largest_bytes:,} bytes")
            if time.monotonic() > until:
                raise _UnansweredError(f"still sending after {limits.deadline_seconds:g} seconds")
            if self._stopped.is_set():
                raise _UnansweredError("given up")
        return bytes(body)

    @staticmethod
    def _told(question: Question, what: str) -> str:
        return redactor_of_process()(f"{question.url}: {what}")


def _in_words(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.DecodingError):
        return "a body that cannot be unpacked"
    told = str(error) or type(error).__name__
    return f"the connection failed ({told})"


def _retry_after(text: str) -> float | None:
    """Seconds of a `Retry-After`, which is a number of them or a date."""
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None

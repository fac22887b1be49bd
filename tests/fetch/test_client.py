"""The client asks again where that may help, no oftener than it may, follows no redirect abroad, and tells no key."""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.fetch.internet import IMPATIENT, PASSING, PATIENT, SLOW, Internet, Served

from finskillbench.errors import DownloadError, InputError
from finskillbench.fetch.client import AbsentError, Client, RateLimiter, SourceRequest
from finskillbench.fetch.configuration import (
    Configuration,
    check_cik,
    checked_csv,
    json_of,
    object_of,
    read_configuration,
)

pytestmark = pytest.mark.enable_socket

AGENT = "Jane Doe jane@example.com"
RECORD = json.dumps({"cik": "0000320193", "name": "x" * 2000}).encode()


def _record(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Served:
    del path, query, headers
    return Served(200, RECORD)


def _check(body: bytes) -> None:
    check_cik(object_of(body), 320193)


def _client(net: Internet, folder: Path, more: str = "") -> Client:
    return Client(read_configuration(net.configuration(folder, more)), AGENT, lambda seconds: None)


def _asker(net: Internet, folder: Path, fault: str) -> Client:
    """A client that asks three times, and is impatient where that is what the fault is about."""
    net.patience = IMPATIENT if fault in SLOW else f"{PATIENT}\nattempts = 3"
    return _client(net, folder)


@pytest.mark.slow
@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_is_asked_again(fault: str, tmp_path: Path) -> None:
    with (
        Internet(_record, lambda url, times: fault if times == 0 else "") as net,
        _asker(net, tmp_path, fault) as client,
    ):
        answer = client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))
        assert answer.body == RECORD
        assert [one.fault for one in net.asked][:2] == [fault, ""]
        assert len(net.asked) == 2 or fault in SLOW


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["403", "503", "page", "cut", "empty", "silent", "garbage", "other filer"])
def test_a_fault_that_lasts_ends_in_one_line(fault: str, tmp_path: Path) -> None:
    with Internet(_record, lambda url, times: fault) as net, _asker(net, tmp_path, fault) as client:
        with pytest.raises(DownloadError) as caught:
            client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))
        told = str(caught.value)
        assert told.startswith(f"{net.url}/sec/a: ")
        assert "3 times" in told
        assert "\n" not in told
        assert len(net.asked) == 3
        words = {"403": "Request Rate Threshold Exceeded", "page": "We are down for maintenance", "empty": "empty body"}
        assert words.get(fault, "") in told
        assert caught.value.permanent is (fault == "403")


@pytest.mark.parametrize(("fault", "told"), [("elsewhere", "not a host of this source"), ("loop", "redirects")])
def test_a_redirect_abroad_or_in_a_circle_is_not_followed(fault: str, told: str, tmp_path: Path) -> None:
    with Internet(_record, lambda url, times: fault) as net, _client(net, tmp_path) as client:
        with pytest.raises(DownloadError, match=told):
            client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))
        assert len(net.asked) == (1 if fault == "elsewhere" else 6)


def test_a_redirect_to_a_host_of_the_source_is_followed_and_takes_no_key_along(tmp_path: Path) -> None:
    with Internet(_record) as other:
        moved = Served(301, b"", {"Location": f"{other.url}/there"})
        with Internet(lambda path, query, headers: moved) as net:
            more = f'[redirects]\ntiingo = ["127.0.0.1:{other.port}"]'
            with _client(net, tmp_path, more=more) as client:
                question = SourceRequest("tiingo", f"{net.url}/tiingo/a", _check, {"apikey": "planted-key-123"})
                assert client.get(question).body == RECORD
            assert net.asked[0].headers["apikey"] == "planted-key-123"
            assert "apikey" not in other.asked[0].headers


def test_waits_are_what_the_source_asks_for_within_the_limit(tmp_path: Path) -> None:
    slept: list[float] = []
    with Internet(_record, lambda url, times: "429 with seconds" if times == 0 else "") as net:
        more = "[redirects]"
        configuration = read_configuration(net.configuration(tmp_path, more))
        patient = configuration.requests.model_copy(update={"longest_wait_seconds": 60.0})
        with Client(configuration.model_copy(update={"requests": patient}), AGENT, _Nap(slept)) as client:
            client.get(SourceRequest("yahoo", f"{net.url}/yahoo/a", _check))
    assert slept[0] == 7.0


class _Nap:
    """Notes how long it was to sleep, and lets no pace wait for it."""

    def __init__(self, slept: list[float]) -> None:
        self._slept = slept

    def __call__(self, seconds: float) -> bool:
        self._slept.append(seconds)
        return True


def test_all_hosts_of_the_sec_share_a_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt waits for its turn, retries and redirects too."""
    turns: list[RateLimiter] = []
    monkeypatch.setattr(RateLimiter, "wait", lambda pace: turns.append(pace))
    with Internet(_record, lambda url, times: "500" if times == 0 else "") as net, _client(net, tmp_path) as client:
        for place in ("sec/a", "sec_data/a"):
            client.get(SourceRequest("sec", f"{net.url}/{place}", _check))
        client.get(SourceRequest("fred", f"{net.url}/fred/a", _check))
        assert len(turns) == len(net.asked) == 6
    assert len({id(pace) for pace in turns[:4]}) == 1
    assert turns[4] is turns[5] is not turns[0]


def test_the_sec_is_told_who_asks_and_others_are_not(tmp_path: Path) -> None:
    with Internet(_record) as net, _client(net, tmp_path) as client:
        client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))
        client.get(SourceRequest("fred", f"{net.url}/fred/a", _check))
        assert [one.headers["user-agent"] == AGENT for one in net.asked] == [True, False]


def test_a_key_that_a_server_sends_back_is_in_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIINGO_API_KEY", "planted-key-123")
    echo = Served(401, b"no such token: planted-key-123")
    with Internet(lambda path, query, headers: echo) as net, _client(net, tmp_path) as client:
        question = SourceRequest("tiingo", f"{net.url}/tiingo/a", _check, {"Authorization": "Token planted-key-123"})
        with pytest.raises(DownloadError) as caught:
            client.get(question)
        assert "planted-key-123" not in str(caught.value) + repr(question)
        assert caught.value.permanent
        assert len(net.asked) == 1


def test_what_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    with Internet(_record) as net, _client(net, tmp_path) as client:
        question = SourceRequest("sec", f"{net.url}/sec/a", _check)
        first = client.get(question)
        again = client.get(question, etag=first.etag, last_modified=first.last_modified)
        assert again.body is None
        assert net.asked[1].headers["if-none-match"] == first.etag


def test_what_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with Internet(lambda path, query, headers: Served(404)) as net, _client(net, tmp_path) as client:
        with pytest.raises(AbsentError, match="not found"):
            client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))
        assert len(net.asked) == 1


def test_an_answer_beyond_the_limit_is_given_up(tmp_path: Path) -> None:
    more = "attempts = 1\nlargest_bytes = 1000"
    with (
        Internet(_record) as net,
        _client(net, tmp_path, more=more) as client,
        pytest.raises(DownloadError, match="more than 1,000 bytes"),
    ):
        client.get(SourceRequest("sec", f"{net.url}/sec/a", _check))


def test_no_second_holds_more_requests_than_the_pace_allows() -> None:
    """Eight threads ask for 60 turns on a clock of their own; no window of a second has more than ten."""
    now, lock = [0.0], threading.Lock()
    turns: list[float] = []

    def sleep(seconds: float) -> None:
        with lock:
            now[0] += seconds

    pace = RateLimiter(10, clock=lambda: now[0], sleep=sleep)

    def ask() -> None:
        for _ in range(8):
            pace.wait()
            with lock:
                turns.append(now[0])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    turns.sort()
    assert len(turns) == 64
    assert turns[-1] - turns[0] >= 63 / 10 - 1e-6
    pace.pause(100)
    before = now[0]
    pace.wait()
    assert now[0] >= before + 100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[requests]\nsec_per_second = 11", "at most 10 requests a second"),
        ('[addresses]\nsec = "http://www.sec.gov"', "https://"),
        ('[addresses]\ntiingo = "https://key@tiingo.example"', "keys come from the environment"),
        ('[addresses]\nmars = "https://mars.example"', "addresses.mars"),
        ("[requests", "not TOML"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        read_configuration(path)


def test_the_defaults_are_the_public_sources_over_https() -> None:
    addresses = Configuration().addresses.model_dump()
    assert all(str(address).startswith("https://") for address in addresses.values())
    assert Configuration().requests.sec_per_second <= 10


def test_the_page_tells_every_key_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fetching.md").read_text(encoding="utf-8")
    block = page.split("```toml\n")[1].split("```")[0]
    defaults = Configuration().model_dump()
    for hosts in defaults["redirects"]:
        defaults["redirects"][hosts] = list(defaults["redirects"][hosts])
    assert tomllib.loads(block) == defaults


@pytest.mark.parametrize("body", [b"", b"  \n", b"<html><body>Sorry</body></html>", b'{"a": ', b"\xff\xfe"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(Exception, match="JSON"):
        json_of(body)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"observation_date,DFF\n2026-01-02,4.3\n2026-01", "cut off"),
        (b"observation_date,DGS10\n2026-01-02,4.3\n", "not the header"),
        (b"observation_date,DFF\n", "without rows"),
        (b"<!doctype html><title>Oops</title>", "a page in place of CSV: 'Oops'"),
    ],
)
def test_what_is_no_csv_is_refused(body: bytes, told: str) -> None:
    with pytest.raises(Exception, match=told):
        checked_csv(body, ("observation_date,DFF",))

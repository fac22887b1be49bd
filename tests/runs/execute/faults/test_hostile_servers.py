"""Whole runs against hostile servers: no key is left anywhere, a budget binds without token counts."""

import logging
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.faults.hosted import warm
from tests.faults.hostile import HOSTILE, KEY
from tests.faults.server import SUBMIT, FaultServer, Reply, Request

from finskillbench.cli import main
from finskillbench.harness.models import ModelOptions, get_model
from finskillbench.harness.providers.prices import Price, PriceTable
from finskillbench.redaction import REDACTED
from finskillbench.runs.execute.run import run

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]
MODEL = "openai-api/local/tiny"
PRICES = PriceTable({MODEL: Price(1.0, 0.1, 1.0, 4.0)}, "2026-01-01")
NAMES = sorted(name for name, hostile in HOSTILE.items() if hostile.incidents != ("auth",))
"""All but the one that ends the model's whole run."""
FORMS = (KEY.encode(), quote(KEY, safe="").encode(), KEY.replace("/", "\\/").encode())
"""The key as it is, and as a URL or a JSON text has it."""


def number_of(request: Request) -> int:
    found = re.search(r"Task (\d+)\.", request.messages[1]["content"])
    assert found is not None
    return int(found[1])


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", KEY)


async def no_wait(_: float) -> None:
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("keyed")
def test_a_planted_key_is_found_nowhere(memory_edition, episodes_of, tmp_path: Path, capsys, caplog, recwarn) -> None:
    met: set[int] = set()

    def script(request: Request) -> Reply:
        number = number_of(request)
        if number in met:
            return SUBMIT
        met.add(number)
        return HOSTILE[NAMES[number]].to(request)

    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", len(NAMES)))
    out = tmp_path / "run"
    # As a run of ours at its most talkative. Only Inspect's own commands, which other tests call, ask others for more.
    for other in (None, "inspect_ai", "httpx", "httpx2", "openai"):
        caplog.set_level(logging.WARNING, other)
    caplog.set_level(logging.DEBUG, "finskillbench")
    warm(MODEL)
    with FaultServer(script) as server:
        model = get_model(MODEL, ModelOptions(base_url=server.url, prices=PRICES))
        result = run(edition, [model], ["no_skill"], out=out, limit=len(NAMES), sleep=no_wait)
        assert all(KEY in request.headers["authorization"] for request in server.requests)
    rows = {int(row["task_id"].rsplit("_", 1)[1]): row for row in result.rows.iter_rows(named=True)}
    assert {NAMES[number]: tuple(row["incidents"]) for number, row in rows.items()} == {
        name: HOSTILE[name].incidents for name in NAMES
    }
    for task in ("pc_uncon_000", f"pc_uncon_{NAMES.index('key in a 400'):03}"):
        assert main(["show", str(out), task]) == 0
    assert main(["export", str(out), "--out", str(tmp_path / "logs")]) == 0
    written = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    shown = capsys.readouterr()
    written |= {"printed": shown.out.encode(), "printed to stderr": shown.err.encode()}
    written |= {f"warning {number}": str(each.message).encode() for number, each in enumerate(recwarn)}
    written |= {"rows": str(result.rows.to_dicts()).encode()}
    found = [
        (where, text[: text.find(form)][-400:]) for where, text in written.items() for form in FORMS if form in text
    ]
    assert not found
    assert any(REDACTED.encode() in text for text in written.values())


@pytest.mark.usefixtures("keyed")
def test_a_log_with_tracebacks_holds_no_key(memory_edition, episodes_of, tmp_path: Path, capfd) -> None:
    from finskillbench.cli.display.console import log_to_stderr

    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 1))
    warm(MODEL)
    try:
        log_to_stderr(2)
        with FaultServer(HOSTILE["key in a 400"].to) as server:
            model = get_model(MODEL, ModelOptions(base_url=server.url))
            run(edition, [model], ["no_skill"], out=tmp_path / "run", sleep=no_wait)
    finally:
        logging.getLogger("finskillbench").handlers.clear()
    log = capfd.readouterr().err
    assert "Traceback" in log
    assert REDACTED in log
    assert KEY not in log


def test_a_budget_binds_where_no_tokens_are_counted(memory_edition, episodes_of, tmp_path: Path) -> None:
    uncounted = replace(SUBMIT, body=SUBMIT.body.replace(b'"usage"', b'"unusual"'), usage=None)
    edition = memory_edition(episodes_of("unconstrained_optimization", "pc_uncon", 40))
    warm(MODEL)
    with FaultServer(lambda _: uncounted) as server:
        model = get_model(MODEL, ModelOptions(base_url=server.url, prices=PRICES, max_tokens=1_000))
        result = run(
            edition,
            [model],
            ["no_skill"],
            out=tmp_path / "run",
            max_cost=0.1,
            options=ModelOptions(max_tokens=1_000),
            sleep=no_wait,
        )
        asked = len(server.requests)
    assert 0 < result.ran < 40
    assert result.not_run == 40 - result.ran
    assert asked * 0.004 < 0.1  # what a thousand tokens of output cost each time, at most
    assert result.rows["cost_usd"].null_count() == result.rows.height
    assert set(map(tuple, result.rows["incidents"])) == {("usage_unknown",)}

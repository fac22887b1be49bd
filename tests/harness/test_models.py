"""Names of models, what each needs, and what making one leaves alone."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.faults.hosted import SERVED, served
from tests.faults.server import SUBMIT
from tests.sampling import thorough

from finskillbench.errors import InputError
from finskillbench.harness.models import PROVIDERS, ModelOptions, check_model, get_model, key_of, key_of_name

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(find_spec("inspect_ai") is None, reason="the extra llm is not installed"),
]


def test_the_list_of_providers_is_that_of_inspect():
    import inspect_ai.model._providers.providers as registered

    source = Path(registered.__file__).read_text(encoding="utf-8")
    assert sorted(PROVIDERS) == sorted(line.split('"')[1] for line in source.splitlines() if "@modelapi(" in line)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpt-5", "give provider/model"),
        ("baseline/best", "choose from: baseline/reference"),
        ("opnai/gpt-5", "provider 'opnai' is unknown"),
        ("openai/", "give provider/model"),
        ("/gpt", "give provider/model"),
    ],
)
def test_names_that_nobody_has(name: str, problem: str):
    for look in (check_model, get_model):
        with pytest.raises(InputError, match=r"^[^\n]*$") as caught:
            look(name)
        assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("anthropic/claude-opus-5", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GOOGLE_API_KEY"),
        ("openrouter/a/b", "OPENROUTER_API_KEY"),
        ("openai-api/mine/m", "MINE_API_KEY"),
    ],
)
def test_a_missing_key_is_named(name: str, variable: str, monkeypatch: pytest.MonkeyPatch):
    for key in [key for key in os.environ if key.endswith("_API_KEY")]:
        monkeypatch.delenv(key)
    with pytest.raises(InputError, match=r"^[^\n]*$") as caught:
        get_model(name)
    assert variable in str(caught.value)
    assert "[" not in str(caught.value)


def test_a_key_of_the_environment_is_sent_to_a_named_server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOCAL_API_KEY", "secret")
    with served(SUBMIT) as server:
        server.ask()
    assert server.requests[0].headers["authorization"] == "Bearer secret"


def test_a_provider_whose_package_is_missing_says_what_to_install():
    if find_spec("mistralai") is not None:
        pytest.skip("mistralai is installed")
    with pytest.raises(InputError, match="pip install mistralai"):
        get_model("mistral/large")


def test_an_entry_is_known_by_what_changes_its_answers():
    options = ModelOptions(base_url="http://127.0.0.1:9/v1", seed=3, request_timeout=5.0)
    entry = key_of(get_model(SERVED, options))
    assert entry == key_of_name(SERVED, options)
    assert entry == key_of_name(SERVED, replace(options, request_timeout=9.0))
    assert entry != key_of_name(SERVED, replace(options, seed=4))
    assert (
        entry.named_arguments["seed"],
        entry.named_arguments["base_url"],
        "reasoning_effort" in entry.named_arguments,
    ) == (3, options.base_url, False)
    assert key_of_name("baseline/nop", options) == key_of_name("baseline/nop", ModelOptions())


def test_an_unknown_effort_is_refused():
    with pytest.raises(InputError, match="reasoning effort 'huge' is unknown; choose from: none, "):
        get_model(SERVED, ModelOptions(base_url="http://127.0.0.1:9/v1", reasoning_effort="huge"))


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("finskillbench.harness.models.find_spec", lambda _: None)
    for look in (check_model, get_model):
        with pytest.raises(InputError, match="needs the extra llm; install it: make llm") as caught:
            look("openai/gpt-5")
        assert "\n" not in str(caught.value)


def _alone(code: str, folder: Path) -> str:
    """Run code in a fresh interpreter inside `folder`."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_API_KEY")}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_checking_a_name_imports_no_provider(tmp_path: Path):
    code = """
        import sys
        from finskillbench.harness.models import check_model
        import finskillbench.harness.providers.hosted
        check_model("openai/gpt-5")
        print([name for name in ("inspect_ai", "openai", "anthropic", "httpx2") if name in sys.modules])
    """
    assert _alone(code, tmp_path) == "[]"


@thorough
@pytest.mark.slow
def test_making_a_model_touches_neither_logging_nor_environment_nor_disk_nor_network(tmp_path: Path):
    (tmp_path / ".env").write_text("OPENAI_API_KEY=from-dotenv\nINSPECT_LOG_DIR=elsewhere\n")
    code = """
        import logging, os, signal, socket
        import polars  # sets a variable for its allocator
        def refuse(*_): raise SystemExit("a connection was opened")
        socket.socket.connect = refuse
        before, signals = dict(os.environ), signal.getsignal(signal.SIGINT)
        from finskillbench.errors import InputError
        from finskillbench.harness.models import ModelOptions, get_model
        get_model("openai-api/local/m", ModelOptions(base_url="http://127.0.0.1:9/v1"))
        try:
            get_model("openai/gpt-5")
        except InputError:
            pass
        else:
            raise SystemExit("a key was read from .env")
        changed = {key for key in os.environ.keys() | before.keys() if os.environ.get(key) != before.get(key)}
        root = logging.getLogger()
        same = signal.getsignal(signal.SIGINT) is signals
        print(root.handlers, logging.getLevelName(root.level), sorted(changed), same)
    """
    assert _alone(code, tmp_path) == "[] WARNING [] True"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env"]

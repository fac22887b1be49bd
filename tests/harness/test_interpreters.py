"""`run_python` over real interpreters: what code finds, what comes back, what stays, and that nothing it does hurts."""

import asyncio
import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from tests.sampling import THOROUGH, sampled
from tests.sandbox.conftest import SMALL
from tests.sandbox.test_hostile_scripts import HOSTILE, planted

from finskillbench.errors import InputError
from finskillbench.harness.conditions import ARMS, Condition, mount
from finskillbench.harness.model import ToolCall, Turn
from finskillbench.harness.skills.loader import curated
from finskillbench.harness.tools import interpreters as module
from finskillbench.harness.tools.contracts import MAX_RESULT_CHARS, tool_specs
from finskillbench.harness.tools.interpreters import LIMITS, CodeResult, Interpreter, Interpreters, code_runner
from finskillbench.harness.tools.toolbox import Toolbox, ToolServices
from finskillbench.sandbox import snippet
from finskillbench.sandbox.guards import access

pytestmark = pytest.mark.slow

CODE = (Condition.CODE, Condition.CODE_CURATED)
PACKAGES = curated()


@pytest.fixture(scope="module")
def interpreters() -> Iterator[Interpreters]:
    with Interpreters(ARMS[name] for name in CODE) as both:
        yield both


@pytest.fixture(params=sampled(CODE, 2))
def run(request, interpreters: Interpreters) -> Callable[..., CodeResult]:
    """Run one piece of code under either arm, under the first where the run is not thorough."""
    interpreter = interpreters.for_arm(ARMS[request.param])
    assert interpreter is not None
    return lambda code, files=None, **names: asyncio.run(interpreter.run(code, names, files or {}))


@pytest.fixture
def toolbox(interpreters: Interpreters, episode, full_input, mounts) -> Callable[..., Toolbox]:
    def make(condition: Condition, **more: Any) -> Toolbox:
        arm = ARMS[condition]
        mounted = mount(condition, PACKAGES, {})
        return Toolbox(
            episode, lambda: full_input, mounted, ToolServices(interpreter=interpreters.for_arm(arm), **more)
        )

    return make


async def serve(toolbox: Toolbox, name: str, **arguments: Any) -> dict[str, Any]:
    call = ToolCall("id", name, orjson.dumps(arguments).decode())
    text, _ = await toolbox.call(call, tool_specs(toolbox._mounted, "portfolio_construction"))
    assert len(text) <= MAX_RESULT_CHARS
    return orjson.loads(text)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", 2),
        ("x = 3", None),
        ("", None),
        ("def f():\n    return 0.1 + 0.2\nf()", 0.1 + 0.2),
        ("{'weights': (1, 2.5, None, True)}", {"weights": [1, 2.5, None, True]}),
        ("import numpy as np; np.linalg.solve(np.eye(2) * 3, [1., 2.])", [1 / 3, 2 / 3]),
        ("import numpy as np; {'n': np.int64(7), 'x': np.float64(0.1)}", {"n": 7, "x": 0.1}),
        ("float('nan')", "nan"),
        ("{'at': {3}}", "{'at': {3}}"),
        ("'\\ud800'", "'\\ud800'"),
        ("from scipy.optimize import linprog; linprog([-1, -2], A_ub=[[1, 1]], b_ub=[4]).x", [0.0, 4.0]),
        ("import scipy.stats; round(scipy.stats.norm.ppf(0.99), 6)", 2.326348),
        ("__name__", "__main__"),
        ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: int\nA(2)", "A(x=2)"),
        ("task['fields'][1]", 5),
    ],
)
def test_the_value_is_that_of_the_last_expression(run, code: str, value: Any) -> None:
    ran = run(code, task={"fields": [4, 5]})
    assert (ran.value, ran.error) == (value, None)


def test_polars_works_in_threads_of_its_own(run) -> None:
    code = (
        "import polars as pl\n"
        "frame = pl.DataFrame({'g': ['a', 'b'] * 500, 'x': range(1000)})\n"
        "frame.write_parquet('x.parquet'); frame.write_csv('x.csv')\n"
        "lazy = pl.scan_parquet('x.parquet').filter(pl.col('x') > 10).group_by('g').agg(pl.col('x').sum())\n"
        "joined = frame.join(pl.read_csv('x.csv'), on='x').with_columns(m=pl.col('x').rolling_mean(3)).height\n"
        "[lazy.sort('g').collect().to_dicts(), lazy.collect(engine='streaming').height, joined]"
    )
    totals = [{"g": "a", "x": sum(range(12, 1000, 2))}, {"g": "b", "x": sum(range(11, 1000, 2))}]
    ran = run(code)
    assert (ran.value, ran.error) == ([totals, 2, 1000], None)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (
            "def f():\n    return 1 / 0\nf()",
            "line 3, in <module>: f()\nline 2, in f: return 1 / 0\nZeroDivisionError: ",
        ),
        ("x = (", "line 1\n    x = (\n        ^\nSyntaxError: '(' was never closed"),
        ("raise SystemExit(3)", "line 1, in <module>: raise SystemExit(3)\nSystemExit: 3"),
        ("x = bytearray(10**11)", "line 1, in <module>: x = bytearray(10**11)\nMemoryError"),
        ("import os; os._exit(3)", "ended the process with exit code 3"),
        ("open('mine.py', 'w').write('def g(): raise KeyError(1)')\nimport mine\nmine.g()", "mine.py 1, in g: "),
        ("import numpy; numpy.linalg.inv(numpy.zeros((2, 2)))", "numpy.linalg"),
        ("class E(Exception):\n    def __str__(self): raise KeyError\nraise E", "E: <exception str() failed>"),
        ("raise SyntaxError('m', ('f', 1, 'b', 'c'))", "SyntaxError, whose message cannot be shown"),
        ("import os; os.fork()", "PermissionError: [Errno 1] Operation not permitted"),
        ("import socket; socket.create_connection(('1.1.1.1', 80), 1)", "PermissionError: "),
    ],
)
def test_an_error_is_told_without_paths_of_this_machine(run, code: str, error: str) -> None:
    ran = run(code)
    assert ran.value is None
    assert error in (ran.error or ""), ran.error
    for part in ("site-packages", "/tmp", "/lib/python"):
        assert part not in (ran.error or "")


def test_what_is_long_is_cut_and_says_so(run) -> None:
    ran = run("print('x' * 40_000); 'y' * 40_000")
    assert ran.printed == "x" * LIMITS.printed_bytes + f"... (cut after {LIMITS.printed_bytes} bytes)"
    assert ran.value == "'" + "y" * (snippet.MOST_CHARS - 1) + "... (cut, 40002 characters)"
    assert run("print('a'); import sys; print('b', file=sys.stderr)").printed == "a\nb\n"


def test_files_stay_and_variables_do_not(run) -> None:
    first = run("import os\nos.mkdir('a')\nopen('a/b.bin', 'wb').write(bytes(range(256)))\nx = 1")
    assert list(first.files) == ["a/b.bin"]
    assert run("list(open('a/b.bin', 'rb').read())", first.files).value == list(range(256))
    assert "NameError" in run("x", first.files).error
    assert run("import os; os.remove('a/b.bin')", first.files).files == {}
    assert run("import tempfile; tempfile.mkstemp(); open('k', 'w').close()").files == {"k": ""}


@pytest.mark.parametrize(
    ("code", "note"),
    [
        (
            "open('big', 'wb').write(bytes(9_000_000))",
            "2 files of 9000001 bytes are in the working folder, at most 256",
        ),
        ("for n in range(257): open(str(n), 'w').close()", "258 files of 1 bytes are in the working folder"),
        ("open(b'\\xff', 'w').close()", "has a name that is not valid text"),
        ("open('lost', 'w').close(); import os; os._exit(0)", "the files are as they were before this call"),
        ("import os; os.symlink('/etc/passwd', 'link')", None),
    ],
)
def test_files_that_cannot_be_kept_leave_those_before(run, code: str, note: str | None) -> None:
    before = run("open('mine', 'w').write('1')").files
    ran = run(code, before)
    assert ran.files == before
    assert (ran.files_notice is None) if note is None else (note in (ran.files_notice or ""))


def test_the_task_is_what_get_task_data_returns(toolbox, full_input, episode) -> None:
    """Facts as they were filed, where scripts are given them derived."""

    class AsFiled:
        def query(self, arguments: Any, *, episode: Any) -> dict[str, Any]:
            raise NotImplementedError

        def as_filed(self, reference: Any) -> list[str]:
            return ["as filed", reference["symbol"]]

    reference = {"ref": "panels/facts.parquet", "symbol": "AAA", "as_of": "2025-01-31", "since": "2020-01-01"}
    filed = dataclasses.replace(episode, input={**episode.input, "filing_facts": reference})
    box = toolbox(Condition.CODE, filings=AsFiled())
    box._episode = filed
    box._task_data = lambda: {**full_input, "filing_facts": {"derived": 1}}

    async def compare() -> None:
        seen = (await serve(box, "run_python", code="task"))["value"]
        assert sorted(seen) == sorted([*full_input, "filing_facts"])
        assert seen["filing_facts"] == ["as filed", "AAA"]
        for field in seen:
            assert (await serve(box, "get_task_data", field=field))["value"] == seen[field]
        assert seen["covariance_matrix"]["matrix"][0][0] == 0.040000001

    asyncio.run(compare())


def test_scripts_of_a_skill_can_be_imported_once_it_is_loaded(toolbox) -> None:
    code = "import check_constraints, finskillbench; callable(check_constraints.main)"

    async def story() -> list[dict[str, Any]]:
        box = toolbox(Condition.CODE_CURATED)
        before = await serve(box, "run_python", code=code)
        await serve(box, "load_skill", skill_name="portfolio-construction")
        bare = toolbox(Condition.CODE)
        return [before, await serve(box, "run_python", code=code), await serve(bare, "run_python", code=code)]

    before, after, bare = asyncio.run(story())
    assert "No module named 'check_constraints'" in before["error"]
    assert after == {"value": True, "printed": "", "files": []}
    assert "No module named 'check_constraints'" in bare["error"]


@pytest.mark.parametrize("condition", CODE)
def test_episodes_at_once_see_only_their_own_files(toolbox, condition: Condition) -> None:
    look = "import glob, os\n[open(n).read() for n in glob.glob('**/*', recursive=True)]"
    walk = (
        "import os\n[n for f in ('..', '../..', '/tmp', '/dev/shm', os.environ['HOME']) for _, _, n in os.walk(f) if n]"
    )

    async def episode(number: int) -> None:
        box = toolbox(condition)
        for turn in range(4 if THOROUGH else 2):
            await serve(box, "run_python", code=f"open('mine-{turn}', 'w').write('{number}')")
            assert (await serve(box, "run_python", code=look))["value"] == [str(number)] * (turn + 1)
        assert (await serve(box, "run_python", code=walk))["value"] == []

    async def all_at_once() -> None:
        await asyncio.gather(*map(episode, range(6 if THOROUGH else 3)))

    asyncio.run(all_at_once())


def test_a_call_after_the_submission_is_not_run(scripted, play) -> None:
    class Refusing:
        def for_arm(self, arm: Any) -> Any:
            return self

        async def run(self, *arguments: Any) -> CodeResult:
            raise AssertionError("run after the submission")

    submit = ToolCall("s", "submit_answer", '{"answer": "{}"}')
    trace = play(
        scripted([Turn(tool_calls=(submit, ToolCall("c", "run_python", '{"code": "1"}')))]),
        Condition.CODE,
        interpreters=Refusing(),
    )
    assert [(record.name, record.fate) for record in trace.tool_calls] == [
        ("submit_answer", "ok"),
        ("run_python", "not_run"),
    ]


def test_no_interpreter_is_started_where_no_arm_needs_one(monkeypatch) -> None:
    monkeypatch.setattr(module, "code_runner", None)
    with Interpreters(arm for name, arm in ARMS.items() if name not in CODE) as none:
        assert [none.for_arm(arm) for arm in ARMS.values()] == [None] * len(ARMS)


def test_an_interpreter_that_finds_the_library_is_refused(monkeypatch) -> None:
    """Each way is tried on the very process that would serve."""
    monkeypatch.setattr(module, "code_runner", lambda **how: code_runner(**{**how, "with_library": True}))
    with pytest.raises(InputError, match="finds this library by import, import of an engine, source, folder") as told:
        Interpreters([ARMS[Condition.CODE]]).__enter__()
    for way in ("byte code", "loading by path", "import by the search path", "modules in memory"):
        assert way in str(told.value)


@pytest.fixture(scope="module")
def small() -> Iterator[Callable[[str], CodeResult]]:
    """One piece of code in an interpreter of small limits: a piece that breaks it breaks the next."""
    with code_runner(with_library=False, limits=SMALL) as runner:
        yield lambda code: asyncio.run(Interpreter(runner).run(code, {}, {}))


@pytest.mark.parametrize("name", sampled(HOSTILE, 2))
def test_misbehaviour_is_told_and_the_next_call_works(name: str, small: Callable[[str], CodeResult]) -> None:
    """What is planted in the scripts of packages, as code: what ends a process is told in the same words."""
    body, error = HOSTILE[name]
    ran = small(f"{planted(body)}\nmain({{}})")
    if error.startswith(("exceeded", "ended", "closed", "wrote")):
        assert any(part in (ran.error or "") for part in error.split("|")), ran.error
    elif "raised" in error:
        assert ran.error
    after = small("1 + 1")
    assert (after.value, after.error) == (2, None)


@pytest.mark.parametrize(
    ("allow_unconfined", "reason"),
    [(False, "guards are missing here: files"), (True, "finds this library by source, ")],
)
def test_code_is_refused_where_files_cannot_be_guarded(
    tmp_path, monkeypatch, allow_unconfined: bool, reason: str
) -> None:
    """Whatever is allowed: an arm that could read the library would not be the arm."""
    (tmp_path / "open.py").write_text(
        "from script_server.guards import confine\nconfine.landlock_version = lambda: 0\n"
    )
    honest = access.script_environment
    monkeypatch.setattr(access, "script_environment", lambda extra: honest({**extra, "PYTHONPATH": str(tmp_path)}))
    monkeypatch.setattr(module, "_PRELOAD", ("open", *module._PRELOAD))
    with pytest.raises(InputError, match=f"^condition code: .*{reason}"):
        Interpreters([ARMS[Condition.CODE]], allow_unconfined=allow_unconfined).__enter__()


TOKENS = (
    *("import os", "import sys", "x", "=", "(", ")", "[", "]", "{", "}", ":", "\n", "\n    ", "for i in range(3)"),
    *(
        "def f()",
        "return",
        "yield",
        "lambda",
        "'",
        '"""',
        "\\",
        "1e999",
        "-1",
        "**",
        "//",
        "del",
        "sys.modules.clear()",
    ),
    *("sys.stdout = None", "os.close(1)", "os.closerange(0, 64)", "raise", "exit()", "os._exit(1)", "sys.path = 3"),
    *("__builtins__.clear()", "import builtins; del builtins.len", "\0", "\udcff".encode("utf-8", "replace").decode()),
    *("os.chdir('/')", "os.kill(0, 9)", "sys.setrecursionlimit(10**6)", "open('a', 'w')", "async", "await", "é", "…"),
    *("import ctypes; ctypes.string_at(0)", "os.write(3, b'R')", "json", "globals().clear()", "del task", ";", ","),
)


@pytest.mark.slow
def test_random_pieces_of_code_leave_the_interpreter_as_it_was(interpreters: Interpreters) -> None:
    """Twenty of them, a thousand in a thorough run."""
    interpreter = interpreters.for_arm(ARMS[Condition.CODE])
    assert isinstance(interpreter, Interpreter)
    before, chosen = interpreter._runner.server_pid, random.Random(20250131)

    async def storm() -> None:
        async def one() -> None:
            code = " ".join(chosen.choices(TOKENS, k=chosen.randint(1, 12)))
            ran = await interpreter.run(code, {"task": {}}, {"a": ""})
            orjson.dumps(dataclasses.asdict(ran))

        for _ in sampled(range(100), 50):
            await asyncio.gather(*(one() for _ in range(10)))
        assert (await interpreter.run("task['x'] + 1", {"task": {"x": 20}}, {})).value == 21

    asyncio.run(storm())
    assert interpreter._runner.server_pid == before

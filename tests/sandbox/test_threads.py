"""Threads beside the one that forks: refused, or allowed to sleep where scripts may start their own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from finskillbench.errors import SkillError
from finskillbench.sandbox.runner import ScriptRunner

Write = Callable[..., Path]


def test_a_preload_that_starts_threads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SkillError, match="started a thread"):
        ScriptRunner(preload=("threaded",)).__enter__()


@pytest.mark.slow
def test_where_threads_are_allowed_one_that_sleeps_may_be_preloaded_and_one_that_works_not(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = (
        "import threading\ndef begin(work):\n    threading.Thread(target=work, daemon=True).start()\n    return {}\n"
    )
    sleep = f"{begin}def work():\n    return begin(threading.Event().wait)\n"
    write(f"{sleep}work()\n", "sleeping.py")
    write(sleep, "starting.py")
    write(f"{begin}def work():\n    while True: pass\nbegin(work)\n", "working.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    script = write(
        """
        import threading
        def main(payload):
            one = threading.Thread(target=payload.update, kwargs={"found": 1})
            one.start()
            one.join()
            return payload
        """
    )
    with ScriptRunner(preload=("sleeping",), threads=True) as runner:
        assert asyncio.run(runner.run(script, b"{}")).output == {"found": 1}
    with pytest.raises(SkillError, match="keeps a thread at work"):
        ScriptRunner(preload=("working",), threads=True).__enter__()
    # The rules for files would not hold for a thread that a child has before them.
    with ScriptRunner(preload=("starting",), warm_up=("starting:work",), threads=True) as runner:
        if runner.guards["files"]:
            assert "a thread runs already" in (asyncio.run(runner.run(script, b"{}")).error or "")

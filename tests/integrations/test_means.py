"""What Inspect shows of an exported run and what our tables say are the same means."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="the extra llm is not installed")

from inspect_ai.log import read_eval_log
from inspect_ai.scorer import SampleScore, Score, mean, mean_score

from finskillbench.edition import Edition
from finskillbench.episode import Profile
from finskillbench.harness.model import Message, ToolCall, ToolSpec, Turn
from finskillbench.integrations.logs import export_run
from finskillbench.reports.report import report
from finskillbench.runs.execute.run import RunResult, run

ANSWERS = (
    *({"metrics": {"revenue": revenue}, "new_weights": {"AAA": 0.5}, "turnover": 0.1} for revenue in (1.0, 394328e6)),
    {"new_weights": {"AAA": 0.51234567891}, "turnover": 0.1},
    {},
)


class Varied:
    """Answers another of some answers in each episode that it is asked."""

    name = "test/varied"

    def __init__(self) -> None:
        self._asked = 0

    async def generate(self, messages: Sequence[Message], tools: Sequence[ToolSpec], tool_choice: str) -> Turn:
        self._asked += 1
        answer = json.dumps(ANSWERS[self._asked % len(ANSWERS)])
        return Turn("", (ToolCall("c", "submit_answer", json.dumps({"answer": answer})),))


@pytest.fixture(scope="module")
def finished(small_edition: Edition, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    out = tmp_path_factory.mktemp("means") / "run"
    return run(small_edition, [Varied()], ["no_skill", "curated"], epochs=3, out=out)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [Profile.PAPER, Profile.STRICT])
def test_every_mean_is_the_same(finished: RunResult, tmp_path: Path, profile: Profile) -> None:
    table = report(finished.rows, profile).overview
    headline = dict(zip((column.name for column in table.columns), table.rows[-1], strict=True))
    assert headline["sub_task"] == "headline"
    seen: set[float] = set()
    for path in export_run(finished.folder, tmp_path):
        log = read_eval_log(str(path))
        assert log.results is not None
        (condition,) = log.eval.tags or []
        (shown,) = [each for each in log.results.scores if each.name == profile.value]
        ours = headline[f"mean_{condition}"]
        assert shown.metrics["mean"].value == pytest.approx(ours, abs=1e-12)
        # The same by Inspect's own reducer and metric, from the samples.
        repeats: dict[object, list[Score]] = defaultdict(list)
        for sample in log.samples or []:
            value = (sample.scores or {})["verdict"].as_dict()[profile.value]
            repeats[sample.id].append(Score(value=value))
        reduced = [SampleScore(score=mean_score()(scores)) for scores in repeats.values()]
        assert mean()(reduced) == pytest.approx(ours, abs=1e-12)
        seen.add(round(float(str(ours)), 6))
    assert seen != {0.0}

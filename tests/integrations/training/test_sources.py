"""Sources of tasks: seeds of a split, replaced where an edition cannot be built, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from finskillbench.edition import Edition
from finskillbench.errors import InputError, SourceError
from finskillbench.integrations import environments
from finskillbench.integrations.environments import BlockingEnvironment, EditionTasks, SeedTasks, offered_tools
from finskillbench.splits import Split


@pytest.fixture
def built(training_edition: Edition, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds of editions that were requested; that of 1,000,002 cannot be built."""
    requested: list[int] = []

    def cached(name: str, progress: object, *, seed: int, **options: object) -> Path:
        requested.append(seed)
        if seed == 1_000_002:
            raise SourceError("panels", "the 30 names allow no portfolio")
        return training_edition.path

    monkeypatch.setattr(environments, "cached_edition", cached)
    return requested


def test_seeds_go_through_subtasks_and_on_to_the_next_edition(built: list[int]) -> None:
    source = SeedTasks(subtasks=["stress_testing", "rebalancing"], episodes=2)
    names = [source.task_of(seed) for seed in range(8)]
    assert [name.partition("/")[0] for name in names] == ["1000001"] * 4 + ["1001000002"] * 4
    assert len(set(names[:4])) == 4
    assert built == [1_000_001, 1_000_002, 1_001_000_002]
    environment = BlockingEnvironment(source)
    assert environment.reset(5).text == environment.reset(names[5]).text
    source.close()


def test_what_is_not_there_is_refused(training_edition: Edition, built: list[int]) -> None:
    with pytest.raises(InputError, match="name it SEED/TASK"):
        BlockingEnvironment(SeedTasks()).reset("pc_uncon_1")
    with pytest.raises(InputError, match="has no task 'nothing' among those chosen"):
        BlockingEnvironment(EditionTasks(training_edition)).reset("nothing")
    with pytest.raises(InputError, match="has no task of the split test_seed"):
        EditionTasks(training_edition, split=Split.TEST_SEED)
    with pytest.raises(InputError, match="keeps skills between episodes"):
        EditionTasks(training_edition, "self_generated_persistent")


def test_tools_of_a_condition_are_those_of_its_subtasks() -> None:
    assert [tool.name for tool in offered_tools("no_skill", ["stress_testing"])] == ["submit_answer", "get_task_data"]
    names = {tool.name for tool in offered_tools("curated", ["stress_testing", "normalization"])}
    assert names >= {"query_xbrl", "load_skill", "run_skill_script"}

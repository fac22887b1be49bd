"""What a folder was asked for is told in few words, and nothing is added or lost by that."""

from hypothesis import given, settings
from hypothesis import strategies as st

from finskillbench.harness.conditions import Condition
from finskillbench.harness.models import ModelKey
from finskillbench.runs.plan.items import RunRequest, make_plan, merge_requests, requests_of

ENTRIES = [ModelKey("a", '{"seed":1}'), ModelKey("a"), ModelKey("baseline/nop")]
CONDITIONS = [Condition.NO_SKILL, Condition.CURATED, "skill:mine"]
PLACES = {"t2": 0, "t1": 1, "t0": 2}


def some(values: list) -> st.SearchStrategy[tuple]:
    return st.sets(st.sampled_from(range(len(values))), min_size=1).map(
        lambda chosen: tuple(values[number] for number in sorted(chosen))
    )


ASKED = st.builds(RunRequest, some(ENTRIES), some(CONDITIONS), some(list(PLACES)), st.integers(1, 3))


def items(asked) -> frozenset:
    return frozenset().union(*(each.items() for each in asked))


@settings(deadline=None)
@given(st.lists(ASKED, min_size=1, max_size=8))
def test_joining_adds_and_loses_nothing(asked: list[RunRequest]) -> None:
    told = merge_requests(asked, PLACES)
    assert items(told) == items(asked)
    assert len(told) <= len(asked)
    assert merge_requests(told, PLACES) == told


@settings(deadline=None)
@given(ASKED, st.sampled_from(["entries", "conditions", "tasks", "epochs"]))
def test_what_grew_in_one_respect_is_told_at_once(whole: RunRequest, respect: str) -> None:
    values = range(1, whole.epochs + 1) if respect == "epochs" else [(each,) for each in getattr(whole, respect)]
    parts = [
        RunRequest(**{**{name: getattr(whole, name) for name in RunRequest.__slots__}, respect: value})
        for value in values
    ]
    assert merge_requests(parts[::-1], PLACES) == (whole,)


def test_a_plan_is_told_as_it_was_asked(edition) -> None:
    places = {episode.task_id: place for place, episode in enumerate(edition.episodes())}
    plan = make_plan(edition.episodes(), ENTRIES, CONDITIONS, limit=2, epochs=3)
    tasks = ("pc_uncon_000", "pc_uncon_001", "pc_infeas_000", "pc_infeas_001")
    assert merge_requests(requests_of(plan), places) == (RunRequest(tuple(ENTRIES), tuple(CONDITIONS), tasks, 3),)
    uneven = make_plan(edition.episodes(), ENTRIES, CONDITIONS, limit=2, limits={"no_skill": 1}, epochs=3)
    told = merge_requests(requests_of(uneven), places)
    assert items(told) == frozenset(uneven.items)
    assert len(told) == 2

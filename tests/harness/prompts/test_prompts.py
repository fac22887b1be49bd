"""What an agent reads: bounded, deterministic, without metadata, with the way to full precision."""

import dataclasses
import re
from collections.abc import Iterator
from datetime import date

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tests.sampling import examples, sampled

from finskillbench.domains import subtask_named
from finskillbench.edition import Edition
from finskillbench.episode import Episode, Prompt
from finskillbench.errors import EditionError, InputError
from finskillbench.harness.conditions import ARMS, Condition, Mount
from finskillbench.harness.prompts.compaction import compact_input, compact_value
from finskillbench.harness.prompts.compose import (
    APPENDIX,
    MAX_TASK_PROMPT,
    VERDICTS_SHOWN,
    arm_prompt,
    prompt_digest,
    render_schema,
    task_prompt,
)
from finskillbench.harness.skills.user_skills import EMPTY, Feedback, Memory
from finskillbench.harness.tools.contracts import subtask_tools, tool_specs

DOMAIN = "portfolio_construction"


class Inner(BaseModel):
    kind: str | None = Field(description="What it is.")


class Answer(BaseModel):
    weights: dict[str, float] = Field(description="Fractions of NAV.")
    entries: list[Inner]
    flag: bool = False


def test_a_schema_reads_like_commented_json() -> None:
    assert render_schema(Answer) == (
        "{\n"
        '  "weights": {"<name>": number, ...},  // Fractions of NAV.\n'
        '  "entries": [{\n'
        '    "kind": string | null,  // What it is.\n'
        "  }, ...],\n"
        '  "flag": true | false,  // optional\n'
        "}"
    )


def test_every_subtask_renders_each_of_its_keys(subtask) -> None:
    text = render_schema(subtask.answer)
    for key in subtask.answer.model_fields:
        assert f'\n  "{key}": ' in text


def test_the_prompt_names_the_task_and_hides_metadata(episode) -> None:
    text = task_prompt(episode, subtask_named(episode.sub_task).answer)
    for part in ("Subtask: unconstrained_optimization\n", "as_of_date: 2025-01-31", "Difficulty: easy"):
        assert part in text
    assert episode.prompt.task_description in text
    assert episode.prompt.output_instructions in text
    assert '"weights"' in text
    assert "crash" not in text
    assert "secret" not in text
    assert episode.task_id not in text


def test_matrices_become_shapes_and_floats_three_figures(episode) -> None:
    text = task_prompt(episode, None)
    assert '"covariance_matrix": "3x3 matrix; full precision: get_task_data(\\"covariance_matrix\\")"' in text
    assert "panels/" not in text
    assert '"AAA":0.123' in text
    assert "0.1234567" not in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (90753000000.0, 9.08e10),
        (-0.0012345, -0.00123),
        (123456789, 123456789),
        (True, True),
        (None, None),
        ({"tickers": ["A", "B"], "matrix": [[1.0, 2.0], [3.0, 4.0]]}, '2x2 matrix; full precision: get_task_data("f")'),
        (
            {"tickers": ["A", "B"], "ref": "panels/returns.parquet", "end": "2020-03-20", "sessions": 252},
            '252x2 matrix; full precision: get_task_data("f")',
        ),
        (
            {"tickers": ["A", "B"], "dates": ["2020-03-20"], "matrix": [[1.0, 2.0]]},
            '1x2 matrix; full precision: get_task_data("f")',
        ),
        ([[1.23456] * 5] * 4, '4x5 matrix; full precision: get_task_data("f")'),
        ([[1.23456, 2.0], [1, 2]], [[1.23, 2.0], [1, 2]]),
        ([["a", 1]] * 20, [["a", 1]] * 20),
    ],
)
def test_compaction_of_values(value, expected) -> None:
    assert compact_value(value, "f") == expected


def test_the_largest_fields_give_way_first() -> None:
    task_input = {
        "small": {"a": 1},
        "large": {f"K{i:03}": 0.123456 for i in range(400)},
        "text": "word " * 300,
        "larger": [{"symbol": f"S{i:03}", "weight": 0.1} for i in range(400)],
    }
    text = compact_input(task_input, 9_000)
    assert orjson.loads(text)["larger"] == 'list of 400 entries, left out for length: get_task_data("larger")'
    assert len(orjson.loads(text)["large"]) == 400
    shorter = orjson.loads(compact_input(task_input, 400))
    assert shorter["small"] == {"a": 1}
    assert shorter["large"] == 'object with 400 entries, left out for length: get_task_data("large")'
    assert shorter["text"] == '1500 characters, left out for length: get_task_data("text")'


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=200),
    lambda children: st.lists(children, max_size=30) | st.dictionaries(st.text(max_size=20), children, max_size=30),
    max_leaves=60,
)


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(task_input=st.dictionaries(st.text(max_size=30), JSON, max_size=12), repeat=st.integers(1, 60))
def test_a_prompt_keeps_to_its_bound_and_to_itself(mounts, package, task_input, repeat) -> None:
    task_input = {name: [value] * repeat for name, value in task_input.items()}
    # Named as the fixtures' package, so that the inline arm has a document to show.
    episode = Episode("t", DOMAIN, "stress_testing", date(2025, 1, 31), "hard", task_input, Prompt("d", "o"))
    base = task_prompt(episode, subtask_named("stress_testing").answer)
    assert base == task_prompt(episode, subtask_named("stress_testing").answer)
    documents = len(package.body) + sum(len(f"\n\n## {name}\n\n{text}") for name, text in package.references.items())
    for condition in Condition:
        extra = documents if condition is Condition.INLINE else 0
        assert len(arm_prompt(base, mounts[condition], DOMAIN)) <= MAX_TASK_PROMPT + extra


def test_words_that_leave_no_room_are_an_edition_error(episode) -> None:
    wordy = dataclasses.replace(episode, prompt=Prompt("x" * MAX_TASK_PROMPT, "o"))
    with pytest.raises(EditionError, match="pc_uncon_test: the prompt cannot be kept under 12000"):
        task_prompt(wordy, None)


def test_only_arms_of_own_skills_and_inline_documents_append_to_the_base(mounts, package) -> None:
    appended = {}
    for condition in Condition:
        text = arm_prompt("base", mounts[condition], DOMAIN)
        assert text == "base" or text.startswith("base" + APPENDIX)
        appended[condition] = text.removeprefix("base")
    own = (Condition.SELF_GENERATED, Condition.SELF_GENERATED_PERSISTENT)
    assert [condition for condition in Condition if "save_skill" in appended[condition]] == list(own)
    assert [c for c in Condition if appended[c]] == [own[0], Condition.INLINE, own[1]]
    for document in (package.body, *package.references, *package.references.values()):
        assert document in appended[Condition.INLINE]


def test_an_inline_arm_needs_a_package_named_after_the_domain(mounts) -> None:
    with pytest.raises(
        InputError, match="'inline' shows each domain its own skill, but no package is named 'risk-manage"
    ):
        arm_prompt("base", mounts[Condition.INLINE], "risk_management")


def test_a_stream_tells_names_of_skills_and_how_answers_fared_and_nothing_else(mounts) -> None:
    mounted = mounts[Condition.SELF_GENERATED_PERSISTENT]
    first = arm_prompt("base", mounted, DOMAIN, EMPTY)
    assert first.endswith("Saved skills: none yet\nVerdicts on your earlier answers, the latest last: none yet")
    fared = (Feedback("pc_secret_1", "scored", 0.51249), Feedback("pc_secret_2", "max_turns_exhausted", None))
    later = arm_prompt("base", mounted, DOMAIN, Memory({"b": "text of b", "a": "text of a"}, fared))
    assert later.endswith(
        "Saved skills: a, b\n"
        "Verdicts on your earlier answers, the latest last: 1. scored, 0.512 of 1; 2. max_turns_exhausted, no score"
    )
    assert "text of" not in later
    assert "secret" not in later


def test_the_latest_verdicts_are_shown_under_their_own_numbers(mounts) -> None:
    fared = tuple(Feedback(f"t{i}", "scored", 0.0) for i in range(VERDICTS_SHOWN + 5))
    text = arm_prompt("base", mounts[Condition.SELF_GENERATED_PERSISTENT], DOMAIN, Memory({}, fared))
    assert text.count("scored, 0.000 of 1") == VERDICTS_SHOWN
    assert "latest last: 6. scored" in text


def test_a_digest_counts_where_texts_end() -> None:
    assert prompt_digest("ab", "c") != prompt_digest("a", "bc")


def _spoken(text: str) -> set[str]:
    """Names in a text: words joined by underscores, and the parts of what stands in backticks."""
    quoted = {part for name in re.findall(r"`([\w.]+)`", text) for part in name.split(".")}
    return quoted | set(re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", text))


def _named(value: object) -> Iterator[str]:
    """Keys of an input, values that are one word, and documents of several lines; explanations name nothing."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        yield from (name for child in value for name in _named(child))
    elif isinstance(value, str) and (" " not in value or "\n" in value):
        yield value


def test_a_task_speaks_of_its_own_fields_and_of_no_skill(synthetic_edition: Edition, subtask) -> None:
    mounted = Mount(ARMS[Condition.NO_SKILL])
    episodes = list(synthetic_edition.episodes([subtask.name]))
    assert episodes
    for episode in sampled(episodes, 20):
        tools = tool_specs(mounted, episode.skill, subtask_tools(subtask.name))
        words = "\n".join(f"{tool.name} {tool.description} {dict(tool.parameters)}" for tool in tools)
        text = f"{episode.prompt.task_description}\n{episode.prompt.output_instructions}"
        known = "\n".join([*_named(episode.input), render_schema(subtask.answer), *(tool.name for tool in tools)])
        assert _spoken(text) <= set(re.findall(r"\w+", known))
        if "filing_facts" not in episode.input:  # conventions of filings name every metric that they define
            stated = re.sub(r"_[fijk]\b", "", "\n".join(map(str, episode.input.get("conventions", {}).values())))
            assert _spoken(stated) <= set(re.findall(r"\w+", known))
        prompt = arm_prompt(task_prompt(episode, subtask.answer), mounted, episode.skill)
        assert not re.search(r"(?i)\b(?:skills?|scripts?)\b|load_|run_|skill_", f"{prompt}\n{words}")

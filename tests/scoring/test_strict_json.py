"""Parsing a submission: what is one, what is not, and the limits on the way."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scoring.strategies import HOSTILE_TEXTS, JSON_VALUES, nested

from finskillbench.scoring.strict_json import MAX_BYTES, InvalidSubmission, parse_submission


@pytest.mark.parametrize("text", HOSTILE_TEXTS.values(), ids=HOSTILE_TEXTS)
def test_a_text_that_is_no_submission_is_refused_with_one_short_line(text: str) -> None:
    with pytest.raises(InvalidSubmission) as caught:
        parse_submission(text)
    assert 0 < len(caught.value.reason) < 200
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\t',
        '```json\n{"a": 1}\n```',
        '```JSON\r\n{"a": 1}\r\n```',
        '```\n{"a": 1}```',
        '```{"a": 1}```',
        'The answer is {"a": 1}, I think.',
        'Here it is:\n```json\n{"a": 1}\n```\nDone [see above].',
        '\ufeff{"a": 1}',
        "[" * 1000 + ' {"a": 1}',
    ],
)
def test_space_a_fence_and_prose_around_an_object_do_no_harm(text: str) -> None:
    assert parse_submission(text) == {"a": 1}


def test_a_fence_inside_a_string_is_kept() -> None:
    assert parse_submission('```json\n{"a": "```"}\n```') == {"a": "```"}


def test_numbers_are_exact_integers_or_finite_doubles() -> None:
    largest = int(1.7976931348623157e308)
    parsed = parse_submission(f'{{"i": 9007199254740993, "m": {largest}, "f": 0.1, "z": -0.0, "u": 1e-999}}')
    assert parsed == {"i": 9007199254740993, "m": largest, "f": 0.1, "z": 0.0, "u": 0.0}
    assert isinstance(parsed["i"], int)
    # 2**1024 - 2**970 is the least integer that rounds to infinity.
    for overflowing in (2**1024 - 2**970, 2**1024):
        with pytest.raises(InvalidSubmission, match="overflows"):
            parse_submission(f'{{"i": -{overflowing}}}')
    assert parse_submission(f'{{"i": {2**1024 - 2**970 - 1}}}')
    for overflowing in (
        "1e999",
        "-1E+309",
        "1" + "0" * 300 + "e9",
        "9" * 250 + "e60",
        "1e0000400",
        "0." + "0" * 9 + "1e400",
    ):
        with pytest.raises(InvalidSubmission, match="overflows"):
            parse_submission(f'{{"f": {overflowing}}}')
    assert parse_submission('{"f": 1e308, "g": 12e99, "h": "1e999", "i": 1e-400}') == {
        "f": 1e308, "g": 1.2e100, "h": "1e999", "i": 0.0
    }  # fmt: skip


def test_depth_counts_objects_and_arrays_but_not_brackets_in_strings() -> None:
    assert parse_submission(json.dumps({"a": nested(63)})) == {"a": nested(63)}
    assert parse_submission(json.dumps({"a": nested(63, of_objects=True)}))
    with pytest.raises(InvalidSubmission, match="deeper than 64"):
        parse_submission(json.dumps({"a": nested(64)}))
    assert parse_submission(json.dumps({"a": '\\"' + "[" * 100})) == {"a": '\\"' + "[" * 100}
    assert len(parse_submission(json.dumps({"a": [[]] * 100}))["a"]) == 100
    with pytest.raises(InvalidSubmission, match="deeper than 64"):
        parse_submission(json.dumps({"a": [[]] * 100, "b": nested(64)}))


def test_one_mebibyte_of_utf8_is_the_limit() -> None:
    frame = len('{"a": ""}')
    for text in ("x" * (MAX_BYTES - frame), "é" * ((MAX_BYTES - frame) // 2)):
        assert parse_submission(f'{{"a": "{text}"}}') == {"a": text}
    for text in ("x" * (MAX_BYTES - frame + 1), "é" * ((MAX_BYTES - frame) // 2 + 1)):
        with pytest.raises(InvalidSubmission, match="more than"):
            parse_submission(f'{{"a": "{text}"}}')


def test_equal_keys_of_different_objects_are_no_duplicates() -> None:
    assert parse_submission('{"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}], "b": 2}')["b"] == 2


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_whatever_json_writes_is_read_back(value: dict[str, object]) -> None:
    assert parse_submission(json.dumps(value)) == value


@given(st.text(alphabet='{}[]",:\\`0123456789eE.-+ntrufalsNI \n\ud800é'))
def test_any_text_is_an_object_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidSubmission):
        assert isinstance(parse_submission(text), dict)

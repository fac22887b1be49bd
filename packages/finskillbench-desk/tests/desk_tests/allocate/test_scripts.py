"""What the scripts for allocating among sources return: which finds are shown, and the example of their guide."""

from __future__ import annotations

import json
from copy import deepcopy

from desk_tests.allocate.test_refusals import PROBLEMS, run

from finskillbench_desk.domain import SKILLS

REFERENCE = SKILLS[0] / "references" / "sources.md"


def test_finds_of_negative_sign_are_left_out_where_they_are_none() -> None:
    """Turned round, the source that stands out is the last to be shown."""
    problem = PROBLEMS["panel_regress"] | {"top": 1}
    both = run("panel_regress", deepcopy(problem))["industries"]["rail"]
    turn = [{"source": both[0]["source"], "multiply": -1 if both[0]["t"][0] > 0 else 1}]
    turned = deepcopy(problem | {"repairs": turn})
    assert run("panel_regress", turned)["industries"]["rail"][0]["source"] == both[0]["source"]
    (shown,) = run("panel_regress", turned | {"positive": True})["industries"]["rail"]
    assert shown["source"] != both[0]["source"]
    assert shown["t"][0] > min(0.0, -abs(both[0]["t"][0]))


def test_the_worked_example_is_what_the_script_returns() -> None:
    text = REFERENCE.read_text(encoding="utf-8").split("## A worked example")[1]
    given = json.loads(text[text.index("{") : text.rindex("}") + 1])
    (found,) = run("shrink", given)["groups"].values()
    (p, q), expected = found["hypotheses"], found["expected"]
    told = f"none {found['none']:.4f}, P {p['chance']:.4f} with effect {p['effect']:.4f}, Q {q['chance']:.4f}"
    assert told in text
    assert f"are {expected['P']['effect']:.4f}, of Q {expected['Q']['effect']:.4f}" in text.replace("\n", " ")

"""What skill scripts print: ten decimals, everywhere in a result, and no signed zero."""

from __future__ import annotations

import math

from finskillbench.sandbox.script import rounded


def test_every_number_of_a_result_has_ten_decimals() -> None:
    result = {
        "weights": {"A": 1 / 3, "B": -1e-16},
        "list": [2 / 3, {"x": 1 / 7}],
        "n": 3,
        "flag": True,
        "text": "1.23456789012",
    }
    found = rounded(result)
    assert found["weights"]["A"] == 0.3333333333
    assert math.copysign(1.0, found["weights"]["B"]) == 1.0
    assert found["list"] == [0.6666666667, {"x": 0.1428571429}]
    assert (found["n"], found["flag"], found["text"]) == (3, True, "1.23456789012")

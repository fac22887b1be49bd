"""What a stated problem may say of its sources, and what it may not."""

import pytest

from finskillbench.errors import InputError
from finskillbench_desk.engines.source_tables import repairs_of

REPAIR = {"source": "S001", "first": 1, "last": 9, "multiply": -1}


def test_a_repair_is_taken_as_it_is_stated() -> None:
    assert repairs_of({"repairs": [REPAIR]}) == [REPAIR]
    assert repairs_of({}) == []


@pytest.mark.parametrize("key", ["from", "to", "from_quarter", "until"])
def test_a_stretch_under_another_name_is_refused(key: str) -> None:
    """Taken in silence, it would multiply the whole column."""
    entry = {"source": "S001", key: 35, "multiply": 0.1}
    with pytest.raises(InputError, match=f"unknown {key}; known are source, first, last, multiply"):
        repairs_of({"repairs": [entry]})

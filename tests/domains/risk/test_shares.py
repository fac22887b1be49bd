"""A draw that holds what shortcuts earn: bounds are kept, and what was passed over first is tried again."""

from finskillbench.domains.risk.objects.stress import Shares


def test_a_task_that_a_shortcut_gets_right_needs_others_that_it_does_not() -> None:
    shares = Shares({"easy": 0.5, "hard": 0.35})
    assert not shares.take("easy", {"a": 1.0, "b": 0.0})
    assert shares.take("easy", {"a": 0.0, "b": 0.4})
    assert shares.take("easy", {"a": 1.0, "b": 0.4})
    assert not shares.take("easy", {"a": 0.6, "b": 0.0})
    assert not shares.take("hard", {"a": 0.36})
    assert shares.take("hard", {"a": 0.35})
    assert shares.take("easy", {"c": 0.5})

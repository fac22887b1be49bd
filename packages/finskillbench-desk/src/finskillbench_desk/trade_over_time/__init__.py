"""Trading over time: see `subtask`."""

from finskillbench_desk.trade_over_time.subtask import SUBTASK

__all__ = ["SUBTASK"]

"""Trading over time: see `subtask`."""

from finskillbench_desk.domain.trade_over_time.subtask import SUBTASK

__all__ = ["SUBTASK"]

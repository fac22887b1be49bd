"""Trading over time: see `subtask`."""

from finskillbench.domains.desk.trade_over_time.subtask import SUBTASK

__all__ = ["SUBTASK"]

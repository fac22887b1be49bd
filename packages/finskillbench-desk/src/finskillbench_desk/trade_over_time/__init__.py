"""Trading over time: twelve decisions in one episode on decaying signals."""

from finskillbench_desk.trade_over_time.subtask import SUBTASK

__all__ = ["SUBTASK"]

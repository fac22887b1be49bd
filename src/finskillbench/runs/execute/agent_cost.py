"""Cost of an agent's episode, which is known only at its end.

A model call has an upper bound of its cost, an agent's episode has none. Under a budget the run reserves the cost of
the most expensive episode so far. It can exceed the limit only by what episodes in flight cost beyond that.
"""

from __future__ import annotations

from collections.abc import Callable

from finskillbench.harness.model import FREE, Usage
from finskillbench.runs.execute.metered import Budget
from finskillbench.runs.store.record import Expense


class AgentCost:
    """Cost of one episode of an agent; `largest_cost` of earlier episodes is its reserve.

    `calls_begun` is 1 once the episode has begun. `lost_usd` is the reserve if the agent reports no cost. `on_expense`
    is called with the reserve before the episode begins.
    """

    def __init__(self, budget: Budget | None, largest_cost: float, on_expense: Callable[[Expense], None]) -> None:
        self.calls_begun = 0
        self.lost_usd = 0.0
        self._budget, self._largest_cost, self._on_expense = budget, largest_cost, on_expense

    async def begin(self) -> None:
        """Reserve the cost of the episode; raise `RunStoppedError` if the budget is exhausted."""
        if self._budget is not None:
            await self._budget.reserve(self._largest_cost)
            self.lost_usd = self._largest_cost
            self._on_expense(self.expense())
        self.calls_begun = 1

    def end(self, usage: Usage) -> None:
        """Replace the reserve by the reported cost; without a report it counts as spent."""
        if self._budget is not None:
            self.lost_usd = self._largest_cost if usage.cost_usd is None else 0.0
            self._budget.settle(self._largest_cost, usage.cost_usd or 0.0, self.lost_usd)

    def expense(self) -> Expense:
        """Return the amount that the episode may have cost so far."""
        return Expense(0, FREE, self.lost_usd)

"""Cost of an episode of an agent, which is known only when the agent reports it at the end.

A model call has an upper bound; an agent's episode has none. Under a budget the run reserves the cost of the most
expensive episode so far, so it exceeds its limit by no more than what episodes in flight cost above that.
"""

from __future__ import annotations

from collections.abc import Callable

from finskillbench.harness.model import FREE, Usage
from finskillbench.runs.execute.metered import Budget
from finskillbench.runs.store.record import Expense


class AgentCost:
    """Cost of one episode of an agent.

    `calls_begun` is 1 once the episode has begun; `lost_usd` is the reserve, where the agent does not report a cost.

    Parameters
    ----------
    budget : budget of the run; None if there is no limit.
    largest_cost : cost of the most expensive episode so far, in US dollars; reserved for this one.
    on_expense : called with the reserve before the episode begins.
    """

    def __init__(self, budget: Budget | None, largest_cost: float, on_expense: Callable[[Expense], None]) -> None:
        self.calls_begun = 0
        self.lost_usd = 0.0
        self._budget, self._largest_cost, self._on_expense = budget, largest_cost, on_expense

    async def begin(self) -> None:
        """Set aside what the episode may cost.

        Raises
        ------
        RunStoppedError : the budget does not reach.
        """
        if self._budget is not None:
            await self._budget.reserve(self._largest_cost)
            self.lost_usd = self._largest_cost
            self._on_expense(self.expense())
        self.calls_begun = 1

    def end(self, usage: Usage) -> None:
        """Take what it has cost, or what was set aside where it does not say."""
        if self._budget is not None:
            self.lost_usd = self._largest_cost if usage.cost_usd is None else 0.0
            self._budget.settle(self._largest_cost, usage.cost_usd or 0.0, self.lost_usd)

    def expense(self) -> Expense:
        """What the episode may have cost so far."""
        return Expense(0, FREE, self.lost_usd)

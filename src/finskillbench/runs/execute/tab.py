"""What an agent's episode costs, which only the agent knows, and tells when it is over.

No bound of it is known beforehand, as it is for a model call. Under a budget the price of the dearest episode so far is
set aside before each, so a run goes beyond its limit by no more than what the episodes in flight cost above that.
"""

from __future__ import annotations

from collections.abc import Callable

from finskillbench.harness.model import FREE, Usage
from finskillbench.runs.execute.budget import Purse
from finskillbench.runs.store.events import Expense


class Tab:
    """The price of one episode of an agent.

    `asked` says whether it was begun; `lost_usd` is what it may have cost where it does not say, as the dearest.

    Parameters
    ----------
    budget : of the run; None where nothing limits it.
    dearest : the price of the dearest episode so far, in US dollars.
    note : called with what is set aside, before the episode begins.
    """

    def __init__(self, budget: Purse | None, dearest: float, note: Callable[[Expense], None]) -> None:
        self.asked = 0
        self.lost_usd = 0.0
        self._budget, self._dearest, self._note = budget, dearest, note

    async def begin(self) -> None:
        """Set aside what the episode may cost.

        Raises
        ------
        RunStoppedError : the budget does not reach.
        """
        if self._budget is not None:
            await self._budget.reserve(self._dearest)
            self.lost_usd = self._dearest
            self._note(self.expense())
        self.asked = 1

    def end(self, usage: Usage) -> None:
        """Take what it has cost, or what was set aside where it does not say."""
        if self._budget is not None:
            self.lost_usd = self._dearest if usage.cost_usd is None else 0.0
            self._budget.settle(self._dearest, usage.cost_usd or 0.0, self.lost_usd)

    def expense(self) -> Expense:
        """What the episode may have cost so far."""
        return Expense(0, FREE, self.lost_usd)

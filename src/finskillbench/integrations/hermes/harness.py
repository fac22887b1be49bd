"""Hermes as the harness of a run: `run(..., harness=Hermes())`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from finskillbench.errors import InputError
from finskillbench.harness.conditions import Arm, Condition
from finskillbench.harness.loop import Play
from finskillbench.harness.model import Model
from finskillbench.harness.seat import Assignment, Surroundings
from finskillbench.harness.trace import Trace
from finskillbench.integrations.hermes import VERSION, hermes_python
from finskillbench.integrations.hermes.endpoint import Endpoint
from finskillbench.integrations.hermes.sitting import HARNESS, Sitting
from finskillbench.integrations.hermes.workers import Crew

_ARMS = (Condition.NO_SKILL, Condition.CURATED)


class Hermes:
    """The Hermes Agent of an interpreter, see `finskillbench.integrations.hermes.hermes_python`.

    Raises
    ------
    InputError : it is not installed there, or in another version.
    """

    name = HARNESS

    def __init__(self, python: Path | None = None) -> None:
        self._python = hermes_python(python)

    def __str__(self) -> str:
        return f"Hermes Agent {VERSION}, {self._python}"

    def check(self, arm: Arm) -> None:
        """Refuse an arm that has no counterpart there.

        Raises
        ------
        InputError : it is neither no_skill nor curated nor of skills that somebody brings.
        """
        if arm.condition not in _ARMS and not arm.given:
            raise InputError(
                f"condition '{arm.condition}' does not exist under Hermes, which reads skills with its own tools and "
                f"writes none; there are {', '.join(_ARMS)} and skill:NAME"
            )

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Play]:
        """What plays episodes for as long as the context is open."""
        endpoint = Endpoint()
        crew = Crew(self._python, endpoint)

        async def play(model: Model, given: Assignment, around: Surroundings) -> Trace:
            return await Sitting(model, given, around).play(crew)

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(endpoint.listening())
            await stack.enter_async_context(crew.working())
            yield play

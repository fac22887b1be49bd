"""Script of test_verifiers.py for the interpreter of verifiers: EDITION SUBTASK SPLIT."""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import sys
from typing import Any

from finskillbench.episode import Status
from finskillbench.integrations import environments
from finskillbench.integrations.verifiers_taskset import (
    EpisodeTools,
    FinSkillBenchConfig,
    FinSkillBenchTaskset,
    Session,
    ToolsConfig,
)

EDITION, SUBTASK, SPLIT = sys.argv[1:]
ENDED = '{"error": "the episode has ended"}'


async def play(tools: EpisodeTools, task: str, session: str, *, wait: float) -> tuple[Any, Session, list[str]]:
    """Begin an episode, wait, call a tool that does not exist and submit; return state, session and texts."""
    tools._inert_state = state = tools._state_cls(session=session, task=task)
    begun = await tools.list_tools()
    found = tools.sessions[session]
    await asyncio.sleep(wait)
    calls: list[tuple[str, dict[str, Any]]] = [("nothing", {}), ("submit_answer", {"answer": "{}"})]
    results = [await tools.call_tool(*call) for call in calls]
    assert begun == found.tools
    return state, found, [result.content[0].text for result in results]


async def check_episodes(first: str, second: str) -> None:
    tools = EpisodeTools(ToolsConfig(edition=EDITION, idle_seconds=0.5))
    await tools.setup()
    state, session, texts = await play(tools, first, "one", wait=0.0)
    assert (state.ended, state.reward.status) == (True, Status.SCORED)
    assert texts[0].startswith('{"error"'), texts  # an invalid action is an observation
    assert not tools.sessions
    assert (await tools.call_tool("submit_answer", {})).content[0].text == ENDED
    again, _, same = await play(tools, first, "two", wait=0.0)
    assert (again.reward, same) == (state.reward, texts)  # deterministic
    state, session, texts = await play(tools, first, "late", wait=1.0)
    assert getattr(session.environment.trace, "ended", None) == "out_of_time"
    assert (state.reward.status, texts[1]) == (Status.INCOMPLETE_SUBMISSION, ENDED)
    for name in ("abandoned", "next"):
        tools._inert_state = tools._state_cls(session=name, task=second)
        await tools.list_tools()
        await asyncio.sleep(1.0)
    assert list(tools.sessions) == ["next"]
    await tools._exit_stack.aclose()


finite = FinSkillBenchTaskset(FinSkillBenchConfig(edition=EDITION, subtasks=[SUBTASK]))
loads = [[task.data for task in finite.take(10)] for _ in range(2)]
assert (finite.bounded, loads[0], loads[0][1].idx) == (True, loads[1], 1)
asyncio.run(check_episodes(loads[0][0].id, loads[0][1].id))
environments.cached_edition = lambda *arguments, **options: EDITION  # building one takes a minute
endless = FinSkillBenchTaskset(FinSkillBenchConfig(split=SPLIT, subtasks=[SUBTASK], episodes=2))
ids = [task.data.id for task in endless.take(5)]
seeds = [name.partition("/")[0] for name in ids]
assert (endless.bounded, len(set(ids)), seeds[0]) == (False, 5, seeds[1]), ids
assert seeds[1] < seeds[2], ids

"""What Inspect finds under `finskillbench/`: its entry point of the group `inspect_ai` names this module."""

from finskillbench.integrations.programs import ProgramAPI
from finskillbench.integrations.tasks import TASKS, episode_loop, verdict

__all__ = ["TASKS", "ProgramAPI", "episode_loop", "verdict"]

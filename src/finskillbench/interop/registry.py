"""What Inspect finds under `finskillbench/`: its entry point of the group `inspect_ai` names this module."""

from finskillbench.interop.programs import ProgramAPI
from finskillbench.interop.tasks import TASKS, episode_loop, verdict

__all__ = ["TASKS", "ProgramAPI", "episode_loop", "verdict"]

"""Check the Gymnasium environment with Gymnasium's own checker, and play every task; print the rewards as JSON."""
# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path

from gymnasium.utils.env_checker import check_env

from finskillbench.edition import load_edition
from finskillbench.integrations.environments import EditionTasks
from finskillbench.integrations.gymnasium_environment import GymnasiumEnvironment

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.integrations.training.actions import actions_of

source = EditionTasks(load_edition(Path(sys.argv[1])))
environment = GymnasiumEnvironment(source)
check_env(environment, skip_render_check=True)
rewards: list[tuple[float, float]] = []
for seed in range(len(source.tasks)):
    environment.reset(seed=seed)
    reward, over, info = 0.0, False, {}
    for tool, arguments in actions_of(source, seed):
        assert not over
        _, reward, over, _, info = environment.step(json.dumps({"tool": tool, "arguments": arguments}))
    assert over
    rewards.append((info["score"], reward))
print(json.dumps(rewards))

"""Play every task of an edition through an OpenEnv server and its client; print the rewards as JSON."""
# pyright: basic, reportMissingImports=false

import json
import socket
import sys
import threading
import time
from pathlib import Path

import uvicorn
from openenv.core.generic_client import GenericEnvClient

from finskillbench.edition import load_edition
from finskillbench.integrations.environments import EditionTasks
from finskillbench.integrations.openenv_server import application

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.integrations.training.actions import actions_of

source = EditionTasks(load_edition(Path(sys.argv[1])))
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
server = uvicorn.Server(uvicorn.Config(application(source), log_level="warning"))
threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
while not server.started:
    time.sleep(0.05)
rewards: list[tuple[float, float]] = []
with GenericEnvClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}").sync() as client:
    for seed in range(len(source.tasks)):
        result = client.reset(seed=seed)
        for tool, arguments in actions_of(source, seed):
            assert not result.done
            result = client.step({"tool": tool, "arguments": arguments})
        assert result.done
        rewards.append((result.observation["metadata"]["score"], result.reward))
print(json.dumps(rewards))

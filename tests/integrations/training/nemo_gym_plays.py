"""Play every task of an edition through the resources server of NeMo Gym; print the rewards as JSON."""
# pyright: basic, reportMissingImports=false

import json
import sys
from pathlib import Path
from unittest.mock import MagicMock

from fastapi.testclient import TestClient
from nemo_gym.openai_utils import NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.server_utils import ServerClient

from finskillbench.edition import load_edition
from finskillbench.integrations.environments import EditionTasks
from finskillbench.integrations.nemo_gym_server import FinSkillBenchServer, ServerConfig, rows

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
from tests.integrations.training.actions import actions_of

edition = Path(sys.argv[1])
source = EditionTasks(load_edition(edition))
config = ServerConfig(host="", port=0, entrypoint="", name="finskillbench", edition=edition)
server = FinSkillBenchServer(config=config, server_client=MagicMock(spec=ServerClient))
names = ("id", "model", "object", "output", "tools", "tool_choice")
empty = dict(zip(names, ("r", "m", "response", [], [], "auto"), strict=True))
empty |= {"created_at": 0, "parallel_tool_calls": False}
rewards: list[tuple[float, float]] = []
with TestClient(server.setup_webserver()) as client:
    for seed, row in enumerate(rows(source)):
        NeMoGymResponseCreateParamsNonStreaming.model_validate(row["responses_create_params"])
        assert client.post("/seed_session", json=row).status_code == 200
        for tool, arguments in actions_of(source, seed):
            assert client.post(f"/{tool}", json=arguments).status_code == 200
        found = client.post("/verify", json={**row, "response": empty}).json()
        rewards.append((found["score"], found["reward"]))
        client.cookies.clear()
print(json.dumps(rewards))

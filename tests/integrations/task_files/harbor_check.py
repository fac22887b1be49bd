"""Read exported tasks with Harbor's own classes; runs in Harbor's environment and prints what it found as JSON."""

# pyright: basic, reportMissingImports=false
import asyncio
import json
import sys
from pathlib import Path

from harbor.lint import lint_task
from harbor.models.dataset.manifest import DatasetManifest
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition
from harbor.publisher.packager import Packager
from harbor.registry.client.json import JsonRegistryClient

export = Path(sys.argv[1])
manifest = DatasetManifest.from_toml_file(export / "dataset.toml")
found = {}
for ref in manifest.tasks:
    folder = export / ref.short_name
    task = Task(folder)
    verifier = resolve_verifier_environment_definition(task.config, task.paths)
    found[ref.short_name] = {
        "name": task.name,
        "instruction": task.instruction,
        "findings": [finding.message for finding in lint_task(folder) if finding.rule != "root-agent"],
        "digest": f"sha256:{Packager.compute_content_hash(folder)[0]}" == ref.digest,
        "verifier": [verifier.directory.name, verifier.bundled_tests, verifier.config.network_mode.value],
        "agent": task.config.agent.network_mode.value,
    }
files = {ref.path: f"sha256:{Packager.compute_file_hash(export / ref.path)}" == ref.digest for ref in manifest.files}
listed = asyncio.run(JsonRegistryClient(path=export / "registry.json").get_dataset_metadata("finskillbench"))
registry = [listed.version, {task.get_name(): (export / task.path / "task.toml").is_file() for task in listed.task_ids}]
print(json.dumps({"tasks": found, "files": files, "registry": registry}))

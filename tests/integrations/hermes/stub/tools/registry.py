"""A registry of tools as Hermes's, with its two tools for skills, which it describes in these words."""

import json
import os
from pathlib import Path
from types import SimpleNamespace


class Registry:
    def __init__(self):
        self.entries = {}

    def get_entry(self, name):
        return self.entries.get(name)

    def register(self, name, toolset, schema, handler, max_result_size_chars=None):
        self.entries[name] = SimpleNamespace(name=name, toolset=toolset, schema=schema, handler=handler)

    def deregister(self, name):
        self.entries.pop(name)


def _skills():
    return {path.parent.name: path for path in sorted(Path(os.environ["HERMES_HOME"]).glob("skills/*/SKILL.md"))}


def _list(arguments):
    return json.dumps({"success": True, "skills": [{"name": name, "description": ""} for name in _skills()]})


def _view(arguments):
    found = _skills().get(arguments["name"])
    if found is None:
        return json.dumps({"success": False, "error": "no such skill"})
    return json.dumps({"success": True, "name": arguments["name"], "content": found.read_text(encoding="utf-8")})


registry = Registry()
registry.register("skill_manage", "skills", {"name": "skill_manage", "description": "", "parameters": {}}, None)
registry.register(
    "skills_list",
    "skills",
    {
        "name": "skills_list",
        "description": "List available skills (name + description). Use skill_view(name) to load full content.",
        "parameters": {
            "type": "object",
            "properties": {"category": {"type": "string", "description": "Optional category filter to narrow results"}},
            "required": [],
        },
    },
    lambda arguments, **_: _list(arguments),
)
registry.register(
    "skill_view",
    "skills",
    {
        "name": "skill_view",
        "description": "Skills allow for loading information about specific tasks and workflows, as well as scripts "
        "and templates. Load a skill's full content or access its linked files (references, templates, scripts). First "
        "call returns SKILL.md content plus a 'linked_files' dict showing available references/templates/scripts. To "
        "access those, call again with file_path parameter.",
        "parameters": {
            "type": "object",
            "properties": {
                "name": {
                    "type": "string",
                    "description": "The skill name (use skills_list to see available skills). For plugin-provided "
                    "skills, use the qualified form 'plugin:skill' (e.g. 'superpowers:writing-plans').",
                },
                "file_path": {
                    "type": "string",
                    "description": "OPTIONAL: Path to a linked file within the skill (e.g., 'references/api.md', "
                    "'templates/config.yaml', 'scripts/validate.py'). Omit to get the main SKILL.md content.",
                },
            },
            "required": ["name"],
        },
    },
    lambda arguments, **_: _view(arguments),
)

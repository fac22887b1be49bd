"""The scripts for books refuse what they do not know, in a line that says what they do."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from finskillbench.errors import InputError
from finskillbench_desk.domain import SKILLS

ROOT = SKILLS[0].parent
SCRIPTS = {
    "mandate-review/scripts/reconcile.py": "questions",
    "mandate-review/scripts/run_rules.py": "orders",
    "mandate-review/scripts/cheapest_cure.py": "rules",
    "mandate-review/scripts/active_risk.py": "risk_model",
    "mandate-review/scripts/mandate_evidence.py": "text",
    "account-screening/scripts/statement_lineage.py": "weights",
}


def run(path: str, payload: dict[str, Any]) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main(payload)


@pytest.mark.parametrize("path", SCRIPTS)
def test_an_unknown_key_is_refused_with_those_that_are_known(path: str) -> None:
    with pytest.raises(InputError) as error:
        run(path, {"positions_by_name": {}})
    message = str(error.value)
    assert "unknown positions_by_name" in message
    assert SCRIPTS[path] in message.split("known are")[1]
    assert "\n" not in message


@pytest.mark.parametrize("path", SCRIPTS)
def test_nothing_at_all_is_refused_in_one_line(path: str) -> None:
    with pytest.raises(InputError) as error:
        run(path, {})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("path", SCRIPTS)
def test_every_key_that_is_known_stands_in_the_table_of_keys(path: str) -> None:
    with pytest.raises(InputError) as error:
        run(path, {"positions_by_name": {}})
    known = str(error.value).split("known are ")[1].split(", ")
    table = (ROOT / "mandate-review/references/books.md").read_text(encoding="utf-8")
    skill = (ROOT / "mandate-review/SKILL.md").read_text(encoding="utf-8")
    other = (ROOT / "account-screening/SKILL.md").read_text(encoding="utf-8")
    assert [key for key in known if f"`{key}`" not in table and key not in skill + other] == []

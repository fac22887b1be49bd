"""The notebooks, cell by cell in a running event loop as in Jupyter; what a cell ends with is shown, or it fails."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from tests.editions import first_episodes
from tests.registry import SUBTASKS
from tests.sampling import THOROUGH, thorough

from finskillbench.edition import Edition

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def _shown(value: Any) -> str:
    """As a notebook would: as HTML where there is any."""
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


async def _play(cells: list[str]) -> list[str | None]:
    """Run cells in one namespace; what each of them shows, None where it shows nothing."""
    space: dict[str, Any] = {"__name__": "__main__"}
    shown: list[str | None] = []
    for source in cells:
        tree = ast.parse(source)
        ends = isinstance(tree.body[-1], ast.Expr)
        if ends:
            tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
        code = compile(ast.fix_missing_locations(tree), "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, space)
        if inspect.isawaitable(waiting):
            await waiting
        shown.append(_shown(space["_"]) if ends else None)
    return shown


@pytest.fixture
def play(synthetic_edition: Edition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Play a notebook where its edition is, or so many episodes of each subtask of it, and nothing else."""
    monkeypatch.chdir(tmp_path)

    def played(name: str, count: int) -> list[str | None]:
        first_episodes(synthetic_edition.path, tmp_path / "editions" / "seven", count)
        notebook = json.loads((FOLDER / f"{name}.ipynb").read_bytes())
        cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
        return asyncio.run(_play(cells))

    return played


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_a_machine_added(path: Path) -> None:
    notebook = json.loads(path.read_bytes())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


@thorough
def test_rows_become_figures(play: Any) -> None:
    shown = play("rows-to-figures", 4 if THOROUGH else 1)
    assert all(shown)
    assert f"episodes of {len(SUBTASKS)} subtasks" in shown[0]
    assert shown[3].count("<svg") > 10
    assert "headline" in shown[4]
    assert shown[6].count("<circle") == shown[6].count("<tr>") - 1 > 3


@thorough
def test_a_skill_of_mine_is_held_against_none(play: Any) -> None:
    shown = play("my-skill-against-none", 40 if THOROUGH else 31)
    assert shown[1] == "[]"
    assert "skill:mine - no_skill" in shown[2]
    assert "skill:mine - curated" in shown[2]
    assert "risk_parity" in shown[4]

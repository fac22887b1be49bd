"""The check of prose finds each kind of place, and passes plain text."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "words.py"
_SPEC = importlib.util.spec_from_file_location("words", SCRIPT)
assert _SPEC is not None
assert _SPEC.loader is not None
words = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(words)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ('"""What a run is."""\n', ["opening"]),
        ('def one():\n    """Return a value.\n\n    The caller is told of it.\n    """\n', ["docstring"]),
        ("x = 1  # nobody reads this\n", ["comment"]),
        ('raise ValueError(f"{1}: whoever wrote this")\n', ["error"]),
        ('option(help="Whatever you like.")\n', ["help"]),
        ('"""Return a run."""\nx = 1  # the limit of the provider\nraise ValueError("weight 2 is above 1")\n', []),
    ],
)
def test_places_in_code(text: str, kinds: list[str], tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(text)
    assert [kind for _, kind, _ in words.python_places(path)] == kinds


def test_places_in_documents(tmp_path: Path) -> None:
    path = tmp_path / "one.md"
    path.write_text("# Resume a run\n\nThe command is told twice.\n")
    assert list(words.document_places(path)) == [(3, "document", "told")]

"""Sums of floats: rounded once, in any order and under any Python, and never a crash."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finskillbench.sums import exact_sum

ROOT = Path(__file__).parents[1]


@given(st.lists(st.floats(-1e300, 1e300), max_size=30), st.randoms())
def test_a_sum_is_the_exact_one_rounded_whatever_the_order(values: list[float], random) -> None:
    shuffled = random.sample(values, len(values))
    assert exact_sum(shuffled) == exact_sum(values) == float(sum(map(Fraction, values)))


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([], 0.0),
        ([0.1] * 10, 1.0),  # 0.9999999999999999 by additions one by one
        ([1e308, 1e308, -1e308], math.inf),
        ([-1e308, -1e308], -math.inf),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
    ],
)
def test_what_has_no_finite_sum_is_infinite_or_no_number(values: list[float], total: float) -> None:
    assert exact_sum(iter(values)) == pytest.approx(total, rel=0, abs=0, nan_ok=True)


@pytest.mark.slow
def test_the_check_of_types_refuses_the_builtin_of_floats(tmp_path: Path) -> None:
    shutil.copy(ROOT / "__builtins__.pyi", tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.basedpyright]\ntypeCheckingMode = "strict"\n')
    values = ("[0.5, 0.25]", "(float(n) for n in (1, 2))", "[1, 2, True]")
    (tmp_path / "adds.py").write_text("".join(f"total{n} = sum({each})\n" for n, each in enumerate(values)))
    checked = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(checked.stdout)["generalDiagnostics"]
    refused = {each["range"]["start"]["line"] for each in found if each.get("rule") == "reportArgumentType"}
    assert (checked.returncode, refused) == (1, {0, 1})

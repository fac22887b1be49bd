"""The liquidity ladder, handed in to FinSkillBench as an extension of risk management."""

from pathlib import Path

from finskillbench.domains import Extension
from liquidity_ladder.subtask import SUBTASK

EXTENSION = Extension(
    domain="risk_management", subtasks=(SUBTASK,), skills=(Path(__file__).parent / "skill" / "liquidity-ladder",)
)

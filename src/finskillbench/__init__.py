"""FinSkillBench."""

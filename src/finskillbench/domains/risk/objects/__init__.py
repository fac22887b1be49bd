"""Pools of the risk subtasks: portfolios, fitted mandates, scenarios and pairs."""

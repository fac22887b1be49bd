"""Fixtures of the tests of every distribution in this repository."""

pytest_plugins = ("tests.fixtures",)

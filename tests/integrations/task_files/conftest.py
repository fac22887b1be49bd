"""The edition and the answers that the tests of the command line use."""

from tests.cli.conftest import answers, edition

__all__ = ["answers", "edition"]

"""Copies of an edition that a test may alter, as the tests of editions use them."""

from tests.edition.conftest import slim, whole, workshop

__all__ = ["slim", "whole", "workshop"]

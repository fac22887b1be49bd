"""Names as files and columns take them."""

from __future__ import annotations


def slug(name: str) -> str:
    """Small letters, digits and underscores, beginning with a letter."""
    cleaned = "".join(each if each.isascii() and each.isalnum() else "_" for each in name.lower())
    return cleaned if cleaned[:1].isalpha() else f"n{cleaned}"

"""Editions: one immutable, hashed build of the benchmark: panels, episodes, truth, certificates, manifest."""

from finskillbench.edition.build import build_edition
from finskillbench.edition.load import Edition, load_edition

__all__ = ["Edition", "build_edition", "load_edition"]

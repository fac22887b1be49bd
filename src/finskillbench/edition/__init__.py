"""Editions: one immutable, hashed build of the benchmark: panels, episodes, truth, certificates, manifest."""

from finskillbench.edition.build import build_edition
from finskillbench.edition.load import Edition, PublicEdition, load_edition

__all__ = ["Edition", "PublicEdition", "build_edition", "load_edition"]

"""Point-in-time tables built from market data: one file per panel, Parquet with units on disk.

Layer: above sources and engines, below subtasks. A row dated d depends on nothing dated, or known, after d.
"""

from finskillbench.panels.build import build_panels
from finskillbench.panels.store import read_panels, write_panels
from finskillbench.panels.tables import PanelReport, Panels

__all__ = ["PanelReport", "Panels", "build_panels", "read_panels", "write_panels"]

"""Point-in-time tables built from market data and filings: a row dated d depends only on data known by d.

Layer: above sources and engines, below subtasks.
"""

from finskillbench.panels.build import build_panels
from finskillbench.panels.store import read_panels, write_panels
from finskillbench.panels.tables import PanelReport, Panels

__all__ = ["PanelReport", "Panels", "build_panels", "read_panels", "write_panels"]

"""A fictional market in the providers' file formats, from a seed, with known truth."""

from finskillbench.sources.synthetic.writer import SyntheticMarket, simulate, write_collection

__all__ = ["SyntheticMarket", "simulate", "write_collection"]

"""A fictional market in the providers' own file formats, from a seed: no network, no licence, known truth.

`simulate` draws the market and keeps what is true of it (betas, exact figures); `write_collection` writes it as raw
files that the parsers of `finskillbench.sources` read like any other collection.
"""

from finskillbench.sources.synthetic.writer import SyntheticMarket, simulate, write_collection

__all__ = ["SyntheticMarket", "simulate", "write_collection"]

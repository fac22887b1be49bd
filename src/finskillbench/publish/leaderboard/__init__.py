"""A leaderboard from the bundles that somebody was sent: every score computed again, places no finer than they are."""

from finskillbench.publish.leaderboard.gather import Gathered, Refusal, gather
from finskillbench.publish.leaderboard.write import write_site

__all__ = ["Gathered", "Refusal", "gather", "write_site"]

"""The second derivation of the fundamental labels, written from the definitions that the agent reads.

It shares no code with the engines, the panels or any table library. `answers` holds the arithmetic; the figures come
from what a filing states in the raw files (`raw`, when an edition is built) or from the facts that an episode may see
(`visible`, when it is validated).
"""

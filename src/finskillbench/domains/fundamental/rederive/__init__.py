"""The independent derivation of the fundamental labels, written from the definitions that the agent reads.

It shares no code with the engines, the panels or any table library. `answers` holds the arithmetic, `visible` the facts
that an episode may see, `identities` what the figures of one statement must satisfy, and `witness` what other facts of
the company say of each figure.
"""

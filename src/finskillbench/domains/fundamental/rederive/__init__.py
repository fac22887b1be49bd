"""Independent derivation of the fundamental labels, written from the conventions in the tasks.

Shares no code with the engines, the panels or table libraries. `answers` holds the arithmetic, `definitions` the
visible facts, `identities` the checks within a statement, and `witness` the checks against other facts.
"""

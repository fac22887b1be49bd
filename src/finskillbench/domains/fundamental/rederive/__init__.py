"""Independent derivation of the fundamental labels from the conventions in the tasks.

Shares no code with the engines, the panels or table libraries.
"""

"""Checks of an edition, built or imported, for `data validate` and `audit`.

A check has one of three levels. *Integrity* covers the files and panels of an edition. *Labels* rederives every label
from what an agent sees; a label that no check examines fails the edition. *Audit* covers validity: every truth is
reachable without shortcuts, scores rank answers as a professional does, and cheating earns little. `data validate` runs
the first two levels, `audit` all three.
"""

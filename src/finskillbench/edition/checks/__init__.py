"""Checks of an edition, ours or imported: one engine and one report for `data validate` and `audit`.

A check is of one of three levels. *Integrity*: what an edition holds and its panels. *Labels*: every label derived
again from what an agent sees; a label that nothing has touched fails the edition. *Audit*: whether the edition deserves
to be believed, that is whether every truth can be reached from what an agent sees and in no shorter way, whether scores
fall in the order in which a professional ranks answers, whether cheating pays. `data validate` runs the first two
levels, `audit` all three.
"""

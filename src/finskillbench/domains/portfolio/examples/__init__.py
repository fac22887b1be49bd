"""Answers to the tasks of this domain that the audit scores: cheats, shortcuts, ladders from right to wrong."""

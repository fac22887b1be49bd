"""Skill packages as they ship, and what loads, lints and runs them.

`loader` reads a package and resolves the names a model asks for, `lint` lists what a package gets wrong, `runner`
runs its scripts warm (`server`, `child` and `confine` are the process it keeps), `cold` runs them in a fresh
interpreter. This file imports nothing, because the warm process imports it.
"""

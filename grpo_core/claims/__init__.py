"""Computed sentences as typed claims, one file per subject, each claim with its check and its text.

A claim states who, what, by how much, compared with what, and over which updates and seeds. ``check(data)`` recomputes
all of this from the raw arrays; ``words()`` uses only the claim's fields. The modules of this package import neither
the code that formats sentences nor the code that chose the claim, so that a check cannot repeat its mistakes. Claims
about the outcome of runs are made of their data and checked by being made again: the tests read their words instead.
"""

"""Computed sentences as typed claims, one file per subject, each claim with its check and its text.

A claim says who, what, by how much, compared with what, over which updates and seeds. ``check(data)`` recomputes all of
it from the raw arrays; ``words()`` uses only the claim's fields. The files of this package import neither the code that
makes sentences nor the code that chose the claim, so that a check cannot repeat its mistakes.
"""

"""Computed sentences as typed claims: one file a subject, each claim with its check and its words.

A claim says who, what, by how much, compared with what, over which updates and seeds. ``check(data)`` computes all of
it once more from the raw arrays; ``words()`` is made from nothing but the claim. The files of this room import neither
what makes sentences nor what chose the claim, so a check cannot repeat its mistake.
"""

"""The seeds of a lesson's many runs: one block in class, and others when the lesson is checked."""

from __future__ import annotations


def block_of_seeds(block: int, count: int) -> tuple[int, ...]:
    """Return ``count`` seeds that no other block has: 0 to ``count`` − 1 for block 0, which a class sees."""
    return tuple(range(block * count, (block + 1) * count))

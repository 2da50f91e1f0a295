"""Whole numbers on the command line."""

from __future__ import annotations

import argparse

LARGEST = 10**12
"""More than any count of updates, rows or seeds; what has more digits is a slip of the hand."""


def count(text: str) -> int:
    """Parse a positive whole number from a command-line argument.

    Raises:
        argparse.ArgumentTypeError: it is not one, or it is unreasonably large.
    """
    digits = len(text.lstrip("0"))
    if not text.isascii() or not text.isdecimal() or not digits:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is not a whole number from 1 on")
    if digits > len(str(LARGEST)) or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is more than {LARGEST:,}")
    return int(text)

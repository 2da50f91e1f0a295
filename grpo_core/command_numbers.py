"""Parsing of integers on the command line."""

from __future__ import annotations

import argparse

LARGEST = 10**12
"""Upper limit, above any plausible number of updates, rows or seeds. A larger number is a typing error."""


def count(text: str) -> int:
    """Parse a positive integer from a command-line argument.

    Raises:
        argparse.ArgumentTypeError: it is not a positive integer, or it is unreasonably large.
    """
    digits = len(text.lstrip("0"))
    if not text.isascii() or not text.isdecimal() or not digits:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is not a whole number of at least 1")
    if digits > len(str(LARGEST)) or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"“{text[:40]}” is more than {LARGEST:,}")
    return int(text)

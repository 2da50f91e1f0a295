"""The language model's vocabulary: one token per character."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grpo_core.errors import GrpoError
from grpo_core.text import tr

STOP = 0
"""The token that ends a completion."""
VOCABULARY: tuple[str, ...] = ("⏎", *"0123456789+-*=(). ?")
"""(V,) the text of each token; V = 20 including the end-of-sequence token."""
_INDEX = {character: token for token, character in enumerate(VOCABULARY) if token != STOP}


def encode(text: str) -> list[int]:
    """Encode ``text`` as tokens, without an end-of-sequence token.

    Raises:
        GrpoError: the model does not know a character; the message names it and lists the known characters.
    """
    for place, character in enumerate(text):
        if character not in _INDEX:
            raise GrpoError(
                tr(
                    "The model does not know “{character}” (character {place} of “{text}”); it reads digits, "
                    "+ - * = ( ) . ? and the space."
                ).format(character=character, place=place + 1, text=text[:40])
            )
    return [_INDEX[character] for character in text]


def decode(tokens: Iterable[int]) -> str:
    """Decode tokens up to the end-of-sequence token, or up to padding (−1)."""
    letters = []
    for token in tokens:
        if token <= STOP:
            break
        letters.append(VOCABULARY[token])
    return "".join(letters)


def padded(rows: list[list[int]], width: int, *, left: bool = False) -> np.ndarray:
    """Pad ``rows`` of tokens to an array (len(rows), width), with −1 on the right, or on the ``left``."""
    table = np.full((len(rows), width), -1, dtype=np.int32)
    for place, row in enumerate(rows):
        if row:
            table[place, slice(width - len(row), None) if left else slice(0, len(row))] = row
    return table

"""The characters that the language model reads and writes: one token each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grpo_core.errors import GrpoError
from grpo_core.text import tr

STOP = 0
"""The token that ends a completion."""
VOCABULARY: tuple[str, ...] = ("⏎", *"0123456789+-*=(). ?")
"""(V,) the text of each token; V = 20 with the end sign."""
_INDEX = {character: token for token, character in enumerate(VOCABULARY) if token != STOP}


def encode(text: str) -> list[int]:
    """The tokens of ``text``, without an end sign.

    Raises:
        GrpoError: a character that the model does not know; the message says which and what it does know.
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
    """The text up to the end sign, or up to padding (−1)."""
    letters = []
    for token in tokens:
        if token <= STOP:
            break
        letters.append(VOCABULARY[token])
    return "".join(letters)


def padded(rows: list[list[int]], width: int, *, left: bool = False) -> np.ndarray:
    """``rows`` of tokens as one array (len(rows), width), −1 in padding, which is right or ``left``."""
    table = np.full((len(rows), width), -1, dtype=np.int32)
    for place, row in enumerate(rows):
        if row:
            table[place, slice(width - len(row), None) if left else slice(0, len(row))] = row
    return table

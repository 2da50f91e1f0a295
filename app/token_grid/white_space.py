"""The text of a token as it is shown: on one line, with white space that can be seen."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 17)
def visible_text(token: str) -> str:
    """``token`` on one line, its line breaks and tabs as signs, as are the spaces at its ends."""
    if token.strip(" ") == token and token.isprintable():
        return token
    plain = token.replace("\r", "␍").replace("\n", "⏎").replace("\t", "⇥")
    return plain.replace(" ", "·") if plain.strip(" ") != plain else plain

"""The text of a token on one line, with visible white space."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 17)
def visible_text(token: str) -> str:
    """Return the text of ``token`` on one line, with symbols for line breaks, tabs, and the spaces at its ends."""
    if token.strip(" ") == token and token.isprintable():
        return token
    plain = token.replace("\r", "␍").replace("\n", "⏎").replace("\t", "⇥")
    return plain.replace(" ", "·") if plain.strip(" ") != plain else plain

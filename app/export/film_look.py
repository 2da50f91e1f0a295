"""How a film looks, whatever is filmed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FilmLook:
    """The pictures of a film.

    Attributes:
        rate: pictures a second, where something moves.
        size: of a whole picture in pixels; None for what suits what is filmed.
        theme: its name.
        scale: 1 = 100 %.
        caption: whether a line below says what is seen, with seed and version.
    """

    rate: float = 20.0
    size: tuple[int, int] | None = None
    theme: str = "light"
    scale: float = 1.0
    caption: bool = True

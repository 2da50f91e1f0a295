"""The look of a film, whatever is filmed."""

from __future__ import annotations

from dataclasses import dataclass

SIZE = (1280, 720)
"""Pixels of a picture at 100 %, caption included, where no size is chosen."""


@dataclass(frozen=True, kw_only=True)
class FilmLook:
    """The pictures of a film.

    Attributes:
        rate: pictures a second, where something moves.
        size: of a whole picture in pixels; None for :data:`SIZE`, as large as everything in it.
        theme: its name.
        scale: 1 = 100 %.
        caption: whether a line below says what is seen, with seed and version.
    """

    rate: float = 20.0
    size: tuple[int, int] | None = None
    theme: str = "light"
    scale: float = 1.0
    caption: bool = True

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of a whole picture."""
        return self.size or (round(SIZE[0] * self.scale), round(SIZE[1] * self.scale))

"""The look of a film, whatever is filmed."""

from __future__ import annotations

from dataclasses import dataclass

SIZE = (1280, 720)
"""Size of a picture in pixels at 100 %, including the caption, if none is chosen."""


@dataclass(frozen=True, kw_only=True)
class FilmLook:
    """The look of a film's pictures.

    Attributes:
        rate: pictures per second while something moves.
        size: size of a whole picture in pixels; None for :data:`SIZE` times the scale.
        theme: its name.
        scale: 1 = 100 %.
        caption: whether there is a line below on the content, with seed and version.
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

"""The look of a film, regardless of its content."""

from __future__ import annotations

from dataclasses import dataclass

SIZE = (1280, 720)
"""Default size of a picture in pixels at 100 % scale, including the caption."""


@dataclass(frozen=True, kw_only=True)
class FilmLook:
    """The look of a film's pictures.

    Attributes:
        rate: pictures per second while something moves.
        size: total size of a picture in pixels; None for :data:`SIZE` times the scale.
        theme: name of the theme.
        scale: 1 is 100 %.
        caption: whether a line below the picture states the content, with seed and version.
    """

    rate: float = 20.0
    size: tuple[int, int] | None = None
    theme: str = "light"
    scale: float = 1.0
    caption: bool = True

    @property
    def pixels(self) -> tuple[int, int]:
        """Total width and height of a picture."""
        return self.size or (round(SIZE[0] * self.scale), round(SIZE[1] * self.scale))

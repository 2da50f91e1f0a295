"""The look of pictures and films, regardless of their content."""

from __future__ import annotations

from dataclasses import dataclass

SIZE = (1280, 720)
"""Default size of a film's picture in pixels at 100 % scale, including the caption."""


@dataclass(frozen=True, kw_only=True)
class PictureLook:
    """The look of pictures.

    Attributes:
        size: total size of a picture in pixels; None for the usual size of what it shows.
        scale: 1 is 100 %.
        caption: whether a line below the picture states the content, with seed and version.
        density: pixels of a PNG per pixel of ``size``.
    """

    size: tuple[int, int] | None = None
    theme: str = "light"
    scale: float = 1.0
    caption: bool = True
    density: float = 1.0


@dataclass(frozen=True, kw_only=True)
class FilmLook(PictureLook):
    """The look of a film's pictures, whose usual size is :data:`SIZE` times the scale.

    Attributes:
        rate: pictures per second while something moves.
    """

    rate: float = 20.0

    @property
    def pixels(self) -> tuple[int, int]:
        return self.size or (round(SIZE[0] * self.scale), round(SIZE[1] * self.scale))

"""Animated WebP from still pictures. Qt encodes each still, and this module assembles the container.

The container follows the WebP Container Specification
(developers.google.com/speed/webp/docs/riff_container): RIFF, then VP8X with the canvas, ANIM with the number of loops,
and an ANMF for each frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QRect
from PySide6.QtGui import QImage

from app.plotting.export import encoded
from grpo_core.errors import GrpoError
from grpo_core.text import tr

LARGEST = 16_383
"""Maximum side in pixels of VP8 and VP8L."""
LONGEST_MS = (1 << 24) - 1
"""Maximum duration of a frame in milliseconds."""
LOSSLESS = 100
"""The quality at which Qt's writer is lossless."""
_ANIMATED, _ENDLESS = 0x02, 0
_OVERWRITE = 0x02
_PICTURES = (b"ALPH", b"VP8 ", b"VP8L")


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A changed rectangle of the canvas, encoded, and its duration."""

    area: QRect
    data: bytes
    milliseconds: int


class AnimatedWebp:
    """An endless animation under construction. For each frame, only the difference from the previous one is stored."""

    def __init__(self) -> None:
        self._frames: list[_Frame] = []
        self._before: np.ndarray | None = None

    def add(self, image: QImage, milliseconds: int) -> None:
        """Add ``image`` for this duration. If it equals the previous frame, that frame is extended.

        Raises:
            GrpoError: the picture is too large, differs in size from the first, or Qt cannot write WebP here.
        """
        pixels = _pixels(image)
        height, width = pixels.shape
        if max(width, height) > LARGEST:
            raise GrpoError(
                tr("A film of {width} × {height} pixels is too large: each side can have at most {largest}.").format(
                    width=width, height=height, largest=LARGEST
                )
            )
        if self._before is not None and self._before.shape != pixels.shape:
            raise GrpoError(tr("The pictures of a film must all have the same size."))
        area = _changed(self._before, pixels)
        if area is None:
            last = self._frames.pop()
            frame = replace(last, milliseconds=min(last.milliseconds + milliseconds, LONGEST_MS))
        else:
            frame = _Frame(area=area, data=_still(image.copy(area)), milliseconds=min(milliseconds, LONGEST_MS))
        self._before = pixels
        self._frames.append(frame)

    def to_bytes(self) -> bytes:
        """Return the complete file.

        Raises:
            GrpoError: no frame was added.
        """
        if self._before is None:
            raise GrpoError(tr("A film needs at least one picture."))
        height, width = self._before.shape
        canvas = struct.pack("<B3x", _ANIMATED) + _three(width - 1) + _three(height - 1)
        white = b"\xff\xff\xff\xff"
        chunks = [_chunk(b"VP8X", canvas), _chunk(b"ANIM", white + struct.pack("<H", _ENDLESS))]
        chunks += [_chunk(b"ANMF", _frame(frame)) for frame in self._frames]
        body = b"WEBP" + b"".join(chunks)
        return b"RIFF" + struct.pack("<I", len(body)) + body


def _pixels(image: QImage) -> np.ndarray:
    """Return the colours of an opaque picture, (height, width) uint32."""
    plain = image.convertToFormat(QImage.Format.Format_RGB32)
    rows = np.frombuffer(plain.constBits(), np.uint32).reshape(plain.height(), plain.bytesPerLine() // 4)
    return rows[:, : plain.width()].copy()


def _changed(before: np.ndarray | None, now: np.ndarray) -> QRect | None:
    """Return the smallest rectangle that contains all changes, at even coordinates as the format requires, or None."""
    height, width = now.shape
    if before is None:
        return QRect(0, 0, width, height)
    differs = before != now
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return None
    left, top = int(columns[0]) // 2 * 2, int(rows[0]) // 2 * 2
    return QRect(left, top, int(columns[-1]) + 1 - left, int(rows[-1]) + 1 - top)


def _still(image: QImage) -> bytes:
    """Return the chunks of a still WebP with its pixels."""
    data = encoded(image.convertToFormat(QImage.Format.Format_RGB32), "WEBP", LOSSLESS)
    if not data:
        raise GrpoError(tr("This copy of Qt cannot write WebP; export a sequence of pictures instead."))
    return b"".join(_chunk(name, content) for name, content in chunks(data) if name in _PICTURES)


def chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (name, content) of each chunk of a WebP file.

    Raises:
        ValueError: the file is not a WebP file.
    """
    if file[:4] != b"RIFF" or file[8:12] != b"WEBP":
        raise ValueError("this is not a WebP file")
    place = 12
    while place + 8 <= len(file):
        name, (size,) = file[place : place + 4], struct.unpack_from("<I", file, place + 4)
        yield name, file[place + 8 : place + 8 + size]
        place += 8 + size + size % 2


def _frame(frame: _Frame) -> bytes:
    area = frame.area
    numbers = (area.x() // 2, area.y() // 2, area.width() - 1, area.height() - 1, frame.milliseconds)
    return b"".join(map(_three, numbers)) + bytes([_OVERWRITE]) + frame.data


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)


def _three(number: int) -> bytes:
    """Return a number as three bytes, little-endian."""
    return number.to_bytes(3, "little")

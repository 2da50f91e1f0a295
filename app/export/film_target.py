"""Output of a film's pictures: one animated WebP, or a folder of numbered pictures."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImage

from app.export.files import refuse_existing, write
from app.export.webp import AnimatedWebp
from app.settings.files import reason
from grpo_core.errors import GrpoError
from grpo_core.text import tr

ENDING = ".webp"
_FRAME = re.compile(r"frame-\d{4,}\.png")


def png(image: QImage) -> bytes:
    """Return ``image`` as the content of a PNG file."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    return bytes(data.data())


def film_target(out: Path, rate: float, *, force: bool) -> WebpTarget | FolderTarget:
    """Return the target for a film to be written to ``out``. Nothing is written there before the film is finished.

    Args:
        out: a file that ends in .webp, or a folder for numbered pictures.
        rate: pictures per second in a folder.
        force: whether an older film may be replaced.

    Raises:
        GrpoError: ``out`` cannot be written, is something else, or must not be replaced.
    """
    return WebpTarget(out, force) if out.suffix.lower() == ENDING else FolderTarget(out, rate, force)


class WebpTarget(AbstractContextManager["WebpTarget"]):
    """Output to an animated WebP file."""

    def __init__(self, out: Path, force: bool) -> None:
        refuse_existing([out], force)
        if not out.parent.is_dir():
            raise GrpoError(tr("There is no folder {parent}; choose one that exists.").format(parent=out.parent))
        self._out, self._film = out, AnimatedWebp()

    def __exit__(self, *error: object) -> None:
        """Do nothing, because nothing is written before the end."""

    def add(self, image: QImage, milliseconds: int) -> None:
        """Add ``image`` as the next picture, shown for ``milliseconds``."""
        self._film.add(image, milliseconds)

    def finish(self) -> None:
        """Write the film after all pictures have been added."""
        write(self._out, self._film.to_bytes())


class FolderTarget(AbstractContextManager["FolderTarget"]):
    """Output to numbered pictures of equal duration. The folder is new or empty, or contains only such pictures.

    They are created in an adjacent folder, and replace an older film when complete.
    """

    def __init__(self, out: Path, rate: float, force: bool) -> None:
        if out.suffix.lower() in (".png", ".gif", ".mp4", ".webm", ".apng") or (out.exists() and not out.is_dir()):
            raise GrpoError(
                tr("A film is a file that ends in .webp, or a folder of pictures; {name} is neither.").format(
                    name=out.name
                )
            )
        there = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
        foreign = [name for name in there if not _FRAME.fullmatch(name)]
        if foreign:
            raise GrpoError(
                tr("{out} holds other files, such as {name}; choose a separate folder for the film.").format(
                    out=out, name=foreign[0]
                )
            )
        refuse_existing([out / name for name in there], force)
        self._out, self._rate, self._before = out, rate, there
        self._made, self._due = list[str](), 0.0
        with _refusals(out):
            out.absolute().parent.mkdir(parents=True, exist_ok=True)
            self._space = tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.absolute().parent)

    def __exit__(self, *error: object) -> None:
        self._space.cleanup()

    def add(self, image: QImage, milliseconds: int) -> None:
        """Add the next picture as many times as its duration requires."""
        self._due += milliseconds * self._rate / 1000
        picture = png(image)
        while len(self._made) < max(round(self._due), 1):
            self._made.append(f"frame-{len(self._made) + 1:04}.png")
            write(Path(self._space.name, self._made[-1]), picture)

    def finish(self) -> None:
        """Move the pictures to their folder after all of them have been added.

        Raises:
            GrpoError: the pictures cannot be moved; the message says why.
        """
        with _refusals(self._out):
            self._out.mkdir(exist_ok=True)
            for name in self._made:
                Path(self._space.name, name).replace(self._out / name)
            # a longer older film would otherwise leave its last pictures
            for name in set(self._before) - set(self._made):
                (self._out / name).unlink(missing_ok=True)


@contextmanager
def _refusals(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GrpoError(tr("{path} cannot be written: {error}.").format(path=out, error=reason(error))) from None

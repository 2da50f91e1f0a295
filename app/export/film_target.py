"""Output of a film's pictures: one animated WebP, or a folder of numbered pictures."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from PySide6.QtGui import QImage

from app.export.files import refusals, write
from app.export.webp import AnimatedWebp
from app.plotting.export import encoded
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing
from grpo_core.text import tr

ENDING = ".webp"
_FRAME = re.compile(r"frame-\d{4,}\.png")

Add = Callable[[QImage, int], None]
"""Adds the next picture of a film, which is shown for some milliseconds."""


def film_target(out: Path, rate: float, *, force: bool) -> AbstractContextManager[Add]:
    """Provide the function that adds pictures to a film. The film is written at the end of the block, and not before.

    Args:
        out: a file that ends in .webp, or a folder for numbered pictures.
        rate: pictures per second in a folder.
        force: whether an older film may be replaced.

    Raises:
        GrpoError: ``out`` cannot be written, is something else, or must not be replaced.
    """
    return _webp(out, force) if out.suffix.lower() == ENDING else _folder(out, rate, force)


@contextmanager
def _webp(out: Path, force: bool) -> Iterator[Add]:
    refuse_existing([out], force)
    if not out.parent.is_dir():
        raise GrpoError(tr("There is no folder {parent}; choose one that exists.").format(parent=out.parent))
    film = AnimatedWebp()
    yield film.add
    write(out, film.to_bytes())


@contextmanager
def _folder(out: Path, rate: float, force: bool) -> Iterator[Add]:
    """Write numbered pictures of equal duration, each as many times as its duration requires.

    The folder is new or empty, or contains only such pictures. They are created in an adjacent folder, and replace an
    older film when complete.
    """
    if out.suffix.lower() in (".png", ".gif", ".mp4", ".webm", ".apng") or (out.exists() and not out.is_dir()):
        raise GrpoError(
            tr("A film is a file that ends in .webp, or a folder of pictures; {name} is neither.").format(name=out.name)
        )
    before = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    foreign = [name for name in before if not _FRAME.fullmatch(name)]
    if foreign:
        raise GrpoError(
            tr("{out} holds other files, such as {name}; choose a separate folder for the film.").format(
                out=out, name=foreign[0]
            )
        )
    refuse_existing([out / name for name in before], force)
    with refusals(out):
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        space = tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.absolute().parent)
    made, due = list[str](), 0.0

    def add(image: QImage, milliseconds: int) -> None:
        nonlocal due
        due += milliseconds * rate / 1000
        picture = encoded(image, "PNG")
        while len(made) < max(round(due), 1):
            made.append(f"frame-{len(made) + 1:04}.png")
            write(Path(space.name, made[-1]), picture)

    with space:
        yield add
        with refusals(out):
            out.mkdir(exist_ok=True)
            for name in made:
                Path(space.name, name).replace(out / name)
            # a longer older film would otherwise leave its last pictures
            for name in set(before) - set(made):
                (out / name).unlink(missing_ok=True)

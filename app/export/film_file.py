"""A film of a run as a file: updates as the window plays them, drawn offscreen one picture at a time."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtGui import QImage

from app.export.pictures import draw, drawable, steps_of
from app.export.stage import FilmLook, fitted, offscreen, paper_of, studio, without_controls
from app.export.webp import AnimatedWebp
from app.panel_registry import POLICY_BARS, TOKEN_INSPECTOR
from app.plotting.export import encoded, image_of
from app.settings.files import refusals, write
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Cursor
from app.workspace.film import SLOWEST, update_film
from app.workspace.player import STAGED_SPEED
from app.workspace.run_handle import RunHandle
from grpo_core.errors import GrpoError
from grpo_core.regular_file import refuse_existing
from grpo_core.text import plural, tr

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


MOST = 10_000
"""Maximum number of pictures in a film."""
AT_END = 1.2
"""Seconds for which the last picture is shown before a film repeats."""


@dataclass(frozen=True, kw_only=True)
class FilmChoice(FilmLook):
    """The user's choice of a film: its content and its look.

    Attributes:
        spec: the panel's entry in the registry; None for the panel that plays the film of this kind of run.
        steps: the updates in order; None for the last update.
        speed: updates per second; None for the usual length of each update's film, which for a single update is
            slow enough for a first viewing. Up to two updates per second, the stages are played; above that, each
            update is a single picture.
    """

    spec: PanelSpec[Panel] | None = None
    steps: range | None = None
    speed: float | None = None


Shot = tuple[Cursor, int]
"""The cursor in one picture, and for how many milliseconds the picture is shown."""


def shots(steps: list[int], passes: Callable[[int], int], speed: float | None, rate: float) -> list[Shot]:
    """Return the pictures of a film of updates.

    Args:
        passes: returns the number of passes of an update, given its number.
        speed: see :class:`FilmChoice`.
        rate: pictures per second.

    Raises:
        GrpoError: there would be too many pictures.
    """
    made: list[Shot] = []
    for step in steps:
        made += _shots_of(step, passes(step), speed, rate, alone=len(steps) == 1)
        if len(made) > MOST:
            raise GrpoError(
                plural(
                    "A film of more than {most:,} picture is too long; choose fewer updates, or a higher speed.",
                    "A film of more than {most:,} pictures is too long; choose fewer updates, or a higher speed.",
                    MOST,
                ).format(most=MOST)
            )
    cursor, milliseconds = made[-1]
    return [*made[:-1], (cursor, milliseconds + round(1000 * AT_END))]


def _shots_of(step: int, passes: int, speed: float | None, rate: float, *, alone: bool) -> list[Shot]:
    if speed is not None and speed > STAGED_SPEED:
        return [(Cursor(step=step), round(1000 / speed))]
    usual = SLOWEST if alone else math.inf
    film = update_film(step, passes, usual if speed is None else 1 / speed)
    count = max(math.ceil(film.seconds * rate), 1)
    ends = [round(1000 * min((n + 1) / rate, film.seconds)) for n in range(count)]
    playing = [(film.at(n / rate), end - begin) for n, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))]
    rest = 0 if speed is None else max(round(1000 / speed) - ends[-1], 0)
    return [*playing, (Cursor(step=step), max(rest, round(1000 / rate)))]


def export_film(run: Path, out: Path, choice: FilmChoice, *, force: bool = False) -> Iterator[str]:
    """Write a film of the run file ``run`` to ``out``, yielding a message for each picture, and one at the end.

    ``out`` is an animated WebP, or a folder for numbered pictures of equal duration. An older film there is kept
    until the new one is complete.

    Raises:
        GrpoError: the run cannot be read, an update does not exist, or ``out`` cannot be written or replaced.
    """
    with drawable(run) as handle:
        steps = [step for step in steps_of(handle, choice.steps) if step]
        if not steps:
            raise GrpoError(tr("{name} has no updates to film.").format(name=run.name))
        if choice.spec is None and handle.step(steps[0]) is None:
            raise GrpoError(handle.why_no_step)  # imported from a source without tokens
        planned = shots(steps, lambda step: _passes(handle, step), choice.speed, choice.rate)
        with film_target(out, choice.rate, force=force) as add:
            for number, (image, milliseconds) in enumerate(_pictures(handle, choice, planned), start=1):
                add(image, milliseconds)
                yield tr("Picture {number} of {count}.").format(number=number, count=len(planned))
        yield str(out)


def _passes(run: RunHandle, step: int) -> int:
    record = run.step(step)
    return 1 if record is None else max(record.passes, 1)


def _pictures(run: RunHandle, choice: FilmChoice, planned: list[Shot]) -> Iterator[tuple[QImage, int]]:
    settings = run.origin.settings
    usual: PanelSpec[Panel] = TOKEN_INSPECTOR if settings.is_language or settings.is_recorded else POLICY_BARS
    with studio(run, choice) as workspace:
        workspace.move_to(planned[0][0].step)
        with offscreen(choice.spec or usual, workspace, fixed=True) as panel:
            papers = []
            for cursor, _ in (planned[0], planned[-1]):
                workspace.move_to(cursor.step)
                papers.append(paper_of(panel, choice))
            below = fitted(panel, choice.pixels, papers)
            with without_controls(panel):
                for cursor, milliseconds in planned:
                    workspace.move_to(cursor.step)
                    workspace.show_stage(cursor.stage, cursor.passed, cursor.progress)
                    draw(panel)
                    yield image_of(panel, paper_of(panel, choice), below), milliseconds

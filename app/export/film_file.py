"""A film of a run as a file: updates as the window plays them, drawn picture by picture offscreen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from app.export.film_look import FilmLook
from app.export.film_target import film_target
from app.export.pictures import application, height_above_caption, steps_of
from app.export.stage import Studio, caption_of, settle, themed, usual_size, without_controls
from app.panel_registry import POLICY_BARS, TOKEN_INSPECTOR
from app.plotting.export import Paper, image_of
from app.theme import look
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Cursor
from app.workspace.film import SLOWEST, update_film
from app.workspace.player import STAGED_SPEED
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.text import plural, tr

MOST = 10_000
"""Largest number of pictures in a film."""
AT_END = 1.2
"""Seconds for which the last picture is shown before a film repeats."""


@dataclass(frozen=True, kw_only=True)
class FilmChoice(FilmLook):
    """The user's choice of a film: its content and its look.

    Attributes:
        spec: the panel's row of the registry; None for the one that plays the film of this kind of run.
        steps: the updates in order; None for the last.
        speed: updates per second; None for the usual length of each update's film, which for a single update is slow
            enough for a first viewing. Up to two per second the stages are played; above that each update is one
            picture.
    """

    spec: PanelSpec[Panel] | None = None
    steps: range | None = None
    speed: float | None = None


@dataclass(frozen=True, kw_only=True)
class Shot:
    """The cursor in one picture, and for how many milliseconds that is shown."""

    cursor: Cursor
    milliseconds: int


def shots(steps: list[int], passes: Callable[[int], int], speed: float | None, rate: float) -> list[Shot]:
    """The pictures of a film of updates.

    Args:
        steps: the updates.
        passes: number of passes of an update, by its number.
        speed: see :class:`FilmChoice`.
        rate: pictures per second.

    Raises:
        GrpoError: there would be too many.
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
    last = made[-1]
    return [*made[:-1], Shot(cursor=last.cursor, milliseconds=last.milliseconds + round(1000 * AT_END))]


def _shots_of(step: int, passes: int, speed: float | None, rate: float, *, alone: bool) -> list[Shot]:
    if speed is not None and speed > STAGED_SPEED:
        return [Shot(cursor=Cursor(step=step), milliseconds=round(1000 / speed))]
    usual = SLOWEST if alone else math.inf
    film = update_film(step, passes, usual if speed is None else 1 / speed)
    count = max(math.ceil(film.seconds * rate), 1)
    ends = [round(1000 * min((n + 1) / rate, film.seconds)) for n in range(count)]
    playing = [
        Shot(cursor=film.at(n / rate), milliseconds=end - begin)
        for n, (begin, end) in enumerate(zip([0, *ends], ends, strict=False))
    ]
    rest = 0 if speed is None else max(round(1000 / speed) - ends[-1], 0)
    return [*playing, Shot(cursor=Cursor(step=step), milliseconds=max(rest, round(1000 / rate)))]


def export_film(run: Path, out: Path, choice: FilmChoice, *, force: bool = False) -> Iterator[str]:
    """Write a film of the run file ``run`` to ``out``. Yields a sentence for each picture, and one at the end.

    ``out`` is an animated WebP, or a folder for numbered pictures of equal duration. An older film there is kept until
    the new one is complete.

    Raises:
        GrpoError: the run cannot be read, an update is not there, or ``out`` cannot be written or replaced.
    """
    handle = RunHandle.open(run)
    try:
        steps = [step for step in steps_of(handle, choice.steps) if step]
        if not steps:
            raise GrpoError(tr("{name} has no update to film.").format(name=run.name))
        planned = shots(steps, lambda step: _passes(handle, step), choice.speed, choice.rate)
        with film_target(out, choice.rate, force=force) as target, application() as app:
            for number, (image, shot) in enumerate(_pictures(app, handle, choice, planned), start=1):
                target.add(image, shot.milliseconds)
                yield tr("Picture {number} of {count}.").format(number=number, count=len(planned))
            target.finish()
        yield str(out)
    finally:
        handle.close_file()


def _passes(run: RunHandle, step: int) -> int:
    record = run.step(step)
    return 1 if record is None else max(record.passes, 1)


def _pictures(
    app: QApplication, run: RunHandle, choice: FilmChoice, planned: list[Shot]
) -> Iterator[tuple[QImage, Shot]]:
    look.apply(app, choice.theme, choice.scale)
    workspace = Workspace(run.origin.settings, themed(choice.theme), choice.scale)
    workspace.activate(run)
    usual: PanelSpec[Panel] = TOKEN_INSPECTOR if run.origin.settings.is_language else POLICY_BARS
    spec = choice.spec or usual
    with closing(Studio(workspace)) as studio:
        workspace.move_to(planned[0].cursor.step)
        panel = studio.panel(spec, usual_size(spec, choice.scale), fixed=True)
        try:
            below = _fit(panel, choice, planned)
            with without_controls(panel):
                for shot in planned:
                    _show(app, panel, shot.cursor)
                    yield image_of(panel, _paper(panel, choice), below), shot
        finally:
            studio.drop(panel)


def _fit(panel: Panel, choice: FilmChoice, planned: list[Shot]) -> int:
    """Set the size of the panel. Returns the height of the captions, the same for all so that nothing jumps."""
    ends = {planned[0].cursor.step, planned[-1].cursor.step}
    below = 0
    for step in sorted(ends):
        panel.workspace.move_to(step)
        settle(panel)
        below = max(below, _paper(panel, choice).caption_height(choice.pixels[0]))
    panel.resize(QSize(choice.pixels[0], height_above_caption(choice.pixels, below)))
    return below


def _show(app: QApplication, panel: Panel, cursor: Cursor) -> None:
    panel.workspace.move_to(cursor.step)
    panel.workspace.show_stage(cursor.stage, cursor.passed, cursor.progress)
    settle(panel)
    app.processEvents()


def _paper(panel: Panel, choice: FilmChoice) -> Paper:
    caption = caption_of(panel) if choice.caption else ""
    return Paper(theme=panel.workspace.theme, scale=choice.scale, caption=caption, title=panel.title)

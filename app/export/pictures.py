"""Pictures and tables of a run file's panels, drawn without a window, one panel and one update at a time."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEventLoop

from app import parts
from app.export.stage import PictureLook, fitted, offscreen, paper_of, settle, studio, without_controls
from app.plotting.export import Paper, drawn, table_files
from app.settings.files import write
from app.widgets.panel import Panel
from app.widgets.panel_spec import PanelSpec
from app.workspace.cursor import Stage
from app.workspace.run_handle import RunHandle
from grpo_core.commands.export_command import whole
from grpo_core.errors import GrpoError
from grpo_core.explain import Quantity
from grpo_core.explain.quantity import KINDS
from grpo_core.foreign.formats import opened_run
from grpo_core.metrics import METRICS
from grpo_core.regular_file import refuse_existing
from grpo_core.text import tr

PATIENCE_S = 600
"""Maximum number of seconds that an experiment started by a panel can take."""


@dataclass(frozen=True, kw_only=True)
class Wanted(PictureLook):
    """The requested export. Without a size, a picture has the usual one of each panel.

    Attributes:
        steps: the updates; None for the last update.
        several: whether the files go into a folder, however many there are.
        format: format of files in a folder.
        row: number of the selected completion, counted from 1; None for no selection.
        explained: the number to be explained; None for the loss.
        passed: number of the pass shown, counted from 1; None for the last.
    """

    specs: tuple[PanelSpec[Panel], ...]
    steps: range | None = None
    several: bool = False
    format: str = "png"
    row: str | None = None
    explained: str | None = None
    passed: str | None = None


def export_pictures(run: Path, out: Path, wanted: Wanted, *, force: bool = False) -> Iterator[str]:
    """Write the export ``wanted`` of the run file ``run`` to the file or folder ``out``, yielding a message per file.

    Raises:
        GrpoError: the run cannot be read, an update or a table does not exist, or a file cannot be written.
    """
    with drawable(run) as handle:
        steps = steps_of(handle, wanted.steps)
        settings = handle.origin.settings
        kind = "recorded" if settings.is_recorded else "language" if settings.is_language else "bandit"
        if len(wanted.specs) > 1:
            wanted = replace(wanted, specs=tuple(spec for spec in wanted.specs if spec.kind in ("", kind)))
        places = _places(out, wanted, steps)
        refuse_existing(list(places.values()), force)
        with studio(handle, wanted) as workspace:
            for spec in wanted.specs:
                mine = {step: place for (id, step), place in places.items() if id == spec.id}
                with offscreen(spec, workspace, fixed=wanted.size is not None) as panel:
                    yield from _exported(panel, mine, wanted, force)


@contextmanager
def drawable(path: Path) -> Iterator[RunHandle]:
    """Open a run file, which may hold an imported run, as the window does.

    Raises:
        RunFileError: it cannot be read.
    """
    with opened_run(path) as reader:
        for handle_of in parts.rows("handles"):
            if (imported := handle_of(reader)) is not None:
                yield imported
                return
    handle = RunHandle.open(path)
    try:
        yield handle
    finally:
        handle.close_file()


def _exported(panel: Panel, places: dict[int, Path], wanted: Wanted, force: bool) -> Iterator[str]:
    papers = {step: _paper_at(panel, step, wanted) for step in places}
    below = fitted(panel, wanted.size, papers.values())
    for step, place in places.items():
        _paper_at(panel, step, wanted)
        draw(panel)
        if place.suffix.lower() == ".csv":
            yield from _written_tables(panel, place, force)
        else:
            with without_controls(panel):
                write(place, drawn(panel, place.suffix.lower().lstrip("."), papers[step], below))
            yield str(place)


def _written_tables(panel: Panel, place: Path, force: bool) -> Iterator[str]:
    files = table_files(panel, place)
    if not files:
        raise GrpoError(
            tr("The panel {id} has no table; export it as a picture.").format(id=panel.id.replace("_", "-"))
        )
    if [*files] != [place]:
        refuse_existing(files, force)
    for file, content in files.items():
        write(file, content)
        yield str(file)


def _paper_at(panel: Panel, step: int, wanted: Wanted) -> Paper:
    """Move the cursor to update ``step``, set the requested selection and explanation, and return the paper."""
    workspace = panel.workspace
    workspace.move_to(step)
    record = workspace.view.step.step
    if record is not None:
        row = None if wanted.row is None else whole("--row", wanted.row) - 1
        if row is not None and row >= len(record.rewards):
            raise GrpoError(
                tr("Update {step} has no completion {row}; it has completions 1 to {count}.").format(
                    step=step, row=row + 1, count=len(record.rewards)
                )
            )
        passed = record.passes - 1 if wanted.passed is None else whole("--pass", wanted.passed) - 1
        if passed >= record.passes:
            raise GrpoError(
                tr("Update {step} has no pass {passed}; it has passes 1 to {passes}.").format(
                    step=step, passed=passed + 1, passes=record.passes
                )
            )
        workspace.show_stage(Stage.UPDATE, passed)
        workspace.select(row=row)
        workspace.show_explanation(_quantity(wanted.explained or "loss", record.passes, passed, row))
    return paper_of(panel, wanted)


def _quantity(name: str, passes: int, passed: int, row: int | None) -> Quantity:
    """Return the number called ``name`` in a pass.

    A number that belongs to a completion is that of the selected completion or, if there is none, of the first.
    """
    if name in METRICS and (name not in KINDS or (row is None and "row" in KINDS[name].axes)):
        return Quantity(name)
    if name not in KINDS:
        close = difflib.get_close_matches(name, [*KINDS, *METRICS], n=1)
        hint = (
            tr("did you mean {close}?").format(close=close[0])
            if close
            else tr("examples are advantage, ratio, kl and loss.")
        )
        raise GrpoError(tr("Unknown number “{name}”; {hint}").format(name=name, hint=hint))
    axes = KINDS[name].axes
    passed = passed if "pass" in axes else passes if "state" in axes else 0
    places = {axis: 0 for axis in ("token", "context", "action", "group") if axis in axes}
    return Quantity(name, passed=passed, row=(row or 0) if "row" in axes else None, **places)


def draw(panel: Panel) -> None:
    """Draw the panel, and wait for its own computations."""
    settle(panel)
    QCoreApplication.processEvents()
    deadline = time.monotonic() + PATIENCE_S
    while getattr(panel, "busy", False):
        if time.monotonic() > deadline:
            raise GrpoError(
                tr("The panel {id} was still computing after {patience_s} s.").format(
                    id=panel.id.replace("_", "-"), patience_s=PATIENCE_S
                )
            )
        QCoreApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)
    settle(panel)
    QCoreApplication.processEvents()


def steps_of(run: RunHandle, steps: range | None) -> list[int]:
    """Return the requested updates, after checking that each can be read.

    Raises:
        GrpoError: an update cannot be read.
    """
    chosen = [run.head] if steps is None else [steps[0], steps[-1]]
    for step in chosen:
        if step > run.head:
            has = tr("it has updates 1 to {head}").format(head=run.head) if run.head else tr("it has none yet")
            raise GrpoError(tr("{name} has no update {step}; {has}.").format(name=run.path.name, step=step, has=has))
        run.step(step)
    return chosen if steps is None else list(steps)


def _places(out: Path, wanted: Wanted, steps: list[int]) -> dict[tuple[str, int], Path]:
    """Return the target path of each panel of each update."""
    ending, kinds = out.suffix.lower(), (".png", ".svg", ".pdf", ".csv")
    if not wanted.several and not out.is_dir() and ending:
        if ending not in kinds:
            raise GrpoError(
                tr("{name} cannot be written: end the name in .png, .svg, .pdf or, for a table, .csv.").format(
                    name=out.name
                )
            )
        if not out.parent.is_dir():
            raise GrpoError(tr("There is no folder {parent}; choose one that exists.").format(parent=out.parent))
        return {(wanted.specs[0].id, steps[0]): out}
    if ending in kinds or (out.exists() and not out.is_dir()):
        raise GrpoError(tr("{name} cannot hold several files; give the name of a folder.").format(name=out.name))
    digits = max(4, len(str(steps[-1])))
    numbered = wanted.steps is not None and len(steps) > 1
    return {
        (spec.id, step): out / f"{spec.id.replace('_', '-')}{f'-{step:0{digits}}' if numbered else ''}.{wanted.format}"
        for spec in wanted.specs
        for step in steps
    }

"""Exports from the window: pictures and tables immediately, longer exports in a separate process."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, QSize, Slot

from app.export.dialog import PictureChoice
from app.export.process import exporting
from app.export.stage import LOWEST, caption_of, staged, themed, without_controls
from app.jobs.runner import CANCELLED, FILE_FAILED, Runner
from app.messages.message import BarAction, Severity
from app.messages.message_bar import MessageBar
from app.plotting.export import FORMATS, Paper, drawn, table_files
from app.settings.files import write
from app.training.controller import Controller
from app.widgets.panel import Panel
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.export.script import step_script
from grpo_core.text import plural, tr

SHARP = 2
"""Number of PNG pixels per screen pixel for a panel that is exported as shown."""
BUSY = "export"


class Exporter(Runner):
    """The window's exporter. Errors are reported in the message bar."""

    failed = FILE_FAILED

    def __init__(
        self, workspace: Workspace, controller: Controller, messages: MessageBar, parent: QObject | None = None
    ) -> None:
        super().__init__(parent, self._report, self._on_ended)
        self._workspace, self._controller, self._messages = workspace, controller, messages
        self._target, self._written = Path(), ""

    # -- at once -----------------------------------------------------------------------------------------------------

    def picture(self, panel: Panel, path: Path, choice: PictureChoice) -> None:
        """Write a picture of ``panel`` to ``path``, as shown or with a different look and size."""
        kind = path.suffix.lower().lstrip(".")
        if kind not in FORMATS:
            self._messages.say(
                tr("{name} is not a picture: end the name in .png, .svg or .pdf.").format(name=path.name),
                Severity.ERROR,
            )
            return
        workspace = self._workspace
        theme = workspace.theme if choice.theme is None else themed(choice.theme)
        scale = workspace.scale if choice.scale is None else choice.scale
        paper = Paper(
            theme=theme,
            scale=scale,
            title=panel.title,
            caption=caption_of(panel) if choice.caption else "",
            density=SHARP if choice.size is None else 1,
        )
        whole = QSize(*choice.size) if choice.size is not None else self._shown(panel, paper)
        size = QSize(whole.width(), whole.height() - paper.caption_height(whole.width()))
        if size.height() < LOWEST:
            self._messages.say(
                tr("The caption leaves no space for the picture; choose a larger size, or no caption."), Severity.ERROR
            )
        elif (theme.name, scale) != (workspace.theme.name, workspace.scale):
            self.export(
                path,
                tr("{target} holds the picture of “{title}”.").format(target=path, title=panel.title),
                "--force",
                *self._panel(choice.panel),
                *self._look(replace(choice, size=(whole.width(), whole.height()))),
                *self._place(),
                "--density",
                f"{paper.density:g}",
            )
        else:
            with staged(panel, size), without_controls(panel):
                data = drawn(panel, kind, paper)
            self.write(
                {path: data},
                tr("The picture of “{title}” is written to {path}.").format(title=panel.title, path=path),
            )

    def _shown(self, panel: Panel, paper: Paper) -> QSize:
        """Return the size of a panel as it is on screen, at the scale of ``paper`` and with its caption."""
        size = panel.size() * (paper.scale / self._workspace.scale)
        return QSize(size.width(), size.height() + paper.caption_height(size.width()))

    def table(self, panel: Panel, path: Path) -> None:
        """Write the table of ``panel``, or the numbers of its plots, as CSV. Several tables become several files."""
        files = table_files(panel, path)
        existing = [file for file in files if file != path and file.exists()]
        if not files:
            self._messages.say(tr("“{title}” has no table; export it as a picture.").format(title=panel.title))
        elif existing:
            self._messages.say(
                tr("{there} already exists; choose another name.").format(there=existing[0]), Severity.ERROR
            )
        else:
            self.write(
                files,
                tr("The table of “{title}” is written to {places}.").format(
                    title=panel.title, places=", ".join(map(str, files))
                ),
            )

    def script(self, path: Path) -> None:
        """Write the current update as a script that needs only NumPy."""
        view = self._workspace.view
        step = view.step.step
        if step is None:
            self._messages.say(tr("Update 0 computes nothing; go to a later update first."))
            return
        try:
            text = step_script(step, view.run.origin, title=view.run.title)
        except GrpoError as error:
            self._messages.say(str(error), Severity.ERROR)
            return
        self.write(
            {path: text.encode("utf-8")}, tr("Update {step} is written to {path}.").format(step=step.step, path=path)
        )

    def write(self, files: dict[Path, bytes], written: str) -> None:
        """Write ``files`` and show the message ``written``, or report which of them cannot be written."""
        if all(self._messages.attempt(partial(write, path, data)) for path, data in files.items()):
            self._messages.say(written, Severity.INFO)

    # -- in a process ------------------------------------------------------------------------------------------------

    def sequence(self, folder: Path, choice: PictureChoice) -> None:
        """Write one picture per update of the current run into ``folder``."""
        assert choice.steps is not None
        self.export(
            folder,
            plural("{target} holds {count} picture.", "{target} holds {count} pictures.", len(choice.steps)).format(
                target=folder, count=len(choice.steps)
            ),
            *self._panel(choice.panel),
            *self._look(choice),
            "--steps",
            f"{choice.steps[0]}:{choice.steps[-1]}",
        )

    def film(self, path: Path, choice: PictureChoice) -> None:
        """Write the chosen updates of the current run, or the chosen lesson, as an animated WebP."""
        written = tr("{target} holds the film.").format(target=path)
        look = (*self._look(choice), "--force")
        if choice.lesson:
            self.begin(path, written, "film", "--lesson", choice.lesson, *look)
            return
        assert choice.steps is not None
        span = f"{choice.steps[0]}:{choice.steps[-1]}"
        self.export(path, written, "--panel", choice.panel, "--steps", span, *look, command="film")

    def _panel(self, panel: str) -> tuple[str, ...]:
        """Return the arguments for a panel and the selected completion."""
        selected = self._workspace.selection.row
        return ("--panel", panel, *(() if selected is None else ("--row", str(selected + 1))))

    def _look(self, choice: PictureChoice) -> tuple[str, ...]:
        """Return the arguments for theme, scale, size and caption."""
        theme = choice.theme or self._workspace.theme.name
        scale = self._workspace.scale if choice.scale is None else choice.scale
        size = () if choice.size is None else ("--size", "{}x{}".format(*choice.size))
        return ("--theme", theme, "--scale", f"{scale:g}", *size, *(() if choice.caption else ("--no-caption",)))

    def _place(self) -> tuple[str, ...]:
        """Return the arguments for the current update and pass, and for the explained number."""
        view = self._workspace.view
        passed = () if view.step.step is None else ("--pass", str(view.step.passed + 1))
        explained = () if view.quantity is None else ("--explain", view.quantity.name)
        return ("--step", str(view.cursor.step), *passed, *explained)

    def tables_of_run(self, folder: Path) -> None:
        """Write the current run as CSV files into ``folder``."""
        self.export(folder, tr("{target} holds series.csv, samples.csv and settings.json.").format(target=folder))

    def export(self, folder: Path, written: str, *arguments: str, command: str = "export") -> None:
        """Export the current run in a separate process. ``written`` is the message shown at the end."""
        run = self._workspace.run
        assert run is not None
        if run is self._workspace.training:
            self._controller.commit()
        if not run.path.exists():
            self._messages.say(
                tr("{title} gets its own file only with its next update; press Step, then export it.").format(
                    title=run.title
                ),
            )
            return
        self.begin(folder, written, command, str(run.path.absolute()), *arguments)

    def begin(self, target: Path, written: str, command: str, *arguments: str) -> None:
        """Run ``command`` in a process that writes to ``target``. ``written`` is the message at the end."""
        if self.busy:
            self._messages.say(tr("Another export is being written; wait for it, or cancel it."))
            return
        self._target, self._written = target, written
        self._report(0)
        self.start(exporting(command, *arguments, "--out", str(target.absolute())))

    @Slot(object)
    def _report(self, count: int) -> None:
        cancel = BarAction(text=tr("Cancel"), run=self.cancel)
        text = tr("Exporting to {target}: {count} written.") if count else tr("Exporting to {target}.")
        text = text.format(target=self._target, count=count)
        self._messages.say(text, Severity.INFO, cancel, id=BUSY)

    @Slot(str)
    def _on_ended(self, why: str) -> None:
        self._messages.remove(BUSY)
        if why == CANCELLED:
            sentence = tr("The export was cancelled; what is already in {target} is kept.").format(target=self._target)
            self._messages.say(sentence, Severity.INFO)
        else:
            self._messages.say(why or self._written, Severity.ERROR if why else Severity.INFO)

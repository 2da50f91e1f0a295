"""The What-if panel: the update shown under another preset or other settings, next to the recorded one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QLayout, QWidget

from app.boxes import divided, down, plain_scroll_area, stacked
from app.jobs.runner import Poll, Runner
from app.panels.what_if import tables
from app.panels.what_if.batch_view import BatchView, offered
from app.panels.what_if.header import SettingsEditor, WhatIfHeader
from app.panels.what_if.question import WhatIfPicture, WhatIfQuestion, description, differing, headline
from app.plotting.table_twin import TableTwin
from app.theme.labels import EmptyLabel, Label, allow
from app.widgets.panel import Panel
from app.workspace.cursor import Stage
from app.workspace.prepared import LARGE_TOKENS
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import PRESETS
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.record import Step
from grpo_core.text import tr

NONE_YET = tr("No update yet: here you can try other settings on the batch of an update. Press Step to compute one.")
AT_START = tr("Update 0 has no batch; move to an update to see what other settings would have made of it.")
COMPUTING = tr("Computing what the other settings would have made of this large update …")
BESIDE = 300
"""Width in pixels at 100 % that the batch needs next to the table."""


def _computed(work: Callable[[], WhatIfPicture], poll: Poll) -> Iterator[WhatIfPicture]:
    """Yield the result of ``work``, including everything that the panel needs from it."""
    poll()
    picture = work()
    _ = [view.gradient for view in picture.views]
    yield picture


class WhatIfPanel(Panel):
    """Both sides of one update: settings that differ, numbers, tokens or samples, and the policy after it."""

    large = True
    sized = True
    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self.question = WhatIfQuestion(workspace, self)
        self.question.changed.connect(self.redraw)
        self.picture: WhatIfPicture | None = None
        self.shows: str | None = None
        self.tint_name = "push"
        self._further: int | None = None
        self._computing: tuple[object, ...] = ()
        self._refused: tuple[tuple[object, ...], str] = (), ""
        self._runner = Runner(self, self.question.keep_picture, self._on_ended)
        self._shared = 0.0, ""
        self._arranged = "beside"
        self.header = WhatIfHeader()
        self.header.preset.activated.connect(self._on_preset)
        self.header.passes.activated.connect(self._on_pass)
        self.header.shows.activated.connect(self._on_show)
        self.header.tint.activated.connect(self._on_tint)
        self.header.ask.clicked.connect(self.question.ask)
        self.header.settings.toggled.connect(self.redraw)
        self.editor = SettingsEditor()
        self.editor.edited.connect(self._on_edited)
        self.editor.hide()
        self.table = TableTwin(title=tr("Settings that differ, and numbers of both sides"))
        self.batch = BatchView(workspace)
        self.notes = Label(wraps=True, selectable=True)
        self.empty = EmptyLabel(margin=16)
        self._stack = stacked(self._build(), self.empty, on=self)

    def _build(self) -> QLayout:
        self.split = divided(self.editor, self.table, (self.batch, 1))
        self.below = plain_scroll_area(self.notes)
        self.below.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.below.setAccessibleName(tr("What does not change, and what is unknown"))
        self.notes.setContentsMargins(12, 2, 12, 6)
        return down(self.header, (self.split, 1), self.below, margins=0, spacing=0)

    def focus_choice(self) -> None:
        self.header.preset.setFocus(Qt.FocusReason.ShortcutFocusReason)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def begin_run(self) -> None:
        self.batch.policies.forget_scales()

    def draw(self, view: View) -> None:
        step = view.step.step
        self._stack.setCurrentIndex(0 if step is not None else 1)
        self.empty.setText(view.run.why_no_step or (AT_START if view.head else NONE_YET))
        if step is None:
            self.picture = None
            return
        self.table.set_look(view.theme, view.scale)
        self.table.set_columns(tables.COLUMNS)
        self._share_out(view.scale)
        self.notes.setFont(view.theme.font("body", view.scale))
        lines = 3 if self.height() > 250 * view.scale else 2
        self.below.setFixedHeight(lines * self.notes.fontMetrics().lineSpacing() + 4)
        preset = PRESETS.get(self.question.preset)
        tip = "" if preset is None else f"{preset.source}. {preset.not_covered}"
        self.header.show_choice(self.question.preset, bool(self.question.changes), tip)
        try:
            self.picture = self._evaluated(view, step)
            self.editor.show_settings(self.question.wanted(step.settings), step.settings)
        except GrpoError as error:
            self.picture = None
            self._show_problem(step, str(error))
            return
        if self.picture is None:
            self._show_problem(step, COMPUTING)
        else:
            self._show(view, self.picture)

    def _evaluated(self, view: View, step: Step) -> WhatIfPicture | None:
        """Return both sides in the pass shown in all panels, or in an additional pass that only the what-if has.

        For a large update, they are computed in a thread; the result is None until they are known.

        Raises:
            GrpoError: the update cannot be computed under these settings; the message says why.
        """
        passed = view.step.passed if self._further is None else self._further
        if step.tokens.size < LARGE_TOKENS or self.question.known(view, step, passed) is not None:
            picture = self.question.picture(view, step, passed)
            if self._further is None or self._further < picture.what_if.other.step.passes:
                return picture
            self._further = None
            return self._evaluated(view, step)
        key = (view.run.id, step, self.question.wanted(step.settings), passed)
        if key == self._refused[0]:
            raise GrpoError(self._refused[1])
        if key != self._computing:
            self._computing = key
            self._runner.start(partial(_computed, self.question.work(view, step, passed)))
        return None

    @Slot(str)
    def _on_ended(self, why_not: str) -> None:
        if why_not:
            self._refused = self._computing, why_not
        self._computing = ()
        self.redraw()

    def _show(self, view: View, picture: WhatIfPicture) -> None:
        w = picture.what_if
        self.header.show_passes(max(side.step.passes for side in w.sides), picture.passed)
        shows, tints = self._offered(picture), offered(picture)
        here = self.shows if self.shows in shows else shows[0]
        self.tint_name = self.tint_name if self.tint_name in tints else tints[0]
        self.header.show_views(shows, here, tints, self.tint_name)
        self._show_model_button(picture.step, needed=not w.other.step.scored_after)
        tables.fill(self.table, picture)
        self.table.set_summary(self.summary(view))
        self._show_parts(here)
        if here != "numbers":
            self.batch.show_picture(picture, view, here, self.tint_name)
        text = description(picture, self.question.preset)
        refused = self.question.refusal(picture.step)
        self.notes.setText(f"{refused}\n{text}" if refused else text)

    def _show_problem(self, step: Step, sentence: str) -> None:
        """Report why the update cannot be computed from the record, and offer to ask the model if it can compute it."""
        self._show_parts("problem")
        self.batch.show_problem(self.question.refusal(step) or sentence)
        self.table.set_rows([])
        self.notes.setText("")
        self._show_model_button(step, needed=True)

    def _show_model_button(self, step: Step, *, needed: bool) -> None:
        self.header.ask.setVisible(needed and step.settings.is_language)
        waits = self.question.waits(step)
        model = step.settings.model if step.settings.is_language else None
        keeps = model is None or model.keeps_weights
        why_not = "" if keeps else tr("This run keeps no weights with which the model could be asked.")
        allow(self.header.ask, tr("The model is being asked.") if waits else why_not)
        self.header.show_model(step.settings)
        self.header.ask.setText(tr("Asking…") if waits else tr("Ask the model"))

    def _offered(self, picture: WhatIfPicture) -> list[str]:
        """Return the available views: the policy if it is a fully known table, and the tokens if there are several."""
        whole = all(side.step.scored_after and side.step.dist_logp is not None for side in picture.what_if.sides)
        policy = ["policy"] if whole and not picture.step.settings.is_language else []
        tokens = ["tokens"] if picture.step.mask.shape[1] > 1 else []
        table = ["numbers"] if self._arranged == "alone" else []
        return [*table, *policy, *tokens, "samples"]

    def _show_parts(self, here: str) -> None:
        """Show the settings, the table and the batch. If only one of them fits, show the selected one (``here``)."""
        alone, editing = self._arranged == "alone", self.header.settings.isChecked()
        self.editor.setVisible(editing)
        self.table.setVisible(not alone or (here == "numbers" and not editing))
        self.batch.setVisible(not alone or (here != "numbers" and not editing))

    def _share_out(self, scale: float) -> None:
        """Distribute the space between the table and the batch.

        The table takes the width of its columns, the batch the rest. In a narrow, tall panel the table is above the
        batch, with the differing settings visible; in a narrow, short panel only one of them is shown. The user can
        move the splitter.
        """
        table, space = tables.width_of(self.table), self.split.size()
        above = False
        if space.width() >= table + BESIDE * scale:
            self._arranged = "beside"
        else:
            above = space.height() > 0.5 * space.width()
            self._arranged = "above" if above else "alone"
        if (scale, self._arranged) == self._shared or not space.width():
            return
        self._shared = scale, self._arranged
        self.split.setOrientation(Qt.Orientation.Vertical if above else Qt.Orientation.Horizontal)
        self.editor.setMinimumWidth(0 if above else round(230 * scale))
        if above:
            self.split.setSizes([round(part * space.height()) for part in (0.3, 0.45, 0.55)])
        else:
            self.split.setSizes([round(230 * scale), table, max(space.width() - table, table)])

    def summary(self, view: View) -> str:
        if view.step.step is None:
            return tr("No update yet.")
        if self.picture is None:
            return self.batch.problem.text()
        what_differs = differing(self.picture, self.question.preset, view.run.label(view.step.number))
        return f"{what_differs} {headline(self.picture)}"

    # -- choices -----------------------------------------------------------------------------------------------------

    @Slot(int)
    def _on_preset(self, index: int) -> None:
        self.question.choose(self.header.preset.itemData(index))
        self._changed()

    @Slot(tuple, object)
    def _on_edited(self, paths: tuple[str, ...], value: object) -> None:
        step = self.workspace.view.step.step
        if step is None:
            return
        try:
            self.question.change(step.settings, paths, value)
        except SettingsError as error:
            self.editor.row(paths).stay(self.editor.settings.get(paths[0]), error)
            return
        self.editor.row(paths).accept()
        self._changed()

    def _changed(self) -> None:
        """Adjust to a changed question, in which additional passes that were shown may no longer exist."""
        self._further = None
        self.redraw()

    @Slot(int)
    def _on_pass(self, index: int) -> None:
        ran = self.workspace.view.step.passes
        self._further = index if index >= ran else None
        if index < ran:
            self.workspace.show_stage(Stage.UPDATE, index)
        self.redraw()

    @Slot(int)
    def _on_show(self, index: int) -> None:
        self.shows = self.header.shows.itemData(index)
        self.redraw()

    @Slot(int)
    def _on_tint(self, index: int) -> None:
        self.tint_name = self.header.tint.itemData(index)
        self.redraw()

"""The controls: the settings of the next update."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from app.boxes import down, plain_scroll_area
from app.panels.controls.kinds import KINDS, PARTS, applies, described_model, with_prompt_file
from app.panels.controls.recorded import RecordedSettings
from app.panels.controls.restraints import Restrainable, Restraints, is_restrained
from app.panels.controls.rows import FurtherSettings, NumberRow, Row, setting_row
from app.theme.labels import Label, Paragraph, wrapped_tip
from app.widgets.calm import CalmBox, shown
from app.widgets.panel import Panel
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.config import PRESETS, BanditTask, LanguageTask, Objective, Settings, about, described
from grpo_core.config.presets import GROUPS, nearest_preset
from grpo_core.config.settings import described_at
from grpo_core.errors import SettingsError
from grpo_core.text import listed, tr


class PresetBox(CalmBox):
    """A combo box of presets. Its headings cannot be selected; the data of every other entry is its preset's name."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__(tr("Algorithm"))
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for group, heading in GROUPS.items():
            self._add_heading(heading)
            for name, preset in PRESETS.items():
                if preset.group == group:
                    self.offer(name, name, f"{preset.source}. {preset.not_covered}".strip())
                    spoken = tr("{name}, in the group {heading}").format(name=name, heading=heading)
                    self.setItemData(self.count() - 1, spoken, Qt.ItemDataRole.AccessibleTextRole)
        self.activated.connect(self._on_activated)

    def _add_heading(self, text: str) -> None:
        model = self.model()
        assert isinstance(model, QStandardItemModel)
        item = QStandardItem(text)
        font = self.font()
        font.setBold(True)
        item.setFont(font)
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        model.appendRow(item)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        name = self.itemData(index)
        if name is not None:
            self.chosen.emit(name)


FIRST = (
    "task.prompts",
    "learner.group_size",
    "objective.clip",
    "objective.beta",
    "optimizer.learning_rate",
    "learner.temperature",
    "learner.mu",
)
CLIP = ("objective.clip_low", "objective.clip_high")


NEXT, FOR_A_BRANCH = tr("Next update"), tr("For a branch of this run (Ctrl+B)")
"""Headings above the settings: for the next update, and for a run that cannot be trained further."""


class ControlsPanel(Panel):
    """The controls: preset, task, the five most important settings, and all others under “More settings”.

    Signals:
        kind_wanted: change to this kind of policy (an index into :data:`KINDS`).
    """

    kind_wanted = Signal(int)

    controls_are_content = True

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._rows: list[Row] = []
        self.preset = PresetBox()
        self.preset.chosen.connect(self._on_preset)
        self.kind = CalmBox(tr("Policy"))
        self.kind.addItems(KINDS)
        self.kind.setToolTip(
            tr(
                "Choosing the other kind starts a new run. One that has updates stays in the list, and Undo returns to "
                "it."
            )
        )
        self.kind.activated.connect(self._on_kind)
        self._controls: dict[QWidget, Restrainable] = {
            self.kind: Restrainable(paths=("policy",), lock=tr("Lock the policy"), hide=tr("Hide the policy")),
            self.preset: Restrainable(
                paths=("algorithm",), lock=tr("Lock the algorithm"), hide=tr("Hide the algorithm")
            ),
        }
        """What a session may lock or hide."""
        self.preset_note, self.model_note, self.read_only_note = (Paragraph(name="muted", margin=0) for _ in range(3))
        self.restraints = Restraints()
        self.restraints.button.clicked.connect(partial(workspace.editing.restrict, (), ()))
        policy = Label(tr("Policy"), name="section")
        self._column = down(self.restraints, self.read_only_note, policy, self.kind, margins=12, spacing=12)
        self._place(setting_row("task", BanditTask, "landscape"))
        for name in ("problem", "difficulty", "file", "checker"):
            self._place(setting_row("task", LanguageTask, name))
        self._column.addWidget(self.model_note)
        self._column.addWidget(Label(tr("Algorithm"), name="section"))
        self._column.addWidget(self.preset)
        self._column.addWidget(self.preset_note)
        self.next_heading = Label(NEXT, name="section")
        self._column.addWidget(self.next_heading)
        for path in FIRST:
            self._place(_first_row(path))
        self.devices: Callable[[], tuple[str, ...]] = tuple
        self.shows: Callable[[str], bool] = lambda subject: True
        self._kept: set[Row] = set()
        self._settings_drawn: tuple[object, ...] | None = None
        self.further = FurtherSettings()
        self.further.opening.connect(self._make_further)
        self._column.addWidget(self.further)
        self._column.addStretch(1)
        self._scroll = plain_scroll_area(self._column)
        self.recorded = RecordedSettings()
        self.recorded.hide()
        down(self._scroll, self.recorded, on=self, margins=0)

    # -- building ----------------------------------------------------------------------------------------------------

    @property
    def rows(self) -> list[Row]:
        """All settings, including those under “More settings”."""
        self._make_further()
        return self._rows

    @Slot()
    def _make_further(self) -> None:
        made = self.further.make_rows({path for row in self._rows for path in row.paths if path not in CLIP})
        for row in made:
            self._adopt(row)
        if made and self._settings_drawn is not None:
            self.choose_rows()

    def _place(self, row: Row) -> None:
        self._adopt(row)
        self._column.addWidget(row)

    def _adopt(self, row: Row) -> None:
        row.edited.connect(self._on_edited)
        self._rows.append(row)
        lock, hide = (text.format(title=row.about.title) for text in (tr("Lock “{title}”"), tr("Hide “{title}”")))
        self._controls[row] = Restrainable(paths=row.paths, lock=lock, hide=hide)

    # -- editing -----------------------------------------------------------------------------------------------------

    @Slot(tuple, object, object)
    def _on_edited(self, paths: tuple[str, ...], value: object, gesture: int | None) -> None:
        row = next(r for r in self._rows if r.paths == paths)
        if not applies(paths[0], self.workspace.editing.wanted):  # by now, a run of the other kind is shown
            self.redraw()
            return
        try:
            changes = with_prompt_file(dict.fromkeys(paths, value), self.workspace.editing.wanted, self)
            self.workspace.editing.edit(changes, tr("Change “{title}”").format(title=row.about.title), gesture)
        except SettingsError as error:
            row.stay(self._value(row), error)
        else:
            row.accept()
            row.show_value(self._value(row))

    @Slot(int)
    def _on_kind(self, index: int) -> None:
        if index != int(self.workspace.editing.wanted.is_language):
            self.kind_wanted.emit(index)
        self.redraw()

    @Slot(str)
    def _on_preset(self, name: str) -> None:
        wanted = PRESETS[name].applied_to(self.workspace.editing.wanted)
        changes = {path: new for path, (_, new) in self.workspace.editing.wanted.differences(wanted).items()}
        free = {path: value for path, value in changes.items() if path not in self.workspace.editing.locked}
        self.workspace.editing.edit(free, tr("Choose {name}").format(name=name))
        self.redraw()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        widget = self.childAt(event.pos())
        while widget is not None and widget not in self._controls:
            widget = widget.parentWidget()
        if widget is not None:
            self._controls[widget].show_menu(self, self.workspace.editing, event.globalPos())
        else:
            super().contextMenuEvent(event)

    def focus_setting(self, path: str) -> None:
        """Show the control of a setting that has an effect, and move the keyboard focus to it or to its slider."""
        row = next(row for row in self.rows if path in row.paths)
        self._kept.add(row)
        self.choose_rows()
        if self.further.isAncestorOf(row):
            self.further.more.setChecked(True)
        widget = getattr(row, "slider", None) or row.name.buddy()
        if not row.isHidden() and widget is not None:
            widget.setFocus(Qt.FocusReason.OtherFocusReason)
            QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)  # the row has its place now
            self._scroll.ensureWidgetVisible(row)

    def begin_run(self) -> None:
        self._kept.clear()

    @Slot()
    def choose_rows(self) -> None:
        """Choose again which settings are shown."""
        self._settings_drawn = None
        self.draw(self.workspace.view)

    def _value(self, row: Row) -> Any:
        return self.workspace.editing.wanted.get(row.paths[0])

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        self.setMinimumWidth(round(220 * view.scale))
        self._scroll.setVisible(not view.run.is_recorded)
        self.recorded.setVisible(view.run.is_recorded)
        if view.run.is_recorded:
            self.recorded.show_settings(view)
            return
        self.read_only_note.tell(view.run.read_only)
        self.next_heading.setText(FOR_A_BRANCH if view.run.read_only else NEXT)
        wanted, here = view.wanted, view.step.settings
        differs = not view.at_head and here != wanted
        restraints = (view.locked, view.hidden)
        stamp = (wanted, here if differs else None, view.cursor.step if differs else None, self.devices(), *restraints)
        if stamp == self._settings_drawn:
            return
        self._settings_drawn = stamp
        if any(restraints):
            self._make_further()
        with QSignalBlocker(self.kind):
            self.kind.setCurrentIndex(int(wanted.is_language))
        self.model_note.tell(described_model(wanted))
        self.restraints.hold(self._controls, view)
        self.kind.setHidden("policy" in view.hidden)
        self.preset.setHidden("algorithm" in view.hidden)
        left = 0
        for row in self._rows:
            if is_restrained(row.paths, view.hidden) or not all(applies(path, wanted) for path in row.paths):
                row.hide()
                continue
            value = wanted.get(row.paths[0])
            if value != row.usual:
                self._kept.add(row)  # a value that was chosen is never out of sight
            if not (self.shows(row.about.subject) or row in self._kept):
                left += 1
                row.hide()
                continue
            row.show()
            row.show_value(value)
            if row.paths == ("model.device",):
                row.note.tell(tr("Here: {devices}.").format(devices=listed(self.devices())) if self.devices() else "")
            then = here.get(row.paths[0])
            ran = tr("Update {step:,} ran with {then}.").format(step=view.cursor.step, then=shown(then))
            row.mark("" if view.at_head or then == value else ran)
        self.further.show_headings()
        self.further.offer_rest(left)
        self._draw_preset(wanted)

    def _draw_preset(self, wanted: Settings) -> None:
        """Show the most similar preset, and in its tooltip the settings that differ from it."""
        name, changed = nearest_preset(wanted)
        preset = PRESETS[name]
        description = f"{preset.source}. {preset.not_covered}".strip()
        if changed:
            values = listed(f"{described_at(path).title}: {shown(now)}" for path, (_, now) in changed.items())
            description = tr("{description} Changed here: {values}.").format(description=description, values=values)
        self.preset.show_named(name, changed=bool(changed))
        self.preset.setToolTip(wrapped_tip(description))
        self.preset.setAccessibleDescription(description)
        self.further.source.setText(description)
        self.preset_note.tell(" ".join(wanted.objective.warnings))

    def summary(self, view: View) -> str:
        if view.run.is_recorded:
            return self.recorded.heading.text()
        return tr("Settings of update {head}: {preset}.").format(head=view.head + 1, preset=self.preset.currentText())


def _first_row(path: str) -> Row:
    if path == "objective.clip":
        rule = dataclasses.replace(about(Objective, "clip_low"), title=tr("Clip range"), subject="")
        return NumberRow(CLIP, rule, whole=False)
    part, name = path.split(".")
    owner = next(owner for key, _, owner in PARTS if key == part and name in dict(described(owner)))
    return setting_row(part, owner, name)

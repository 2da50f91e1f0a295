"""The read-only settings of a run that another program trained."""

from __future__ import annotations

import json
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.boxes import down
from app.plotting.table_model import Column
from app.plotting.table_twin import TableTwin
from app.theme.labels import Label
from app.workspace.view import View
from grpo_core.acting import acting_fields
from grpo_core.config import Learner, Objective, Settings, about, described
from grpo_core.config.objective import IMPORTANCE
from grpo_core.config.value_names import worded
from grpo_core.text import tr

LEARNER = ("mu", "temperature")


class RecordedSettings(QWidget):
    """Settings of a recorded run: those with a counterpart in this program, then all under the trainer's names."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.heading = Label(wraps=True)
        self.heading.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.heading.setContentsMargins(0, 0, 12, 0)  # the table reaches to the edge, for its scroll bar
        self.table = TableTwin(title=tr("Settings of the recorded run"), stretched=True)
        self.table.set_columns(
            [
                Column("setting", tr("Setting"), chars=16, kind="text"),
                Column("value", tr("Value"), chars=7, kind="text"),
            ]
        )
        down(self.heading, (self.table, 1), on=self, margins=(12, 12, 0, 0), spacing=8)
        self._shown: Settings | None = None

    def show_settings(self, view: View) -> None:
        self.table.set_look(view.theme, view.scale)
        settings = view.step.settings
        if settings is self._shown:
            return
        self._shown = settings
        source = settings.recorded.source or tr("another program")
        known = [[name, value] for name, value in rows(settings)]
        if known:
            text = tr("Trained by {source}. Its settings can be read here, not changed: the model is not here.")
        else:
            text = tr("Trained by {source}. Its settings are not recorded.")
        self.heading.setText(text.format(source=source))
        self.table.set_rows(known)
        self.table.setVisible(bool(known))


def rows(settings: Settings) -> list[tuple[str, str]]:
    """Return (name, value) for each known setting: first those that affect the loss, then the trainer's own."""
    objective = settings.objective
    acting = acting_fields(objective)
    if not settings.recorded.names_loss:  # the source does not name its loss
        return _of_task(settings)
    acting -= {*IMPORTANCE}  # the factors that a trainer applied are in the record
    known = [(rule.title, _text(getattr(objective, name))) for name, rule in described(Objective) if name in acting]
    known += [(about(Learner, name).title, _text(getattr(settings.learner, name))) for name in LEARNER]
    return [
        *_of_task(settings),
        *known,
        *((name, _text(value)) for name, value in settings.recorded.trainer_values.items()),
    ]


def _of_task(settings: Settings) -> list[tuple[str, str]]:
    """Return the rewards with their weights, and the group size, as far as they are known."""
    task = settings.recorded
    weights = task.reward_weights or (None,) * len(task.reward_names)
    rewards = [
        (tr("Reward: {name}").format(name=name), tr("weight not known") if weight is None else f"{weight:g}")
        for name, weight in zip(task.reward_names, weights, strict=True)
    ]
    if settings.learner == Learner() and not task.reward_names and not task.names_loss:
        return []  # a log, which does not tell the size
    return [*rewards, (about(Learner, "group_size").title, str(settings.learner.group_size))]


def _text(value: Any) -> str:
    if isinstance(value, str | float | bool) or value is None:
        return worded(value)
    return json.dumps(value, ensure_ascii=False, default=str)

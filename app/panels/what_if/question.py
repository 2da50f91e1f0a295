"""The question of a what-if: a preset, changes on top of it, the model's answers, and sentences on what it shows.

It is evaluated only once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

from app.plotting.numbers import shown
from app.workspace.cursor import Stage
from app.workspace.step_view import StepView
from app.workspace.view import View
from app.workspace.workspace import Workspace
from grpo_core.baselines import BASELINES
from grpo_core.config import PRESETS, Settings
from grpo_core.errors import GrpoError, RunFileError
from grpo_core.questions import Replay, Replayed
from grpo_core.record import Step
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import clauses, tr
from grpo_core.what_if import (
    Compared,
    Direction,
    WhatIf,
    compared,
    direction,
    in_force,
    notes,
    replayed,
    side_by_side,
    unchanged,
)

AS_IT_RAN = tr("As it ran")
ANSWERS = 16
"""Maximum number of model answers kept in memory. All of them are in the run's file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WhatIfPicture:
    """The update shown, as recorded and under other settings, ready to draw.

    Attributes:
        key: the question, the update and the pass, in this order.
        what_if: the numbers of both.
        views: both in the pass shown, fully revealed.
        passed: the pass shown, counted from 0.
        rows: the numbers of both, in rows.
        direction: the relative direction of their pushes.
        pushes: whether the other has any nonzero push.
        unchanged: sentences on what does not change under the other settings.
    """

    key: tuple[object, ...]
    what_if: WhatIf
    views: tuple[StepView, StepView]
    passed: int
    step: Step
    rows: tuple[Compared, ...]
    direction: Direction
    pushes: bool
    unchanged: tuple[str, ...]


class WhatIfQuestion(QObject):
    """The preset and the changes chosen in the panel.

    Attributes:
        preset: name of a preset, or :data:`AS_IT_RAN`.
        changes: dotted path -> value, on top of the preset.

    Signals:
        changed: the model has answered or refused a question.
    """

    changed = Signal()

    def __init__(self, workspace: Workspace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.preset = "DAPO"
        self.changes: dict[str, Any] = {}
        self._workspace = workspace
        self._waiting: dict[Replay, str] = {}
        self._refused: dict[tuple[str, Replay], str] = {}
        self._answers: OrderedDict[tuple[str, Replay], Replayed] = OrderedDict()
        self._picture: WhatIfPicture | None = None
        workspace.answered.connect(self._on_answered)
        workspace.refused.connect(self._on_refused)

    def choose(self, preset: str) -> None:
        """Compare with the unchanged ``preset``. Changes made on top of another preset are discarded."""
        self.preset, self.changes = preset, {}

    def change(self, settings: Settings, paths: tuple[str, ...], value: Any) -> None:
        """Change settings on top of the preset, for an update recorded under ``settings``.

        Raises:
            SettingsError: the message says what is wrong and what is allowed; nothing is changed.
        """
        wanted = {**self.changes, **dict.fromkeys(paths, value)}
        if "objective.baseline" in paths and BASELINES[value].from_critic:
            wanted["learner.critic"] = True  # the baseline comes from a critic
        if (
            "objective.reduction" in paths
            and REDUCTIONS[value].by_constant
            and self._preset(settings).objective.max_tokens is None
        ):
            wanted["objective.max_tokens"] = settings.task.longest
        self._preset(settings).replace(wanted)
        self.changes = wanted

    def wanted(self, settings: Settings) -> Settings:
        """Return the settings of the what-if, for an update recorded under ``settings``.

        Raises:
            SettingsError: the changes are incompatible with the settings of the update.
        """
        return self._preset(settings).replace(self.changes)

    def _preset(self, settings: Settings) -> Settings:
        return settings if self.preset == AS_IT_RAN else PRESETS[self.preset].applied_to(settings)

    # -- the model's answers -----------------------------------------------------------------------------------------

    @Slot()
    def ask(self) -> None:
        """Have a copy of the model compute the update shown under these settings.

        The answer arrives between two updates, whatever is shown by then.
        """
        view = self._workspace.view
        question = self._possible_replay(view.step.step)
        if question is not None:
            self._waiting[question] = view.run.id
            self._refused.pop((view.run.id, question), None)
            self.changed.emit()
            self._workspace.asked.emit(question)

    def waits(self, step: Step) -> bool:
        question = self._possible_replay(step)
        return question is not None and self._waiting.get(question) == self._workspace.view.run.id

    def refusal(self, step: Step) -> str:
        """Return the reason why the model refused the question, or an empty string if it did not."""
        question = self._possible_replay(step)
        return "" if question is None else self._refused.get((self._workspace.view.run.id, question), "")

    def _replay(self, step: Step) -> Replay:
        return Replay(step=step.step, settings=in_force(step, self.wanted(step.settings)))

    def _possible_replay(self, step: Step | None) -> Replay | None:
        """Return the question for the model, or None if the chosen settings are incompatible."""
        try:
            return None if step is None else self._replay(step)
        except GrpoError:
            return None

    @Slot(object, object)
    def _on_answered(self, question: object, answer: object) -> None:
        if isinstance(question, Replay) and isinstance(answer, Replayed) and question in self._waiting:
            self._answers[self._waiting.pop(question), question] = answer
            while len(self._answers) > ANSWERS:
                self._answers.popitem(last=False)
            self.changed.emit()

    @Slot(object, str)
    def _on_refused(self, question: object, sentence: str) -> None:
        if isinstance(question, Replay) and question in self._waiting:
            self._refused[self._waiting.pop(question), question] = sentence
            self.changed.emit()

    def _answer(self, run: str, step: Step) -> Replayed | None:
        return self._answers.get((run, self._replay(step)))

    # -- evaluation --------------------------------------------------------------------------------------------------

    def picture(self, view: View, step: Step, passed: int) -> WhatIfPicture:
        """Return both sides in pass ``passed``, recomputed only if the question has changed.

        Raises:
            GrpoError: the update cannot be computed under these settings; the message says why.
        """
        return self.known(view, step, passed) or self.keep_picture(self.work(view, step, passed)())

    def known(self, view: View, step: Step, passed: int) -> WhatIfPicture | None:
        """Return the picture if it is the last one computed, otherwise None.

        Raises:
            SettingsError: the chosen settings are incompatible.
        """
        key = (*self._record_key(view, step), passed)
        return self._picture if self._picture is not None and self._picture.key == key else None

    def work(self, view: View, step: Step, passed: int) -> Callable[[], WhatIfPicture]:
        """Return a function that computes the picture, in any thread. Pass its result to :meth:`keep_picture`.

        Raises:
            SettingsError: the chosen settings are incompatible.
        """
        record_key, before = self._record_key(view, step), self._picture
        other = before.views[1].step if before is not None and before.key[:-1] == record_key else None
        wanted, answer = self.wanted(step.settings), self._answer(view.run.id, step)
        self._picture = None
        return partial(_pictured, (*record_key, passed), view, step, wanted, answer, passed, other)

    def keep_picture(self, picture: WhatIfPicture) -> WhatIfPicture:
        """Store the result of :meth:`work`, and return it."""
        self._picture = picture
        return picture

    def _record_key(self, view: View, step: Step) -> tuple[object, ...]:
        return view.run.id, step, self.wanted(step.settings), self._answer(view.run.id, step)


def _pictured(
    key: tuple[object, ...],
    view: View,
    step: Step,
    wanted: Settings,
    answer: Replayed | None,
    passed: int,
    other: Step | None,
) -> WhatIfPicture:
    other = replayed(step, wanted, _before(view, step), answer) if other is None else other
    here, there = (_revealed(view, record, passed) for record in (step, other))
    assert here.numbers is not None and there.numbers is not None
    what_if = side_by_side(here.numbers, there.numbers, wanted, asked=answer is not None)
    gradients = [side.gradient(nearest) for side, nearest in what_if.passes(passed)]
    return WhatIfPicture(
        key=key,
        what_if=what_if,
        views=(here, there),
        passed=passed,
        step=step,
        rows=compared(what_if, passed),
        direction=direction(*gradients),
        pushes=bool(gradients[1].any()),
        unchanged=unchanged(what_if, passed),
    )


def _before(view: View, step: Step) -> Step | None:
    """Return the previous update of a bandit's run, which ends with the weights from which ``step`` starts.

    None if there is none, for runs of other kinds, and if it is unavailable.
    """
    if step.step == 1 or view.step.settings.is_language or view.step.settings.is_recorded:
        return None
    try:
        return view.run.step(step.step - 1)
    except RunFileError:
        return None


def _revealed(view: View, record: Step, passed: int) -> StepView:
    whole = len(record.logp) == record.passes + 1
    stage = Stage.UPDATE if whole else Stage.NORMALIZE
    if record is view.step.step:
        return view.step.at(stage, min(passed, record.passes - 1))
    return StepView(view.run.origin, record, stage, min(passed, record.passes - 1))


def headline(picture: WhatIfPicture) -> str:
    w, passed = picture.what_if, picture.passed
    turned = picture.direction
    if turned.ratio is None:
        return (
            tr("The recorded update pushes no token; this one would push some.")
            if picture.pushes
            else tr("The recorded update pushes no token, and neither would this one.")
        )
    if turned.cosine is None:
        return tr("The recorded update pushes tokens; this one would push none.")
    here, there = (nearest for _, nearest in w.passes(passed))
    if max(side.passes for side in w.sides) == 1:
        where = tr("The pushes on log π.")
    elif here == there:
        where = tr("The pushes on log π in pass {there}.").format(there=there + 1)
    else:
        where = tr("The pushes on log π in pass {there}, next to pass {here} as it ran.").format(
            there=there + 1, here=here + 1
        )
    compared = (
        tr("Cosine {cosine} to those that ran, equally long.")
        if round(turned.ratio, 3) == 1
        else tr("Cosine {cosine} to those that ran, {ratio} times as long.")
    ).format(cosine=shown(turned.cosine), ratio=shown(turned.ratio))
    return f"{where} {compared}"


def description(picture: WhatIfPicture, preset: str) -> str:
    """Return the headline, what does not change, and what cannot be inferred from the record, a paragraph each."""
    same = " ".join(picture.unchanged)
    beyond = " ".join(notes(picture.what_if, "" if preset == AS_IT_RAN else preset))
    parts = (
        headline(picture),
        tr("Unchanged: {same}").format(same=same) if same else "",
        tr("Beyond the record: {beyond}").format(beyond=beyond) if beyond else "",
    )
    return "\n".join(part for part in parts if part)


def differing(picture: WhatIfPicture, preset: str, update: int) -> str:
    """Return a sentence on the settings of ``preset`` that differ from those of update ``update``."""
    differences = clauses(d.text for d in picture.what_if.differences if d.replayed)
    sentence = (
        tr("Update {update:,} under {preset} differs in its settings: {differences}.")
        if differences
        else tr("Update {update:,} under {preset} has the settings that it ran with.")
    )
    return sentence.format(update=update, preset=preset, differences=differences)

"""The pipeline: buttons for the four stages of an update, and the objective with this update's values."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.boxes import across, down, plain_scroll_area
from app.clock import Timer
from app.formula.objective_terms import changed_terms, is_another_formula, objective_terms, shorter_terms
from app.formula.term_strip import TermStrip
from app.plotting.numbers import brief, summed
from app.theme.labels import Label, allow
from app.widgets.panel import Panel
from app.widgets.stage_button import STAGE_NAMES, StageButton
from app.workspace.cursor import Stage
from app.workspace.run_handle import RunHandle
from app.workspace.step_view import advantage_of
from app.workspace.view import View, place_shown
from app.workspace.workspace import Workspace
from grpo_core import recompute
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective, Settings
from grpo_core.explain import Quantity
from grpo_core.surrogates import SURROGATES
from grpo_core.text import plural, tr

MARGINS, SPACE, BEFORE_PLACE = (8, 6, 12, 4), 4, 12
"""Pixels: margins of the panel, gap between two stages, and gap before the label that names the completion and
token.
"""
TALL = 720
"""Minimum height of the window in pixels at 100 % for the names below the terms, which the bars need otherwise."""
CHANGE_MS = 7000
"""Milliseconds for which a change of the formula is shown, unless another one comes first."""


class PipelinePanel(Panel):
    """The stages of the update shown, and the objective with its values at the current stage."""

    plans = False

    def __init__(self, workspace: Workspace, parent: QWidget | None = None) -> None:
        super().__init__(workspace, parent)
        self._wanted: tuple[RunHandle | None, Objective] = workspace.run, workspace.editing.wanted.objective
        self._change: tuple[Objective, Objective] | None = None
        self._change_from = 1
        self.change_timer = Timer(self, self._on_change_over, CHANGE_MS)
        workspace.editing.changed.connect(self._on_edited)
        workspace.activated.connect(self._on_edited)
        self.stages = {stage: StageButton(stage) for stage in Stage}
        self.strip = TermStrip(late=True)
        self.strip.typeset.connect(self.redraw)
        self.strip.term_activated.connect(self._on_term)
        self.area = plain_scroll_area(self.strip)  # with large type on a small screen, a long objective does not fit
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.area.setMinimumHeight(1)
        self.which = Label(name="muted")
        self._arrows: list[Label] = []
        top = across(margins=0, spacing=SPACE)
        for stage, button in self.stages.items():
            button.clicked.connect(partial(workspace.show_stage, stage))
            if stage:
                self._arrows.append(Label("›", name="muted"))
                top.addWidget(self._arrows[-1])
            top.addWidget(button)
        top.addSpacing(BEFORE_PLACE)
        top.addWidget(self.which)  # not at the end, where the counter is in presenting mode
        top.addStretch(1)
        down(top, (self.area, 1), on=self, margins=MARGINS, spacing=4)

    # -- drawing -----------------------------------------------------------------------------------------------------

    def draw(self, view: View) -> None:
        for stage, button in self.stages.items():
            reached = view.step.step is not None and stage <= view.cursor.stage
            current = view.step.step is not None and stage is view.cursor.stage
            allow(button, tr("No update is shown; press Step to compute one.") if view.step.step is None else "")
            button.show_stage(view.theme, view.scale, _name(stage, view), reached, current)
        if sum(button.sizeHint().width() for button in self.stages.values()) > self.width() - 60 * view.scale:
            for stage, button in self.stages.items():
                button.setText(STAGE_NAMES[stage])
        settings = _settings(view)
        self.strip.set_look(view.theme, view.scale)
        self.strip.show_words(self.window().height() >= TALL * view.scale)
        unknown = bool(view.run.why_no_step or view.step.assumption)  # the source does not say how it trained
        self.area.setVisible(not unknown)
        place = place_shown(view)
        changed = self._change is not None and self._draw_change(*self._change)
        if not changed:
            self.strip.set_terms(objective_terms(settings.objective))
            self.strip.fit(max(self.width() - 20, 200))
        self.strip.set_values(_values(view, *place) if place and not changed else {})
        self.strip.highlight(None if view.quantity is None else view.quantity.name)
        top = max(button.sizeHint().height() for button in self.stages.values())
        below = 0 if unknown else self.strip.heightForWidth(max(self.width() - 20, 200))
        wanted = top + below + 16
        self.set_row_height(max(wanted, self.row_height) if changed else wanted)
        named = changed or (place is not None and view.cursor.stage >= Stage.NORMALIZE)
        self._show_place(
            (tr("from update {number} on").format(number=self._change_from),) if changed else _place_texts(view, place),
            named,
        )

    def _show_place(self, texts: tuple[str, ...], named: bool) -> None:
        """Show the first of ``texts`` that fits next to the stages, if ``named`` and any fits."""
        shown = [*self.stages.values(), *self._arrows]
        used = sum(widget.sizeHint().width() for widget in shown) + SPACE * (len(shown) + 2) + BEFORE_PLACE
        space = self.width() - MARGINS[0] - MARGINS[2] - used
        metrics = self.which.fontMetrics()
        fitting = [text for text in texts if metrics.horizontalAdvance(text) < space]
        if fitting:
            self.which.setText(fitting[0])
        self.which.setVisible(named and bool(fitting))

    def _draw_change(self, before: Objective, after: Objective) -> bool:
        """Show the difference between two objectives in place of the formula, if it fits. Return whether it does."""
        width = max(self.width() - 20, 200)
        self.strip.set_terms(objective_terms(before))
        self.strip.fit(width)
        space = QSize(width, self.strip.heightForWidth(width))
        for terms in (changed_terms(before, after), *shorter_terms(before, after)):
            self.strip.set_terms(terms)
            if self.strip.fit_in(space):
                return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.redraw()

    def summary(self, view: View) -> str:
        if view.step.step is None:
            if view.run.why_no_step:
                return view.run.why_no_step
            return tr("No update yet: sample, score, normalize and update appear with the first one.")
        return tr("Update {step:,}: {stage}.").format(
            step=view.run.label(view.cursor.step), stage=_name(view.cursor.stage, view)
        )

    # -- input -------------------------------------------------------------------------------------------------------

    @Slot()
    def _on_edited(self) -> None:
        """If the next update has another formula, show for a few seconds which terms go and which are new."""
        run, objective = self.workspace.run, self.workspace.editing.wanted.objective
        (known, before), self._wanted = self._wanted, (run, objective)
        if run is not known or objective == before:
            return
        if is_another_formula(before, objective):
            self._change, self._change_from = (before, objective), (0 if run is None else run.head) + 1
            self.change_timer.start()
            self.redraw()
        elif self._change is not None:  # a number has been edited in the meantime
            self.change_timer.stop()
            self._on_change_over()

    @Slot()
    def _on_change_over(self) -> None:
        self._change = None
        self.redraw()

    @Slot(str)
    def _on_term(self, key: str) -> None:
        view = self.workspace.view
        place = place_shown(view)
        if place is None:
            return
        row, token = place
        passed = view.step.passed
        if key == "loss":
            self.workspace.explain(Quantity("loss", passed=passed))
        elif key in ("ratio", "advantage", "weight", "gate", "kl", "clipped", "logp", "surrogate"):
            self.workspace.explain(Quantity(key, passed=passed, row=row, token=token))
        else:
            self.workspace.explain(Quantity("token_loss", passed=passed, row=row, token=token))


def _name(stage: Stage, view: View) -> str:
    settings = _settings(view)
    if view.run.why_no_step or view.step.assumption:
        return STAGE_NAMES[stage]
    if stage is Stage.SAMPLE:
        prompts = _prompts(view)
        times = f"{prompts} × " if prompts > 1 else ""
        return tr("Sample {times}{group_size}").format(times=times, group_size=settings.learner.group_size)
    if stage is Stage.SCORE:
        return tr("Score", "stage")
    if stage is Stage.NORMALIZE:
        return (
            tr("Normalize in group", "stage")
            if BASELINES[settings.objective.baseline].within_group
            else tr("Compare", "stage")
        )
    passes = view.step.passes or settings.learner.mu
    if view.step.step is None or view.cursor.stage is not Stage.UPDATE:
        if passes == 1:
            return tr("Update", "stage")
        return plural("Update, {passes} pass", "Update, {passes} passes", passes).format(passes=passes)
    return tr("Update, pass {passed} of {passes}").format(passed=view.step.passed + 1, passes=passes)


def _settings(view: View) -> Settings:
    """Return the settings of the update shown, or those of the next one if none is shown."""
    shown_here = view.step.step is not None or view.run.is_recorded
    return view.step.settings if shown_here else view.next_settings


def _prompts(view: View) -> int:
    settings, step = _settings(view), view.step.step
    if settings.is_recorded:
        return 1 if step is None else int(step.group.max(initial=0)) + 1
    return settings.trained.prompts


def _values(view: View, row: int, token: int) -> dict[str, str]:
    """Return the current values by key, limited to what the stage has revealed.

    They are short, so that the formula keeps its lines.
    """
    terms, step, stage = view.step.terms, view.step.step, view.cursor.stage
    if terms is None or step is None:
        return {}
    values = {"logp": brief(float(step.logp[view.step.passed, row, token]))}
    if stage >= Stage.NORMALIZE:
        values["advantage"] = brief(advantage_of(view.step, row, token))
    if stage is Stage.UPDATE:
        objective = view.step.objective
        ratio = float(terms.ratio[row, token])
        assert view.step.numbers is not None
        loss = summed(float(terms.loss), rounding=view.step.numbers.rounding("loss", view.step.passed))
        values |= {
            "ratio": brief(ratio),
            "weight": f"{terms.weight[row, token]:.3g}",
            "loss": brief(float(terms.loss)) if "e" in loss else loss,
        }
        gate = recompute.gate_of(step, view.step.passed)
        values["gate"] = brief(1.0 if gate is None else float(gate[row, token]))
        clip = SURROGATES[objective.surrogate].clip
        if clip is not None and clip.after is not None:
            values["clipped"] = brief(clip.after(objective, ratio))
        if terms.kl is not None:
            values["kl"] = brief(float(terms.kl[row, token]))
    return values


def _place_texts(view: View, place: tuple[int, int] | None) -> tuple[str, ...]:
    """Return two labels, the second shorter, that name the completion and the token of the values below the terms.

    The tuple is empty if the values belong to no single token.
    """
    step = view.step.step
    if step is None or place is None:
        return ()
    long = step.tokens.shape[1] > 1
    if view.cursor.stage is Stage.UPDATE:  # then L, too, has a value: that of the entire update
        patterns = (
            (
                tr("values of sample {sample}, token {token}; L sums all"),
                tr("sample {sample}, token {token}; L sums all"),
                tr("sample {sample}, token {token}"),  # the formula itself has the sum
            )
            if long
            else (tr("values of sample {sample}; L sums all"), tr("sample {sample}; L sums all"))
        )
    else:
        patterns = (
            (tr("values of sample {sample}, token {token}"), tr("sample {sample}, token {token}"))
            if long
            else (tr("values of sample {sample}"), tr("sample {sample}"))
        )
    return tuple(pattern.format(sample=place[0] + 1, token=place[1] + 1) for pattern in patterns)

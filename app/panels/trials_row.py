"""The trials of the training history, as a row of chips with a button for repeats, and as a table.

They are this run, its repeats and earlier runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.boxes import across, down
from app.experiments.computed_on import ComputedOnField, menu_button
from app.experiments.repeats import COUNT, PINNED, RepeatResults
from app.jobs.computed_on import ComputedOn
from app.panels.trial_chips import ChipRow, TrialChip
from app.plotting.numbers import shown
from app.plotting.table_model import Column
from app.theme.labels import Label, wrapped_tip
from app.theme.painted_text import SourcedText
from app.widgets.calm import push_button
from app.workspace.run_handle import RunHandle
from app.workspace.trials import HALF, MOST, Trial, differences, likeliest
from app.workspace.view import View
from grpo_core.config import Settings
from grpo_core.metrics import METRICS
from grpo_core.text import listed, plural, tr

LINE = 28
"""Height in pixels at 100 % of the chips, and maximum height of the sentence."""
OWN = tr("This is the run that is shown; it is always drawn.")
HINT = tr("Runs that you leave stay here as thin lines.")
TIP = plural(
    "The same settings with {count} other seed, side by side: their range is drawn behind this run's "
    "lines. For a language model they are queued as runs in the background.",
    "The same settings with {count} other seeds, side by side: their range is drawn behind this run's "
    "lines. For a language model they are queued as runs in the background.",
    COUNT,
).format(count=COUNT)


class TrialsRow(QWidget):
    """Chips and a button, with a sentence below on the results of the repeats.

    Attributes:
        repeats_answer: the first part of the sentence, which is shown if the whole does not fit.

    Signals:
        toggled: show or hide this run or these repeats.
        pointed: the run whose chip has the pointer or the keyboard focus, or None.
        explain_wanted: explain the number of this run or of these repeats.
    """

    toggled = Signal(object)
    opened = Signal(object)
    pointed = Signal(object)
    explain_wanted = Signal(object)

    def __init__(self, computed_on: ComputedOn, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.hint = Label(tr("Trials"), name="section"), Label(HINT, name="muted")
        self.row = ChipRow()
        self.own, self.repeats = TrialChip("policy", can_hide=False), TrialChip()
        self.pinned = [TrialChip() for _ in range(PINNED)]
        self.chips = [TrialChip() for _ in range(MOST)]
        for chip in (self.repeats, *self.pinned, *self.chips):
            chip.clicked.connect(partial(self._on_clicked, chip))
        for chip in (self.own, self.repeats, *self.pinned):
            chip.opened.connect(chip.explain_wanted)  # it has no run of its own to open
        for chip in self.chips:
            chip.opened.connect(self.opened)
            chip.pointed.connect(self.pointed)
        self._all_chips = (self.own, self.repeats, *self.pinned, *self.chips)
        for chip in self._all_chips:
            chip.explain_wanted.connect(self.explain_wanted)
        for widget in (*self._all_chips, self.hint):
            widget.setParent(self.row)
            widget.hide()
        self.button = push_button(tip=TIP)
        # a click does not take the focus, so that Space still starts the run
        self.button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.where = menu_button(tr("Computed on"), ComputedOnField(computed_on))
        self.sentence = SourcedText("small", "muted")
        self.sentence.source_wanted.connect(self.repeats.explain_current)
        self.sentence.hide()
        self.second = ChipRow()
        self.second.hide()
        line = across(self.title, (self.row, 1), self.button, self.where, margins=(12, 2, 8, 0), spacing=8)
        below = down(self.second, self.sentence, margins=(12, 0, 8, 0), spacing=0)
        down(line, below, on=self, margins=0, spacing=0)
        self._widgets: list[QWidget] = []
        self._lines, self.repeats_answer = 1, ""
        self._shown: tuple[object, ...] = ()

    def show_state(
        self,
        view: View,
        past_half: int | None,
        repeats: RepeatResults | None,
        pinned: tuple[tuple[RepeatResults, bool], ...] = (),
        *,
        busy: bool,
        drawn: bool,
        space: float,
    ) -> None:
        """Show the trials of ``view``.

        Args:
            past_half: the first update of the run after which its largest probability exceeds one half.
            repeats: results of the repeats so far; None if there are none.
            pinned: earlier repeats, each with whether it is drawn.
            busy: whether repeats are still being computed.
            drawn: whether the repeats are drawn.
            space: available height in pixels. Without enough of it, the sentence about the repeats loses its last
                parts, then a second line of chips is hidden, then all sentences, then the row.
        """
        run = view.run
        own = reached_text(tr("this run"), run, past_half, likeliest(run, past_half)) or tr("this run")
        here, lines = run.changes[-1][1], int(space // (LINE * view.scale))
        batch = repeats, *((repeats.count, repeats.note) if repeats is not None else ())
        stamp = (run, view.trials, own, here, batch, pinned, busy, drawn, view.theme, view.scale, lines)
        if stamp == self._shown:
            return
        self._shown = stamp
        self.setVisible(not run.is_recorded and lines >= 1)
        self._apply_style(view)
        self.own.show_trial(own, OWN, run, shown=True)
        whole = ""
        if repeats is not None:
            text = repeats.title(here) if not repeats.count else f"{repeats.title(here)}: {repeats.numbers}"
            whole = repeats.sentence(repeats.own_of(run, past_half))
            self.repeats.show_trial(text, whole, repeats, shown=drawn)
        for chip, (one, shown_too) in zip(self.pinned, reversed(pinned), strict=False):
            chip.show_trial(f"{one.title(here)}: {one.numbers}", one.sentence(None), one, shown=shown_too)
        for chip, trial in zip(self.chips, reversed(view.trials), strict=False):
            chip.show_trial(trial_text(trial), trial_tip(trial), trial.run, shown=trial.shown)
        widgets: list[QWidget] = [*([self.repeats] if repeats is not None else []), *self.pinned[: len(pinned)]]
        widgets.insert(0 if not widgets or lines >= 2 else len(widgets), self.own)
        widgets += self.chips[: len(view.trials)] or [self.hint]
        self.row.factor = self.second.factor = view.scale
        for row in (self.row, self.second):
            row.setFixedHeight(self.own.sizeHint().height())
        answer = "" if repeats is None or not drawn else repeats.answer([one for one, _ in pinned])
        text = " ".join(part for part in (answer, whole) if part) if answer or drawn else ""
        self.sentence.show_text(text, view.theme, view.scale, answer)
        self.sentence.setToolTip(wrapped_tip(text))
        self.sentence.setVisible(bool(text) and lines >= 2)
        self._widgets, self._lines, self.repeats_answer = widgets, lines, answer
        self._spread()
        self._name(busy)

    def _spread(self) -> None:
        """Move widgets that do not fit next to the button to a second line, if there is enough height.

        The sentence gets the rest of the height, but no more than it needs.
        """
        count, lines = self.row.fitting(self._widgets), self._lines - (not self.sentence.isHidden())
        if lines >= 2 and self._widgets and self._widgets[0].sizeHint().width() > self.row.width() > 0:
            count = 0
        rest = self._widgets[count:] if lines >= 2 else []
        self.row.show_widgets([widget for widget in self._widgets if widget not in rest])
        rest = [widget for widget in rest if widget is not self.hint]
        self.second.show_widgets(rest)
        self.second.setVisible(bool(rest))
        if not self.sentence.isHidden():
            space = (self._lines - 1 - bool(rest)) * LINE * self.row.factor
            most = max(int(space // self.sentence.fontMetrics().lineSpacing()), 1)
            needed = self.sentence.lines_needed(self.sentence.text())
            self.sentence.set_lines(
                needed if needed <= most else min(self.sentence.lines_needed(self.repeats_answer), most)
            )

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._spread()

    def _apply_style(self, view: View) -> None:
        small = view.theme.font("small", view.scale)
        for widget in (self.title, self.hint, self.button, self.where):
            widget.setFont(view.theme.font("section", view.scale) if widget is self.title else small)
        for chip in self._all_chips:
            chip.set_look(view.theme, view.scale)

    def _name(self, busy: bool) -> None:
        """Set the button's label, and a width that fits both of its labels."""
        words = tr("Repeat × {count}").format(count=COUNT), tr("Cancel")
        self.button.setMinimumWidth(0)
        widths = []
        for word in words:
            self.button.setText(word)
            widths.append(self.button.sizeHint().width())
        self.button.setText(words[busy])
        self.button.setMinimumWidth(max(widths))
        self.button.setMaximumHeight(self.own.sizeHint().height() + 4)

    # -- input -------------------------------------------------------------------------------------------------------

    def _on_clicked(self, chip: TrialChip) -> None:
        self.toggled.emit(chip.subject)


def held_out(run: RunHandle) -> tuple[float, int] | None:
    """Return the last measured share of correct held-out answers, and the update before which it was measured."""
    values = run.series["accuracy_greedy"].values
    known = np.flatnonzero(np.isfinite(values))
    return (float(values[known[-1]]), int(known[-1]) + 1) if known.size else None


def reached_text(name: str, run: RunHandle, past_half: int | None, action: str) -> str:
    """Return ``name`` with what ``run`` has reached: the last held-out share of a language model, or the update
    ``past_half`` after which one action had most of the probability. Empty if it has reached neither.
    """
    held = held_out(run) if run.origin.settings.is_language else None
    if held is not None:
        text = tr("{name}: held-out {share} at {update}")
        return text.format(name=name, share=shown(held[0], 2), update=held[1])
    if past_half is None:
        return ""
    text = tr("{name}: π({action}) > 0.5 at {update}") if action else tr("{name}: max π > 0.5 at {update}")
    return text.format(name=name, action=action, update=past_half)


def trial_text(trial: Trial) -> str:
    """Return the label of the chip for an earlier run."""
    if trial.run.origin.settings.is_language:
        text = plural("{name}: {updates} update", "{name}: {updates} updates", trial.updates)
    else:
        text = tr("{name}: π below 0.5")
    reached = reached_text(trial.name, trial.run, trial.past_half, trial.action)
    return reached or text.format(name=trial.name, updates=trial.updates)


def trial_tip(trial: Trial) -> str:
    return plural(
        "{title}, {updates:,} update. The update is the first one after which the largest probability, averaged over "
        "the visited places, is past 0.5. A click shows or hides its lines, a double click or Return opens it.",
        "{title}, {updates:,} updates. The update is the first one after which the largest probability, averaged over "
        "the visited places, is past 0.5. A click shows or hides its lines, a double click or Return opens it.",
        trial.updates,
    ).format(title=trial.run.title, updates=trial.updates)


LAST = ("reward_mean", "max_prob", "kl", "entropy")
"""Series whose last value is shown in a column."""
COLUMNS = (
    Column("run", tr("Run", "noun"), chars=16, kind="text"),
    Column("seed", tr("Seed"), chars=6, decimals=0),
    Column("differs", tr("Differs in"), chars=14, kind="text"),
    Column(
        "past_half",
        tr("π > {half:g} at").format(half=HALF),
        chars=9,
        decimals=0,
        help=tr("The first update after which the largest probability, averaged over the visited places, is past 0.5."),
    ),
    Column("updates", tr("Updates"), chars=8, decimals=0),
    *(Column(name, METRICS[name].title, chars=12, unit=METRICS[name].unit, help=METRICS[name].help) for name in LAST),
)


def trial_rows(
    run: RunHandle, past_half: int | None, trials: tuple[Trial, ...], repeats: Sequence[RepeatResults]
) -> list[list[object]]:
    """Return the rows: ``run``, then ``trials``, newest first, then all ``repeats``, newest first, by their seeds."""
    rows = [_row(run, tr("this run"), "", past_half)]
    rows += [_row(one.run, one.run.title, _words(one.differs), one.past_half) for one in reversed(trials)]
    here = run.changes[-1][1]
    return rows + [row for batch in reversed(repeats) if batch.count for row in _repeats(batch, here)]


def _words(differs: tuple[str, ...]) -> str:
    return listed(differs) or tr("nothing but the seed")


def _row(run: RunHandle, title: str, differs: str, past_half: int | None) -> list[object]:
    last = [run.series[name].last if len(run.series[name]) else None for name in LAST]
    return [title, run.origin.settings.seed, differs, past_half, run.head, *last]


def _repeats(repeats: RepeatResults, here: Settings) -> list[list[object]]:
    past, differs = repeats.past_half, _words(differences(repeats.settings, here))
    return [
        [
            tr("repeat"),
            seed,
            differs,
            int(past[place]) if np.isfinite(past[place]) else None,
            repeats.count,
            *(float(repeats.series[name][-1, place]) for name in LAST),
        ]
        for place, seed in enumerate(repeats.seeds)
    ]

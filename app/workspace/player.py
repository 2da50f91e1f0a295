"""The playback controls: run, pause, step, step back, and reveal a single stage.

Before the head, they replay updates; at the head, they compute new ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from PySide6.QtCore import QObject, Signal, Slot

from app.clock import Timer
from app.training.controller import Controller, State
from app.workspace.cursor import Cursor, Stage
from app.workspace.film import FilmClock, stage_film, update_film
from app.workspace.run_handle import RunHandle
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError


@dataclass(frozen=True, kw_only=True)
class Tempo:
    """The tempo of one kind of run.

    Attributes:
        speed: updates per second; None for as many as possible.
        length: number of updates after which a run stops automatically; None for no limit.
    """

    speed: float | None
    length: int | None


BANDIT, LANGUAGE = Tempo(speed=5.0, length=200), Tempo(speed=2.0, length=150)
"""Defaults. Both kinds solve their tasks within seconds, so they are slowed down until the user wants them faster."""


STAGED_SPEED = 2.0
"""Maximum number of updates per second at which the stages of an update are played one after another."""
FASTEST_REPLAY = 30.0
MOST_SHOWN = 10.0
"""Maximum number of recorded updates shown per second. A faster replay skips updates."""
MOVING = (State.PREPARING, State.RUNNING, State.STOPPING, State.CLOSING, State.ENDING)


class Mode(Enum):
    """Modes of playback."""

    RESTING = "resting"
    REPLAYING = "replaying"
    COMPUTING = "computing"


class Order(Enum):
    """The last request to compute updates. It determines how they are shown when they arrive."""

    NONE = "none"
    RUN = "run"
    AT_ONCE = "run, whatever the speed"
    STEP = "one update, with its film"
    STAGE = "one update, up to its first stage"


class Player(QObject):
    """Moves the cursor through recorded updates, and has the controller compute new ones.

    Attributes:
        tempi: speed and length of runs, for bandits (False) and for language models (True).
        staged: whether slow runs and single stages are played as films (off with reduced motion).
        prepare: hands the active run to the controller before anything is computed; can raise ``GrpoError``.

    Signals:
        changed: emitted when the mode, speed or length changes.
        starting: emitted when the user is about to continue from the current update, so that listeners can make this
            possible.
    """

    changed = Signal()
    starting = Signal()

    def __init__(self, workspace: Workspace, controller: Controller, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._controller = controller
        self.tempi = {False: BANDIT, True: LANGUAGE}
        self.staged = True
        self._replay = Timer(self, self._on_replay, repeats=True)
        self.film = FilmClock(workspace, parent=self)
        self.film.changed.connect(self.changed)
        self.film.finished.connect(self._on_film_finished)
        self._order = Order.NONE
        self._then_run = False
        """Whether to run after the current replay or film has ended."""
        self._stride = 1
        self.prepare: Callable[[], None] = lambda: None
        controller.state_changed.connect(self._on_state)

    # -- commands ----------------------------------------------------------------------------------------------------

    @Slot()
    def toggle(self) -> None:
        if self.busy:
            self.pause()
        else:
            self.run()

    @Slot()
    def run(self) -> None:
        """Replay up to the head, and then continue computing.

        A run that cannot be continued is only replayed, starting over if the cursor is at its head.
        """
        if self.film.paused:
            self.film.resume()
            return
        self.starting.emit()
        self._reveal()
        run = self._workspace.run
        ended = run is not None and bool(run.read_only)
        if ended and not self._behind:
            self._workspace.move_to(0)
        if self._behind:
            self._then_run = not ended
            self._start_replay()
        else:
            self._compute(self.length)

    @Slot()
    def pause(self) -> None:
        """Pause a film, stop replaying, or stop computing after the current update."""
        within_film = self.film.playing and self.mode is not Mode.RESTING
        self.film.pause()
        if self.mode is Mode.REPLAYING:
            self._stop_replay()
        elif self.busy:
            if self.loading:
                self._order = Order.NONE
            self._controller.pause()
            self.changed.emit()
        self._then_run = within_film

    def rest(self) -> None:
        """Stop replaying. An update that is being computed is not cancelled."""
        self._stop_replay()
        self.film.end()

    @Slot()
    def step(self) -> None:
        """Show the next update, replayed if recorded and otherwise computed.

        A partially revealed update is first revealed completely.
        """
        self.starting.emit()
        self._stop_replay()
        impatient = self.film.whole  # pressed again while the film of the last step is playing
        cursor = self._workspace.cursor
        if cursor.step > 0 and cursor.next_stage(self._passes) is not None:
            self._reveal()
            if not impatient:
                return
        if self._behind:
            self._workspace.move_to(self._workspace.cursor.step + 1)
            self._play_update(by_hand=True)
        else:
            self._compute(1, Order.STEP)

    def go_on(self) -> None:
        """Resume a paused film, or jump to the end of a film that is playing."""
        if self.film.paused:
            self.film.resume()
        elif self.film.playing:
            self._reveal()

    @Slot()
    def step_back(self) -> None:
        self.pause()
        self.film.end()
        self._workspace.move_to(self._workspace.cursor.step - 1)

    @Slot()
    def stage(self) -> None:
        """Reveal the next stage of the update. After its last stage, go to the next update."""
        self.starting.emit()
        self._stop_replay()
        here = self._workspace.cursor.next_stage(self._passes)
        if here is not None and self._workspace.cursor.step > 0:
            self._show_stage(here)
        elif self._behind:
            self._workspace.move_to(self._workspace.cursor.step + 1)
            self._show_stage(Cursor(step=self._workspace.cursor.step, stage=Stage.SAMPLE))
        else:
            self._compute(1, Order.STAGE)

    @Slot()
    def stage_back(self) -> None:
        """Go one stage back. Before the first stage, go to the end of the previous update."""
        self._stop_replay()
        self.film.end()
        here = self._workspace.cursor.previous_stage(self._passes)
        if here is not None and self._workspace.cursor.step > 0:
            self._workspace.show_stage(here.stage, here.passed)
        else:
            self.step_back()

    def run_n(self, updates: int, *, at_once: bool = False) -> None:
        """Go forward by ``updates`` updates, compute those that are not recorded yet, and then stop.

        ``at_once``: whether to compute as fast as possible, regardless of the speed setting.
        """
        self.starting.emit()
        self._stop_replay()
        self._reveal()
        head = self._workspace.run.head if self._workspace.run else 0
        ahead = self._workspace.cursor.step + updates - head
        if ahead <= 0:
            self._workspace.move_to(self._workspace.cursor.step + updates)
        else:
            self._workspace.follow()
            self._compute(ahead, Order.AT_ONCE if at_once else Order.RUN)

    @property
    def speed(self) -> float | None:
        """Updates per second for runs of the current kind, or None for as many as possible."""
        return self.tempi[_is_language(self._workspace.run)].speed

    @property
    def length(self) -> int | None:
        """Number of updates after which runs of the current kind stop automatically, or None for no limit."""
        return self.tempi[_is_language(self._workspace.run)].length

    def set_speed(self, speed: float | None, *, language: bool | None = None) -> None:
        """Set the number of updates per second, or None for as many as possible.

        ``language``: whether this applies to runs of language models; None for the kind of the current run.
        """
        kind, training = _is_language(self._workspace.run) if language is None else language, self._workspace.training
        self.tempi[kind] = replace(self.tempi[kind], speed=speed)
        self._heed_speed()
        if training is None or _is_language(training) is kind:
            self._controller.set_speed(speed)
        if self._replay.isActive():
            self._start_replay()
        self.changed.emit()

    def set_length(self, length: int | None) -> None:
        """Set the number of updates after which runs of the current kind stop automatically. None means no limit."""
        kind = _is_language(self._workspace.run)
        self.tempi[kind] = replace(self.tempi[kind], length=length)
        self.changed.emit()

    # -- replaying and films -------------------------------------------------------------------------------------------

    def on_new_head(self) -> None:
        """Show a new update when it arrives: its first stage, its film, or its result, whichever was requested."""
        if self._order is Order.STAGE:
            self._order = Order.RUN
            self._show_stage(Cursor(step=self._workspace.cursor.step, stage=Stage.SAMPLE))
        elif self._workspace.following:  # the last update can arrive after the run is reported as stopped
            self._play_update(by_hand=self._order is Order.STEP)

    def _play_update(self, *, by_hand: bool = False) -> None:
        """Play the film of the current update if the speed is low, or always if ``by_hand`` (a single step)."""
        slow = self._order is not Order.AT_ONCE and self.speed is not None and self.speed <= STAGED_SPEED
        if self.staged and (slow or by_hand):
            interval = 1 / self.speed if self.speed is not None and slow else math.inf
            if self.mode is not Mode.REPLAYING:
                self._then_run = False  # the update was already computing when the run was paused
            self.film.play(update_film(self._workspace.cursor.step, self._passes, interval))

    def _show_stage(self, here: Cursor) -> None:
        self._workspace.show_stage(here.stage, here.passed)
        if self.staged:
            self.film.play(stage_film(self._workspace.cursor, self._passes))

    @property
    def mode(self) -> Mode:
        """The current mode. While recorded updates are replayed, another run can be training."""
        if self._replay.isActive():
            return Mode.REPLAYING
        return Mode.COMPUTING if self._controller.state in MOVING else Mode.RESTING

    @property
    def busy(self) -> bool:
        """Whether the current run is playing a film, replaying updates, or computing new ones.

        A run whose model is still loading counts only if it has been started; it runs once the model is loaded.
        """
        here = self._workspace.training in (None, self._workspace.run)
        computing = self.mode is Mode.COMPUTING and (self._order is not Order.NONE or not self.loading)
        return self.mode is Mode.REPLAYING or (computing and here) or self.film.playing

    @property
    def loading(self) -> bool:
        """Whether the run's learner is being prepared, which takes several seconds for a language model."""
        return self._controller.state is State.PREPARING

    @property
    def _behind(self) -> bool:
        run = self._workspace.run
        return run is not None and self._workspace.cursor.step < run.head

    @property
    def _passes(self) -> int:
        return max(self._workspace.view.step.passes, 1)

    def _reveal(self) -> None:
        self.film.end()
        cursor = self._workspace.cursor
        if cursor != Cursor(step=cursor.step):
            self._workspace.show_stage(Stage.UPDATE)

    def _compute(self, updates: int | None, order: Order = Order.RUN) -> None:
        try:
            self.prepare()
        except GrpoError as error:
            self._workspace.problem.emit(str(error), "error")
            return
        self._order = order
        self._workspace.follow()
        self._controller.set_speed(None if order is Order.AT_ONCE else self.speed)
        self._controller.run(updates)
        self.changed.emit()

    def _heed_speed(self) -> None:
        if self._order is Order.AT_ONCE:
            self._order = Order.RUN

    def _start_replay(self) -> None:
        self._heed_speed()
        speed = min(self.speed or FASTEST_REPLAY, FASTEST_REPLAY)
        self._stride = max(round(speed / MOST_SHOWN), 1)
        self._replay.start(round(1000 * self._stride / speed))
        self._on_mode()

    @Slot()
    def _on_replay(self) -> None:
        if self._behind:
            self._workspace.move_to(self._workspace.cursor.step + self._stride)
            self._play_update()
            return
        then_run = self._then_run
        self._stop_replay()
        if then_run:
            self._compute(self.length)

    def _stop_replay(self) -> None:
        """Stop replaying. Another run can still be training."""
        self._then_run = False
        if self._replay.isActive():
            self._replay.stop()
            self._on_mode()

    @Slot()
    def _on_film_finished(self) -> None:
        if self._then_run and self.mode is not Mode.REPLAYING:
            self._then_run = False
            self.run()

    @Slot(object)
    def _on_state(self, state: State) -> None:
        if state is State.PREPARING and not self._workspace.running:  # no updates of it have been requested so far
            self._order = Order.NONE
        self._on_mode()

    def _on_mode(self) -> None:
        self._workspace.set_running(self.mode is not Mode.RESTING)
        self.changed.emit()


def _is_language(run: RunHandle | None) -> bool:
    return run is not None and run.origin.settings.is_language

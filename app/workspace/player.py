"""The transport: run, pause, step, step back, one stage. Before the head it replays, at the head it computes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from enum import Enum

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.training.controller import Controller, State
from app.workspace.cursor import Cursor, Stage
from app.workspace.film import stage_film, update_film
from app.workspace.film_clock import FilmClock
from app.workspace.run_handle import RunHandle
from app.workspace.tempo import BANDIT, LANGUAGE
from app.workspace.workspace import Workspace
from grpo_core.errors import GrpoError
from grpo_core.progress import Progress

STAGED_SPEED = 2.0
"""At this many updates per second and below, the stages of an update play one after the other."""
FASTEST_REPLAY = 30.0
MOST_SHOWN = 10.0
"""Recorded updates shown per second at most. A faster replay skips some."""
MOVING = (State.PREPARING, State.RUNNING, State.STOPPING, State.CLOSING, State.ENDING)


class Mode(Enum):
    """Modes of the transport."""

    RESTING = "resting"
    REPLAYING = "replaying"
    COMPUTING = "computing"


class Player(QObject):
    """Moves the cursor through recorded updates and asks the controller for new ones.

    Attributes:
        tempi: speed and length, for bandits (False) and for language models (True).
        staged: whether slow runs and single stages are played as films (off with reduced motion).
        film: the clock of these films.
        prepare: gives the active run to the controller before anything is computed; may raise ``GrpoError``.

    Signals:
        changed: mode, speed or length has changed.
        progressed: :attr:`progress` has changed.
        starting: the user is about to continue from the update shown; listeners make that possible first.
    """

    changed = Signal()
    progressed = Signal()
    starting = Signal()

    def __init__(self, workspace: Workspace, controller: Controller, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._workspace = workspace
        self._controller = controller
        self.mode = Mode.RESTING
        self.tempi = {False: BANDIT, True: LANGUAGE}
        self.staged = True
        self._replay = QTimer(self)
        self._replay.timeout.connect(self._on_replay)
        self.film = FilmClock(workspace, parent=self)
        self.film.changed.connect(self.changed)
        self.film.finished.connect(self._on_film_finished)
        self._run_on = self._run_after_film = self._by_hand = False
        self._ordered = self._at_once = False
        self._stride = 1
        self._begin: Stage | None = None
        self.prepare: Callable[[], None] = _nothing
        controller.state_changed.connect(self._on_state)
        controller.progressed.connect(self.progressed)

    # -- commands ----------------------------------------------------------------------------------------------------

    @Slot()
    def toggle(self) -> None:
        """Run, or pause if running."""
        if self.busy:
            self.pause()
        else:
            self.run()

    @Slot()
    def run(self) -> None:
        """Replay up to the head, then continue computing.

        A run that cannot be continued is only replayed; at its head, from the start.
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
            self._run_on = not ended
            self._start_replay()
        else:
            self._compute(self.length)

    @Slot()
    def pause(self) -> None:
        """Stop after the update that is being computed."""
        self._run_after_film = self.film.playing and self.mode is not Mode.RESTING
        self.film.pause()
        if self.mode is Mode.REPLAYING:
            self._stop_replay()
        elif self.busy:
            self._ordered = False
            self._controller.pause()
            self.changed.emit()

    def rest(self) -> None:
        """Stop replaying. The update that is being computed goes on."""
        self._stop_replay()
        self.film.end()

    @Slot()
    def step(self) -> None:
        """Show the next update: replayed if it is recorded, computed if not. A half-revealed update is first revealed
        in full."""
        self.starting.emit()
        self._stop_replay()
        self._run_after_film = False
        impatient = self.film.whole  # pressed again while the film of the last step plays
        if self._half_revealed:
            self._reveal()
            if not impatient:
                return
        if self._behind:
            self._workspace.move_to(self._workspace.cursor.step + 1)
            self._play_update(by_hand=True)
        else:
            self._compute(1, by_hand=True)

    def skip_film(self) -> None:
        """Jump to the end of the current film."""
        if self.film.playing:
            self._reveal()

    @Slot()
    def step_back(self) -> None:
        """Show the previous update."""
        self.pause()
        self.film.end()
        self._workspace.move_to(self._workspace.cursor.step - 1)

    @Slot()
    def stage(self) -> None:
        """Reveal the next stage of the update. Past its last stage, go to the next update."""
        self.starting.emit()
        self._stop_replay()
        self._run_after_film = False
        here = self._workspace.cursor.next_stage(self._passes)
        if here is not None and self._workspace.cursor.step > 0:
            self._show_stage(here)
        elif self._behind:
            self._workspace.move_to(self._workspace.cursor.step + 1)
            self._show_stage(Cursor(step=self._workspace.cursor.step, stage=Stage.SAMPLE))
        else:
            self._compute(1, begin=Stage.SAMPLE)

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

    def scrub(self, seconds: float) -> None:
        """Move ``seconds`` forward in the film of the update shown, and pause there."""
        self.pause()
        if self._workspace.cursor.step > 0:
            self.film.scrub(update_film(self._workspace.cursor.step, self._passes, math.inf), seconds)

    def run_n(self, updates: int, *, at_once: bool = False) -> None:
        """Compute ``updates`` updates from here, then stop.

        ``at_once``: as fast as they can be computed, regardless of the speed setting.
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
            self._compute(ahead, at_once=at_once)

    @property
    def speed(self) -> float | None:
        """Updates per second for this kind of run, None for as many as possible."""
        return self.tempi[_is_language(self._workspace.run)].speed

    @property
    def length(self) -> int | None:
        """Number of updates after which this kind of run stops by itself, None for no limit."""
        return self.tempi[_is_language(self._workspace.run)].length

    def set_speed(self, speed: float | None, *, language: bool | None = None) -> None:
        """Set the updates per second for one kind of run, by default the kind of the run shown.

        None means as many as possible.
        """
        kind, training = _is_language(self._workspace.run) if language is None else language, self._workspace.training
        self.tempi[kind] = replace(self.tempi[kind], speed=speed)
        self._at_once = False
        if training is None or _is_language(training) is kind:
            self._controller.set_speed(speed)
        if self._replay.isActive():
            self._start_replay()
        self.changed.emit()

    def set_length(self, length: int | None) -> None:
        """Set the number of updates after which this kind of run stops by itself. None for no limit."""
        kind = _is_language(self._workspace.run)
        self.tempi[kind] = replace(self.tempi[kind], length=length)
        self.changed.emit()

    # -- replaying and films -------------------------------------------------------------------------------------------

    def on_new_head(self) -> None:
        """Play the stages of an update that has arrived, at slow speeds or after a single step."""
        if self._begin is not None:
            begin, self._begin = self._begin, None
            self._show_stage(Cursor(step=self._workspace.cursor.step, stage=begin))
        elif self._workspace.following:  # the last update may arrive after the notice that the run has stopped
            self._play_update(by_hand=self._by_hand)

    def _play_update(self, *, by_hand: bool = False) -> None:
        """Play the film of the update shown: after a single step always, otherwise only at slow speeds."""
        slow = not self._at_once and self.speed is not None and self.speed <= STAGED_SPEED
        if self.staged and (slow or by_hand):
            interval = 1 / self.speed if self.speed is not None and slow else math.inf
            self._run_after_film = False  # of an update that was already computing when the run was paused
            self.film.play(update_film(self._workspace.cursor.step, self._passes, interval), whole=True)

    def _show_stage(self, here: Cursor) -> None:
        """Reveal a stage: as a film, or at once."""
        self._workspace.show_stage(here.stage, here.passed)
        if self.staged:
            self.film.play(stage_film(self._workspace.cursor, self._passes))

    @property
    def busy(self) -> bool:
        """Whether the run shown is moving: a film plays, recorded updates are replayed, or new ones are computed.

        A run whose model is still loading does not count: it can be started, and will run once loaded.
        """
        here = self._workspace.training in (None, self._workspace.run)
        computing = self.mode is Mode.COMPUTING and (self._ordered or not self.loading)
        return self.mode is Mode.REPLAYING or (computing and here) or self.film.playing

    @property
    def loading(self) -> bool:
        """Whether the run's learner is being prepared, which takes some seconds for a language model."""
        return self._controller.state is State.PREPARING

    @property
    def progress(self) -> Progress | None:
        """Progress of the update that is being computed. None where updates are quick or none is computed."""
        return self._controller.progress

    @property
    def _behind(self) -> bool:
        run = self._workspace.run
        return run is not None and self._workspace.cursor.step < run.head

    @property
    def _passes(self) -> int:
        return max(self._workspace.view.step.passes, 1)

    @property
    def _half_revealed(self) -> bool:
        cursor = self._workspace.cursor
        return cursor.step > 0 and cursor.next_stage(self._passes) is not None

    def _reveal(self) -> None:
        self.film.end()
        cursor = self._workspace.cursor
        if cursor != Cursor(step=cursor.step):
            self._workspace.show_stage(Stage.UPDATE)

    def _compute(
        self, updates: int | None, begin: Stage | None = None, *, by_hand: bool = False, at_once: bool = False
    ) -> None:
        try:
            self.prepare()
        except GrpoError as error:
            self._workspace.problem.emit(str(error), "error")
            return
        self._begin, self._by_hand = begin, by_hand
        self._ordered, self._at_once = True, at_once
        self._workspace.follow()
        self._controller.set_speed(None if at_once else self.speed)
        self._controller.run(updates)
        self.changed.emit()

    def _start_replay(self) -> None:
        self._at_once = False
        speed = min(self.speed or FASTEST_REPLAY, FASTEST_REPLAY)
        self._stride = max(round(speed / MOST_SHOWN), 1)
        self._replay.start(round(1000 * self._stride / speed))
        self._enter(Mode.REPLAYING)

    @Slot()
    def _on_replay(self) -> None:
        if self._behind:
            self._workspace.move_to(self._workspace.cursor.step + self._stride)
            self._play_update()
            return
        run_on = self._run_on
        self._stop_replay()
        if run_on:
            self._compute(self.length)

    def _stop_replay(self) -> None:
        """Stop replaying. Another run may be training meanwhile."""
        self._run_on = False
        self._replay.stop()
        if self.mode is Mode.REPLAYING:
            self._enter(Mode.COMPUTING if self._controller.state in MOVING else Mode.RESTING)

    @Slot()
    def _on_film_finished(self) -> None:
        """Resume a run that was paused together with its film."""
        if self._run_after_film:
            self._run_after_film = False
            self.run()

    @Slot(object)
    def _on_state(self, state: State) -> None:
        if state in MOVING and self.mode is not Mode.REPLAYING:
            self._enter(Mode.COMPUTING)
        elif self.mode is Mode.COMPUTING:
            self._ordered = False
            self._enter(Mode.RESTING)

    def _enter(self, mode: Mode) -> None:
        self.mode = mode
        self._workspace.set_running(mode is not Mode.RESTING)
        self.changed.emit()

    def stop(self) -> None:
        """Stop all timers."""
        self._replay.stop()
        self.film.end()


def _is_language(run: RunHandle | None) -> bool:
    return run is not None and run.origin.settings.is_language


def _nothing() -> None:
    return None

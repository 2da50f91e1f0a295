"""Handling of commands while there is no process: some are carried out here, others need a new process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from app.training.recovery import recovered
from grpo_core.host.commands import (
    Ask,
    Begin,
    Close,
    Command,
    Commit,
    Look,
    OneStep,
    Pause,
    Run,
    SetBreakpoints,
    SetSettings,
    SetSpeed,
    Settle,
    Shutdown,
)
from grpo_core.host.reports import Failure, Outlet, Report, State
from grpo_core.host.run_output import Writers
from grpo_core.questions import AnyAnswer, AnyQuestion
from grpo_core.text import tr


class StandIn:
    """Replaces a process that has ended: closes its files, makes its missing reports, and keeps what another process
    would need.

    Attributes:
        begins: by id, the begin commands, as of now, of the runs whose file may be open in the process; the current run
            is last.
        awaited: unanswered questions, and tokens of commands that a thread waits for.

    Args:
        outlet: the receiver of results and reports.
        writers: makes the writers of run files, for updates that the process finished but did not write.
    """

    def __init__(self, outlet: Outlet, writers: Writers) -> None:
        self.begins: dict[str, Begin] = {}
        self.awaited: list[AnyQuestion | int] = []
        self._current = ""  # id of the run that trains
        self._order = 0  # the highest order number of a command so far
        self._outlet, self._writers = outlet, writers

    @property
    def current(self) -> Begin | None:
        """The command that would begin the current run now. None without one."""
        return self.begins.get(self._current)

    # -- while there is a process ----------------------------------------------------------------------------------

    def note(self, command: Command) -> None:
        """Keep the part of a command that outlives the process it is sent to."""
        self._order = max(self._order, command.order)
        match command:
            case Begin(run_id=run_id):
                self.begins.pop(run_id, None)
                self.begins[run_id] = command
                self._current = run_id
            case Close(run_id=run_id) if run_id == self._current:
                self._current = ""
            case SetSettings(run_id=run_id, settings=settings) if run_id in self.begins:
                self.begins[run_id] = replace(self.begins[run_id], settings=settings)
            case Ask(question=question):
                self.awaited.append(question)
            case Commit(token=token) | Settle(token=token):
                self.awaited.append(token)
            case Run() | OneStep() | Pause() | Look() | Shutdown() | Close() | SetSettings():
                pass  # carried out once, or for a run that is no longer current
            case SetSpeed() | SetBreakpoints():
                pass  # every process is told when it starts
            case _:
                raise TypeError(f"nobody has said whether {command!r} outlives a process")

    def closed(self, run_id: str, order: int) -> None:
        """Note that the process has closed a run's file, after the command ``order``. The run may have begun again
        since then."""
        if run_id in self.begins and self.begins[run_id].order <= order:
            del self.begins[run_id]

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """Forward an answer, or the sentence why there is none."""
        self._settled(question)
        self._outlet.answer(question, answer)

    def done(self, token: int) -> None:
        """Forward that a command has been carried out."""
        self._settled(token)
        self._outlet.done(token)

    def _settled(self, awaited: AnyQuestion | int) -> None:
        with suppress(ValueError):
            self.awaited.remove(awaited)

    # -- when it has ended -----------------------------------------------------------------------------------------

    def take_over(
        self, sentence: str, unheard: Sequence[Command], *, gave_up_loading: bool = False
    ) -> Sequence[Command]:
        """Take over after the process ended for the reason in ``sentence``: keep its finished updates, and report.

        Args:
            sentence: for the user.
            unheard: commands that it did not carry out; a shutdown among them ends all runs.
            gave_up_loading: whether it was killed while loading, so that other commands need not wait.

        Returns:
            The commands still to be carried out. No run is restarted automatically, except one that was held up while
            another one loaded.
        """
        leaving = any(isinstance(command, Shutdown) for command in unheard)
        held_up = self._held_up(unheard) if gave_up_loading and not leaving else []
        for awaited in [*self.awaited]:
            if isinstance(awaited, int):
                self.done(awaited)
            else:
                self.answer(awaited, sentence)
        self._close_others()
        if self.current is None or held_up:
            self._outlet.tell(sentence)
        elif not leaving:
            # also a run that it had not begun yet, because whatever ended it may end the next process as well
            self._fail(sentence)
        if held_up:
            return held_up
        given_up = (Begin, Run, OneStep, Pause, Ask, Commit, Settle)
        return [command for command in (unheard[-1:] if leaving else unheard) if not isinstance(command, given_up)]

    def _held_up(self, unheard: Sequence[Command]) -> list[Command]:
        """The commands of the current run, from its beginning on, if its process had not begun it. Empty otherwise."""
        begun = [n for n, c in enumerate(unheard) if isinstance(c, Begin) and c.run_id == self._current]
        return [c for c in unheard[begun[-1] :] if not isinstance(c, (Ask, Commit, Settle))] if begun else []

    def obey(self, command: Command) -> Sequence[Command]:
        """Carry out ``command``. Returns the commands that another process has to carry out for it, in this order."""
        current = self.current
        match command:
            case Begin(run_id=run_id):
                self._close_others()
                return [command, Look(run_id=run_id)]
            case Run() | OneStep() | Ask() if current is not None and command.run_id == current.run_id:
                return [current, Look(run_id=current.run_id), command]  # the last updates requested never arrived
            case Ask(question=question):
                self.answer(question, tr("The question was given up."))
            case Close(run_id=run_id):
                if run_id in self.begins:
                    self._close(run_id)
                else:
                    self._report(State.IDLE)
            case Pause(run_id=run_id) if run_id in self.begins:
                self._report(State.FAILED)  # where it has been since its process ended
            case Commit(token=token) | Settle(token=token):
                self.done(token)
            case Shutdown():
                self._current = ""
                self._close_others()
            case SetSpeed() | SetBreakpoints() | Look() | SetSettings():
                pass  # another process is told when it starts
            case Run() | OneStep() | Pause():
                pass  # for a run that is gone
            case _:
                raise TypeError(f"a host knows no command {command!r}")
        return []

    def _fail(self, sentence: str) -> None:
        begin, reason = recovered(self.begins[self._current], self._writers)
        self.begins[self._current] = begin
        sentence = f"{sentence} {reason}" if reason is not None else sentence
        self._report(State.FAILED, Failure(run_id=begin.run_id, sentence=sentence, step=begin.buffer.head))

    def _close_others(self) -> None:
        """Close the files of the runs that are not current."""
        for run_id in [run_id for run_id in self.begins if run_id != self._current]:
            self._close(run_id)

    def _close(self, run_id: str) -> None:
        """Close the file of a run that its process left open."""
        begin, reason = recovered(self.begins.pop(run_id), self._writers)
        failure = None
        if reason is not None:
            failure = Failure(run_id=run_id, sentence=str(reason), step=begin.buffer.head)
        self._report(State.IDLE, failure, closed=run_id)

    def _report(self, state: State, failure: Failure | None = None, closed: str = "") -> None:
        run_id = "" if state is State.IDLE else self._current
        self._outlet.report(Report(run_id=run_id, order=self._order, state=state, failure=failure, closed=closed))

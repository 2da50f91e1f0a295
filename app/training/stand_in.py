"""Handling of commands while there is no process: some are carried out here, others need a new process."""

from __future__ import annotations

from collections.abc import Sequence

from app.training.recovery import recovered
from app.training.restart_state import RestartState
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
    """Replaces a process that has ended: closes its files, and makes its missing reports.

    Args:
        state: the state that another process would need.
        outlet: the receiver of results and reports.
        writers: makes the writers of run files, for updates that the process finished but did not write.
    """

    def __init__(self, state: RestartState, outlet: Outlet, writers: Writers) -> None:
        self._state, self._outlet, self._writers = state, outlet, writers

    def answer(self, question: AnyQuestion, answer: AnyAnswer | str) -> None:
        """Forward an answer, or the sentence why there is none. The question is settled."""
        self._state.answered(question)
        self._outlet.answer(question, answer)

    def done(self, token: int) -> None:
        """Forward that a command has been carried out. Its token is settled."""
        self._state.tokens.discard(token)
        self._outlet.done(token)

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
        for question in [*self._state.questions]:
            self.answer(question, sentence)
        for token in [*self._state.tokens]:
            self.done(token)
        for run_id in self._state.others:
            self._close(run_id)
        if self._state.current_begin is None or held_up:
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
        begun = [n for n, c in enumerate(unheard) if isinstance(c, Begin) and c.run_id == self._state.current]
        return [c for c in unheard[begun[-1] :] if not isinstance(c, (Ask, Commit, Settle))] if begun else []

    def obey(self, command: Command) -> Sequence[Command]:
        """Carry out ``command``. Returns the commands that another process has to carry out for it, in this order."""
        current = self._state.current_begin
        match command:
            case Begin(run_id=run_id):
                for other in [other for other in self._state.begins if other != run_id]:
                    self._close(other)
                return self._begun_again(command)
            case Run() | OneStep() | Ask() if current is not None and command.run_id == current.run_id:
                return [*self._begun_again(current), command]
            case Ask(question=question):
                self.answer(question, tr("The question was given up."))
            case Close(run_id=run_id):
                if run_id in self._state.begins:
                    self._close(run_id)
                else:
                    self._report(State.IDLE)
            case Pause(run_id=run_id) if run_id in self._state.begins:
                self._report(State.FAILED)  # where it has been since its process ended
            case Commit(token=token) | Settle(token=token):
                self.done(token)
            case Shutdown():
                for other in [*self._state.begins]:
                    self._close(other)
            case SetSpeed() | SetBreakpoints() | Look() | SetSettings():
                pass  # recorded in the state
            case Run() | OneStep() | Pause():
                pass  # for a run that is gone
            case _:
                raise TypeError(f"a host knows no command {command!r}")
        return []

    def _begun_again(self, begin: Begin) -> list[Command]:
        """The commands that begin a run in another process. The window never received the updates last requested from
        the old one."""
        return [self._state.speed, self._state.breakpoints, begin, Look(run_id=begin.run_id)]

    def _fail(self, sentence: str) -> None:
        begin, reason = recovered(self._state.begins[self._state.current], self._writers)
        self._state.begins[self._state.current] = begin
        sentence = f"{sentence} {reason}" if reason is not None else sentence
        self._report(State.FAILED, Failure(run_id=begin.run_id, sentence=sentence, step=begin.buffer.head))

    def _close(self, run_id: str) -> None:
        """Close the file of a run that its process left open."""
        begin, reason = recovered(self._state.begins.pop(run_id), self._writers)
        failure = None
        if reason is not None:
            failure = Failure(run_id=run_id, sentence=str(reason), step=begin.buffer.head)
        self._report(State.IDLE, failure, closed=run_id)

    def _report(self, state: State, failure: Failure | None = None, closed: str = "") -> None:
        run_id = "" if state is State.IDLE else self._state.current
        self._outlet.report(Report(run_id=run_id, order=self._state.order, state=state, failure=failure, closed=closed))

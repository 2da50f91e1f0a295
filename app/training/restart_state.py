"""The state needed to continue in another process after a run's process has ended."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

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
from grpo_core.questions import AnyQuestion


class RestartState:
    """The commands that outlive a process, updated as they are sent.

    Attributes:
        begins: by id, the begin commands, as of now, of the runs whose file may be open in the process; the current run
            is last.
        current: id of the run that trains; empty for none.
        order: the highest order number of a command so far.
        speed, breakpoints: the last commands of their kinds.
        questions: unanswered questions.
        tokens: tokens of commands that a thread waits for.
    """

    def __init__(self) -> None:
        self.begins: dict[str, Begin] = {}
        self.current = ""
        self.order = 0
        self.speed = SetSpeed(speed=None)
        self.breakpoints = SetBreakpoints(breakpoints=())
        self.questions: list[AnyQuestion] = []
        self.tokens: set[int] = set()

    def note(self, command: Command) -> None:
        """Record the part of a command that another process would need."""
        self.order = max(self.order, command.order)
        match command:
            case Begin(run_id=run_id):
                self.begins.pop(run_id, None)
                self.begins[run_id] = command
                self.current = run_id
            case Close(run_id=run_id) if run_id == self.current:
                self.current = ""
            case SetSettings(run_id=run_id, settings=settings) if run_id in self.begins:
                self.begins[run_id] = replace(self.begins[run_id], settings=settings)
            case SetSpeed():
                self.speed = command
            case SetBreakpoints():
                self.breakpoints = command
            case Ask(question=question):
                self.questions.append(question)
            case Commit(token=token) | Settle(token=token):
                self.tokens.add(token)
            case Run() | OneStep() | Pause() | Look() | Shutdown() | Close() | SetSettings():
                pass  # carried out once, or for a run that is no longer current
            case _:
                raise TypeError(f"nobody has said whether {command!r} outlives a process")

    def answered(self, question: AnyQuestion) -> None:
        """Record that a question has been answered or refused."""
        with suppress(ValueError):
            self.questions.remove(question)

    def closed(self, run_id: str, order: int) -> None:
        """Record that the process has closed a run's file, after the command ``order``. The run may have begun again
        since then."""
        if run_id in self.begins and self.begins[run_id].order <= order:
            del self.begins[run_id]

    @property
    def current_begin(self) -> Begin | None:
        """The command that would begin the current run now. None without one."""
        return self.begins.get(self.current)

    @property
    def others(self) -> list[str]:
        """Ids of the runs that are not current though their files may be open."""
        return [run_id for run_id in self.begins if run_id != self.current]

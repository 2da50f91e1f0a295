"""The language model's process as the worker thread sees it: a learner like any other.

torch, its import, its threads and its errors stay in that process; the window is neither slowed nor killed by them.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from grpo_core.config import Settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.learners import NO_TORCH, Earlier, Learner, leading_to, learner, never, nothing_earlier
from grpo_core.model_process import error_told, receive, receive_step, send, send_step, serve
from grpo_core.questions import AnyAnswer, AnyQuestion, answer_from_json
from grpo_core.record import Step
from grpo_core.text import tr

LOOK = 0.02
"""Seconds between two looks at whether the answer is still wanted; an answer that is there is taken at once."""
GRACE = 5.0
"""Seconds that the process has to end by itself."""


class ModelProcess:
    """A running process, one request at a time. Used by one thread.

    Attributes:
        devices: what models can be computed on, in words; empty until it is ready.
    """

    def __init__(self) -> None:
        if find_spec("torch") is None or find_spec("safetensors") is None:
            raise GrpoError(NO_TORCH)
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), name="language model", daemon=True)
        self.devices: tuple[str, ...] = ()
        try:
            self._process.start()
        except OSError as error:
            self._connection.close()
            raise GrpoError(
                tr("The language model's process could not be started: {strerror}.").format(strerror=error.strerror)
            ) from None
        finally:
            other.close()

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it can be asked something."""
        return not self._connection.closed and self._process.is_alive()

    def ready(self, cancelled: Callable[[], bool]) -> None:
        """Wait until torch is loaded.

        Raises:
            Cancelled: ``cancelled()`` turned true; it goes on loading.
            GrpoError: it cannot be loaded.
        """
        if not self.devices:
            self.devices = tuple(self._answer(cancelled, give_up=False)["devices"])

    def ask(self, request: dict[str, Any], cancelled: Callable[[], bool], history: Sequence[Step] = ()) -> Any:
        """The answer to a request: a message, or the step that it announces.

        Raises:
            Cancelled: ``cancelled()`` turned true, and the process has given the request up.
            GrpoError: what went wrong there, or the process has ended.
        """
        try:
            send(self._connection, request | {"history": len(history)})
            for step in history:
                send_step(self._connection, step)
        except OSError:
            raise self._ended() from None
        head = self._answer(cancelled)
        try:
            return receive_step(self._connection, head) if head["is"] == "step" else head
        except (EOFError, OSError):
            raise self._ended() from None

    def close(self) -> None:
        """End the process; it ends by itself when nobody listens any more."""
        self._connection.close()
        if self._process.pid is None:
            return
        self._process.join(GRACE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def _answer(self, cancelled: Callable[[], bool], *, give_up: bool = True) -> dict[str, Any]:
        told = False
        try:
            while not self._connection.poll(LOOK):
                if not told and cancelled():
                    if not give_up:
                        raise Cancelled(tr("The language model was being loaded."))
                    send(self._connection, {"do": "cancel"})
                    told = True
            message = receive(self._connection)
        except (EOFError, OSError):
            raise self._ended() from None
        if message["is"] == "error":
            raise error_told(message)
        return message

    def _ended(self) -> GrpoError:
        self._connection.close()
        self._process.join(GRACE)
        code = self._process.exitcode
        how = (
            tr("killed by signal {code}").format(code=-code)
            if code is not None and code < 0
            else tr("exit code {code}").format(code=code)
        )
        return GrpoError(
            tr(
                "The language model's process has ended unexpectedly ({how}). Every finished update is in "
                "the run's file; "
                "press Run to load the model again and go on. If that happens again, memory may be short: choose fewer "
                "prompts or a smaller group."
            ).format(how=how)
        )


class RemoteLearner:
    """A language model that learns in its process (see :class:`grpo_core.learners.Learner`).

    Attributes:
        note: what the user should know of how the run was taken up again; empty for nothing.
    """

    def __init__(
        self, process: ModelProcess, settings: Settings, history: Sequence[Step], cancelled: Callable[[], bool]
    ) -> None:
        self._process, self._cancelled = process, cancelled
        self._settings = settings
        process.ready(cancelled)
        begun = process.ask({"do": "begin", "settings": settings.to_json()}, cancelled, history)
        self.note = _drifted(begun["drift"])

    @property
    def settings(self) -> Settings:
        """What the next update runs under."""
        return self._settings

    @settings.setter
    def settings(self, wanted: Settings) -> None:
        self._settings.refuse_structural(wanted)
        self._settings = wanted

    def __iter__(self) -> Iterator[Step]:
        return self

    def __next__(self) -> Step:
        step: Step = self._process.ask({"do": "next", "settings": self._settings.to_json()}, self._cancelled)
        return step

    def ask(self, question: AnyQuestion, step: Step, earlier: Earlier) -> AnyAnswer:
        """The answer to a question about ``step``.

        Raises:
            GrpoError: it cannot be answered; the message says why.
        """
        before = leading_to(earlier(step.step - 1), earlier) if step.step > 1 else []
        request = {"do": "ask", "question": question.to_json()}
        return answer_from_json(question, self._process.ask(request, self._cancelled, [*before, step])["answer"])


class WindowLearners:
    """Makes the learners of a window: the bandit's in the worker thread, the language model's in one process that is
    started when it is first needed and then kept."""

    def __init__(self) -> None:
        self._process: ModelProcess | None = None

    def __call__(
        self,
        settings: Settings,
        *,
        resume: Step | None = None,
        earlier: Earlier = nothing_earlier,
        cancelled: Callable[[], bool] = never,
    ) -> Learner:
        if not settings.is_language:
            return learner(settings, resume=resume, cancelled=cancelled)
        if self._process is None or not self._process.alive:
            self.close()
            self._process = ModelProcess()
        return RemoteLearner(self._process, settings, leading_to(resume, earlier), cancelled)

    @property
    def devices(self) -> tuple[str, ...]:
        """What models can be computed on, in words; empty until the process has said so."""
        return () if self._process is None else self._process.devices

    @property
    def pid(self) -> int | None:
        """The number of the language model's process, None without one."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


def _drifted(drift: float) -> str:
    if drift == 0:
        return ""
    return tr(
        "The run was recorded on another machine or build: replayed here, its log-probabilities differ by up to "
        "{drift:.1g} nats, so what follows is a continuation of its own."
    ).format(drift=drift)

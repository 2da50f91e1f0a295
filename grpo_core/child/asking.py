"""A child process that answers one question at a time, from the side that asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grpo_core.child.answering import Pack, Poll, Unpack, as_json, from_json
from grpo_core.child.limits import Limits
from grpo_core.child.process import ChildProcess
from grpo_core.child.start import Main
from grpo_core.child.wire import error_from
from grpo_core.errors import GrpoError
from grpo_core.text import tr

LOOK = 0.02
"""Seconds between two looks at whether the results are still wanted; a result that is there is taken at once."""
PATIENCE = 5.0
"""Seconds in which a process has to give a question up; then it is killed."""
STARTING = 60.0
"""Seconds that it has for its start."""
_NO_LIMITS = Limits()


class Asked:
    """A process that works on one question at a time (:func:`grpo_core.child.answering.answer`). Used by one thread
    at a time.

    Attributes:
        lost: the sentence for its unexpected end, with “{how}” for how it ended.
        usable: it may be asked another question.
        busy: it has not yet ended its answer.

    Raises:
        GrpoError: none can be started here.
    """

    def __init__(
        self,
        main: Main,
        lost: str,
        *,
        pack: Pack = as_json,
        unpack: Unpack = from_json,
        limits: Limits = _NO_LIMITS,
        environment: Mapping[str, str] | None = None,
        error: type[GrpoError] = GrpoError,
    ) -> None:
        """Start it.

        Args:
            main: its life, which calls ``answer`` with a table.
            lost: the sentence for its unexpected end.
            pack: for the list of arguments.
            unpack: for each result.
            limits: what it may use.
            environment: variables that it has besides those of this process.
            error: what its unexpected end is raised as.
        """
        self.usable, self.busy = True, False
        self._process = ChildProcess(main, limits=limits, environment=environment)
        self.lost, self._error = lost, error
        self._pack, self._unpack = pack, unpack

    @property
    def pid(self) -> int | None:
        """The process's number, None once it has been closed."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is there no longer: something else may have ended it while it was idle."""
        return self._process.has_ended

    def await_ready(self) -> None:
        """Wait until it has started.

        Raises:
            GrpoError: it has ended instead.
        """
        try:
            if self._process.connection.poll(STARTING) and self._process.received():
                return
        except (EOFError, OSError):
            pass
        self._process.kill()
        raise self._lost()

    def ask(self, what: str, arguments: Sequence[object]) -> None:
        """Begin a question, whose results come from :meth:`heard`.

        Raises:
            GrpoError: the process has ended.
        """
        tree, blobs = self._pack([*arguments])
        self.busy = True
        try:
            self._process.send({"do": "ask", "what": what, "arguments": tree}, blobs)
        except OSError:
            raise self._lost() from None

    def heard(self, passes: Callable[[int], None] = lambda count: None) -> Iterator[Any]:
        """Yield the results that have arrived, without a wait, and tell ``passes`` how many passes were made since.

        Raises:
            GrpoError: what went wrong there, or the process has ended.
        """
        try:
            messages = self._process.received()
        except (EOFError, OSError):
            raise self._lost() from None
        for message in messages:
            match message["is"]:
                case "passes":
                    passes(message["count"])
                case "result":
                    yield self._unpack(message["result"], message.get("blobs", ()))
                case "end":
                    self.busy = False
                case "error":
                    self.busy = False
                    raise error_from(message)
                case "ready":
                    pass
                case kind:
                    raise ValueError(f"a process that was asked said {kind!r}")

    def results(
        self, what: str, arguments: Sequence[object], poll: Poll, seconds: float | None = None
    ) -> Iterator[Any]:
        """Yield the results of a question as they come, and call ``poll`` at least as often as the answer makes passes.

        Args:
            what: a name of the process's table.
            arguments: what it is asked with.
            poll: what it raises gives the question up.
            seconds: the longest silence: a process that says nothing for so long is killed; None for none.

        Raises:
            Cancelled: ``poll`` raised it, and the process has given the question up.
            GrpoError: what went wrong there, or the process has ended, or was late.
        """
        owed, end = 0, None if seconds is None else time.monotonic() + seconds

        def passed(count: int) -> None:
            nonlocal owed
            owed += count
            while owed > 0:
                owed -= 1
                poll()

        try:
            self.ask(what, arguments)
            while self.busy:
                if end is not None and time.monotonic() >= end:
                    self.kill()
                    raise self._lost(tr("it did not answer for {seconds:g} seconds").format(seconds=seconds))
                if not self._process.connection.poll(LOOK):
                    owed -= 1
                    poll()
                    continue
                yield from self.heard(passed)
                end = None if seconds is None else time.monotonic() + seconds
        finally:
            if self.busy:
                self.give_up()

    def cancel(self) -> None:
        """Ask it to give the question up, so that the answer ends with ``Cancelled``."""
        try:
            self._process.send({"do": "cancel"})
        except OSError:
            self.usable = False

    def kill(self) -> None:
        """End it at once, from any thread."""
        self.usable = False
        self._process.kill()

    def close(self) -> None:
        """End the process: it ends by itself when it notices that nobody asks any more."""
        self.usable = self.busy = False
        self._process.connection.close()
        self._process.close(PATIENCE)

    def give_up(self, patience: float = PATIENCE) -> None:
        """Give the question up, and kill the process where it is not ready for another within ``patience`` seconds."""
        deadline = time.monotonic() + patience
        self.cancel()
        try:
            while self.usable and self._process.connection.poll(max(0.0, deadline - time.monotonic())):
                if any(message["is"] in ("end", "error") for message in self._process.received()):
                    self.busy = False
                    return
        except (EOFError, OSError):
            self.usable = False
            return
        self.kill()

    def _lost(self, how: str = "") -> GrpoError:
        self.usable = self.busy = False
        ended = self._process.close(PATIENCE)
        return self._error(self.lost.format(how=how or ended))

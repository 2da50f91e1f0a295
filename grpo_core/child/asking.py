"""The parent's side of a child process that answers one question at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grpo_core.child.answering import Pack, Poll, Unpack, as_json, from_json
from grpo_core.child.process import ChildProcess
from grpo_core.child.start import Limits, Main
from grpo_core.child.wire import MalformedError, error_from
from grpo_core.errors import GrpoError, shortened
from grpo_core.text import tr

LOOK = 0.02
"""Interval in seconds between two checks for cancellation. A result is taken as soon as it arrives."""
PATIENCE = 5.0
"""Time limit in seconds for stopping a cancelled question, after which the process is killed."""
STARTING = 60.0
"""Time limit in seconds for the start of a process."""
_NO_LIMITS = Limits()


class Asked:
    """A child process that answers one question at a time (:func:`grpo_core.child.answering.answer`). Must be used by
    one thread at a time.

    Attributes:
        lost: message if it ends unexpectedly, with “{how}” as a placeholder for how it ended.
        usable: whether it can be asked another question.
        busy: whether an answer is in progress.

    Raises:
        GrpoError: no process can be started here.
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
        """Start the process.

        Args:
            main: its main function, which calls ``answer`` with a table.
            pack: converts the list of arguments.
            unpack: converts each result back.
            error: exception type for its unexpected end.
        """
        self.usable, self.busy = True, False
        self._why, self._ready = "", False
        self._process = ChildProcess(main, limits=limits, environment=environment)
        self.lost, self._error = lost, error
        self._pack, self._unpack = pack, unpack

    @property
    def pid(self) -> int | None:
        """The process ID, or None once the process has been closed."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, even if something else ended it while it was idle."""
        return self._process.has_ended

    def await_ready(self) -> None:
        """Wait until the process has started.

        Raises:
            GrpoError: it has ended instead.
        """
        try:
            if self._process.connection.poll(STARTING) and self._process.received():
                self._ready = True
                return
        except (EOFError, OSError, MalformedError):
            pass
        self._process.kill()
        raise self._lost()

    def ask(self, what: str, arguments: Sequence[object]) -> None:
        """Send a question, whose results :meth:`heard` yields.

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
        """Yield the results that have arrived, without blocking, and report new passes to ``passes``.

        Raises:
            GrpoError: the answer failed, or the process has ended.
        """
        try:
            messages = self._process.received()
        except (EOFError, OSError):
            raise self._lost() from None
        except MalformedError as error:
            raise self.malformed(error) from error
        for message in messages:
            match message:
                case {"is": "passes", "count": int(count)} if count > 0:
                    passes(count)
                case {"is": "result", "result": tree}:
                    try:
                        result = self._unpack(tree, message.get("blobs", ()))
                    except Exception as error:  # whatever it sent
                        raise self.malformed(error) from error
                    yield result
                case {"is": "end"}:
                    self.busy = False
                case {"is": "error"}:
                    self.busy = False
                    try:
                        told = error_from(message)
                    except Exception as error:  # likewise
                        raise self.malformed(error) from error
                    raise told
                case {"is": "ready"} if not self._ready:
                    self._ready = True
                case _:
                    raise self.malformed(f"{shortened(message)}")

    def results(
        self, what: str, arguments: Sequence[object], poll: Poll, seconds: float | None = None
    ) -> Iterator[Any]:
        """Ask a question, yield its results as they arrive, and call ``poll`` at least once per pass.

        Args:
            poll: can raise an exception to cancel the question.
            seconds: maximum time without a message, after which the process is killed; None for no limit.

        Raises:
            Cancelled: raised by ``poll``, and the process has stopped.
            GrpoError: the answer failed, or the process has ended or timed out.
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
                    raise self._lost(tr("it did not respond for {seconds:g} seconds").format(seconds=seconds))
                if not self._process.connection.poll(LOOK):
                    owed -= 1
                    poll()
                    continue
                yield from self.heard(passed)
                end = None if seconds is None else time.monotonic() + seconds
        finally:
            if self.busy:
                self.give_up()

    def malformed(self, why: object) -> GrpoError:
        """Kill the process, and return the error that it sent something else than an answer."""
        self.kill(tr("it sent an answer that cannot be understood: {why}").format(why=shortened(why)))
        return self._lost()

    def cancel(self) -> None:
        """Cancel the question, from any thread, so that the answer ends with ``Cancelled``."""
        try:
            self._process.send({"do": "cancel"})
        except OSError:
            self.usable = False

    def kill(self, why: str = "") -> None:
        """Kill the process at once, from any thread. The error for its end says ``why``."""
        self.usable = False
        self._why = self._why or why
        self._process.kill()

    def close(self) -> None:
        """Close the connection, which makes the process end by itself, and wait until it has ended."""
        self.usable = self.busy = False
        self._process.connection.close()
        self._process.close(PATIENCE)

    def give_up(self, patience: float = PATIENCE) -> None:
        """Cancel the question, and kill the process if it is not ready for another within ``patience`` seconds."""
        deadline = time.monotonic() + patience
        self.cancel()
        try:
            while self.usable and self._process.connection.poll(max(0.0, deadline - time.monotonic())):
                if any(message.get("is") in ("end", "error") for message in self._process.received()):
                    self.busy = False
                    return
                if time.monotonic() > deadline:
                    break
        except (EOFError, OSError, MalformedError):
            self.usable = False
            return
        self.kill()

    def _lost(self, how: str = "") -> GrpoError:
        self.usable = self.busy = False
        ended = self._process.close(PATIENCE)
        return self._error(self.lost.format(how=self._why or how or ended))

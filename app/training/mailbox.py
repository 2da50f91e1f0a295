"""Commands waiting for the worker, which reads them between two updates, or at once while it is idle."""

from __future__ import annotations

import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from grpo_core.host.commands import Command


class Mailbox:
    """A queue of commands with one reader and any number of writers. Writers never wait.

    The reader can wait for a command and for a connection at the same time, because posting makes another connection,
    the bell, readable.
    """

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._lock = threading.Lock()
        self._urgent = 0
        self._bell, self._button = Pipe(duplex=False)

    def post(self, command: Command) -> None:
        """Add a command. A thread waiting in :meth:`take` wakes at once."""
        with self._lock:
            if not self._commands:  # at most one byte is in the pipe, so that writing never blocks
                self._button.send_bytes(b"!")
            self._commands.append(command)
            self._urgent += command.urgent

    def take(self, timeout: float | None = 0.0, beside: Connection | None = None) -> list[Command]:
        """Return all commands in the mailbox, oldest first.

        Args:
            timeout: seconds to wait for the first command; 0 not to wait, None to wait without limit.
            beside: another connection that ends the wait when it becomes readable.
        """
        if timeout != 0 and not self._commands:
            wait([self._bell] if beside is None else [self._bell, beside], timeout)
        with self._lock:
            commands, self._commands, self._urgent = self._commands, [], 0
            if commands:
                self._bell.recv_bytes()
            return commands

    def interrupts(self) -> bool:
        """Return whether a waiting command requires the update in progress to be cancelled."""
        return self._urgent > 0

"""Commands on their way to the worker. It reads them between two updates, and at once while it waits."""

from __future__ import annotations

import threading
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from grpo_core.host.commands import Command


class Mailbox:
    """A queue of commands with one reader, and any number of writers. No writer ever waits.

    A reader that waits can wait for a connection at the same time: posting rings a bell, which is a connection too.
    """

    def __init__(self) -> None:
        self._commands: list[Command] = []
        self._lock = threading.Lock()
        self._urgent = 0
        self._bell, self._button = Pipe(duplex=False)

    def post(self, command: Command) -> None:
        """Leave a command. Whoever waits in :meth:`take` wakes at once."""
        with self._lock:
            if not self._commands:  # one byte at most is under way, so that this never waits
                self._button.send_bytes(b"!")
            self._commands.append(command)
            self._urgent += command.urgent

    def take(self, timeout: float | None = 0.0, beside: Connection | None = None) -> list[Command]:
        """All commands that are there, oldest first.

        Args:
            timeout: seconds to wait for the first one, asleep; 0 not at all, None without limit.
            beside: a connection that ends the wait as well when it has something to say.
        """
        if timeout != 0 and not self._commands:
            wait([self._bell] if beside is None else [self._bell, beside], timeout)
        with self._lock:
            commands, self._commands, self._urgent = self._commands, [], 0
            if commands:
                self._bell.recv_bytes()
            return commands

    def interrupts(self) -> bool:
        """Whether a command waits for which the update in progress is to be given up."""
        return self._urgent > 0

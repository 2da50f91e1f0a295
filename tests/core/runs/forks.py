"""Processes that write until they are killed: a server forks one for each line, and the test kills it.

Forking from one warm process makes a kill cheap.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[3]


def say(*words: object) -> None:
    """Print one line in a single write, so that a kill never leaves half of it."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def serve(write: Callable[[Path, int], None]) -> None:
    """Fork a process that calls ``write`` for each path and number on standard input, until that ends."""
    for line in sys.stdin:
        number, path = line.rstrip("\n").split(" ", 1)
        child = os.fork()
        if child == 0:
            write(Path(path), int(number))
            os._exit(0)
        say("pid", child)
        os.waitpid(child, 0)
        say("dead")


class Server:
    """The process that runs ``module``, which serves."""

    def __init__(self, module: str) -> None:
        command = [sys.executable, "-m", module]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def killed(
        self, path: Path, number: int, may_be: Callable[[list[list[str]]], bool], pause: float = 0.0
    ) -> list[list[str]]:
        """Return the lines of a process that was killed ``pause`` seconds after they allowed it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number} {path}\n")
        self._process.stdin.flush()
        said: list[list[str]] = []
        pid, shot = 0, False
        while (line := self._line()) != ["dead"]:
            if line[0] == "pid":
                pid = int(line[1])
            else:
                said.append(line)
            if pid and not shot and may_be(said):
                until = time.perf_counter() + pause  # in the middle of whatever it does now
                while time.perf_counter() < until:
                    pass
                os.kill(pid, signal.SIGKILL)
                shot = True
        return said

    def close(self) -> None:
        self._process.communicate()

    def _line(self) -> list[str]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the writing process ended by itself"
        return line.split()

"""Regular expressions that somebody else wrote, matched by Python's ``re`` under a time limit.

``re`` itself has none; the package ``regex`` has one, but reads some patterns otherwise, and a recorded run's rewards
have to stay what they are. So the matching is done in a process of its own (``pattern_process.py``), which ends itself
when a match takes too long and is started again for the next.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from grpo_core.errors import GrpoError, shortened
from grpo_core.lm import pattern_process
from grpo_core.text import tr

COMMAND = "match"
"""The hidden command that is this process in a packaged program, which holds no scripts."""
_TRIES = 2
"""Processes that are tried: one may have been slow because the whole computer was."""
_PATIENCE = 4.0
"""Seconds after which a process that has not even ended itself is ended: somebody has stopped it, say."""
_AT_ONCE = 4096
"""Bytes that an empty pipe takes without waiting for a reader."""


class PatternMatcher:
    """Matches patterns, in whichever thread; its process is started with the first of them."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def check(self, pattern: str) -> None:
        """Whether ``pattern`` is a regular expression.

        Raises:
            GrpoError: it is none, or it takes too long to read.
        """
        self._answer(pattern, None)

    def found(self, pattern: str, text: str) -> bool:
        """Whether ``pattern`` is found anywhere in ``text``, as :func:`re.search` finds it.

        Raises:
            GrpoError: it is no regular expression, or the search takes too long; both are named.
        """
        return self._answer(pattern, text)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _answer(self, pattern: str, text: str | None) -> bool:
        request = json.dumps([pattern, text]).encode() + b"\n"
        with self._lock:
            for _ in range(_TRIES):
                answer = self._asked(request)
                if isinstance(answer, bool):
                    return answer
                if answer:
                    raise GrpoError(tr("it is no regular expression ({error})").format(error=shortened(answer)))
                self.close()
        if answer is None:
            raise GrpoError(
                tr(
                    "the process that matches regular expressions did not answer for {seconds:g} seconds, asked for "
                    "“{pattern}”, and was ended"
                ).format(pattern=pattern[:60], seconds=_PATIENCE)
            )
        if text is None:
            raise GrpoError(
                tr("the regular expression “{pattern}” takes too long to read").format(pattern=pattern[:60])
            )
        raise GrpoError(
            tr(
                "the regular expression “{pattern}” is still searching “{text}” after {seconds:g} seconds; write it "
                "without one repetition inside another"
            ).format(pattern=pattern[:60], text=text[:60], seconds=pattern_process.SECONDS)
        )

    def _asked(self, request: bytes) -> bool | str | None:
        """What the process answers; nothing ("") where it has ended itself, None where it had to be ended."""
        if self._process is None:
            self._process = _started()
            weakref.finalize(self, _end, self._process)
        process, late = self._process, False
        assert process.stdin is not None and process.stdout is not None
        with _killer(process, request) as killed:
            try:
                process.stdin.write(request)
                process.stdin.flush()
                late = not _says_something(process.stdout)
                line = b"" if late else process.stdout.readline()
            except OSError:
                line = b""
        answer: bool | str = json.loads(line) if line.endswith(b"\n") else ""
        return None if late or killed.is_set() else answer


@contextmanager
def _killer(process: subprocess.Popen[bytes], request: bytes) -> Iterator[threading.Event]:
    """Kills a process that is still at work on ``request`` after ``_PATIENCE`` seconds; whether it did.

    Only where :func:`_says_something` cannot wait instead, which costs a twentieth of a thread.
    """
    killed = threading.Event()
    if os.name == "posix" and len(request) <= _AT_ONCE:
        yield killed
        return

    def kill() -> None:
        killed.set()
        process.kill()

    timer = threading.Timer(_PATIENCE, kill)
    timer.start()
    try:
        yield killed
    finally:
        timer.cancel()


def _says_something(output: IO[bytes]) -> bool:
    """Wait until there is something to read, or the end of it; False where nothing comes for ``_PATIENCE`` seconds."""
    if os.name != "posix":  # select knows only sockets there
        return True
    poll = select.poll()
    poll.register(output, select.POLLIN)
    return bool(poll.poll(1000 * _PATIENCE))


def _started() -> subprocess.Popen[bytes]:
    if getattr(sys, "frozen", False):
        command = [sys.executable, COMMAND]
    else:
        command = [sys.executable, "-I", "-S", str(Path(pattern_process.__file__))]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
    except OSError as error:
        raise GrpoError(
            tr("the process that matches regular expressions could not be started: {error}").format(
                error=error.strerror or error
            )
        ) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when nobody asks any more, but not within a match."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(0.2)  # of one that is stopped, the end comes with SIGKILL alone
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@cache
def matcher() -> PatternMatcher:
    """The one of this process."""
    return PatternMatcher()

"""Regular expressions that somebody else wrote, matched by Python's ``re`` under a time limit.

``re`` itself has none; the package ``regex`` has one, but reads some patterns otherwise, and a recorded run's rewards
have to stay what they are. So the matching is done in a process of its own (``pattern_process.py``), which ends itself
when a match takes too long and is started again for the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path

from grpo_core.errors import GrpoError, shortened
from grpo_core.lm import pattern_process
from grpo_core.text import tr

COMMAND = "match"
"""The hidden command that is this process in a packaged program, which holds no scripts."""
_PATIENCE = 2
"""Processes that are tried: one may have been slow because the whole computer was."""


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
            for _ in range(_PATIENCE):
                answer = self._asked(request)
                if isinstance(answer, bool):
                    return answer
                if answer:
                    raise GrpoError(tr("it is no regular expression ({error})").format(error=shortened(answer)))
                self.close()
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

    def _asked(self, request: bytes) -> bool | str:
        """What the process answers; nothing where it has ended itself."""
        if self._process is None:
            self._process = _started()
            weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            return ""
        answer: bool | str = json.loads(line) if line.endswith(b"\n") else ""
        return answer


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
        process.wait(0.2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@cache
def matcher() -> PatternMatcher:
    """The one of this process."""
    return PatternMatcher()

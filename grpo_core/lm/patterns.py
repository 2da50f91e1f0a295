"""Regular expressions from users, matched by Python's ``re`` under a time limit.

``re`` itself has no time limit; the package ``regex`` has one, but interprets some patterns differently, and a recorded
run's rewards must not change. Matching is therefore done in a separate process (``pattern_process.py``), which exits
when a match takes too long and is restarted for the next.
"""

from __future__ import annotations

import threading
import time
import weakref
from functools import cache

from grpo_core.child.process import ChildProcess
from grpo_core.errors import GrpoError, shortened
from grpo_core.lm.pattern_process import SECONDS, matched_in_time, serve
from grpo_core.text import tr

_TRIES = 2
"""Number of attempts. The first can time out because the whole computer is busy."""
_PATIENCE = 4.0
"""Seconds after which a process that has not exited by itself, for example because it is suspended, is killed."""


class PatternMatcher:
    """Matcher that runs in a child process. Thread-safe; the process is started on first use.

    Attributes:
        here: whether it works in this process, which is itself one that may end, instead.
    """

    def __init__(self) -> None:
        self.here = False
        self._process: ChildProcess | None = None
        self._lock = threading.Lock()

    def check(self, pattern: str) -> None:
        """Check that ``pattern`` is a regular expression.

        Raises:
            GrpoError: it is not, or it takes too long to compile.
        """
        self._answer(pattern, None)

    def found(self, pattern: str, text: str) -> bool:
        """Return whether ``pattern`` is found anywhere in ``text``, like :func:`re.search`.

        Raises:
            GrpoError: it is not a regular expression, or the search takes too long; the message says which.
        """
        return self._answer(pattern, text)

    def close(self) -> None:
        """End the child process. The next request starts another one."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _answer(self, pattern: str, text: str | None) -> bool:
        with self._lock:
            for _ in range(_TRIES):
                answer = self._asked(pattern, text)
                if isinstance(answer, bool):
                    return answer
                if answer:
                    raise GrpoError(tr("it is not a regular expression ({error})").format(error=shortened(answer)))
                self.close()
        if answer is None:
            raise GrpoError(
                tr(
                    "the process that matches regular expressions did not respond for {seconds:g} seconds on "
                    "“{pattern}” and was stopped"
                ).format(pattern=pattern[:60], seconds=_PATIENCE)
            )
        if text is None:
            raise GrpoError(
                tr("the regular expression “{pattern}” takes too long to read").format(pattern=pattern[:60])
            )
        raise GrpoError(
            tr(
                "the regular expression “{pattern}” is still searching “{text}” after {seconds:g} seconds; write it "
                "without nested repetitions"
            ).format(pattern=pattern[:60], text=text[:60], seconds=SECONDS)
        )

    def _asked(self, pattern: str, text: str | None) -> bool | str | None:
        """Return the response of the process, "" if it exited by itself, or None if it did not respond in time."""
        if self.here:
            return matched_in_time(pattern, text)
        if self._process is None:
            self._process = ChildProcess(serve)
            weakref.finalize(self, _end, self._process)
        end = time.monotonic() + _PATIENCE
        try:
            self._process.send({"pattern": pattern, "text": text}, patience=_PATIENCE)
            message = self._process.receive(max(0.0, end - time.monotonic()))
        except (EOFError, OSError):
            return "" if time.monotonic() < end else None
        return None if message is None else message["answer"]


def _end(process: ChildProcess) -> None:
    """Kill the process, which may be in the middle of a match."""
    process.kill()
    process.close()


@cache
def matcher() -> PatternMatcher:
    """Return the matcher shared by this process."""
    return PatternMatcher()

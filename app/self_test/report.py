"""The report on the checks: one line each, and the number of failures."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable


class CheckFailed(Exception):  # noqa: N818 - what a check says, not what went wrong inside it
    """Raised by a failed check. The message continues a sentence after “because”."""


class CheckReport:
    """Runs checks and prints their results."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.failed = 0
        self.passed = 0

    def check(self, claim: str, look: Callable[[], str]) -> bool:
        """Run a check and print “ok”, ``claim`` and the result of ``look``, or “FAILED”, ``claim`` and the reason.

        A check fails if ``look`` raises an exception. Return whether it passed.
        """
        try:
            result = look()
        except CheckFailed as failure:
            why = str(failure)
        except Exception as error:  # whatever it is, later checks are still informative
            place = traceback.extract_tb(error.__traceback__)[-1]
            why = f"of {type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        else:
            self.passed += 1
            self._tell(f"ok      {claim}: {result}")
            return True
        self.failed += 1
        self._tell(f"FAILED  {claim}, because {why}")
        return False


def tell(line: str) -> None:
    """Print ``line`` at once, in a terminal of any encoding. Without a terminal, do nothing."""
    if sys.stdout is None:  # a windowed executable on Windows
        return
    encoding = sys.stdout.encoding or "ascii"
    print(line.encode(encoding, "replace").decode(encoding), flush=True)

"""One line for each check, and how many failed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable


class CheckFailed(Exception):  # noqa: N818 - what a check says, not what went wrong inside it
    """A check found something wrong. Its text goes on after “because”."""


class CheckReport:
    """Runs checks and prints what became of them.

    Attributes:
        failed: how many have failed.
        passed: how many have not.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.failed = 0
        self.passed = 0

    def check(self, claim: str, look: Callable[[], str]) -> bool:
        """Print “ok  claim: what ``look`` found”, or “FAILED  claim, because …” if it raises. Whether it holds."""
        try:
            result = look()
        except CheckFailed as failure:
            why = str(failure)
        except Exception as error:  # whatever it is, the checks after it still tell something
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
    """Print ``line`` at once, in a terminal of any encoding. Without a terminal it goes nowhere."""
    if sys.stdout is None:  # a windowed executable on Windows
        return
    encoding = sys.stdout.encoding or "ascii"
    print(line.encode(encoding, "replace").decode(encoding), flush=True)
